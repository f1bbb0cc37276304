/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/problems_json.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/date.h"
#include "base/utf8.h"

json_t *
json_time(int64_t wall_ms)
{
    char text[DATE_TEXT_BYTES];

    if (wall_ms == 0) {
        return json_null();
    }
    date_format(wall_ms, text);
    return json_string(text);
}

/* It is printed on terminals as it is. */
static bool
is_harmless(uint32_t c)
{
    return c >= 0x20 ? (c < 0x7f || c > 0x9f) && (c < 0x202a || c > 0x202e) &&
                           (c < 0x2066 || c > 0x2069)
                     : c == '\n' || c == '\t';
}

void
foreign_text_copy(char *out, size_t bytes, const char *s)
{
    size_t left = strlen(s);
    size_t len = 0;

    while (left > 0) {
        uint32_t c = 0;
        size_t n = utf8_decode(s, left, &c);

        bool as_is = n > 0 && is_harmless(c);
        size_t wide = as_is ? n : 1;

        if (len + wide >= bytes) {
            break;
        }
        if (as_is) {
            memcpy(out + len, s, n);
        } else {
            out[len] = '?';
        }
        n = n > 0 ? n : 1;
        len += wide;
        s += n;
        left -= n;
    }
    out[len] = '\0';
}

json_t *
json_foreign_or_null(const char *s)
{
    return s[0] != '\0' ? json_foreign_text(s) : json_null();
}

json_t *
json_foreign_text(const char *s)
{
    size_t bytes;
    json_t *json;
    char *copy;

    if (s == NULL) {
        return json_null();
    }
    bytes = strlen(s) + 1;
    copy = xmalloc(bytes);
    foreign_text_copy(copy, bytes, s);
    json = json_string(copy);
    free(copy);
    return json;
}

static const char *
severity_name(enum severity severity)
{
    return severity == SEVERITY_ERROR ? "error" : "warning";
}

json_t *
problems_json(const struct problems *p)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->count; i++) {
        const struct problem *item = &p->items[i];

        (void)json_array_append_new(
            list,
            json_pack(
                "{s:s, s:s, s:o, s:o, s:o, s:o, s:o*}", "severity",
                severity_name(item->severity), "code", item->code, "kind",
                json_foreign_text(item->kind), "name", json_foreign_text(item->name), "pointer",
                json_foreign_text(item->pointer), "message", json_foreign_text(item->message),
                "node", item->node != NULL ? json_foreign_text(item->node) : NULL));
    }
    return list;
}

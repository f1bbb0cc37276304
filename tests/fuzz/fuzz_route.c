/* SPDX-License-Identifier: Apache-2.0 */
/* The way from the bytes of a request to its row of the route table: the target, the header
 * fields ("name: value" lines behind an empty line), the router. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "http/header.h"
#include "http/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void
check_texts(const struct target *t)
{
    for (size_t i = 0; i < t->segment_count; i++) {
        const char *s = t->segments[i];

        ASSERT(utf8_valid(s, strlen(s)) && !utf8_has_control(s, strlen(s), ""));
        ASSERT(strcmp(s, ".") != 0 && strcmp(s, "..") != 0);
        ASSERT(s[0] != '\0' || i + 1 == t->segment_count);
    }
    for (size_t i = 0; i < t->param_count; i++) {
        ASSERT(target_param(t, t->params[i].name) == t->params[i].value);
    }
}

/* What was parsed, written and parsed again is the same. */
static void
check_round_trip(const struct target *t, struct arena *arena)
{
    CLEANUP(buf_fini) struct buf path;
    struct target again;

    buf_init(&path, 1 << 20);
    for (size_t i = 0; i < t->segment_count; i++) {
        buf_putc(&path, '/');
        target_put_segment(&path, t->segments[i]);
    }
    if (path.len == 0) {
        return;
    }
    ASSERT(target_parse(buf_str(&path), arena, &again, NULL) == ERR_OK);
    /* "/" alone has no segments. */
    ASSERT(again.segment_count == t->segment_count || path.len == 1);
    for (size_t i = 0; i < again.segment_count; i++) {
        ASSERT(strcmp(again.segments[i], t->segments[i]) == 0);
    }
}

static void
check_header(char *lines)
{
    struct header h = {.host = NULL};
    size_t len = 0;
    char *at = lines;

    while (at != NULL && *at != '\0') {
        char *next = strchr(at, '\n');
        char *colon = strchr(at, ':');

        if (next != NULL) {
            *next++ = '\0';
        }
        if (colon != NULL && (next == NULL || colon < next)) {
            *colon = '\0';
            header_add(&h, at, colon + 1);
        }
        at = next;
    }
    if (header_check(&h, "HTTP/1.1", NULL) == ERR_OK) {
        ASSERT(header_body_bytes(&h) >= -1);
    }
    (void)header_is_json(&h, true);
    (void)header_cookie(&h, "a", &len);
    (void)header_bearer(&h);
    (void)header_none_match_has(&h, "\"a\"");
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "X"};
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct target t = {.segment_count = 0};
    struct error e;
    char *raw;
    char *header;

    if (count > 32768) { /* libmicrohttpd's buffer is not larger */
        return 0;
    }
    raw = arena_memdup0(arena, bytes, count);
    header = strchr(raw, '\n');
    if (header != NULL) {
        *header++ = '\0';
        check_header(header);
    }
    if (target_parse(raw, arena, &t, &e) != ERR_OK) {
        return 0;
    }
    check_texts(&t);
    check_round_trip(&t, arena);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        struct router_hit hit;

        if (router_find(methods[i], &t, &hit) == ROUTER_FOUND) {
            ASSERT(hit.route->segment_count == t.segment_count);
        }
    }
    return 0;
}

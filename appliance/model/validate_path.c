/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that no request has as it is compared where rules stand (LAYOUT_PATH in
 * render/layout.h): refused of whoever writes one, a warning where one is stored. */
#include <stdio.h>
#include <string.h>

#include "model/validate_checks.h"

#define POINTER_BYTES 32

static int
digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Of what is encoded: whether it stays so when paths are compared. */
static bool
stays_encoded(const char *percent)
{
    int high = digit_of(percent[1]);
    int low = high >= 0 ? digit_of(percent[2]) : -1;
    int byte = high * 16 + low;

    if (low < 0 || byte < ' ' || byte == 0x7f || byte == 0xc0 || byte == 0xc1) {
        return false;
    }
    /* RFC 3986, 2.3: what needs no encoding; and what is taken for a slash or its like. */
    return byte > '~' || (!(byte >= '0' && byte <= '9') && !(byte >= 'A' && byte <= 'Z') &&
                          !(byte >= 'a' && byte <= 'z') && strchr("-._~/\\;", byte) == NULL);
}

const char *
validate_path_fault(const char *path)
{
    bool fits = strstr(path, "//") == NULL && strstr(path, "/./") == NULL &&
                strstr(path, "/../") == NULL;

    for (const char *p = path; fits && *p != '\0'; p++) {
        fits =
            *p > ' ' && *p <= '~' && *p != ';' && *p != '\\' && (*p != '%' || stays_encoded(p));
    }
    return fits
               ? NULL
               : "No path is like this when it is compared: write letters, digits, \"-\", \".\", "
                 "\"_\" and \"~\" as they are, one slash for encoded slashes, backslashes and "
                 "slashes in a row, and leave out \";\" and what follows it.";
}

static void
look(const struct object *o, enum severity severity, struct problems *p)
{
    if (o->kind == K_SERVICE) {
        const char *fault = validate_path_fault(object_text(o, F_SERVICE_PATH).s);
        const struct problem where = checks_at(o, "/path");
        if (fault != NULL) {
            problems_add(p, severity, "path_never_fits", &where, "%s", fault);
        }
        return;
    }
    if (o->kind != K_CONDITION || object_int(o, F_CONDITION_TYPE) != V_CONDITION_TYPE_PATH ||
        object_int(o, F_CONDITION_MATCH) == V_CONDITION_MATCH_REGEX) {
        return;
    }
    const struct value *values = object_value(o, F_CONDITION_VALUES);
    for (uint32_t i = 0; i < values->count; i++) {
        const char *fault = validate_path_fault(values->u.items[i].u.text.s);
        char pointer[POINTER_BYTES];
        (void)snprintf(pointer, sizeof(pointer), "/values/%u", i);
        const struct problem where = checks_at(o, pointer);
        if (fault != NULL) {
            problems_add(p, severity, "path_never_fits", &where, "%s", fault);
        }
    }
}

static bool
same(const struct object *a, const struct object *b, unsigned field)
{
    return value_equal(
        &schema_kind(a->kind)->fields[field], object_value(a, field), object_value(b, field));
}

void
validate_paths(const struct object *before, const struct object *after, struct problems *p)
{
    bool kept = before != NULL &&
                (after->kind == K_SERVICE     ? same(before, after, F_SERVICE_PATH)
                 : after->kind == K_CONDITION ? same(before, after, F_CONDITION_VALUES) &&
                                                    same(before, after, F_CONDITION_TYPE) &&
                                                    same(before, after, F_CONDITION_MATCH)
                                              : true);
    if (!kept) {
        look(after, SEVERITY_ERROR, p);
    }
}

void
check_paths(const struct checks *c)
{
    static const enum kind kinds[] = {K_SERVICE, K_CONDITION};

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        for (size_t i = 0; i < c->kinds[kinds[k]].count; i++) {
            look(c->kinds[kinds[k]].items[i], SEVERITY_WARNING, c->p);
        }
    }
}

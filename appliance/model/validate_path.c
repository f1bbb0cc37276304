/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that no request has as it is compared where rules stand (LAYOUT_PATH in
 * render/layout.h): refused of whoever writes one, a warning where one is stored. */
#include <stdio.h>
#include <string.h>

#include "model/validate_checks.h"

#define POINTER_BYTES 32

const char *
validate_path_fault(const char *path)
{
    if (strchr(path, ';') == NULL && strcasestr(path, "%5c") == NULL) {
        return NULL;
    }
    return "Leave \";\" and \"%5C\" out of the path: paths are compared without what follows a "
           "semicolon, and with slashes for backslashes.";
}

static const char *
value_fault(const char *value)
{
    if (strpbrk(value, ";\\") == NULL && strstr(value, "//") == NULL &&
        strcasestr(value, "%2f") == NULL && strcasestr(value, "%5c") == NULL) {
        return NULL;
    }
    return "No path fits this value: write \"/\" for encoded slashes, backslashes and slashes in "
           "a row, and leave out what follows \";\".";
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
        const char *fault = value_fault(values->u.items[i].u.text.s);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions: a key and values where they are needed, and values that can be compared. */
#include <stdio.h>
#include <string.h>

#include "base/regex.h"
#include "model/validate_checks.h"

#define POINTER_BYTES     32
#define NETWORK_MAX_BYTES 64
#define METHOD_MAX_BYTES  20

static bool
needs_key(int64_t type)
{
    return type == V_CONDITION_TYPE_HEADER || type == V_CONDITION_TYPE_QUERY ||
           type == V_CONDITION_TYPE_COOKIE;
}

/* Whether the field "match" has a meaning. */
static bool
compares(int64_t type)
{
    return needs_key(type) || type == V_CONDITION_TYPE_HOST || type == V_CONDITION_TYPE_PATH;
}

static bool
needs_values(const struct object *o)
{
    int64_t type = object_int(o, F_CONDITION_TYPE);
    return type != V_CONDITION_TYPE_TLS &&
           !(compares(type) && object_int(o, F_CONDITION_MATCH) == V_CONDITION_MATCH_PRESENT);
}

static bool
is_network(struct text value)
{
    CLEANUP(buf_fini) struct buf out;
    buf_init(&out, NETWORK_MAX_BYTES);
    return value_check_text(TT_NETWORK, value.s, value.len, &out, NULL) == ERR_OK;
}

static bool
is_method(struct text value)
{
    bool good = value.len > 0 && value.len <= METHOD_MAX_BYTES;
    for (uint32_t i = 0; i < value.len; i++) {
        good = good && ((value.s[i] >= 'A' && value.s[i] <= 'Z') || value.s[i] == '-');
    }
    return good;
}

/* HAProxy would refuse the whole configuration. */
static void
check_regex(const struct checks *c, const struct object *o)
{
    const struct value *values = object_value(o, F_CONDITION_VALUES);
    for (uint32_t i = 0; i < values->count; i++) {
        struct text value = values->u.items[i].u.text;
        char pointer[POINTER_BYTES];
        struct error e;
        if (regex_check(value.s, value.len, &e) != ERR_OK) {
            (void)snprintf(pointer, sizeof(pointer), "/values/%u", i);
            const struct problem where = checks_at(o, pointer);
            problems_add(
                c->p, SEVERITY_ERROR, "regex", &where, "Correct this pattern: %s.", e.msg);
        }
    }
}

static void
check_values(const struct checks *c, const struct object *o)
{
    const struct value *values = object_value(o, F_CONDITION_VALUES);
    int64_t type = object_int(o, F_CONDITION_TYPE);
    const char *wanted = NULL;
    for (uint32_t i = 0; i < values->count; i++) {
        struct text value = values->u.items[i].u.text;
        if (type == V_CONDITION_TYPE_SRC && !is_network(value)) {
            wanted = "a network such as 10.0.0.0/8 or 2001:db8::/32, or an address";
        } else if (type == V_CONDITION_TYPE_METHOD && !is_method(value)) {
            wanted = "the name of an HTTP method in capital letters, such as GET";
        } else {
            continue;
        }
        char pointer[POINTER_BYTES];
        (void)snprintf(pointer, sizeof(pointer), "/values/%u", i);
        const struct problem where = checks_at(o, pointer);
        problems_add(
            c->p, SEVERITY_ERROR, "format", &where, "\"%.*s\" is not %s.",
            problems_cut(value.s, 64), value.s, wanted);
    }
}

static void
check_condition(const struct checks *c, const struct object *o)
{
    int64_t type = object_int(o, F_CONDITION_TYPE);
    if (needs_key(type) && object_text(o, F_CONDITION_KEY).len == 0) {
        const struct problem where = checks_at(o, "/key");
        problems_add(
            c->p, SEVERITY_ERROR, "required", &where,
            "Give the name of the %s that is looked at.",
            type == V_CONDITION_TYPE_HEADER  ? "header"
            : type == V_CONDITION_TYPE_QUERY ? "query parameter"
                                             : "cookie");
    }
    if (needs_values(o) && object_value(o, F_CONDITION_VALUES)->count == 0) {
        const struct problem where = checks_at(o, "/values");
        problems_add(
            c->p, SEVERITY_ERROR, "required", &where,
            "Give at least one value: without any the condition would never be true.");
    }
    check_values(c, o);
    if (compares(type) && object_int(o, F_CONDITION_MATCH) == V_CONDITION_MATCH_REGEX) {
        check_regex(c, o);
    }
}

void
check_conditions(const struct checks *c)
{
    const struct kind_list *conditions = &c->kinds[K_CONDITION];
    for (size_t i = 0; i < conditions->count; i++) {
        check_condition(c, conditions->items[i]);
    }
}

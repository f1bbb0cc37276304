/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: one place, http mode, and what each action needs. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/validate_checks.h"

#define POINTER_BYTES 48

static void PRINTF_LIKE(5, 6) report(
    const struct checks *c, const struct object *o, const char *pointer, const char *code,
    const char *fmt, ...)
{
    char text[256];
    const struct problem where = checks_at(o, pointer);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    problems_add(c->p, SEVERITY_ERROR, code, &where, "%s", text);
}

static uint32_t
target_of(const struct checks *c, size_t pos, uint32_t field)
{
    return *checks_targets(c, K_RULE, pos, field);
}

static bool
is_tcp(const struct object *listener)
{
    return listener != NULL && object_int(listener, F_LISTENER_MODE) == V_LISTENER_MODE_TCP;
}

/* A listener of mode tcp on which the service stands, or NULL. */
static const struct object *
tcp_listener_of(const struct checks *c, uint32_t service)
{
    const struct object *o = checks_object(c, K_SERVICE, service);
    if (o == NULL) {
        return NULL;
    }
    const uint32_t *on = checks_targets(c, K_SERVICE, service, F_SERVICE_LISTENERS);
    uint32_t count = object_value(o, F_SERVICE_LISTENERS)->count;
    for (uint32_t i = 0; i < count; i++) {
        const struct object *l = checks_object(c, K_LISTENER, on[i]);
        if (is_tcp(l)) {
            return l;
        }
    }
    return NULL;
}

static void
check_place(const struct checks *c, size_t pos)
{
    const struct object *o = c->kinds[K_RULE].items[pos];
    bool on_service = !object_value(o, F_RULE_SERVICE)->is_null;
    bool on_listener = !object_value(o, F_RULE_LISTENER)->is_null;
    const struct object *l = checks_object(c, K_LISTENER, target_of(c, pos, F_RULE_LISTENER));
    const struct object *tcp = tcp_listener_of(c, target_of(c, pos, F_RULE_SERVICE));
    if (on_service == on_listener) {
        report(
            c, o, "/service", "one_place",
            on_service ? "A rule belongs to a service or to a listener: take one of them out."
                       : "Give the service or the listener to which the rule belongs.");
    }
    if (is_tcp(l)) {
        report(
            c, o, "/listener", "not_applicable",
            "The listener \"%s\" has mode tcp and sees no requests: rules need mode http.",
            l->name.s);
    }
    if (tcp != NULL) {
        report(
            c, o, "/service", "not_applicable",
            "The service is on the listener \"%s\" of mode tcp, which sees no requests: rules "
            "need mode http.",
            tcp->name.s);
    }
}

static void
check_twice(const struct checks *c, const struct object *o)
{
    const struct value *uses = object_value(o, F_RULE_CONDITIONS);
    for (uint32_t i = 1; i < uses->count; i++) {
        struct text id = uses->u.items[i].u.items[F_RULE_CONDITIONS_CONDITION].u.text;
        for (uint32_t j = 0; j < i; j++) {
            struct text other = uses->u.items[j].u.items[F_RULE_CONDITIONS_CONDITION].u.text;
            if (strcmp(id.s, other.s) == 0) {
                char pointer[POINTER_BYTES];
                (void)snprintf(pointer, sizeof(pointer), "/conditions/%u/condition", i);
                report(c, o, pointer, "duplicate", "This condition stands here twice.");
                break;
            }
        }
    }
}

static void
check_status(const struct checks *c, const struct object *o)
{
    int64_t status = object_int(o, F_RULE_STATUS);
    const char *wanted = NULL;
    switch (object_int(o, F_RULE_ACTION)) {
    case V_RULE_ACTION_DENY: wanted = status < 400 ? "from 400 to 599 to deny" : NULL; break;
    case V_RULE_ACTION_RETURN:
        wanted = status < 200 ? "from 200 to 599 to return" : NULL;
        break;
    case V_RULE_ACTION_REDIRECT:
        if (status != 301 && status != 302 && status != 303 && status != 307 && status != 308) {
            wanted = "301, 302, 303, 307 or 308 to redirect";
        }
        break;
    }
    if (wanted != NULL && status != 0) {
        report(c, o, "/status", "range", "The status is %s, or 0 for the usual one.", wanted);
    }
}

static void
check_answer(const struct checks *c, const struct object *o)
{
    int64_t action = object_int(o, F_RULE_ACTION);
    int64_t status = object_int(o, F_RULE_STATUS);
    check_status(c, o);
    if (action == V_RULE_ACTION_RETURN && (status == 204 || status == 205 || status == 304) &&
        object_text(o, F_RULE_BODY).len > 0) {
        report(
            c, o, "/body", "not_applicable",
            "An answer of status %d has no text: leave it out, or use another status.",
            (int)status);
    }
    if (action == V_RULE_ACTION_REDIRECT &&
        object_int(o, F_RULE_REDIRECT_BY) != V_RULE_REDIRECT_BY_SCHEME &&
        object_text(o, F_RULE_TARGET).len == 0) {
        report(c, o, "/target", "required", "Give the target of the redirect.");
    }
}

static void
check_pool(const struct checks *c, size_t pos)
{
    const struct object *o = c->kinds[K_RULE].items[pos];
    const struct object *pool = checks_object(c, K_POOL, target_of(c, pos, F_RULE_POOL));
    if (object_value(o, F_RULE_POOL)->is_null) {
        report(c, o, "/pool", "required", "Give the pool that answers.");
    } else if (pool != NULL && object_int(pool, F_POOL_MODE) == V_POOL_MODE_TCP) {
        report(
            c, o, "/pool", "mode_mismatch",
            "The pool \"%s\" has mode tcp: requests need a pool of mode http.", pool->name.s);
    }
}

static void
check_header(const struct checks *c, const struct object *o, bool value)
{
    if (object_text(o, F_RULE_HEADER).len == 0) {
        report(c, o, "/header", "required", "Give the name of the header.");
    }
    if (value && object_text(o, F_RULE_VALUE).len == 0) {
        report(
            c, o, "/value", "required",
            "Give the value of the header, or delete the header by another action.");
    }
}

static void
check_rule(const struct checks *c, size_t pos)
{
    const struct object *o = c->kinds[K_RULE].items[pos];
    check_place(c, pos);
    check_twice(c, o);
    switch (object_int(o, F_RULE_ACTION)) {
    case V_RULE_ACTION_DENY:
    case V_RULE_ACTION_RETURN:
    case V_RULE_ACTION_REDIRECT: check_answer(c, o); break;
    case V_RULE_ACTION_USE_POOL: check_pool(c, pos); break;
    case V_RULE_ACTION_SET_HEADER:
    case V_RULE_ACTION_ADD_HEADER:
    case V_RULE_ACTION_SET_RESPONSE_HEADER:
    case V_RULE_ACTION_ADD_RESPONSE_HEADER: check_header(c, o, true); break;
    case V_RULE_ACTION_DEL_HEADER:
    case V_RULE_ACTION_DEL_RESPONSE_HEADER: check_header(c, o, false); break;
    }
}

void
check_rules(const struct checks *c)
{
    for (size_t i = 0; i < c->kinds[K_RULE].count; i++) {
        check_rule(c, i);
    }
}

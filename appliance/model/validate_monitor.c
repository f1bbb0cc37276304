/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of servers: what one field means depends on another. */
#include <stdio.h>

#include "base/regex.h"
#include "model/probe_text.h"
#include "model/validate_checks.h"

#define POINTER_BYTES 48

static bool
is_type(const struct object *o, int64_t type)
{
    return object_int(o, F_MONITOR_TYPE) == type;
}

static void
report(
    const struct checks *c, const struct object *o, const char *code, const char *pointer,
    const char *text)
{
    const struct problem where = checks_at(o, pointer);
    problems_add(c->p, SEVERITY_ERROR, code, &where, "%s", text);
}

static void
check_times(const struct checks *c, const struct object *o)
{
    int64_t interval_ms = object_int(o, F_MONITOR_INTERVAL_MS);
    int64_t timeout_ms = object_int(o, F_MONITOR_TIMEOUT_MS);
    if (timeout_ms <= interval_ms) {
        return;
    }
    const struct problem where = checks_at(o, "/timeout_ms");
    problems_add(
        c->p, SEVERITY_WARNING, "monitor_timeout", &where,
        "A check may take %lld ms but the next one is due after %lld ms: make the timeout "
        "at most as long as the interval.",
        (long long)timeout_ms, (long long)interval_ms);
}

static void
check_pattern(
    const struct checks *c, const struct object *o, const char *pointer, struct text pattern)
{
    struct error e;
    if (pattern.len == 0) {
        report(c, o, "required", pointer, "Say what is looked for.");
    } else if (regex_check(pattern.s, pattern.len, &e) != ERR_OK) {
        const struct problem where = checks_at(o, pointer);
        problems_add(c->p, SEVERITY_ERROR, "regex", &where, "Correct this pattern: %s.", e.msg);
    }
}

static void
check_http(const struct checks *c, const struct object *o)
{
    struct text body = object_text(o, F_MONITOR_EXPECT_BODY);
    if (object_int(o, F_MONITOR_HTTP_VERSION) == V_MONITOR_HTTP_VERSION_HTTP1_1 &&
        object_text(o, F_MONITOR_HOST).len == 0) {
        report(
            c, o, "required", "/host",
            "A request of HTTP/1.1 needs a Host header: give one, or choose the version auto.");
    }
    if (object_int(o, F_MONITOR_BODY_MATCH) == V_MONITOR_BODY_MATCH_REGEX) {
        check_pattern(c, o, "/expect_body", body);
    } else if (
        object_int(o, F_MONITOR_BODY_MATCH) == V_MONITOR_BODY_MATCH_STRING && body.len == 0) {
        report(c, o, "required", "/expect_body", "Say what is looked for.");
    }
}

static void
check_text(
    const struct checks *c, const struct object *o, const char *pointer, struct text data,
    bool hex)
{
    struct error e;
    err_t code = hex ? probe_text_check_hex(data, &e) : probe_text_check(data, &e);
    if (code != ERR_OK) {
        const struct problem where = checks_at(o, pointer);
        problems_add(c->p, SEVERITY_ERROR, "probe_text", &where, "Correct this: %s.", e.msg);
    }
}

static void
check_steps(const struct checks *c, const struct object *o)
{
    const struct value *steps = object_value(o, F_MONITOR_STEPS);
    if (steps->count == 0) {
        report(
            c, o, "required", "/steps",
            "A script needs steps: say what is sent and what is expected.");
    }
    for (uint32_t i = 0; i < steps->count; i++) {
        const struct value *step = steps->u.items[i].u.items;
        int64_t action = step[F_MONITOR_STEPS_ACTION].u.i;
        struct text data = step[F_MONITOR_STEPS_DATA].u.text;
        char pointer[POINTER_BYTES];
        (void)snprintf(pointer, sizeof(pointer), "/steps/%u/data", i);
        if (action == V_MONITOR_STEPS_ACTION_EXPECT_REGEX) {
            check_pattern(c, o, pointer, data);
        } else {
            check_text(
                c, o, pointer, data,
                action == V_MONITOR_STEPS_ACTION_SEND_HEX ||
                    action == V_MONITOR_STEPS_ACTION_EXPECT_HEX);
        }
    }
}

void
check_monitors(const struct checks *c)
{
    for (size_t i = 0; i < c->kinds[K_MONITOR].count; i++) {
        const struct object *o = c->kinds[K_MONITOR].items[i];
        check_times(c, o);
        if (is_type(o, V_MONITOR_TYPE_HTTP)) {
            check_http(c, o);
        } else if (is_type(o, V_MONITOR_TYPE_TCP_SCRIPT)) {
            check_steps(c, o);
        } else if (is_type(o, V_MONITOR_TYPE_AGENT)) {
            check_text(c, o, "/agent_send", object_text(o, F_MONITOR_AGENT_SEND), false);
            if (object_int(o, F_MONITOR_PORT) == 0) {
                report(c, o, "required", "/port", "Say on which port the agent answers.");
            }
        } else if (
            is_type(o, V_MONITOR_TYPE_PGSQL) && object_text(o, F_MONITOR_USER).len == 0) {
            report(
                c, o, "required", "/user",
                "PostgreSQL wants to know a user: name one, it needs no rights.");
        }
    }
}

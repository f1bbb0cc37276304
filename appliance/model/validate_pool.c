/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and their members. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/validate_checks.h"

/* Gives servers with the same address and port the same number, so that a pool's members are
 * compared by one look into an array. */
static uint32_t *
number_targets(const struct checks *c)
{
    const struct kind_list *servers = &c->kinds[K_SERVER];
    size_t mask = checks_slots(servers->count) - 1;
    uint32_t *slots = xcalloc(mask + 1, sizeof(slots[0])); /* position + 1 */
    uint32_t *numbers = xcalloc(servers->count + 1, sizeof(numbers[0]));
    for (size_t i = 0; i < servers->count; i++) {
        struct text address = object_text(servers->items[i], F_SERVER_ADDRESS);
        int64_t port = object_int(servers->items[i], F_SERVER_PORT);
        size_t at = value_hash((uint32_t)port, address.s, address.len) & mask;
        numbers[i] = (uint32_t)i;
        while (slots[at] != 0) {
            const struct object *other = servers->items[slots[at] - 1];
            if (object_int(other, F_SERVER_PORT) == port &&
                strcmp(object_text(other, F_SERVER_ADDRESS).s, address.s) == 0) {
                break;
            }
            at = (at + 1) & mask;
        }
        if (slots[at] == 0) {
            slots[at] = (uint32_t)i + 1;
        } else {
            numbers[i] = slots[at] - 1;
        }
    }
    free(slots);
    return numbers;
}

/* Which member, of which pool, had a server or a target last: index + 1 per server position. */
struct seen {
    uint32_t pool;
    uint32_t member;
};

struct pool_check {
    const struct checks *c;
    const uint32_t *numbers; /* of the targets, by position of the server */
    struct seen *servers;    /* by position of the server */
    struct seen *same;       /* by number of the target */
    uint32_t pool;           /* position + 1 */
};

static void
report_member(
    const struct pool_check *pc, uint32_t index, uint32_t first, const struct object *server,
    bool same_server)
{
    const struct object *pool = pc->c->kinds[K_POOL].items[pc->pool - 1];
    char pointer[48];
    (void)snprintf(pointer, sizeof(pointer), "/members/%u/server", index);
    const struct problem where = checks_at(pool, pointer);
    if (same_server) {
        problems_add(
            pc->c->p, SEVERITY_ERROR, "duplicate", &where,
            "The server \"%s\" is a member of this pool twice: remove one of the two.",
            server->name.s);
        return;
    }
    uint32_t other = checks_targets(pc->c, K_POOL, pc->pool - 1, F_POOL_MEMBERS)[first];
    problems_add(
        pc->c->p, SEVERITY_ERROR, "duplicate_target", &where,
        "The servers \"%s\" and \"%s\" of this pool have the same address and port (%s, %d): "
        "remove one of them, or correct its address.",
        pc->c->kinds[K_SERVER].items[other]->name.s, server->name.s,
        object_text(server, F_SERVER_ADDRESS).s, (int)object_int(server, F_SERVER_PORT));
}

static void
check_members(const struct pool_check *pc, uint32_t count)
{
    const uint32_t *targets = checks_targets(pc->c, K_POOL, pc->pool - 1, F_POOL_MEMBERS);
    for (uint32_t i = 0; i < count; i++) {
        if (targets[i] == CHECKS_NONE) {
            continue;
        }
        const struct object *server = pc->c->kinds[K_SERVER].items[targets[i]];
        struct seen *by_server = &pc->servers[targets[i]];
        struct seen *by_target = &pc->same[pc->numbers[targets[i]]];
        if (by_server->pool == pc->pool) {
            report_member(pc, i, by_server->member, server, true);
        } else if (by_target->pool == pc->pool) {
            report_member(pc, i, by_target->member, server, false);
        }
        *by_server = (struct seen){pc->pool, i};
        *by_target = (struct seen){pc->pool, i};
    }
}

static void
report(
    const struct checks *c, const struct object *o, const char *code, const char *pointer,
    const char *text)
{
    const struct problem where = checks_at(o, pointer);
    problems_add(c->p, SEVERITY_ERROR, code, &where, "%s", text);
}

/* What looks into requests, in a pool that sees none. */
static void
check_tcp(const struct checks *c, const struct object *o)
{
    int64_t balance = object_int(o, F_POOL_BALANCE);
    if (balance == V_POOL_BALANCE_URI || balance == V_POOL_BALANCE_URL_PARAM ||
        balance == V_POOL_BALANCE_HDR) {
        report(
            c, o, "not_applicable", "/balance",
            "A pool in tcp mode sees no requests: choose a rule that does not look into them.");
    }
    if (object_int(o, F_POOL_STICK) == V_POOL_STICK_COOKIE) {
        report(
            c, o, "not_applicable", "/stick",
            "A pool in tcp mode sees no cookies: choose the stickiness source or none.");
    }
    if (object_bool(o, F_POOL_TLS) && object_int(o, F_POOL_SNI) == V_POOL_SNI_HOST) {
        report(
            c, o, "not_applicable", "/sni",
            "A pool in tcp mode sees no host of a request: choose none, or name and a name.");
    }
}

/* Whoever holds a certificate of any public authority must not pass for a server. */
static void
check_tls(const struct checks *c, const struct object *o)
{
    int64_t sni = object_int(o, F_POOL_SNI);
    if (sni == V_POOL_SNI_NAME && object_text(o, F_POOL_SNI_NAME).len == 0) {
        report(c, o, "required", "/sni_name", "Give the name that is asked for.");
    }
    if (object_int(o, F_POOL_TLS_VERIFY) != V_POOL_TLS_VERIFY_REQUIRED) {
        return;
    }
    /* HAProxy checks the name that it asked for, and this one only when it asked for none. */
    if (sni == V_POOL_SNI_NAME && object_text(o, F_POOL_VERIFYHOST).len > 0) {
        report(
            c, o, "tls_name", "/verifyhost",
            "With an SNI of one name that name is checked: leave this one out.");
    }
    /* A request without a host, and a check, ask for no name. */
    if (object_text(o, F_POOL_CA).len == 0 && object_text(o, F_POOL_VERIFYHOST).len == 0 &&
        sni != V_POOL_SNI_NAME) {
        report(
            c, o, "tls_name", "/verifyhost",
            "With the system's authorities any public certificate would be good: give the name "
            "in the servers' certificates, or an SNI of one name, or the authority that issued "
            "them.");
    }
}

static void
check_fields(const struct checks *c, const struct object *o)
{
    int64_t balance = object_int(o, F_POOL_BALANCE);
    if (object_int(o, F_POOL_MODE) == V_POOL_MODE_TCP) {
        check_tcp(c, o);
    }
    if (balance == V_POOL_BALANCE_URL_PARAM && object_text(o, F_POOL_URL_PARAM).len == 0) {
        report(c, o, "required", "/url_param", "Name the parameter whose value decides.");
    }
    if (balance == V_POOL_BALANCE_HDR && object_text(o, F_POOL_HDR_NAME).len == 0) {
        report(c, o, "required", "/hdr_name", "Name the header whose value decides.");
    }
    if (object_int(o, F_POOL_STICK) == V_POOL_STICK_COOKIE &&
        object_int(o, F_POOL_COOKIE_SAMESITE) == V_POOL_COOKIE_SAMESITE_NONE &&
        !object_bool(o, F_POOL_COOKIE_SECURE)) {
        report(
            c, o, "cookie_samesite", "/cookie_samesite",
            "Browsers drop a cookie with SameSite none that is not for TLS only: turn "
            "cookie_secure on, or choose another value.");
    }
    if (object_bool(o, F_POOL_TLS)) {
        check_tls(c, o);
    }
}

void
check_pools(const struct checks *c)
{
    size_t servers = c->kinds[K_SERVER].count;
    uint32_t *numbers = number_targets(c);
    struct pool_check pc = {
        .c = c,
        .numbers = numbers,
        .servers = xcalloc(servers + 1, sizeof(struct seen)),
        .same = xcalloc(servers + 1, sizeof(struct seen)),
    };
    for (size_t i = 0; i < c->kinds[K_POOL].count; i++) {
        const struct object *pool = c->kinds[K_POOL].items[i];
        const struct value *members = object_value(pool, F_POOL_MEMBERS);
        pc.pool = (uint32_t)i + 1;
        if (members->count == 0 && object_bool(pool, F_POOL_ENABLED)) {
            const struct problem where = checks_at(pool, "/members");
            problems_add(
                c->p, SEVERITY_WARNING, "empty_pool", &where,
                "This pool has no servers, so its services answer with status 503: add one.");
        }
        check_members(&pc, members->count);
        check_fields(c, pool);
    }
    free(pc.servers);
    free(pc.same);
    free(numbers);
}

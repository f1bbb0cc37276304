/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and what they consist of: members, servers, monitors. */
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
        size_t at = checks_hash((uint32_t)port, address.s, address.len) & mask;
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
        if (members->count == 0) {
            const struct problem where = checks_at(pool, "/members");
            problems_add(
                c->p, SEVERITY_WARNING, "empty_pool", &where,
                "This pool has no servers, so its services answer with status 503: add one.");
        }
        check_members(&pc, members->count);
    }
    free(pc.servers);
    free(pc.same);
    free(numbers);
}

void
check_monitors(const struct checks *c)
{
    for (size_t i = 0; i < c->kinds[K_MONITOR].count; i++) {
        const struct object *o = c->kinds[K_MONITOR].items[i];
        int64_t interval_ms = object_int(o, F_MONITOR_INTERVAL_MS);
        int64_t timeout_ms = object_int(o, F_MONITOR_TIMEOUT_MS);
        if (timeout_ms <= interval_ms) {
            continue;
        }
        const struct problem where = checks_at(o, "/timeout_ms");
        problems_add(
            c->p, SEVERITY_WARNING, "monitor_timeout", &where,
            "A check may take %lld ms but the next one is due after %lld ms: make the timeout "
            "at most as long as the interval.",
            (long long)timeout_ms, (long long)interval_ms);
    }
}

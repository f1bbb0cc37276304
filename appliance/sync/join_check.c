/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be so before a node joins. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/join_binds.h"
#include "engine/problems_json.h"
#include "sync/admit.h"
#include "sync/joining.h"
#include "version_gen.h"

#define SKEW_MAX_MS    5000 /* of two clocks */
#define CHECK_BYTES    400
#define PROBLEMS_BYTES ((size_t)1 << 20)
#define ADMIT_CALLS    3 /* the other node makes a call of its own meanwhile */
#define BINDS_MAX      4096

/* A warning stops nothing. */
enum state { STATE_OK, STATE_WARNING, STATE_FAILED };

/* next: what to do unless it is STATE_OK. */
static void PRINTF_LIKE(5, 6)
    add(struct joining *g, const char *name, enum state state, const char *next,
        const char *fmt, ...)
{
    static const char *const states[] = {"ok", "warning", "failed"};
    char detail[CHECK_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(detail, sizeof detail, fmt, ap);
    va_end(ap);
    g->failed = g->failed || state == STATE_FAILED;
    (void)json_array_append_new(
        g->checks, json_pack(
                       "{s:s, s:b, s:s, s:o, s:s?}", "name", name, "ok", state == STATE_OK,
                       "state", states[state], "detail", json_foreign_text(detail), "next",
                       state == STATE_OK ? NULL : next));
}

static enum state
failed_unless(bool ok)
{
    return ok ? STATE_OK : STATE_FAILED;
}

struct call
joining_call(struct joining *g, const struct member *m, const char *method, const char *path)
{
    struct call call = cluster_call_of(g->c, m, &g->self);

    call.method = method;
    call.path = path;
    call.answer_max = MEMBERS_BYTES;
    return call;
}

/* ---- the other node ---- */

/* As cluster_ask; and notes the addresses of the way. */
static err_t
ask_health(struct joining *g, struct error *e)
{
    struct call call = joining_call(g, &g->target, "GET", "/peer/v1/health");
    struct call_answer a = {.status = 0};
    char unused[CODE_BYTES];
    json_t *j = NULL;
    err_t code;

    (void)calls_wait(g->c->calls, &call, &a);
    code = cluster_read_answer(&a, &j, unused, e);
    if (code == ERR_OK) {
        memcpy(g->local, a.local, sizeof g->local);
        memcpy(g->remote, a.remote, sizeof g->remote);
        g->health = j;
    } else {
        json_decref(j);
    }
    buf_wipe_fini(&a.body);
    return code;
}

static bool
reach(struct joining *g)
{
    struct error error;
    err_t code = ask_health(g, &error);

    if (code == ERR_OK) {
        struct call call = joining_call(g, &g->target, "GET", "/peer/v1/members");

        code = cluster_ask(g->c, &call, &g->members, NULL, &error);
    }
    add(g, "reachable", failed_unless(code == ERR_OK),
        "lockstep peerkey on that node shows its address, its public key and its peer key",
        "%s: %s", g->target.url,
        code == ERR_OK ? "it answers, its public key is the pinned one, and it takes the key"
                       : error.msg);
    return code == ERR_OK;
}

static void
check_self(struct joining *g)
{
    const char *id = json_string_value(json_object_get(g->health, "id"));
    bool other = id == NULL || strcmp(id, g->self.id) != 0;

    add(g, "another node", failed_unless(other), "give the address of another node", "%s",
        other ? "it is not this node itself" : "this is the node's own address");
    add(g, "own address", failed_unless(g->self.url[0] != '\0'), "lockstep set node url=...",
        "%s", g->self.url[0] != '\0' ? g->self.url : "other nodes have to reach this one");
}

static void
check_release(struct joining *g)
{
    const char *release = json_string_value(json_object_get(g->health, "release"));
    json_int_t schema = json_integer_value(
        json_object_get(json_object_get(g->health, "head"), "schema_version"));

    add(g, "release", failed_unless(schema > 0 && schema <= SCHEMA_VERSION),
        "install the newer release here first",
        "%s there, whose configuration is of schema %lld; %s here, which knows up to %d",
        release != NULL ? release : "unknown", (long long)schema, LOCKSTEP_VERSION,
        SCHEMA_VERSION);
}

static void
check_clock(struct joining *g)
{
    json_int_t there = json_integer_value(json_object_get(g->health, "time_ms"));
    int64_t skew = there - clock_wall_ms(g->c->clock);

    skew = skew < 0 ? -skew : skew;
    add(g, "clocks", failed_unless(skew <= SKEW_MAX_MS), "let both follow a time server",
        "%lld ms apart, allowed are %d ms", (long long)skew, SKEW_MAX_MS);
}

/* It is from outside. */
static const char *
text_of(const json_t *member, const char *field)
{
    const char *text = json_string_value(json_object_get(member, field));

    return text != NULL ? text : "unknown";
}

/* A member with this node's name, or its URL. */
static const json_t *
find_clash(const struct joining *g, const char *field, const char *own)
{
    json_t *list = json_object_get(g->members, "members");
    const json_t *clash = NULL;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *m = json_array_get(list, i);
        const char *value = json_string_value(json_object_get(m, field));
        const char *id = json_string_value(json_object_get(m, "id"));

        if (!json_is_true(json_object_get(m, "gone")) && value != NULL && id != NULL &&
            strcmp(id, g->self.id) != 0 && *own != '\0' && strcmp(value, own) == 0) {
            clash = m;
        }
    }
    return clash;
}

static void
check_names(struct joining *g)
{
    const json_t *name = find_clash(g, "name", g->self.name);
    const json_t *url = find_clash(g, "url", g->self.url);
    const json_t *clash = name != NULL ? name : url;

    if (clash == NULL) {
        add(g, "name", STATE_OK, NULL, "%s, which no other node has", g->self.name);
        return;
    }
    add(g, "name", STATE_FAILED,
        name != NULL ? "give this node another name: lockstep set node name=..."
                     : "give this node a URL of its own: lockstep set node url=...",
        "%s at %s has the %s of this node, %s", text_of(clash, "name"), text_of(clash, "url"),
        name != NULL ? "name" : "address", name != NULL ? g->self.name : g->self.url);
}

/* ---- addresses ---- */

/* Literal in the URL, else as seen. */
static void
address_of(const char *url, const char *seen, char ret[MEMBER_IP_BYTES])
{
    member_tables_address("", url, ret);
    if (*ret == '\0') {
        (void)snprintf(ret, MEMBER_IP_BYTES, "%s", seen);
    }
}

static bool
is_vip(const struct joining *g, const char *address)
{
    const json_t *vips = json_object_get(g->admitted, "vips");

    for (size_t i = 0; i < json_array_size(vips); i++) {
        const char *vip = json_string_value(json_array_get(vips, i));

        if (vip != NULL && *address != '\0' && strcmp(vip, address) == 0) {
            return true;
        }
    }
    return false;
}

static void
check_vip(struct joining *g, const char *own, const char *there)
{
    bool is_there = is_vip(g, there) || is_vip(g, g->remote);

    if (!is_there && !is_vip(g, own)) {
        add(g, "no VIP", STATE_OK, NULL, "neither %s nor %s is a VIP", own, there);
        return;
    }
    add(g, "no VIP", STATE_FAILED,
        is_there ? "join at the address of a node itself: lockstep peerkey there shows it"
                 : "give this node an address of its own: lockstep set node url=...",
        "%s is a VIP of that cluster, which moves from node to node",
        !is_there          ? own
        : is_vip(g, there) ? there
                           : g->remote);
}

static void
check_subnet(struct joining *g, const char *own, const char *there)
{
    static const char next[] =
        "a VIP moves only between nodes of one network: give both addresses of one, with "
        "lockstep set node url=..., or do without a VIP";

    if (*own == '\0' || *there == '\0') {
        add(g, "same subnet", STATE_WARNING, next, "the addresses are not known");
        return;
    }
    switch (holding_place_of(g->c->holding, own, there)) {
    case HOLDING_TOGETHER:
        add(g, "same subnet", STATE_OK, NULL, "%s and %s are in one network", own, there);
        break;
    case HOLDING_APART:
        add(g, "same subnet", STATE_WARNING, next, "%s is not in the network of %s", there,
            own);
        break;
    case HOLDING_ELSEWHERE:
        add(g, "same subnet", STATE_WARNING, next, "no interface of this machine has %s", own);
        break;
    }
}

/* ---- what the other node finds ---- */

static void
ask_admitted(struct joining *g)
{
    CLEANUP(buf_wipe_fini) struct buf body;
    json_t *own = member_to_json(&g->self);
    struct call call = joining_call(g, &g->target, "POST", PATH_ADMIT);
    struct error error = {.code = ERR_OK};
    bool reached, tried;
    const char *detail;

    (void)json_object_set_new(own, "key", json_string(g->self.key));
    buf_init(&body, MEMBERS_BYTES);
    json_canonical(own, &body);
    json_decref(own);
    call.body = buf_str(&body);
    call.body_len = body.len;
    call.timeout_ms *= ADMIT_CALLS;
    call.dead_ms *= ADMIT_CALLS;
    tried = cluster_ask(g->c, &call, &g->admitted, NULL, &error) == ERR_OK;
    reached = json_is_true(json_object_get(g->admitted, "reached"));
    detail = json_string_value(json_object_get(g->admitted, "detail"));
    detail = detail != NULL ? detail : "it does not say why";
    if (!tried && error.code == ERR_NOT_FOUND) {
        add(g, "way back", STATE_WARNING,
            "see that it reaches this node, or bring it to the newer release first",
            "its release does not try whether it reaches %s", g->self.url);
        return;
    }
    add(g, "way back", failed_unless(tried && reached),
        "see that a firewall lets it through, and that the URL of this node is right: lockstep "
        "set node url=...",
        "%s %s %s%s%s", g->target.url, reached ? "reaches" : "does not reach", g->self.url,
        reached ? "" : ": ",
        reached ? ""
        : tried ? detail
                : error.msg);
}

static size_t
read_binds(const struct joining *g, struct bind *ret)
{
    const json_t *list = json_object_get(g->admitted, "binds");
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(list) && count < BINDS_MAX; i++) {
        const json_t *b = json_array_get(list, i);
        const char *address = json_string_value(json_object_get(b, "address"));
        json_int_t port = json_integer_value(json_object_get(b, "port"));

        if (address != NULL && strlen(address) < sizeof ret->address && port > 0 &&
            port <= UINT16_MAX) {
            struct bind *next = &ret[count++];

            *next = (struct bind){
                .port = (int)port, .vip = json_is_true(json_object_get(b, "vip"))};
            (void)snprintf(next->address, sizeof next->address, "%s", address);
        }
    }
    return count;
}

static void
check_ports(struct joining *g)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(PROBLEMS_BYTES);
    CLEANUP(xfree_cleanup)
    struct bind *binds = xcalloc(BINDS_MAX + 1, sizeof *binds);
    struct problems *p = arena_alloc(arena, sizeof *p);
    struct error error;
    size_t tried = 0;
    err_t code;

    problems_init(p, arena);
    code = join_binds_try(g->c->en, binds, read_binds(g, binds), &tried, p, &error);
    if (code == ERR_OK) {
        add(g, "ports", STATE_OK, NULL,
            "%zu address%s with port that HAProxy needs besides what it has: free", tried,
            tried == 1 ? "" : "es");
    } else {
        add(g, "ports", STATE_FAILED,
            "end what has it, or use another one: lockstep set node peers_port=... for that of "
            "the stick tables, the listener of the cluster for another",
            "%s", error.msg);
    }
}

void
joining_check(struct joining *g)
{
    char own[MEMBER_IP_BYTES], there[MEMBER_IP_BYTES];

    if (!reach(g)) {
        return;
    }
    check_self(g);
    check_release(g);
    check_clock(g);
    check_names(g);
    if (g->self.url[0] == '\0') {
        return;
    }
    address_of(g->self.url, g->local, own);
    address_of(g->target.url, g->remote, there);
    ask_admitted(g);
    check_vip(g, own, there);
    check_subnet(g, own, there);
    check_ports(g);
}

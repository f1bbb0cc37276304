/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/commit.h"
#include "engine/configured.h"
#include "engine/stats.h"
#include "haproxy/admin.h"

#define WHOLE_PERCENT  100
#define ONE_BY_ONE_MAX 32 /* with more, to ask first what differs is quicker */

struct operators {
    _Atomic bool due; /* something may not be in HAProxy as the head has it */

    pthread_mutex_t lock;          /* one at a time; held while HAProxy answers */
    const struct snapshot *loaded; /* by HAProxy; NULL: not known, the head */
    int64_t pid;                   /* of the worker that has every state */
    int64_t failed_ms;             /* monotonic: when it did not answer; 0: it did */
    struct error failure;
    bool any; /* the worker may have another state than ready for some server */
};

struct operators *
operators_new(void)
{
    struct operators *op = xcalloc(1, sizeof *op);

    lock_init(&op->lock);
    return op;
}

void
operators_free(struct operators *op)
{
    snapshot_unref(op->loaded);
    (void)pthread_mutex_destroy(&op->lock);
    free(op);
}

/* ---- what is wanted ---- */

struct wanted {
    const char *server; /* its name in HAProxy */
    int64_t state;      /* V_SERVER_STATE_STATE_* */
    int percent;
};

static const struct wanted normal = {NULL, V_SERVER_STATE_STATE_READY, WHOLE_PERCENT};

static struct wanted
wanted_of(const struct object *state, const char *server)
{
    if (state == NULL) {
        return (struct wanted){server, normal.state, normal.percent};
    }
    return (struct wanted){
        server, object_int(state, F_SERVER_STATE_STATE),
        (int)object_int(state, F_SERVER_STATE_WEIGHT)};
}

static const char *
state_word(int64_t state)
{
    return schema_kind(K_SERVER_STATE)->fields[F_SERVER_STATE_STATE].values[state];
}

static bool
has_state(const struct wanted *w, const struct server_line *line)
{
    static const unsigned bits[] = {
        [V_SERVER_STATE_STATE_READY] = 0,
        [V_SERVER_STATE_STATE_DRAIN] = ADMIN_FORCED_DRAIN,
        [V_SERVER_STATE_STATE_MAINT] = ADMIN_FORCED_MAINT,
    };

    return (line->admin & (ADMIN_FORCED_DRAIN | ADMIN_FORCED_MAINT)) == bits[w->state];
}

static int64_t
weight_of(const struct wanted *w, int64_t configured)
{
    return configured * w->percent / WHOLE_PERCENT;
}

static bool
has_weight(const struct wanted *w, const struct server_line *line)
{
    return line->weight == weight_of(w, line->configured_weight);
}

bool
operator_has(const struct object *state, const struct server_line *line)
{
    struct wanted w = wanted_of(state, line->server);

    return has_state(&w, line) && has_weight(&w, line);
}

/* ---- commands ---- */

/* What is left of the time for one command. */
static int64_t
left_ms(int64_t end_ms)
{
    int64_t left = end_ms - clock_mono_ms(&clock_system);

    return left > 1 ? left : 1;
}

static int64_t
end_of(const struct engine *en)
{
    return clock_mono_ms(&clock_system) + en->config->tunables->socket_ms;
}

/* Remembers whether HAProxy answers. A refusal is an answer. */
static err_t
note_answer(struct engine *en, err_t code, const struct error *e)
{
    struct operators *op = en->operators;

    if (code == ERR_OK || code == ERR_CONFLICT) {
        op->failed_ms = 0;
        return code;
    }
    op->failed_ms = clock_mono_ms(&clock_system);
    op->failure = *e;
    atomic_store(&op->due, true);
    return code;
}

/* ---- everything ---- */

static int
compare_wanted(const void *a, const void *b)
{
    const struct wanted *x = a;
    const struct wanted *y = b;

    return strcmp(x->server, y->server);
}

struct whole {
    struct engine *en;
    const struct snapshot *names; /* what HAProxy has loaded */
    struct wanted *list;          /* sorted */
    size_t count;
    int64_t end_ms;
};

static void
collect(struct whole *w, const struct snapshot *head)
{
    const struct object *const *items;
    size_t count = snapshot_kind(head, K_SERVER_STATE, &items);

    w->list = xcalloc(count + 1, sizeof *w->list);
    for (size_t i = 0; i < count; i++) {
        const struct object *server =
            snapshot_by_id(w->names, K_SERVER, object_text(items[i], F_SERVER_STATE_SERVER).s);

        if (server != NULL) {
            w->list[w->count++] = wanted_of(items[i], server->name.s);
        }
    }
    if (w->count > 1) {
        qsort(w->list, w->count, sizeof *w->list, compare_wanted);
    }
}

/* What an agent or the configuration says is not for us to take back. */
static bool
is_others(const struct server_line *line)
{
    return line->agent || (line->admin & ADMIN_CONFIGURED_MAINT) != 0;
}

static err_t
put_line(const struct whole *w, const struct server_line *line, struct error *e)
{
    const char *socket = w->en->admin_socket;
    struct admin_server at = {line->backend, line->server};
    const struct wanted key = {.server = line->server};
    const struct wanted *wanted =
        w->count == 0 ? NULL
                      : bsearch(&key, w->list, w->count, sizeof *w->list, compare_wanted);
    err_t code = ERR_OK;

    if (wanted == NULL && is_others(line)) {
        return ERR_OK;
    }
    wanted = wanted != NULL ? wanted : &normal;
    if (!has_state(wanted, line)) {
        code = admin_set_state(socket, &at, state_word(wanted->state), left_ms(w->end_ms), e);
    }
    if (code == ERR_OK && !has_weight(wanted, line)) {
        code = admin_set_weight(
            socket, &at, weight_of(wanted, line->configured_weight), left_ms(w->end_ms), e);
    }
    return code;
}

static err_t
put_lines(struct whole *w, const struct server_table *table, struct error *e)
{
    for (size_t i = 0; i < table->count; i++) {
        err_t code =
            stats_is_own(table->lines[i].backend) ? ERR_OK : put_line(w, &table->lines[i], e);

        if (code == ERR_CONFLICT) {
            log_warning("operator state: %s", e->msg);
        } else if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
}

static err_t
put_all_from(struct whole *w, int64_t *ret_pid, struct error *e)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(STATS_ARENA_BYTES);
    CLEANUP(server_table_fini) struct server_table table = {.lines = NULL};
    struct haproxy_info info;
    err_t code = admin_info(w->en->admin_socket, left_ms(w->end_ms), &info, e);

    if (code != ERR_OK) {
        return code;
    }
    *ret_pid = info.pid;
    /* To read all of them would be for nothing. */
    if (!w->en->operators->any) {
        return ERR_OK;
    }
    code = stats_read_states(w->en, w->names, NULL, arena, &table, e);
    if (code == ERR_OK) {
        w->end_ms = end_of(w->en);
        code = put_lines(w, &table, e);
    }
    return code;
}

/* With the lock. states: whose; NULL: those of the head. */
static void
put_all(struct engine *en, const struct snapshot *states)
{
    CLEANUP(view_cleanup) struct view *v = NULL;
    struct operators *op = en->operators;
    struct whole w = {.en = en, .end_ms = end_of(en)};
    struct error error = {.code = ERR_OK};
    int64_t pid = 0;

    /* First: what is stored from now on makes it due anew. */
    atomic_store(&op->due, false);
    v = engine_view(en);
    w.names = op->loaded != NULL ? op->loaded : v->now.shared;
    collect(&w, states != NULL ? states : v->now.shared);
    op->any = op->any || w.count > 0 || op->pid == 0;
    if (note_answer(en, put_all_from(&w, &pid, &error), &error) == ERR_OK) {
        op->pid = pid;
        op->any = w.count > 0;
    }
    free(w.list);
    stats_forget(en);
}

/* With the lock. */
static void
set_loaded(struct operators *op, const struct snapshot *shared)
{
    snapshot_unref(op->loaded);
    op->loaded = snapshot_ref(shared);
}

void
operator_put(struct engine *en, const struct snapshot *shared, const struct snapshot *states)
{
    struct operators *op = en->operators;

    lock_take(&op->lock);
    set_loaded(op, shared);
    put_all(en, states);
    lock_give(&op->lock);
}

void
operator_follow(struct engine *en)
{
    struct operators *op = en->operators;
    struct engine_status s;

    engine_get_status(en, &s);
    /* An apply puts what it loads by itself. */
    if (s.up != FACT_YES || atomic_load(&en->applies) > 0) {
        return;
    }
    lock_take(&op->lock);
    if (op->pid != s.haproxy_pid || atomic_load(&op->due)) {
        put_all(en, NULL);
    }
    lock_give(&op->lock);
}

/* ---- one server ---- */

/* With the lock. */
static void
find_pools(
    const struct operators *op, const struct snapshot *head, const char *server,
    struct arena *a, struct operator_pools *ret)
{
    const struct snapshot *names = op->loaded != NULL ? op->loaded : head;
    const struct object *stored = snapshot_by_name(head, K_SERVER, server);
    const struct object *running =
        stored != NULL ? snapshot_by_id(names, K_SERVER, stored->id) : NULL;
    const struct object *const *pools;
    size_t count = snapshot_kind(names, K_POOL, &pools);
    size_t found = 0;

    *ret = (struct operator_pools){.items = NULL};
    for (size_t i = 0; i < count && running != NULL; i++) {
        found += configured_member(pools[i], running->id) != NULL ? 1 : 0;
    }
    ret->items = arena_alloc(a, (found + 1) * sizeof *ret->items);
    for (size_t i = 0; i < count && ret->count < found; i++) {
        const struct value *member = configured_member(pools[i], running->id);

        if (member != NULL) {
            ret->items[ret->count++] = (struct operator_pool){
                arena_strdup(a, pools[i]->name.s), arena_strdup(a, running->name.s),
                configured_weight(member), NULL};
        }
    }
}

void
operator_find(
    struct engine *en, const char *server, struct arena *a, struct operator_pools *ret)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);

    lock_take(&en->operators->lock);
    find_pools(en->operators, v->now.shared, server, a, ret);
    lock_give(&en->operators->lock);
}

static err_t
put_into(
    struct engine *en, const struct wanted *w, const struct operator_pool *at, int64_t end_ms,
    struct error *e)
{
    struct admin_server server = {at->pool, at->server};
    err_t code =
        admin_set_state(en->admin_socket, &server, state_word(w->state), left_ms(end_ms), e);

    if (code == ERR_OK) {
        code = admin_set_weight(
            en->admin_socket, &server, weight_of(w, at->weight), left_ms(end_ms), e);
    }
    return code;
}

/* With the lock. */
static err_t
put_server(
    struct engine *en, const char *server, struct arena *a, struct operator_pools *pools,
    struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    const struct snapshot *head = v->now.shared;
    struct wanted w = wanted_of(snapshot_by_name(head, K_SERVER_STATE, server), server);
    int64_t end_ms = end_of(en);
    struct error error = {.code = ERR_OK};

    find_pools(en->operators, head, server, a, pools);
    en->operators->any = true;
    for (size_t i = 0; i < pools->count; i++) {
        struct operator_pool *at = &pools->items[i];
        err_t code = note_answer(en, put_into(en, &w, at, end_ms, &error), &error);

        if (code == ERR_CONFLICT) {
            at->refused = arena_strdup(a, error.msg);
        } else if (code != ERR_OK) {
            return error_set(e, ERR_UNAVAILABLE, "%s", error.msg);
        }
    }
    return ERR_OK;
}

struct changed {
    const char *servers[ONE_BY_ONE_MAX];
    size_t count;
    bool all; /* more than these */
};

static void
note_changed(void *ctx, const struct object *before, const struct object *after)
{
    struct changed *c = ctx;
    const struct object *o = after != NULL ? after : before;

    if (o->kind != K_SERVER_STATE || c->count == ONE_BY_ONE_MAX) {
        c->all = true;
        return;
    }
    c->servers[c->count++] = o->name.s;
}

void
operator_put_changed(
    struct engine *en, const struct snapshot *before, const struct snapshot *shared)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(STATS_ARENA_BYTES);
    struct operators *op = en->operators;
    struct changed changed = {.count = 0};
    struct error error = {.code = ERR_OK};
    err_t code = ERR_OK;

    snapshot_diff(before, shared, note_changed, &changed);
    lock_take(&op->lock);
    changed.all = changed.all || op->pid == 0 || atomic_load(&op->due);
    set_loaded(op, shared);
    if (changed.all) {
        put_all(en, NULL);
    }
    for (size_t i = 0; i < changed.count && !changed.all && code == ERR_OK; i++) {
        struct operator_pools pools;

        code = put_server(en, changed.servers[i], arena, &pools, &error);
    }
    stats_forget(en);
    lock_give(&op->lock);
}

err_t
operator_put_server(
    struct engine *en, const char *server, struct arena *a, struct operator_pools *ret,
    struct error *e)
{
    struct operators *op = en->operators;
    err_t code;

    lock_take(&op->lock);
    if (op->failed_ms != 0 && clock_mono_ms(&clock_system) - op->failed_ms < SOCKET_AGAIN_MS) {
        atomic_store(&op->due, true);
        code = error_set(e, ERR_UNAVAILABLE, "%s", op->failure.msg);
    } else {
        code = put_server(en, server, a, ret, e);
        stats_forget(en);
    }
    lock_give(&op->lock);
    return code;
}

/* ---- storing ---- */

static void
tell(struct engine *en, const char *server)
{
    const struct object *state = snapshot_by_name(en->live.shared, K_SERVER_STATE, server);
    struct wanted w = wanted_of(state, server);

    events_publish(
        en->events, "server",
        json_pack(
            "{s:s, s:s, s:I}", "server", server, "state", state_word(w.state), "weight",
            (json_int_t)w.percent));
}

void
operator_note(struct engine *en, const struct change_set *set)
{
    bool any = false;

    for (size_t i = 0; i < set->count; i++) {
        const struct change *op = &set->items[i];
        const char *name = json_string_value(json_object_get(op->body, "name"));

        if (op->kind == K_SERVER_STATE) {
            tell(en, name != NULL ? name : op->name);
            any = true;
        }
    }
    if (any) {
        atomic_store(&en->operators->due, true);
        engine_wake(en);
    }
}

struct store_call {
    const char *server;
    json_t *body;
    const struct actor *who;
    struct problems *p;
};

static json_t *
body_of(const struct store_call *call)
{
    json_t *body = json_copy(call->body);

    ASSERT(body != NULL);
    ASSERT(json_object_set_new(body, "name", json_string(call->server)) == 0);
    ASSERT(json_object_set_new(body, "server", json_string(call->server)) == 0);
    return body;
}

static err_t
store_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct store_call *call = ctx;
    const struct snapshot *shared = en->live.shared;
    bool stored = snapshot_by_name(shared, K_SERVER_STATE, call->server) != NULL;
    struct change op = {.op = CHANGE_DELETE, .kind = K_SERVER_STATE, .name = call->server};
    struct change_set set;
    err_t code;

    if (snapshot_by_name(shared, K_SERVER, call->server) == NULL) {
        return error_set(
            e, ERR_NOT_FOUND, "no server \"%s\" is applied on this node", call->server);
    }
    if (call->body == NULL && !stored) {
        return ERR_OK;
    }
    if (call->body != NULL) {
        op.op = stored ? CHANGE_MERGE : CHANGE_CREATE;
        op.name = stored ? call->server : NULL;
        op.body = body_of(call);
    }
    change_set_init(&set);
    code = change_set_add(&set, op, e);
    if (code == ERR_OK) {
        code = commit_direct(en, &set, NULL, call->who, call->p, e);
    }
    change_set_fini(&set);
    if (code == ERR_OK) {
        tell(en, call->server);
    }
    return code;
}

err_t
operator_store(
    struct engine *en, const char *server, json_t *body, const struct actor *who,
    struct problems *p, struct error *e)
{
    struct store_call call = {server, body, who, p};

    return engine_run(en, store_on_engine, &call, e);
}

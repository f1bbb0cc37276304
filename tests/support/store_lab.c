/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/store_lab.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/x509.h"

/* Many of them make a certificate that is stored compressed. */
#define LONG_NAME        "a-name-of-forty-characters-or-a-few-more"
#define STORE_LAB_NOW_MS ((int64_t)1800000000000)

static int64_t
lab_clock(void *ctx)
{
    struct store_lab *l = ctx;

    return l->now_ms++;
}

static void
must(err_t code, const struct error *e)
{
    if (code != ERR_OK) {
        (void)fprintf(stderr, "%s: %s\n", error_name(code), e->msg);
        abort();
    }
}

void
store_lab_init_in(struct store_lab *l, const char *folder)
{
    *l = (struct store_lab){.now_ms = STORE_LAB_NOW_MS};
    l->clock = (struct clock){lab_clock, lab_clock, l};
    ASSERT(
        snprintf(l->parent, sizeof l->parent, "%s/lockstep-store-XXXXXX", folder) <
        (int)sizeof l->parent);
    ASSERT(mkdtemp(l->parent) != NULL);
    ASSERT(snprintf(l->dir, sizeof l->dir, "%s/data", l->parent) < (int)sizeof l->dir);
}

void
store_lab_init(struct store_lab *l)
{
    store_lab_init_in(l, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

void
store_lab_open(struct store_lab *l)
{
    struct error e;

    must(store_open(l->dir, "node1", &l->clock, &l->store, &e), &e);
}

void
store_lab_close(struct store_lab *l)
{
    store_close(l->store);
    l->store = NULL;
}

void
store_lab_reopen(struct store_lab *l)
{
    store_lab_close(l);
    store_lab_open(l);
}

void
store_lab_fini(struct store_lab *l)
{
    struct error e;

    store_lab_close(l);
    must(file_remove_tree_at(AT_FDCWD, l->parent, &e), &e);
}

int
store_lab_setup(void **state)
{
    static struct store_lab l;

    store_lab_init(&l);
    store_lab_open(&l);
    *state = &l;
    return 0;
}

int
store_lab_teardown(void **state)
{
    store_lab_fini(*state);
    return 0;
}

void
store_lab_path(const struct store_lab *l, const char *name, struct buf *out)
{
    buf_reset(out);
    buf_printf(out, "%s/%s", l->dir, name);
    ASSERT(!out->failed);
}

struct db *
store_lab_raw(const struct store_lab *l)
{
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    struct db *d = NULL;
    struct error e;

    store_lab_path(l, "lockstep.db", &path);
    must(db_open(buf_str(&path), &d, &e), &e);
    return d;
}

void
store_lab_script(const struct store_lab *l, const char *sql)
{
    CLEANUP(db_cleanup) struct db *d = store_lab_raw(l);
    struct error e;

    must(db_script(d, sql, &e), &e);
}

int64_t
store_lab_number(const struct store_lab *l, const char *sql)
{
    CLEANUP(db_cleanup) struct db *d = store_lab_raw(l);
    CLEANUP(query_cleanup) struct query q = {0};
    struct error e;

    must(query_open(d, sql, &q, &e), &e);
    must(query_need(&q, "a number", &e), &e);
    return col_i64(&q, 0);
}

static void
load(struct store_lab *l, struct snapshot **ret_shared, struct snapshot **ret_local)
{
    struct store_state state;
    struct error e;

    must(store_load(l->store, &state, &e), &e);
    *ret_shared = state.shared;
    *ret_local = state.local;
    draft_list_free(&state.draft);
}

struct snapshot *
store_lab_shared(struct store_lab *l)
{
    struct snapshot *shared;
    struct snapshot *local;

    load(l, &shared, &local);
    snapshot_unref(local);
    return shared;
}

struct snapshot *
store_lab_local(struct store_lab *l)
{
    struct snapshot *shared;
    struct snapshot *local;

    load(l, &shared, &local);
    snapshot_unref(shared);
    return local;
}

void
store_lab_id(unsigned n, char ret[OBJECT_ID_BYTES])
{
    ASSERT(snprintf(ret, OBJECT_ID_BYTES, "%016x", n) == 16);
}

/* Takes over the reference of body. */
static struct object *
parse(enum kind kind, unsigned n, json_t *body, const struct snapshot *now)
{
    const struct snapshot_pair pair = {.shared = now};
    struct object_refs refs = snapshot_refs(&pair);
    struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    char id[OBJECT_ID_BYTES];
    struct problems p;
    struct object *o;

    ASSERT(body != NULL);
    store_lab_id(n, id);
    problems_init(&p, arena);
    o = object_parse(kind, id, body, NULL, &refs, &p);
    if (o == NULL) {
        (void)fprintf(stderr, "%s: %s\n", p.items[0].pointer, p.items[0].message);
        abort();
    }
    json_decref(body);
    arena_free(arena);
    return o;
}

struct object *
store_lab_server(unsigned n, const char *name, int port)
{
    char own[32];

    (void)snprintf(own, sizeof own, "web%u", n);
    return parse(
        K_SERVER, n,
        json_pack(
            "{s:s, s:s, s:i}", "name", name != NULL ? name : own, "address", "192.0.2.1",
            "port", port),
        NULL);
}

struct object *
store_lab_pool(unsigned n, const struct snapshot *now, const char *const *servers, size_t count)
{
    json_t *members = json_array();
    char name[32];

    for (size_t i = 0; i < count; i++) {
        ASSERT(json_array_append_new(members, json_pack("{s:s}", "server", servers[i])) == 0);
    }
    (void)snprintf(name, sizeof name, "pool%u", n);
    return parse(K_POOL, n, json_pack("{s:s, s:o}", "name", name, "members", members), now);
}

struct object *
store_lab_certificate(unsigned n, struct buf *key_line)
{
    static const char *const names[] = {
        "app.example.test",  LONG_NAME ".a.test", LONG_NAME ".b.test",
        LONG_NAME ".c.test", LONG_NAME ".d.test", LONG_NAME ".e.test",
        LONG_NAME ".f.test", LONG_NAME ".g.test", NULL};
    CLEANUP(buf_fini) struct buf chain = {.max = 65536};
    CLEANUP(buf_fini) struct buf key = {.max = 65536};
    const char *line;
    char name[32];
    struct error e;

    must(x509_selfsigned(names, STORE_LAB_NOW_MS / 1000, 90, &chain, &key, &e), &e);
    line = strchr(buf_str(&key), '\n');
    ASSERT(line != NULL && strlen(line) > 60);
    buf_put(key_line, line + 1, 40);
    (void)snprintf(name, sizeof name, "cert%u", n);
    return parse(
        K_CERTIFICATE, n,
        json_pack(
            "{s:s, s:s, s:s}", "name", name, "chain", buf_str(&chain), "key", buf_str(&key)),
        NULL);
}

struct object *
store_lab_admin(unsigned n)
{
    char name[32];

    (void)snprintf(name, sizeof name, "admin%u", n);
    return parse(
        K_ADMIN, n, json_pack("{s:s, s:s}", "name", name, "password", "SENTINEL correct horse"),
        NULL);
}

struct object *
store_lab_key(unsigned n, const char *key_hash)
{
    json_auto_t *patch = json_pack("{s:s}", "key_hash", key_hash);
    struct object *o = NULL;
    struct object *bare;
    struct error e;
    char name[32];

    (void)snprintf(name, sizeof name, "key%u", n);
    bare = parse(K_AUTOMATION_KEY, n, json_pack("{s:s}", "name", name), NULL);
    must(object_with(bare, patch, &o, &e), &e);
    object_unref(bare);
    return o;
}

static struct snapshot *
seal(struct snapshot_edit *x)
{
    struct snapshot *s = NULL;
    struct error e;

    must(snapshot_seal(x, &s, &e), &e);
    return s;
}

struct snapshot *
store_lab_with(const struct snapshot *from, struct object *o)
{
    struct snapshot_edit *x = snapshot_edit_new(from);

    snapshot_edit_put(x, o);
    return seal(x);
}

struct snapshot *
store_lab_without(const struct snapshot *from, enum kind kind, const char *name)
{
    const struct object *o = snapshot_by_name(from, kind, name);
    struct snapshot_edit *x = snapshot_edit_new(from);

    ASSERT(o != NULL);
    snapshot_edit_remove(x, kind, o->id);
    return seal(x);
}

static void
count_difference(void *ctx, const struct object *before, const struct object *after)
{
    size_t *count = ctx;

    (void)before;
    (void)after;
    (*count)++;
}

bool
store_lab_equal(const struct snapshot *a, const struct snapshot *b)
{
    size_t count = 0;

    snapshot_diff(a, b, count_difference, &count);
    return count == 0;
}

struct commit_request
store_lab_request(
    const struct store_lab *l, const struct snapshot *shared_to,
    const struct snapshot *local_to)
{
    return (struct commit_request){
        .shared_to = shared_to,
        .local_to = local_to,
        .node = "node1",
        .author = "admin maria",
        .summary = "a change",
        .at_ms = l->now_ms,
    };
}

err_t
store_lab_draft_put(struct store_lab *l, const struct draft_row *row, struct error *e)
{
    static const struct draft_list none;
    struct draft_row copy = *row;

    return store_draft_write(l->store, &(struct draft_list){&copy, 1}, &none, e);
}

struct commit
store_lab_commit(
    struct store_lab *l, const struct snapshot *shared_to, const struct snapshot *local_to)
{
    struct commit_request q = store_lab_request(l, shared_to, local_to);
    struct commit head;
    int64_t local_rev;
    struct error e;

    must(store_commit(l->store, &q, &head, &local_rev, &e), &e);
    return head;
}

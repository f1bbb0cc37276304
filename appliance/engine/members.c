/* SPDX-License-Identifier: Apache-2.0 */
#include "store/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/inner.h"
#include "engine/members_inner.h"
#include "model/validate.h"
#include "version_gen.h"

/* What a node changed of itself while nobody heard of it does not outbid its tombstone. */
#define AHEAD_OF_FORGOTTEN 1000

void
member_list_free(struct member_list *l)
{
    if (l->items != NULL) {
        crypt_wipe(l->items, l->count * sizeof *l->items);
    }
    free(l->items);
    *l = (struct member_list){.items = NULL};
}

static struct member_list
copy_of(const struct member_list *l)
{
    struct member_list copy = *l;

    copy.items = xmalloc((l->count + 1) * sizeof *copy.items);
    if (l->count > 0) {
        memcpy(copy.items, l->items, l->count * sizeof *copy.items);
    }
    return copy;
}

struct member_list
members_get(struct engine *en)
{
    struct member_list list;

    lock_take(&en->members->lock);
    list = copy_of(&en->members->list);
    lock_give(&en->members->lock);
    return list;
}

void
members_self(struct engine *en, struct member *ret)
{
    const struct member_list *l = &en->members->list;

    lock_take(&en->members->lock);
    *ret = l->items[l->self];
    lock_give(&en->members->lock);
}

err_t
members_find(struct engine *en, const char *spec, struct member *ret, struct error *e)
{
    CLEANUP(member_list_free) struct member_list list = members_get(en);
    const struct member *named = NULL;

    for (size_t i = 0; i < list.count; i++) {
        const struct member *m = &list.items[i];

        if (i == list.self || m->gone) {
            continue;
        }
        if (strcmp(m->id, spec) == 0) {
            *ret = *m;
            return ERR_OK;
        }
        if (strcmp(m->name, spec) == 0) {
            if (named != NULL) {
                return error_set(
                    e, ERR_CONFLICT, "two nodes are called \"%s\": say the id of one, %s or %s",
                    spec, named->id, m->id);
            }
            named = m;
        }
    }
    if (named == NULL) {
        const struct member *self = &list.items[list.self];
        bool is_self = strcmp(self->name, spec) == 0 || strcmp(self->id, spec) == 0;

        return error_set(
            e, ERR_NOT_FOUND, "there is no other node \"%s\"%s", spec,
            is_self ? ": this one has that name" : "");
    }
    *ret = *named;
    return ERR_OK;
}

int
members_level(struct engine *en, struct member *ret_behind)
{
    const struct member_list *l = &en->members->list;
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    int level = SCHEMA_VERSION;

    *ret_behind = (struct member){.name = ""};
    lock_take(&en->members->lock);
    for (size_t i = 0; i < l->count; i++) {
        if (!l->items[i].gone && l->items[i].schema_version < level) {
            level = l->items[i].schema_version;
            *ret_behind = l->items[i];
        }
    }
    lock_give(&en->members->lock);
    crypt_wipe(ret_behind->key, sizeof ret_behind->key);
    /* What is there already stays. */
    return level > v->head.schema_version ? level : v->head.schema_version;
}

size_t
members_peers(struct engine *en)
{
    const struct member_list *l = &en->members->list;
    size_t count = 0;

    lock_take(&en->members->lock);
    for (size_t i = 0; i < l->count; i++) {
        count += i != l->self && !l->items[i].gone ? 1 : 0;
    }
    lock_give(&en->members->lock);
    return count;
}

struct hash
members_digest(struct engine *en)
{
    CLEANUP(member_list_free) struct member_list list = members_get(en);
    struct sha256 *h = sha256_new();

    for (size_t i = 0; i < list.count; i++) {
        const struct member *m = &list.items[i];
        char seq[32];
        int n = snprintf(seq, sizeof seq, " %lld %d ", (long long)m->seq, m->gone);

        sha256_add(h, m->id, strlen(m->id));
        sha256_add(h, seq, (size_t)n);
        sha256_add(h, m->key, strlen(m->key));
        sha256_add(h, m->tables_address, strlen(m->tables_address));
    }
    return sha256_end(&h);
}

void
members_listens(struct engine *en, char ret[MEMBER_URL_BYTES])
{
    lock_take(&en->members->lock);
    memcpy(ret, en->members->url, MEMBER_URL_BYTES);
    lock_give(&en->members->lock);
}

/* ---- changing: engine thread ---- */

/* In the database, then in memory. */
err_t
members_save(struct engine *en, struct member_list *next, struct error *e)
{
    return members_save_with(en, next, NULL, e);
}

err_t
members_save_with(
    struct engine *en, struct member_list *next, const struct former_key *former,
    struct error *e)
{
    struct members *m = en->members;
    err_t code = store_member_rekey(en->store, next->items, next->count, former, e);

    if (code == ERR_OK) {
        struct member_list replaced;

        lock_take(&m->lock);
        replaced = m->list;
        m->list = *next;
        lock_give(&m->lock);
        *next = replaced;
        engine_wake(en);
    }
    member_list_free(next);
    return code;
}

/* What the record is to say; false: it says so already. */
static bool
describe_self(struct engine *en, struct member *self)
{
    const struct object *node = snapshot_singleton(en->live.local, K_NODE);
    struct text url = object_text(node, F_NODE_URL);
    struct member next = *self;

    (void)snprintf(next.name, sizeof next.name, "%s", node->name.s);
    (void)snprintf(next.url, sizeof next.url, "%s", url.len > 0 ? url.s : en->members->url);
    (void)snprintf(next.release, sizeof next.release, "%s", LOCKSTEP_VERSION);
    next.schema_version = SCHEMA_VERSION;
    next.gone = false;
    next.gone_at_ms = 0;
    member_tables_address(
        object_text(node, F_NODE_PEERS_ADDRESS).s, next.url, next.tables_address);
    next.tables_port = next.tables_address[0] != '\0' ? validate_peers_port(en->live.local) : 0;
    if (strcmp(next.name, self->name) == 0 && strcmp(next.url, self->url) == 0 &&
        strcmp(next.release, self->release) == 0 &&
        strcmp(next.tables_address, self->tables_address) == 0 &&
        next.tables_port == self->tables_port && next.schema_version == self->schema_version &&
        next.gone == self->gone) {
        return false;
    }
    member_raise(&next, 1);
    *self = next;
    return true;
}

void
members_refresh(struct engine *en)
{
    struct member_list next = copy_of(&en->members->list);
    struct error e;

    ASSERT(engine_on_own_thread(en));
    if (!describe_self(en, &next.items[next.self])) {
        member_list_free(&next);
    } else if (members_save(en, &next, &e) != ERR_OK) {
        log_warning("what this node says of itself cannot be saved: %s", e.msg);
    }
}

static int
compare_ids(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;

    return strcmp(x->id, y->id);
}

size_t
members_place(const struct member_list *l, const char *id)
{
    size_t i = 0;

    while (i < l->count && strcmp(l->items[i].id, id) != 0) {
        i++;
    }
    return i;
}

void
members_sort(struct member_list *l)
{
    char self[MEMBER_ID_BYTES];

    memcpy(self, l->items[l->self].id, sizeof self);
    qsort(l->items, l->count, sizeof *l->items, compare_ids);
    l->self = members_place(l, self);
}

err_t
members_open(struct engine *en, struct error *e)
{
    struct members *m = xcalloc(1, sizeof *m);
    char id[MEMBER_ID_BYTES];
    err_t code = store_node_id(en->store, id, e);

    en->members = m;
    lock_init(&m->lock);
    if (code == ERR_OK) {
        code = store_members(en->store, &m->list.items, &m->list.count, e);
    }
    if (code == ERR_OK) {
        code = members_load_former(en, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    m->list.self = members_place(&m->list, id);
    if (m->list.self < m->list.count) {
        /* Until members_present tells: where it listened last. */
        memcpy(m->url, m->list.items[m->list.self].url, sizeof m->url);
        members_refresh(en);
        return ERR_OK;
    }
    struct member_list first = copy_of(&m->list);
    struct member *self = &first.items[first.count];

    first.self = first.count++;
    *self = (struct member){.seq = 0};
    (void)snprintf(self->id, sizeof self->id, "%s", id);
    members_make_key(self->key);
    (void)describe_self(en, self);
    members_sort(&first);
    return members_save(en, &first, e);
}

void
members_close(struct engine *en)
{
    if (en->members == NULL) {
        return;
    }
    member_list_free(&en->members->list);
    crypt_wipe(en->members->former_key, sizeof en->members->former_key);
    (void)pthread_mutex_destroy(&en->members->lock);
    free(en->members);
}

/* ---- changing: any thread ---- */

struct presenting {
    const char *url, *pin;
};

static err_t
present_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct presenting *p = ctx;
    struct member_list next = copy_of(&en->members->list);
    struct member *self = &next.items[next.self];
    bool changed = strcmp(self->pin, p->pin) != 0;

    lock_take(&en->members->lock);
    (void)snprintf(en->members->url, sizeof en->members->url, "%s", p->url);
    lock_give(&en->members->lock);
    (void)snprintf(self->pin, sizeof self->pin, "%s", p->pin);
    if (!describe_self(en, self)) {
        if (!changed) {
            member_list_free(&next);
            return ERR_OK;
        }
        member_raise(self, 1);
    }
    return members_save(en, &next, e);
}

err_t
members_present(struct engine *en, const char *url, const char *pin, struct error *e)
{
    struct presenting p = {url, pin};

    return engine_run(en, present_on_engine, &p, e);
}

void
members_keep_self(struct member_list *l)
{
    l->items[0] = l->items[l->self];
    l->count = 1;
    l->self = 0;
}

static void
bury(struct engine *en, struct member *m)
{
    if (!m->gone) {
        m->gone = true;
        m->gone_at_ms = clock_wall_ms(en->config->clock);
        member_raise(m, AHEAD_OF_FORGOTTEN);
        crypt_wipe(m->key, sizeof m->key);
    }
}

/* Who leaves forgets the others, and raises its own seq over the tombstone that they got. */
static err_t
remove_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const char *id = ctx;
    struct member_list next = copy_of(&en->members->list);
    size_t at = members_place(&next, id);

    if (at == next.count || (at != next.self && next.items[at].gone)) {
        member_list_free(&next);
        return error_set(e, ERR_NOT_FOUND, "there is no such node");
    }
    if (at != next.self) {
        bury(en, &next.items[at]);
    }
    if (at == next.self) {
        member_raise(&next.items[at], 2);
        members_keep_self(&next);
    }
    return members_save(en, &next, e);
}

err_t
members_remove(struct engine *en, const char *id, struct error *e)
{
    char copy[MEMBER_ID_BYTES];

    (void)snprintf(copy, sizeof copy, "%s", id);
    return engine_run(en, remove_on_engine, copy, e);
}

struct noting {
    const char *id, *key;
    bool refused;
};

static err_t
note_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct noting *n = ctx;
    struct member_list *l = &en->members->list;
    size_t at = members_place(l, n->id);

    (void)e;
    lock_take(&en->members->lock);
    if (at < l->count && strcmp(l->items[at].key, n->key) == 0) {
        l->items[at].key_refused = n->refused;
    }
    lock_give(&en->members->lock);
    return ERR_OK;
}

void
members_note_key(struct engine *en, const char *id, const char *key, bool refused)
{
    struct noting n = {id, key, refused};
    struct error unused;

    if (engine_run(en, note_on_engine, &n, &unused) != ERR_OK) {
        log_info("%s", unused.msg); /* it is seen again in the next round */
    }
}

struct auditing {
    const char *who, *action, *text;
};

static err_t
audit_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct auditing *a = ctx;

    (void)e;
    engine_audit(en, a->who, a->action, a->text);
    return ERR_OK;
}

void
members_audit(struct engine *en, const char *who, const char *action, const char *text)
{
    struct auditing a = {who, action, text};
    struct error unused;

    if (engine_run(en, audit_on_engine, &a, &unused) != ERR_OK) {
        log_warning("%s: %s: %s", who, action, text);
    }
}

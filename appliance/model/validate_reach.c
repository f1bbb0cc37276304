/* SPDX-License-Identifier: Apache-2.0 */
/* Which objects an edit can reach, and the checks on them alone. What a check reads of other
 * objects stands in the two tables here; what it reads of the object itself needs no entry,
 * since a changed object is always looked at. Objects that the tables leave out have the same
 * errors before and after. tests/property/prop_reach.c holds the tables to that. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/validate_checks.h"

/* An edit that reaches more is checked as a whole, which then costs no more. */
#define REACHED_MAX 64
#define ARENA_BYTES ((size_t)1 << 20)
#define ID_BYTES    16
#define WORDS_MAX   16 /* with more, looking closer is cheaper */
#define BIT(field)  (UINT64_C(1) << (field))
#define ALL_FIELDS  UINT64_MAX

/* Checks of the objects that refer to the kind by this field read these fields of it. */
static const struct {
    enum kind kind;
    enum kind user;
    unsigned by;
    uint64_t fields;
} read_by_users[] = {
    {K_SERVER, K_POOL, F_POOL_MEMBERS, BIT(F_SERVER_ADDRESS) | BIT(F_SERVER_PORT)},
    {K_POOL, K_SERVICE, F_SERVICE_POOL, BIT(F_POOL_MODE)},
    {K_POOL, K_RULE, F_RULE_POOL, BIT(F_POOL_MODE)},
    {K_LISTENER, K_SERVICE, F_SERVICE_LISTENERS, BIT(F_LISTENER_MODE)},
    {K_LISTENER, K_RULE, F_RULE_LISTENER, BIT(F_LISTENER_MODE)},
    {K_SERVICE, K_RULE, F_RULE_SERVICE, BIT(F_SERVICE_LISTENERS)},
};

/* An object that changes, or that a change reaches: then both sides are the same. */
struct reached {
    const struct object *before, *after; /* one may be NULL */
    uint64_t fields;                     /* that differ, or count as if they did; a bit each */
};

struct reach {
    const struct snapshot_pair *before, *after;
    struct reached items[REACHED_MAX];
    size_t count;
    bool too_many;
};

/* ---- what changes ---- */

static void
add(struct reach *r, struct reached item)
{
    if (r->count == REACHED_MAX) {
        r->too_many = true;
    } else {
        r->items[r->count++] = item;
    }
}

static void
note_change(void *ctx, const struct object *before, const struct object *after)
{
    struct reached item = {before, after, ALL_FIELDS};
    if (before != NULL && after != NULL) {
        const struct schema_kind *k = schema_kind(after->kind);
        item.fields = 0;
        for (uint32_t i = 0; i < k->field_count; i++) {
            bool same =
                value_equal(&k->fields[i], object_value(before, i), object_value(after, i));
            item.fields |= same ? 0 : BIT(i);
        }
    }
    add(ctx, item);
}

static void
find_changes(struct reach *r)
{
    const struct snapshot *const before[] = {r->before->shared, r->before->local};
    const struct snapshot *const after[] = {r->after->shared, r->after->local};
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        if (before[i] != NULL && after[i] != NULL) {
            snapshot_diff(before[i], after[i], note_change, r);
        } else if (before[i] != after[i]) {
            r->too_many = true;
        }
    }
}

/* The object is in both sides as it is. */
static void
add_unchanged(struct reach *r, const struct object *o, uint64_t fields)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->items[i].after == o && (fields & ~r->items[i].fields) == 0) {
            return;
        }
    }
    add(r, (struct reached){o, o, fields});
}

static const struct object *
any_side(const struct reached *item)
{
    return item->after != NULL ? item->after : item->before;
}

/* ---- users ---- */

/* Objects of which users, or others like them, are looked for. */
struct wanted {
    const struct object *objects[2 * REACHED_MAX]; /* both sides */
    size_t count;
};

/* A sieve: an object without all bits of one of them holds none of the words. */
struct words {
    uint32_t bits[WORDS_MAX];
    size_t count;
    bool any; /* lets all pass */
};

static void
add_word(struct words *w, struct text text)
{
    if (w->count == WORDS_MAX) {
        w->any = true;
    } else {
        w->bits[w->count++] = object_word(text);
    }
}

static bool
may_hold(const struct object *o, const struct words *w)
{
    for (size_t i = 0; i < w->count && !w->any; i++) {
        if ((o->words & w->bits[i]) == w->bits[i]) {
            return true;
        }
    }
    return w->any;
}

static bool
is_wanted(const struct wanted *w, enum kind kind, const struct value *ref)
{
    for (size_t i = 0; i < w->count && !ref->is_null; i++) {
        if (memcmp(w->objects[i]->id, ref->u.text.s, ID_BYTES) == 0 &&
            w->objects[i]->kind == kind) {
            return true;
        }
    }
    return false;
}

static bool
refers(const struct object *o, uint32_t field, const struct wanted *w)
{
    const struct schema_field *f = &schema_kind(o->kind)->fields[field];
    const struct value *v = object_value(o, field);
    const struct value *items = f->list ? v->u.items : v;
    uint32_t count = f->list ? v->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        if (f->type == FT_REF && is_wanted(w, f->ref_kind, &items[i])) {
            return true;
        }
        for (uint32_t j = 0; j < f->field_count; j++) {
            if (f->fields[j].type == FT_REF &&
                is_wanted(w, f->fields[j].ref_kind, &items[i].u.items[j])) {
                return true;
            }
        }
    }
    return false;
}

/* Whether users by that field have to be looked at again. */
static bool
matters(const struct reached *item, enum kind user, uint32_t by)
{
    enum kind kind = any_side(item)->kind;
    if (item->before == NULL || item->after == NULL) {
        return (schema_kind(user)->fields[by].refs >> kind & 1u) != 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(read_by_users); i++) {
        if (read_by_users[i].kind == kind && read_by_users[i].user == user &&
            read_by_users[i].by == by && (read_by_users[i].fields & item->fields) != 0) {
            return true;
        }
    }
    return false;
}

/* Users of items[from..to) by one field. A user that changes too is there already, so that
 * those of one side are all. A user counts as if the field that refers had changed. */
static void
add_users_by(struct reach *r, enum kind user, uint32_t by, size_t from, size_t to)
{
    const struct snapshot *s = snapshot_of(r->after, user);
    const struct object *const *objects;
    struct wanted w;
    struct words words = {.count = 0};
    w.count = 0;
    for (size_t i = from; i < to; i++) {
        if (matters(&r->items[i], user, by)) {
            const struct object *o = any_side(&r->items[i]);
            w.objects[w.count++] = o;
            add_word(&words, (struct text){o->id, (uint32_t)strlen(o->id)});
        }
    }
    if (w.count == 0 || s == NULL) {
        return;
    }
    size_t count = snapshot_kind(s, user, &objects);
    for (size_t i = 0; i < count && !r->too_many; i++) {
        if (may_hold(objects[i], &words) && refers(objects[i], by, &w)) {
            add_unchanged(r, objects[i], BIT(by));
        }
    }
}

static void
add_users(struct reach *r, size_t from, size_t to)
{
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);
        for (uint32_t f = 0; f < kind->field_count; f++) {
            if (kind->fields[f].refs != 0) {
                add_users_by(r, (enum kind)k, f, from, to);
            }
        }
    }
}

/* ---- objects that share something without a reference ---- */

static bool
always(const struct object *o, const struct object *other)
{
    (void)o;
    (void)other;
    return true;
}

static bool
same_port(const struct object *o, const struct object *other)
{
    return object_int(o, F_LISTENER_PORT) == object_int(other, F_LISTENER_PORT);
}

static bool
share_text(const struct value *a, const struct value *b)
{
    for (uint32_t i = 0; i < a->count; i++) {
        struct text text = a->u.items[i].u.text;
        for (uint32_t j = 0; j < b->count; j++) {
            struct text other = b->u.items[j].u.text;
            if (text.len == other.len && memcmp(text.s, other.s, text.len) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool
share_listener(const struct object *o, const struct object *other)
{
    return object_bool(other, F_SERVICE_ENABLED) &&
           share_text(
               object_value(o, F_SERVICE_LISTENERS), object_value(other, F_SERVICE_LISTENERS));
}

/* The path is not compared: few services share a host. */
static bool
share_host(const struct object *o, const struct object *other)
{
    const struct value *a = object_value(o, F_SERVICE_HOSTS);
    const struct value *b = object_value(other, F_SERVICE_HOSTS);
    return (share_text(a, b) || (a->count == 0 && b->count == 0)) && share_listener(o, other);
}

static void
words_of_list(const struct object *o, unsigned field, struct words *ret)
{
    const struct value *v = object_value(o, field);
    for (uint32_t i = 0; i < v->count; i++) {
        add_word(ret, v->u.items[i].u.text);
    }
}

static void
words_of_listeners(const struct object *o, struct words *ret)
{
    words_of_list(o, F_SERVICE_LISTENERS, ret);
}

static void
words_of_hosts(const struct object *o, struct words *ret)
{
    bool any_host = object_value(o, F_SERVICE_HOSTS)->count == 0;
    words_of_list(o, any_host ? F_SERVICE_LISTENERS : F_SERVICE_HOSTS, ret);
}

static bool
is_on(const struct reach *r, const struct object *service)
{
    (void)r;
    return object_bool(service, F_SERVICE_ENABLED);
}

/* A listener of mode tcp carries one service, whatever its hosts. All services on one whose
 * mode changes are users of it. */
static bool
is_on_tcp(const struct reach *r, const struct object *service)
{
    const struct value *on = object_value(service, F_SERVICE_LISTENERS);
    for (uint32_t i = 0; i < on->count && object_bool(service, F_SERVICE_ENABLED); i++) {
        const struct object *listener =
            snapshot_by_id(r->after->shared, K_LISTENER, on->u.items[i].u.text.s);
        if (listener != NULL && object_int(listener, F_LISTENER_MODE) == V_LISTENER_MODE_TCP) {
            return true;
        }
    }
    return false;
}

/* What of an object is compared with others, to which it does not refer. The names are there
 * because of two that clash the one that comes later by name is told. */
static const struct {
    enum kind kind, other;
    uint64_t fields;
    bool (*concerned)(const struct reach *r, const struct object *o); /* NULL: always */
    /* One of these is in whatever it meets; NULL: nothing is known. */
    void (*words)(const struct object *o, struct words *ret);
    bool (*meet)(const struct object *o, const struct object *other);
} compared[] = {
    {K_NODE, K_LISTENER, BIT(F_NODE_PEERS_PORT), NULL, NULL, always},
    {K_VIP_GROUP, K_VIP_GROUP,
     BIT(F_VIP_GROUP_NAME) | BIT(F_VIP_GROUP_ADDRESSES) | BIT(F_VIP_GROUP_PRIMARY), NULL, NULL,
     always},
    {K_LISTENER, K_LISTENER,
     BIT(F_LISTENER_NAME) | BIT(F_LISTENER_PORT) | BIT(F_LISTENER_ADDRESSES) |
         BIT(F_LISTENER_ENABLED),
     NULL, NULL, same_port},
    {K_SERVICE, K_SERVICE,
     BIT(F_SERVICE_NAME) | BIT(F_SERVICE_LISTENERS) | BIT(F_SERVICE_HOSTS) |
         BIT(F_SERVICE_PATH) | BIT(F_SERVICE_ENABLED),
     is_on, words_of_hosts, share_host},
    {K_SERVICE, K_SERVICE,
     BIT(F_SERVICE_NAME) | BIT(F_SERVICE_LISTENERS) | BIT(F_SERVICE_ENABLED), is_on_tcp,
     words_of_listeners, share_listener},
};

static void
add_those_that_meet(struct reach *r, size_t row, const struct wanted *w)
{
    const struct snapshot *s = snapshot_of(r->after, compared[row].other);
    const struct object *const *objects = NULL;
    size_t count = s != NULL ? snapshot_kind(s, compared[row].other, &objects) : 0;
    struct words words = {.any = compared[row].words == NULL};
    for (size_t i = 0; i < w->count && !words.any; i++) {
        compared[row].words(w->objects[i], &words);
    }
    for (size_t i = 0; i < count && w->count > 0 && !r->too_many; i++) {
        for (size_t j = 0; may_hold(objects[i], &words) && j < w->count; j++) {
            if (compared[row].meet(w->objects[j], objects[i])) {
                add_unchanged(r, objects[i], 0);
                break;
            }
        }
    }
}

static void
add_concerned(const struct reach *r, size_t row, const struct object *o, struct wanted *w)
{
    if (o != NULL && (compared[row].concerned == NULL || compared[row].concerned(r, o))) {
        w->objects[w->count++] = o;
    }
}

/* Both sides of an object: those that it met before may be told of each other now. */
static void
add_compared(struct reach *r, size_t from, size_t to)
{
    for (size_t row = 0; row < ARRAY_LEN(compared); row++) {
        struct wanted w;
        w.count = 0;
        for (size_t i = from; i < to; i++) {
            const struct reached *item = &r->items[i];
            if (any_side(item)->kind != compared[row].kind ||
                (item->fields & compared[row].fields) == 0) {
                continue;
            }
            if (item->before != item->after) {
                add_concerned(r, row, item->before, &w);
            }
            add_concerned(r, row, item->after, &w);
        }
        add_those_that_meet(r, row, &w);
    }
}

/* ---- the part of the model to look at ---- */

/* Objects of the new side, each once, with all to which they refer. */
struct part {
    const struct snapshot_pair *pair;
    uint64_t *marks[2]; /* a bit for each position in shared, in local */
    const struct object **objects;
    size_t count, cap;
};

static void
put(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct part *part = ctx;
    const struct snapshot *s = snapshot_of(part->pair, kind);
    size_t at = s != NULL ? snapshot_position(s, kind, id) : SIZE_MAX;
    (void)pointer;
    if (at == SIZE_MAX) {
        return;
    }
    uint64_t *mark = &part->marks[schema_kind(kind)->scope == SCOPE_SHARED ? 0 : 1][at / 64];
    if ((*mark >> (at % 64) & 1) != 0) {
        return;
    }
    *mark |= UINT64_C(1) << (at % 64);
    if (part->count == part->cap) {
        part->cap = part->cap == 0 ? REACHED_MAX : 2 * part->cap;
        part->objects = xrealloc(part->objects, part->cap * sizeof(part->objects[0]));
    }
    part->objects[part->count++] = snapshot_at(s, at);
}

static uint64_t *
new_marks(const struct snapshot *s)
{
    return xcalloc(s != NULL ? snapshot_count(s) / 64 + 1 : 1, sizeof(uint64_t));
}

static void
collect(const struct reach *r, struct part *part)
{
    part->marks[0] = new_marks(r->after->shared);
    part->marks[1] = new_marks(r->after->local);
    for (size_t i = 0; i < r->count; i++) {
        const struct object *o = r->items[i].after;
        if (o != NULL) {
            put(part, o->kind, o->id, NULL);
        }
    }
    for (size_t i = 0; i < part->count; i++) {
        object_each_ref(part->objects[i], put, part);
    }
    free(part->marks[0]);
    free(part->marks[1]);
}

static bool
is_clean(const struct reach *r, const struct part *part)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ARENA_BYTES);
    const struct object **sorted = xcalloc(part->count + 1, sizeof(sorted[0]));
    struct kind_list kinds[KIND_COUNT] = {{NULL, 0}};
    struct problems p;
    size_t used = 0;
    problems_init(&p, arena);
    p.errors_only = true;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        kinds[k].items = sorted + used;
        for (size_t i = 0; i < part->count; i++) {
            if (part->objects[i]->kind == (enum kind)k) {
                sorted[used++] = part->objects[i];
            }
        }
        kinds[k].count = (size_t)(sorted + used - kinds[k].items);
    }
    checks_run(&(struct checks){.pair = r->after, .p = &p}, kinds);
    free(sorted);
    return p.errors == 0;
}

bool
validate_reached(const struct snapshot_pair *before, const struct snapshot_pair *after)
{
    struct reach r = {.before = before, .after = after};
    struct part part = {.pair = after};
    find_changes(&r);
    for (size_t from = 0, to = r.count; from < to && !r.too_many; from = to, to = r.count) {
        add_users(&r, from, to);
        add_compared(&r, from, to);
    }
    if (r.too_many) {
        return false;
    }
    collect(&r, &part);
    bool clean = is_clean(&r, &part);
    free(part.objects);
    return clean;
}

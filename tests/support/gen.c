/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/validate.h"
#include "tests/support/gen_text.h"

#define LIST_ITEMS   4
#define ARENA_BYTES  ((size_t)64 << 20)
#define VALID_ROUNDS 1000

struct gen *
gen_new(uint64_t seed)
{
    struct gen *g = xcalloc(1, sizeof *g);

    g->state = seed;
    return g;
}

void
gen_free(struct gen *g)
{
    if (g == NULL) {
        return;
    }
    for (size_t i = 0; i < g->pem_count; i++) {
        buf_fini(&g->pems[i].chain);
        buf_fini(&g->pems[i].key);
    }
    free(g);
}

void
gen_cleanup(struct gen **g)
{
    gen_free(*g);
}

/* SplitMix64. */
uint64_t
gen_random(struct gen *g)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t
gen_below(struct gen *g, size_t limit)
{
    ASSERT(limit > 0);
    return (size_t)(gen_random(g) % limit);
}

bool
gen_chance(struct gen *g, unsigned percent)
{
    return gen_below(g, 100) < percent;
}

void
gen_id(struct gen *g, enum kind kind, char ret[OBJECT_ID_BYTES])
{
    const struct schema_kind *k = schema_kind(kind);

    if (k->singleton) {
        memcpy(ret, k->name, strlen(k->name) + 1);
    } else {
        (void)snprintf(ret, OBJECT_ID_BYTES, "%016llx", (unsigned long long)gen_random(g));
    }
}

/* ---- values ---- */

static json_t *
gen_int(struct gen *g, const struct schema_field *f)
{
    uint64_t span = (uint64_t)(f->max - f->min) + 1;

    switch (gen_below(g, 6)) {
    case 0: return json_integer(f->min);
    case 1: return json_integer(f->max);
    default: return json_integer(f->min + (int64_t)(gen_random(g) % span));
    }
}

static size_t
targets(const struct snapshot_pair *pair, enum kind k, const struct object *const **ret)
{
    const struct snapshot *s = snapshot_of(pair, k);

    return s != NULL ? snapshot_kind(s, k, ret) : 0;
}

static json_t *
gen_ref(struct gen *g, const struct schema_field *f, const struct snapshot_pair *pair)
{
    const struct object *const *objects = NULL;
    size_t count = targets(pair, f->ref_kind, &objects);

    if (f->nullable && (count == 0 || gen_chance(g, 30))) {
        return json_null();
    }
    return count > 0 ? json_string(objects[gen_below(g, count)]->name.s) : NULL;
}

static json_t *
gen_scalar(struct gen *g, const struct schema_field *f, const struct snapshot_pair *pair)
{
    switch (f->type) {
    case FT_BOOL: return json_boolean(gen_chance(g, 50));
    case FT_INT: return gen_int(g, f);
    case FT_ENUM: return json_string(f->values[gen_below(g, f->value_count)]);
    case FT_TEXT: return gen_text(g, f);
    case FT_REF: return gen_ref(g, f, pair);
    case FT_RECORD: break;
    }
    return NULL;
}

static json_t *
gen_record(struct gen *g, const struct schema_field *f, const struct snapshot_pair *pair)
{
    json_t *record = json_object();

    for (uint32_t j = 0; j < f->field_count; j++) {
        const struct schema_field *sub = &f->fields[j];
        json_t *value = NULL;

        if (!sub->required && gen_chance(g, 40)) {
            continue;
        }
        value = gen_scalar(g, sub, pair);
        if (value == NULL) {
            json_decref(record);
            return NULL;
        }
        json_object_set_new(record, sub->name, value);
    }
    return record;
}

/* What must not stand in a list twice: a text or name, or a record's reference. */
static const json_t *
identity(const struct schema_field *f, const json_t *item)
{
    for (uint32_t j = 0; f->type == FT_RECORD && j < f->field_count; j++) {
        if (f->fields[j].type == FT_REF) {
            return json_object_get(item, f->fields[j].name);
        }
    }
    return item;
}

static bool
stands_in(const struct schema_field *f, const json_t *list, const json_t *item)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (gen_same_text(f, identity(f, json_array_get(list, i)), identity(f, item))) {
            return true;
        }
    }
    return false;
}

static json_t *
gen_list(struct gen *g, const struct schema_field *f, const struct snapshot_pair *pair)
{
    uint32_t most = f->max_items - f->min_items;
    size_t count = f->min_items + gen_below(g, (most < LIST_ITEMS ? most : LIST_ITEMS) + 1);
    json_t *list = json_array();

    for (size_t tries = 0; json_array_size(list) < count && tries < 8 * count; tries++) {
        json_t *item = f->type == FT_RECORD ? gen_record(g, f, pair) : gen_scalar(g, f, pair);

        if (item == NULL || stands_in(f, list, item)) {
            json_decref(item);
        } else {
            json_array_append_new(list, item);
        }
    }
    if (json_array_size(list) < f->min_items) {
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *
gen_value(struct gen *g, const struct schema_field *f, const struct snapshot_pair *pair)
{
    return f->list ? gen_list(g, f, pair) : gen_scalar(g, f, pair);
}

/* ---- what fits together ---- */

static bool
is_word(const json_t *body, const char *field, const char *word)
{
    const char *s = json_string_value(json_object_get(body, field));

    return s != NULL && strcmp(s, word) == 0;
}

static void
fit_condition(struct gen *g, json_t *body)
{
    const json_t *values = json_object_get(body, "values");

    if (json_string_length(json_object_get(body, "key")) == 0) {
        json_object_set_new(body, "key", json_string("X-Key"));
    }
    if (is_word(body, "type", "src")) {
        json_object_set_new(body, "values", json_pack("[s,s]", "10.0.0.0/8", "2001:db8::/32"));
    } else if (is_word(body, "type", "method")) {
        json_object_set_new(body, "values", json_pack("[s,s]", "GET", "M-SEARCH"));
    } else if (is_word(body, "match", "regex")) {
        json_object_set_new(body, "values", json_pack("[s]", "^/[a-z]+(/x)?$"));
    } else if (json_array_size(values) == 0) {
        json_object_set_new(body, "values", json_pack("[s]", gen_chance(g, 50) ? "#a" : "b"));
    }
}

static void
fit_rule(struct gen *g, json_t *body, const struct snapshot_pair *pair)
{
    static const struct schema_field pool = {.type = FT_REF, .ref_kind = K_POOL};
    json_t *name = gen_ref(g, &pool, pair);

    /* It has one owner. */
    if (json_is_string(json_object_get(body, "service"))) {
        (void)json_object_del(body, "listener");
    }
    if (json_string_length(json_object_get(body, "header")) == 0) {
        json_object_set_new(body, "header", json_string("X-Header"));
    }
    if (json_string_length(json_object_get(body, "value")) == 0) {
        json_object_set_new(body, "value", json_string("value"));
    }
    if (json_string_length(json_object_get(body, "target")) == 0) {
        json_object_set_new(body, "target", json_string("https://example.test/"));
    }
    json_object_set_new(
        body, "status", json_integer(is_word(body, "action", "redirect") ? 301 : 404));
    if (name != NULL) {
        json_object_set_new(body, "pool", name);
    }
}

/* Mostly on a listener that there is. */
static void
fit_webui(struct gen *g, json_t *body, const struct snapshot_pair *pair)
{
    static const struct schema_field listener = {.type = FT_REF, .ref_kind = K_LISTENER};
    json_t *name = gen_chance(g, 90) ? gen_ref(g, &listener, pair) : NULL;

    if (name != NULL) {
        json_object_set_new(body, "listener", name);
    }
    if (json_array_size(json_object_get(body, "hosts")) == 0 && gen_chance(g, 80)) {
        json_object_set_new(body, "hosts", json_pack("[s]", "ui.example.test"));
    }
}

static void
fit_body(struct gen *g, enum kind kind, json_t *body, const struct snapshot_pair *pair)
{
    if (kind == K_CONDITION) {
        fit_condition(g, body);
    } else if (kind == K_RULE) {
        fit_rule(g, body, pair);
    } else if (kind == K_LISTENER && is_word(body, "mode", "tcp")) {
        (void)json_object_del(body, "trusted_proxies");
    } else if (kind == K_WEBUI) {
        fit_webui(g, body, pair);
    } else if (kind == K_SERVICE && gen_chance(g, 70)) {
        (void)json_object_del(body, "rate_limit");
    }
}

/* ---- objects ---- */

/* What is part of another object has its name; one of each only. False: there is none left. */
static bool
gen_belong(struct gen *g, enum kind kind, const struct snapshot_pair *pair, json_t *body)
{
    const struct schema_kind *k = schema_kind(kind);
    const struct schema_field *f = &k->fields[k->belongs];
    const struct object *const *others = NULL;
    size_t count = targets(pair, f->ref_kind, &others);
    size_t start = count > 0 ? gen_below(g, count) : 0;

    for (size_t i = 0; i < count; i++) {
        const char *name = others[(start + i) % count]->name.s;

        if (snapshot_by_name(snapshot_of(pair, kind), kind, name) == NULL) {
            json_object_set_new(body, "name", json_string(name));
            json_object_set_new(body, f->name, json_string(name));
            return true;
        }
    }
    return false;
}

json_t *
gen_body(struct gen *g, enum kind kind, const struct snapshot_pair *pair)
{
    const struct schema_kind *k = schema_kind(kind);
    json_t *body = json_object();

    g->object++;
    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[i];
        json_t *value;

        if (f->read_only || (!f->required && gen_chance(g, 40))) {
            continue;
        }
        value = gen_value(g, f, pair);
        if (value == NULL) {
            json_decref(body);
            return NULL;
        }
        json_object_set_new(body, f->name, value);
    }
    if (k->belongs >= 0 && !gen_belong(g, kind, pair, body)) {
        json_decref(body);
        return NULL;
    }
    fit_body(g, kind, body, pair);
    return body;
}

void
gen_print_problems(const struct problems *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct problem *x = &p->items[i];

        (void)fprintf(
            stderr, "%s: %s \"%s\" %s: %s\n", x->code, x->kind ? x->kind : "-",
            x->name ? x->name : "", x->pointer, x->message);
    }
}

struct object *
gen_object(struct gen *g, enum kind kind, const struct snapshot_pair *pair)
{
    struct object_refs refs = snapshot_refs(pair);
    json_auto_t *body = gen_body(g, kind, pair);
    char id[OBJECT_ID_BYTES];
    struct problems p;
    struct object *o;

    if (body == NULL) {
        return NULL;
    }
    problems_init(&p, arena_new(ARENA_BYTES));
    gen_id(g, kind, id);
    o = object_parse(kind, id, body, NULL, &refs, &p);
    if (o == NULL) {
        gen_print_problems(&p);
        (void)json_dumpf(body, stderr, JSON_INDENT(2));
    }
    ASSERT(o != NULL);
    arena_free(p.arena);
    return o;
}

/* ---- pairs ---- */

static uint64_t
kinds_referred(const struct schema_field *fields, uint32_t count)
{
    uint64_t kinds = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].type == FT_REF) {
            kinds |= (uint64_t)1 << fields[i].ref_kind;
        }
    }
    return kinds;
}

void
gen_kinds(enum kind ret[KIND_COUNT])
{
    uint64_t done = 0;
    size_t count = 0;

    while (count < KIND_COUNT) {
        size_t before = count;

        for (unsigned k = 0; k < KIND_COUNT; k++) {
            const struct schema_kind *kind = &schema_kinds[k];
            uint64_t needed = kinds_referred(kind->fields, kind->field_count);

            for (uint32_t i = 0; i < kind->field_count; i++) {
                needed |= kinds_referred(kind->fields[i].fields, kind->fields[i].field_count);
            }
            if ((done >> k & 1u) == 0 && (needed & ~done) == 0) {
                done |= (uint64_t)1 << k;
                ret[count++] = (enum kind)k;
            }
        }
        ASSERT(count > before);
    }
}

static void
put(struct snapshot **s, struct object *o)
{
    struct snapshot_edit *x = snapshot_edit_new(*s);
    struct snapshot *after = NULL;
    err_t code;

    snapshot_edit_put(x, o);
    code = snapshot_seal(x, &after, NULL);
    ASSERT(code == ERR_OK);
    snapshot_unref(*s);
    *s = after;
}

void
gen_pair(struct gen *g, size_t count, struct snapshot **ret_shared, struct snapshot **ret_local)
{
    struct snapshot *side[] = {snapshot_initial(SCOPE_SHARED), snapshot_initial(SCOPE_LOCAL)};
    enum kind kinds[KIND_COUNT];

    gen_kinds(kinds);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const struct schema_kind *k = schema_kind(kinds[i]);
        size_t share = k->singleton ? 1 : count * (i + 1) * 2 / (KIND_COUNT * KIND_COUNT);

        for (size_t j = 0; j < share; j++) {
            struct snapshot_pair pair = {side[SCOPE_SHARED], side[SCOPE_LOCAL]};
            struct object *o = gen_object(g, kinds[i], &pair);

            if (o != NULL) {
                put(&side[k->scope], o);
            }
        }
    }
    *ret_shared = side[SCOPE_SHARED];
    *ret_local = side[SCOPE_LOCAL];
}

/* Removes the objects that the problems name; false when there was no error. */
static bool
prune(struct snapshot **side, const struct problems *p)
{
    bool any = false;

    for (size_t i = 0; i < p->count; i++) {
        const struct problem *x = &p->items[i];
        const struct object *o;
        struct snapshot_edit *edit;
        struct snapshot *after = NULL;
        enum kind k;
        err_t code;

        if (x->severity != SEVERITY_ERROR || !schema_kind_by_name(x->kind, &k)) {
            continue;
        }
        any = true;
        o = snapshot_by_name(side[schema_kind(k)->scope], k, x->name);
        if (o == NULL) {
            continue;
        }
        edit = snapshot_edit_new(side[schema_kind(k)->scope]);
        snapshot_edit_remove(edit, k, o->id);
        code = snapshot_seal(edit, &after, NULL);
        ASSERT(code == ERR_OK);
        snapshot_unref(side[schema_kind(k)->scope]);
        side[schema_kind(k)->scope] = after;
    }
    return any;
}

void
gen_valid_pair(
    struct gen *g, size_t count, int64_t now_s, struct snapshot **ret_shared,
    struct snapshot **ret_local)
{
    struct snapshot *side[2] = {NULL, NULL};
    bool again = true;

    gen_pair(g, count, &side[SCOPE_SHARED], &side[SCOPE_LOCAL]);
    for (size_t round = 0; again; round++) {
        struct snapshot_pair pair = {side[SCOPE_SHARED], side[SCOPE_LOCAL]};
        struct problems p;

        ASSERT(round < VALID_ROUNDS);
        problems_init(&p, arena_new(ARENA_BYTES));
        validate_all(&pair, now_s, &p);
        again = prune(side, &p);
        arena_free(p.arena);
    }
    *ret_shared = side[SCOPE_SHARED];
    *ret_local = side[SCOPE_LOCAL];
}

bool
gen_fits(
    const struct snapshot *shared, const struct snapshot *local, struct object *o,
    int64_t now_s)
{
    struct snapshot_edit *x = snapshot_edit_new(shared);
    struct snapshot CLEANUP(snapshot_cleanup) *after = NULL;
    struct snapshot_pair pair = {NULL, local};
    struct problems p;
    err_t code;

    snapshot_edit_put(x, object_ref(o));
    code = snapshot_seal(x, &after, NULL);
    ASSERT(code == ERR_OK);
    pair.shared = after;
    problems_init(&p, arena_new(ARENA_BYTES));
    validate_all(&pair, now_s, &p);
    arena_free(p.arena);
    return p.errors == 0;
}

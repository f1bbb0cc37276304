/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of what an edit can reach find every error that all checks find anew, tried with
 * random edits of random models, right ones and wrong ones. A failure prints its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/validate.h"
#include "tests/support/gen.h"

#define NOW_S       1800000000
#define WORLDS      70
#define EDITS       120
#define OBJECTS     80
#define ARENA_BYTES ((size_t)64 << 20)
#define FAVOURITES  3
/* More than are reached one by one. */
#define MANY 80

struct world {
    struct gen *g;
    uint64_t seed;
    struct snapshot_pair pair;
    struct problems problems;
};

static void
pair_drop(struct snapshot_pair *pair)
{
    snapshot_unref(pair->shared);
    snapshot_unref(pair->local);
}

static struct snapshot_pair
pair_ref(const struct snapshot_pair *pair)
{
    return (struct snapshot_pair){snapshot_ref(pair->shared), snapshot_ref(pair->local)};
}

/* ---- edits ---- */

/* Mostly one of a few, so that edits meet the results of each other. */
static const struct object *
any_object(struct gen *g, const struct snapshot_pair *pair, enum kind kind)
{
    const struct object *const *objects;
    size_t count = snapshot_kind(snapshot_of(pair, kind), kind, &objects);

    if (count > FAVOURITES && gen_chance(g, 70)) {
        count = FAVOURITES;
    }
    return count > 0 ? objects[gen_below(g, count)] : NULL;
}

/* Puts o (taken over), or removes the object old. A name that is taken: nothing happens. */
static void
replace(struct snapshot_pair *pair, const struct object *old, struct object *o)
{
    enum kind kind = o != NULL ? o->kind : old->kind;
    struct snapshot_edit *x = snapshot_edit_new(snapshot_of(pair, kind));
    struct snapshot *made = NULL;

    if (o != NULL) {
        snapshot_edit_put(x, o);
    } else {
        snapshot_edit_remove(x, kind, old->id);
    }
    if (snapshot_seal(x, &made, NULL) != ERR_OK) {
        return;
    }
    if (schema_kind(kind)->scope == SCOPE_SHARED) {
        snapshot_unref(pair->shared);
        pair->shared = made;
    } else {
        snapshot_unref(pair->local);
        pair->local = made;
    }
}

/* Kinds that are checked against each other are tried more often, and so are their fields on
 * which that depends. */
static enum kind
any_kind(struct gen *g)
{
    static const enum kind more[] = {K_SERVER,  K_POOL, K_LISTENER, K_SERVICE,   K_SERVICE,
                                     K_SERVICE, K_RULE, K_RULE,     K_VIP_GROUP, K_NODE};

    return gen_chance(g, 80) ? more[gen_below(g, ARRAY_LEN(more))]
                             : (enum kind)gen_below(g, KIND_COUNT);
}

static const struct schema_field *
any_field(struct gen *g, const struct schema_kind *k)
{
    static const char *const more[] = {"name",    "mode",      "enabled",  "port",
                                       "address", "addresses", "hosts",    "path",
                                       "primary", "listeners", "listener", "service",
                                       "members", "pool",      "action",   "peers_port"};

    for (size_t tries = gen_below(g, 16); tries > 0; tries--) {
        int at =
            schema_field_index(k->fields, k->field_count, more[gen_below(g, ARRAY_LEN(more))]);

        if (at >= 0) {
            return &k->fields[at];
        }
    }
    return &k->fields[gen_below(g, k->field_count)];
}

/* Gives o this body (taken over), if it is good. Returns what became of o, which may be gone.
 */
static const struct object *
put_body(struct world *w, struct snapshot_pair *pair, const struct object *o, json_t *body)
{
    struct object_refs refs = snapshot_refs(pair);
    enum kind kind = o->kind;
    char id[OBJECT_ID_BYTES];
    struct object *made;

    memcpy(id, o->id, sizeof id);
    problems_init(&w->problems, w->problems.arena);
    made = object_parse(kind, id, body, o, &refs, &w->problems);
    json_decref(body);
    if (made != NULL) {
        replace(pair, o, made);
    }
    return snapshot_by_id(snapshot_of(pair, kind), kind, id);
}

/* Mostly without authorities: reading them would take half of the time. */
static json_t *
body_of(const struct world *w, const struct snapshot_pair *pair, const struct object *o)
{
    struct object_refs refs = snapshot_refs(pair);
    json_t *body = object_to_json(o, &refs);

    if (o->kind == K_POOL && gen_chance(w->g, 90)) {
        (void)json_object_del(body, "ca");
    }
    return body;
}

/* One field as in another object, which makes them clash, or as it may be, or as by default; a
 * switch is turned. */
static void
change_field(struct world *w, struct snapshot_pair *pair, const struct object *o)
{
    const struct schema_kind *k = schema_kind(o->kind);
    const struct schema_field *f = any_field(w->g, k);
    json_auto_t *from = body_of(w, pair, any_object(w->g, pair, o->kind));
    json_t *body = body_of(w, pair, o);
    json_t *value = NULL;

    if (f->type == FT_BOOL) {
        value = json_boolean(!json_is_true(json_object_get(body, f->name)));
    } else if (gen_chance(w->g, 50)) {
        value = json_incref(json_object_get(from, f->name));
    } else if (gen_chance(w->g, 80)) {
        value = gen_value(w->g, f, pair);
    }
    if (value == NULL) {
        (void)json_object_del(body, f->name);
    } else {
        json_object_set_new(body, f->name, value);
    }
    (void)put_body(w, pair, o, body);
}

/* Members of patch (taken over) take the place of those of o. */
static const struct object *
merge(struct world *w, struct snapshot_pair *pair, const struct object *o, json_t *patch)
{
    json_t *body = body_of(w, pair, o);

    json_object_update(body, patch);
    json_decref(patch);
    return put_body(w, pair, o, body);
}

/* The name of an object that has mode tcp now, mostly that of this id; or NULL. */
static const char *
turn_one(struct world *w, struct snapshot_pair *pair, enum kind kind, struct text id)
{
    const struct object *o = snapshot_by_id(pair->shared, kind, id.s);

    if (o == NULL || gen_chance(w->g, 30)) {
        o = any_object(w->g, pair, kind);
    }
    if (o != NULL && gen_chance(w->g, 60)) {
        o = merge(w, pair, o, json_pack("{s:s}", "mode", "tcp"));
    }
    return o != NULL ? o->name.s : NULL;
}

/* All that it takes for a service to be right on a listener of mode tcp: single fields would
 * hardly ever come together. */
static void
turn_to_tcp(struct world *w, struct snapshot_pair *pair)
{
    const struct object *o = any_object(w->g, pair, K_SERVICE);
    const struct value *on = o != NULL ? object_value(o, F_SERVICE_LISTENERS) : NULL;
    const char *pool;
    const char *listener;

    if (on == NULL || on->count == 0) {
        return;
    }
    pool = turn_one(w, pair, K_POOL, object_text(o, F_SERVICE_POOL));
    listener = turn_one(w, pair, K_LISTENER, on->u.items[0].u.text);
    if (pool == NULL || listener == NULL) {
        return;
    }
    o = merge(
        w, pair, o,
        json_pack(
            "{s:s, s:[s], s:s, s:i}", "pool", pool, "listeners", listener, "path", "/",
            "rate_limit", 0));
    if (gen_chance(w->g, 60)) {
        (void)merge(w, pair, o, json_pack("{s:[]}", "hosts"));
    }
}

/* All but the name and one more field as in another object: a step away from a clash. */
static void
become_like(struct world *w, struct snapshot_pair *pair, const struct object *o)
{
    const struct schema_kind *k = schema_kind(o->kind);
    json_t *patch = body_of(w, pair, any_object(w->g, pair, o->kind));

    (void)json_object_del(patch, "id");
    (void)json_object_del(patch, "name");
    (void)json_object_del(patch, any_field(w->g, k)->name);
    (void)merge(w, pair, o, patch);
}

static void
edit(struct world *w, struct snapshot_pair *pair)
{
    enum kind kind = any_kind(w->g);
    const struct object *o = any_object(w->g, pair, kind);
    bool singleton = schema_kind(kind)->singleton;

    if (gen_chance(w->g, 10)) {
        turn_to_tcp(w, pair);
    } else if (!singleton && gen_chance(w->g, 15)) {
        struct object *made = gen_object(w->g, kind, pair);

        if (made != NULL) {
            replace(pair, NULL, made);
        }
    } else if (o != NULL && !singleton && gen_chance(w->g, 10)) {
        replace(pair, o, NULL);
    } else if (o != NULL && gen_chance(w->g, 15)) {
        become_like(w, pair, o);
    } else if (o != NULL) {
        change_field(w, pair, o);
    }
}

/* ---- both ways ---- */

static bool
same_place(const struct problem *a, const struct problem *b)
{
    return strcmp(a->code, b->code) == 0 && strcmp(a->kind, b->kind) == 0 &&
           strcmp(a->name, b->name) == 0 && strcmp(a->pointer, b->pointer) == 0;
}

static bool
has(const struct problems *p, const struct problem *wanted)
{
    for (size_t i = 0; i < p->count; i++) {
        if (same_place(&p->items[i], wanted)) {
            return true;
        }
    }
    return false;
}

/* An error that all checks find in after and not in before, or NULL. */
static const char *
new_error(const struct problems *old, const struct problems *new)
{
    for (size_t i = 0; i < new->count; i++) {
        if (!has(old, &new->items[i])) {
            return new->items[i].message;
        }
    }
    return new->errors > old->errors ? "more errors than before" : NULL;
}

struct outcome {
    bool bad;   /* the edit adds an error */
    bool whole; /* there are no more errors than a list holds */
};

static struct outcome
compare(const struct world *w, const struct snapshot_pair *after, bool small)
{
    struct arena *arena = arena_new(ARENA_BYTES);
    struct problems *sides = arena_alloc(arena, 2 * sizeof *sides);
    bool clean = validate_reached(&w->pair, after);
    struct outcome outcome;
    const char *found;

    for (size_t i = 0; i < 2; i++) {
        problems_init(&sides[i], arena);
        sides[i].errors_only = true;
    }
    validate_beside(after, &w->pair, NOW_S, &sides[1]);
    if (sides[1].errors > 0) {
        validate_beside(&w->pair, after, NOW_S, &sides[0]);
    }
    found = new_error(&sides[0], &sides[1]);
    outcome = (struct outcome){found != NULL, sides[0].dropped + sides[1].dropped == 0};
    if (outcome.whole && clean && found != NULL) {
        print_error("seed %llu: not reached: %s\n", (unsigned long long)w->seed, found);
        fail();
    }
    if (small && !clean && sides[1].errors == 0) {
        print_error("seed %llu: an error where there is none\n", (unsigned long long)w->seed);
        fail();
    }
    arena_free(arena);
    return outcome;
}

/* Returns how many edits added an error. */
static size_t
run(uint64_t seed, bool valid)
{
    struct world w = {.g = gen_new(seed), .seed = seed};
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    struct outcome outcome = {false, true};
    size_t bad = 0;

    if (valid) {
        gen_valid_pair(w.g, OBJECTS, NOW_S, &shared, &local);
    } else {
        gen_pair(w.g, OBJECTS, &shared, &local);
    }
    w.pair = (struct snapshot_pair){shared, local};
    problems_init(&w.problems, arena_new(ARENA_BYTES));
    for (size_t i = 0; i < EDITS && outcome.whole; i++) {
        struct snapshot_pair after = pair_ref(&w.pair);
        size_t count = gen_chance(w.g, 2) ? MANY : 1 + gen_below(w.g, 3);

        for (size_t n = 0; n < count; n++) {
            edit(&w, &after);
        }
        outcome = compare(&w, &after, count < MANY);
        bad += outcome.bad ? 1 : 0;
        /* What is wrong stays at times, so that the next edits meet it. */
        if (!outcome.bad || !valid || gen_chance(w.g, 25)) {
            pair_drop(&w.pair);
            w.pair = after;
        } else {
            pair_drop(&after);
        }
    }
    arena_free(w.problems.arena);
    pair_drop(&w.pair);
    gen_free(w.g);
    return bad;
}

static void
what_an_edit_breaks_is_within_its_reach(void **state)
{
    size_t bad = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        bad += run(seed, seed % 4 != 0);
    }
    /* Where nothing breaks this says nothing. */
    assert_true(bad >= WORLDS * 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_edit_breaks_is_within_its_reach),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

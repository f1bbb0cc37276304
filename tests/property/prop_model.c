/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for all objects and snapshots, tried on random ones. A failure prints its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "model/change.h"
#include "tests/support/gen.h"

#define ROUNDS      25
#define OBJECTS     120
#define ARENA_BYTES ((size_t)64 << 20)
#define TEXT_BYTES  ((size_t)4 << 20)

static uint64_t seed;

#define HOLDS(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            print_error("seed %llu: %s\n", (unsigned long long)seed, #condition);              \
            fail();                                                                            \
        }                                                                                      \
    } while (0)

/* One random configuration, and what checks on it need. */
struct world {
    struct gen *g;
    struct snapshot *shared, *local;
    struct snapshot_pair pair;
    struct object_refs refs;
    struct problems problems;
};

static void
world_init(struct world *w, uint64_t s)
{
    seed = s;
    w->g = gen_new(s);
    gen_pair(w->g, OBJECTS, &w->shared, &w->local);
    w->pair = (struct snapshot_pair){w->shared, w->local};
    w->refs = snapshot_refs(&w->pair);
    problems_init(&w->problems, arena_new(ARENA_BYTES));
}

static void
world_fini(struct world *w)
{
    arena_free(w->problems.arena);
    snapshot_unref(w->shared);
    snapshot_unref(w->local);
    gen_free(w->g);
}

typedef void (*object_check)(struct world *w, const struct object *o);

static void
each_object(object_check check)
{
    for (uint64_t s = 1; s <= ROUNDS; s++) {
        struct world w;

        world_init(&w, s);
        for (size_t i = 0; i < snapshot_count(w.shared); i++) {
            check(&w, snapshot_at(w.shared, i));
        }
        for (size_t i = 0; i < snapshot_count(w.local); i++) {
            check(&w, snapshot_at(w.local, i));
        }
        world_fini(&w);
    }
}

/* Parses body as object o, with o's own secrets; the result must be o. */
static void
parses_to(struct world *w, const json_t *body, const struct object *o)
{
    struct object *again = object_parse(o->kind, o->id, body, o, &w->refs, &w->problems);

    gen_print_problems(&w->problems);
    HOLDS(again != NULL);
    HOLDS(hash_equal(&again->objhash, &o->objhash));
    HOLDS(object_effect(again, o) == EFFECT_NONE);
    object_unref(again);
}

static void
check_form_of_the_api(struct world *w, const struct object *o)
{
    json_auto_t *body = object_to_json(o, &w->refs);
    struct buf CLEANUP(buf_fini) bytes;
    struct buf CLEANUP(buf_fini) same;

    parses_to(w, body, o);
    buf_init(&bytes, TEXT_BYTES);
    buf_init(&same, TEXT_BYTES);
    object_put_json(o, &w->refs, &bytes);
    json_canonical(body, &same);
    HOLDS(strcmp(buf_str(&bytes), buf_str(&same)) == 0);
}

static void
form_of_the_api_parses_to_the_same_object(void **state)
{
    (void)state;
    each_object(check_form_of_the_api);
}

static void
check_canonical(struct world *w, const struct object *o)
{
    struct object *again = NULL;
    json_auto_t *body = NULL;
    struct buf bytes;
    struct error e;

    (void)w;
    HOLDS(
        object_from_canonical(o->kind, o->id, o->canonical, o->canonical_len, &again, &e) ==
        ERR_OK);
    HOLDS(hash_equal(&again->objhash, &o->objhash));
    HOLDS(strcmp(again->name.s, o->name.s) == 0);
    object_unref(again);
    HOLDS(json_parse(o->canonical, o->canonical_len, &body, &e) == ERR_OK);
    buf_init(&bytes, TEXT_BYTES);
    json_canonical(body, &bytes);
    HOLDS(bytes.len == o->canonical_len && memcmp(bytes.data, o->canonical, bytes.len) == 0);
    buf_fini(&bytes);
}

static void
canonical_bytes_are_canonical_json_and_parse_back(void **state)
{
    (void)state;
    each_object(check_canonical);
}

/* The same members in another order. */
static json_t *
shuffled_keys(struct gen *g, json_t *object)
{
    json_t *out = json_object();
    size_t count = json_object_size(object);
    const char *key;
    json_t *value;

    for (size_t first = gen_below(g, count), pass = 0; pass < 2; pass++) {
        size_t i = 0;

        json_object_foreach(object, key, value)
        {
            if ((i++ >= first) == (pass == 0)) {
                json_object_set(out, key, value);
            }
        }
    }
    return out;
}

static void
check_spelling(struct world *w, const struct object *o)
{
    json_auto_t *body = object_to_json(o, &w->refs);
    json_auto_t *shuffled = shuffled_keys(w->g, body);
    json_auto_t *again = NULL;
    struct buf text;
    struct error e;

    buf_init(&text, TEXT_BYTES);
    json_pretty(shuffled, &text);
    HOLDS(json_parse(buf_str(&text), text.len, &again, &e) == ERR_OK);
    buf_fini(&text);
    parses_to(w, again, o);
}

static void
order_and_spacing_of_keys_do_not_matter(void **state)
{
    (void)state;
    each_object(check_spelling);
}

static void
check_list_order(struct world *w, const struct object *o)
{
    const struct schema_kind *k = schema_kind(o->kind);
    json_auto_t *body = object_to_json(o, &w->refs);

    for (uint32_t i = 0; i < k->field_count; i++) {
        json_t *list = json_object_get(body, k->fields[i].name);
        size_t count = json_array_size(list);

        if (k->fields[i].list && !k->fields[i].ordered && count > 1) {
            json_t *first = json_incref(json_array_get(list, 0));

            json_array_remove(list, 0);
            json_array_insert_new(list, 1 + gen_below(w->g, count - 1), first);
        }
    }
    parses_to(w, body, o);
}

static void
order_of_unordered_lists_does_not_matter(void **state)
{
    (void)state;
    each_object(check_list_order);
}

static void
check_redaction(struct world *w, const struct object *o)
{
    const struct schema_kind *k = schema_kind(o->kind);
    json_auto_t *body = object_to_json(o, &w->refs);
    char *text = json_dumps(body, JSON_COMPACT);

    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct value *v = object_value(o, i);

        if (k->fields[i].secret && v->u.text.len > 0) {
            json_auto_t *secret = json_string(v->u.text.s);
            char *quoted = json_dumps(secret, JSON_COMPACT | JSON_ENCODE_ANY);

            HOLDS(strstr(text, quoted) == NULL && strstr(text, v->u.text.s) == NULL);
            HOLDS(
                json_is_true(json_object_get(json_object_get(body, k->fields[i].name), "set")));
            free(quoted);
        }
    }
    free(text);
}

static void
secrets_never_leave_through_the_api(void **state)
{
    (void)state;
    each_object(check_redaction);
}

/* Puts something of another type, or too much, into one field of a good body. */
static void
spoil(struct gen *g, json_t *body, const struct schema_field *f)
{
    switch (gen_below(g, 7)) {
    case 0: json_object_set_new(body, f->name, json_integer(-1)); break;
    case 1: json_object_set_new(body, f->name, json_string("\xc3\xbc \"")); break;
    case 2: json_object_set_new(body, f->name, json_object()); break;
    case 3: json_object_set_new(body, f->name, json_pack("[n]")); break;
    case 4: json_object_set_new(body, f->name, json_null()); break;
    case 5: json_object_set_new(body, f->name, json_pack("[{s:i}]", "x~/y", 1)); break;
    default: (void)json_object_del(body, f->name); break;
    }
}

static void
check_spoiled(struct world *w, const struct object *o)
{
    const struct schema_kind *k = schema_kind(o->kind);
    const struct schema_field *f = &k->fields[gen_below(w->g, k->field_count)];
    json_auto_t *body = object_to_json(o, &w->refs);
    struct object *got;
    size_t len = strlen(f->name);

    spoil(w->g, body, f);
    problems_init(&w->problems, w->problems.arena);
    got = object_parse(o->kind, o->id, body, NULL, &w->refs, &w->problems);
    HOLDS((got == NULL) == (w->problems.errors > 0));
    for (size_t i = 0; i < w->problems.count; i++) {
        const struct problem *p = &w->problems.items[i];
        bool secret = strcmp(p->code, "required") == 0 || strcmp(p->code, "read_only") == 0;

        /* Without the present object its secrets are missing too. */
        HOLDS(
            secret ||
            (strncmp(p->pointer + 1, f->name, len) == 0 && strchr("/", p->pointer[len + 1])));
        HOLDS(strcmp(p->kind, k->name) == 0);
    }
    object_unref(got);
}

static void
problems_point_at_the_field_that_is_wrong(void **state)
{
    (void)state;
    each_object(check_spoiled);
}

static void
has_word(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    const struct object *o = ctx;
    uint32_t word = object_word((struct text){id, (uint32_t)strlen(id)});

    (void)kind;
    (void)pointer;
    HOLDS((o->words & word) == word);
}

static void
check_words(struct world *w, const struct object *o)
{
    const struct schema_kind *k = schema_kind(o->kind);
    struct object *copy = object_ref(o);

    (void)w;
    object_each_ref(o, has_word, copy);
    object_unref(copy);
    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct value *v = object_value(o, i);

        for (uint32_t j = 0; k->fields[i].list && k->fields[i].type == FT_TEXT && j < v->count;
             j++) {
            uint32_t word = object_word(v->u.items[j].u.text);

            HOLDS((o->words & word) == word);
        }
    }
}

static void
an_object_has_the_words_of_its_references_and_lists(void **state)
{
    (void)state;
    each_object(check_words);
}

/* ---- snapshots ---- */

/* All objects of s in a random order, borrowed. */
static const struct object **
shuffled(struct gen *g, const struct snapshot *s)
{
    size_t n = snapshot_count(s);
    const struct object **all = xmalloc(n * sizeof *all);

    for (size_t i = 0; i < n; i++) {
        size_t at = gen_below(g, i + 1);

        all[i] = all[at];
        all[at] = snapshot_at(s, i);
    }
    return all;
}

static void
fingerprint_does_not_depend_on_the_order_of_inserts(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= ROUNDS; s++) {
        struct world w;
        const struct object **all;
        struct snapshot *once = NULL;
        struct snapshot *step = NULL;
        struct snapshot_edit *x = snapshot_edit_new(NULL);
        struct hash want;
        struct hash got;

        world_init(&w, s);
        all = shuffled(w.g, w.shared);
        for (size_t i = 0; i < snapshot_count(w.shared); i++) {
            struct snapshot_edit *one = snapshot_edit_new(step);
            struct snapshot *next = NULL;

            snapshot_edit_put(x, object_ref(all[i]));
            snapshot_edit_put(one, object_ref(all[i]));
            HOLDS(snapshot_seal(one, &next, NULL) == ERR_OK);
            snapshot_unref(step);
            step = next;
        }
        HOLDS(snapshot_seal(x, &once, NULL) == ERR_OK);
        want = snapshot_fp(w.shared, SCHEMA_VERSION);
        got = snapshot_fp(once, SCHEMA_VERSION);
        HOLDS(hash_equal(&want, &got));
        got = snapshot_fp(step, SCHEMA_VERSION);
        HOLDS(hash_equal(&want, &got));
        got = snapshot_fp(step, SCHEMA_VERSION + 1);
        HOLDS(!hash_equal(&want, &got));
        snapshot_unref(once);
        snapshot_unref(step);
        free(all);
        world_fini(&w);
    }
}

static void
put_difference(void *ctx, const struct object *before, const struct object *after)
{
    if (after != NULL) {
        snapshot_edit_put(ctx, object_ref(after));
    } else {
        snapshot_edit_remove(ctx, before->kind, before->id);
    }
}

/* a with the differences to b must be b. */
static void
check_diff(const struct snapshot *a, const struct snapshot *b)
{
    struct snapshot_edit *x = snapshot_edit_new(a);
    struct snapshot *got = NULL;

    snapshot_diff(a, b, put_difference, x);
    HOLDS(snapshot_seal(x, &got, NULL) == ERR_OK);
    HOLDS(snapshot_count(got) == snapshot_count(b));
    for (size_t i = 0; i < snapshot_count(b); i++) {
        HOLDS(hash_equal(&snapshot_at(got, i)->objhash, &snapshot_at(b, i)->objhash));
    }
    snapshot_unref(got);
}

static void
applying_a_diff_gives_the_other_snapshot(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= ROUNDS; s++) {
        struct world a;
        struct world b;

        world_init(&a, s);
        world_init(&b, s + 1000);
        check_diff(a.shared, b.shared);
        check_diff(b.shared, a.shared);
        check_diff(a.local, b.local);
        check_diff(a.shared, a.shared);
        world_fini(&b);
        world_fini(&a);
    }
}

static json_t *
own_form(struct world *w, const struct object *o, enum change_op op)
{
    return op == CHANGE_MERGE ? json_object() : object_to_json(o, &w->refs);
}

static void
writing_back_what_was_read_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= ROUNDS; s++) {
        struct world w;
        struct change_set set;
        struct snapshot *shared = NULL;
        struct snapshot *local = NULL;
        struct error e;

        world_init(&w, s);
        change_set_init(&set);
        for (size_t i = 0; i < snapshot_count(w.shared); i++) {
            const struct object *o = snapshot_at(w.shared, i);
            enum change_op op = gen_chance(w.g, 50) ? CHANGE_MERGE : CHANGE_REPLACE;
            json_t *body = own_form(&w, o, op);
            struct change c = {op, o->kind, o->name.s, body, &o->objhash, false};

            HOLDS(change_set_add(&set, c, &e) == ERR_OK);
        }
        HOLDS(change_apply(&set, &w.pair, &shared, &local, &w.problems, &e) == ERR_OK);
        HOLDS(shared == w.shared && local == w.local);
        snapshot_unref(shared);
        snapshot_unref(local);
        change_set_fini(&set);
        world_fini(&w);
    }
}

struct use {
    const struct object *used;
    size_t count;
};

static void
count_use(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct use *u = ctx;

    (void)pointer;
    u->count += kind == u->used->kind && strcmp(id, u->used->id) == 0 ? 1 : 0;
}

static void
check_delete(struct world *w, const struct object *o)
{
    struct change_set set;
    struct change c = {.op = CHANGE_DELETE, .kind = o->kind, .name = o->name.s};
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    struct use u = {o, 0};
    err_t code;

    if (schema_kind(o->kind)->singleton) {
        return;
    }
    for (size_t i = 0; i < snapshot_count(w->shared); i++) {
        const struct object *user = snapshot_at(w->shared, i);

        /* What is part of it goes with it. */
        if (schema_kind(user->kind)->belongs < 0) {
            object_each_ref(user, count_use, &u);
        }
    }
    change_set_init(&set);
    HOLDS(change_set_add(&set, c, NULL) == ERR_OK);
    problems_init(&w->problems, w->problems.arena);
    code = change_apply(&set, &w->pair, &shared, &local, &w->problems, NULL);
    HOLDS(code == (u.count > 0 ? ERR_CONFLICT : ERR_OK));
    HOLDS(w->problems.errors == u.count);
    snapshot_unref(shared);
    snapshot_unref(local);
    change_set_fini(&set);
}

static void
an_object_can_be_deleted_exactly_when_nothing_uses_it(void **state)
{
    (void)state;
    each_object(check_delete);
}

static void
valid_pairs_have_services_in_them(void **state)
{
    (void)state;
    size_t services = 0;

    for (uint64_t s = 1; s <= 10; s++) {
        struct gen *g = gen_new(s);
        struct snapshot *shared = NULL;
        struct snapshot *local = NULL;
        const struct object *const *all;

        seed = s;
        gen_valid_pair(g, OBJECTS, 1800000000, &shared, &local);
        services += snapshot_kind(shared, K_SERVICE, &all);
        snapshot_unref(shared);
        snapshot_unref(local);
        gen_free(g);
    }
    assert_true(services >= 20);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(form_of_the_api_parses_to_the_same_object),
        cmocka_unit_test(canonical_bytes_are_canonical_json_and_parse_back),
        cmocka_unit_test(order_and_spacing_of_keys_do_not_matter),
        cmocka_unit_test(order_of_unordered_lists_does_not_matter),
        cmocka_unit_test(secrets_never_leave_through_the_api),
        cmocka_unit_test(problems_point_at_the_field_that_is_wrong),
        cmocka_unit_test(an_object_has_the_words_of_its_references_and_lists),
        cmocka_unit_test(fingerprint_does_not_depend_on_the_order_of_inserts),
        cmocka_unit_test(applying_a_diff_gives_the_other_snapshot),
        cmocka_unit_test(writing_back_what_was_read_changes_nothing),
        cmocka_unit_test(an_object_can_be_deleted_exactly_when_nothing_uses_it),
        cmocka_unit_test(valid_pairs_have_services_in_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

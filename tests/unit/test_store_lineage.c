/* SPDX-License-Identifier: Apache-2.0 */
/* Which commits lead to which, and what one node lacks of another's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/inner.h"
#include "tests/support/store_copy.h"

static bool
leads_to(struct store_lab *l, const struct commit *a, const struct commit *b)
{
    bool leads = false;
    struct error e;

    if (store_is_ancestor(l->store, &a->id, &b->id, &leads, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    return leads;
}

/* -- one line */

#define LINE ((size_t)300)

/* Commit i + 1 sets server 1 to port i. */
static void
extend(struct store_lab *l, struct commit *line, size_t count)
{
    struct snapshot *now = store_lab_shared(l);

    line[0] = store_copy_head(l);
    for (size_t i = 1; i < count; i++) {
        struct snapshot *from = now;

        now = store_lab_with(from, store_lab_server(1, NULL, (int)i));
        line[i] = store_lab_commit(l, now, NULL);
        snapshot_unref(from);
    }
    snapshot_unref(now);
}

static void
line_is_given_from_where_the_other_is(void **state)
{
    static const size_t at[] = {0, 1, 63, 64, 150, 298, 299};
    struct store_lab *l = *state;
    struct commit *line = calloc(LINE, sizeof *line);
    struct error e;

    assert_non_null(line);
    extend(l, line, LINE);
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        const struct hash have[2] = {{{9}}, line[at[i]].id};
        const struct lineage_request q = {&line[LINE - 1].id, 1, have, 2, LINE, LINE};
        CLEANUP(lineage_cleanup) struct lineage found = {0};
        bool more = true;

        assert_int_equal(store_lineage(l->store, &q, &found, &more, &e), ERR_OK);
        assert_false(more);
        assert_int_equal(found.count, LINE - 1 - at[i]);
        for (size_t k = 0; k < found.count; k++) {
            const struct lineage_commit *c = &found.items[k];

            assert_true(hash_equal(&c->commit.id, &line[at[i] + 1 + k].id));
            assert_true(hash_equal(&c->commit.parents[0], &line[at[i] + k].id));
            assert_int_equal(c->entry_count, 1);
            assert_int_equal(c->entries[0].kind, K_SERVER);
            assert_true(c->entries[0].has_object);
        }
        assert_true(leads_to(l, &line[at[i]], &line[LINE - 1]));
        assert_int_equal(leads_to(l, &line[LINE - 1], &line[at[i]]), at[i] == LINE - 1);
    }
    free(line);
}

static void
unknown_commits_are_named_or_passed_over(void **state)
{
    static const struct hash unknown = {{7}};
    struct store_lab *l = *state;
    const struct commit head = store_copy_head(l);
    struct lineage_request q = {&unknown, 1, &head.id, 1, 10, 10};
    CLEANUP(lineage_cleanup) struct lineage found = {0};
    struct lineage_entry *entries = NULL;
    size_t count = 0;
    bool is = true;
    bool more;
    struct error e;

    assert_int_equal(store_has_commit(l->store, &unknown, &is, &e), ERR_OK);
    assert_false(is);
    assert_int_equal(store_has_commit(l->store, &head.id, &is, &e), ERR_OK);
    assert_true(is);
    assert_int_equal(store_is_ancestor(l->store, &unknown, &head.id, &is, &e), ERR_NOT_FOUND);
    assert_int_equal(store_is_ancestor(l->store, &head.id, &unknown, &is, &e), ERR_NOT_FOUND);
    assert_int_equal(store_lineage(l->store, &q, &found, &more, &e), ERR_NOT_FOUND);
    q = (struct lineage_request){&head.id, 1, &unknown, 1, 10, 10};
    assert_int_equal(store_lineage(l->store, &q, &found, &more, &e), ERR_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].commit.rev, 1);
    assert_int_equal(store_index(l->store, &unknown, &entries, &count, &e), ERR_NOT_FOUND);
}

/* -- any graph */

#define GRAPH 70u

struct graph {
    struct commit commits[GRAPH];
    bool above[GRAPH][GRAPH]; /* [a][b]: a is b or an ancestor of it */
    uint64_t state;
};

static unsigned
pick(struct graph *g, unsigned below)
{
    g->state = g->state * 48271 % 2147483647;
    return (unsigned)(g->state >> 8) % below;
}

static unsigned
nth_of(const struct graph *g, const struct hash *id)
{
    unsigned i = 0;

    while (i < GRAPH && !hash_equal(&g->commits[i].id, id)) {
        i++;
    }
    assert_in_range(i, 0, GRAPH - 1);
    return i;
}

static void
add_parent(struct graph *g, unsigned n, unsigned parent)
{
    struct commit *c = &g->commits[n];

    for (size_t i = 0; i < c->parent_count; i++) {
        if (hash_equal(&c->parents[i], &g->commits[parent].id)) {
            return;
        }
    }
    c->parents[c->parent_count++] = g->commits[parent].id;
    c->rev = g->commits[parent].rev >= c->rev ? g->commits[parent].rev + 1 : c->rev;
    for (unsigned a = 0; a < n; a++) {
        g->above[a][n] |= g->above[a][parent];
    }
}

/* Commits without content: roots, forks near and far, merges of up to three. */
static void
make_graph(struct graph *g)
{
    for (unsigned n = 0; n < GRAPH; n++) {
        struct commit *c = &g->commits[n];
        unsigned parents = n == 0 || pick(g, 15) == 0 ? 0 : pick(g, 4) == 0 ? 3 : 1;

        *c = (struct commit){.rev = 1, .schema_version = SCHEMA_VERSION, .at_ms = n};
        g->above[n][n] = true;
        for (unsigned i = 0; i < parents; i++) {
            unsigned back = pick(g, 4) == 0 ? n : n < 3 ? n : 3;

            add_parent(g, n, n - 1 - pick(g, back));
        }
        c->id = commit_compute_id(c);
    }
}

static void
store_graph(struct store_lab *l, const struct graph *g)
{
    struct lineage_commit *items = calloc(GRAPH, sizeof *items);
    const struct lineage all = {items, GRAPH};
    struct adopt_request q = {.commits = &all, .author = "node proxy2"};
    struct lineage_entry entry = {.kind = K_SERVER, .has_object = true, .objhash = {{1}}};
    struct commit head;
    struct error e;

    assert_non_null(items);
    store_lab_id(1, entry.id);
    for (unsigned n = 0; n < GRAPH; n++) {
        items[n] = (struct lineage_commit){g->commits[n], &entry, 1};
    }
    if (store_adopt(l->store, &q, &head, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    free(items);
}

static void
assert_lineage(struct store_lab *l, struct graph *g, unsigned head)
{
    struct hash have[3];
    unsigned nth[3];
    unsigned have_count = pick(g, 4);
    struct lineage_request q = {&g->commits[head].id, 1, have, have_count, GRAPH, SIZE_MAX};
    CLEANUP(lineage_cleanup) struct lineage found = {0};
    bool wanted[GRAPH];
    bool more;
    size_t count = 0;
    struct error e;

    for (unsigned i = 0; i < have_count; i++) {
        nth[i] = pick(g, GRAPH);
        have[i] = g->commits[nth[i]].id;
    }
    for (unsigned n = 0; n < GRAPH; n++) {
        wanted[n] = g->above[n][head];
        for (unsigned i = 0; i < have_count; i++) {
            wanted[n] &= !g->above[n][nth[i]];
        }
        count += wanted[n] ? 1 : 0;
    }
    assert_int_equal(store_lineage(l->store, &q, &found, &more, &e), ERR_OK);
    assert_false(more);
    assert_int_equal(found.count, count);
    for (size_t i = 0; i < found.count; i++) {
        unsigned n = nth_of(g, &found.items[i].commit.id);

        assert_true(wanted[n]);
        wanted[n] = false; /* none comes twice, and no parent comes later */
        for (unsigned a = 0; a < n; a++) {
            assert_false(wanted[a] && g->above[a][n]);
        }
        assert_int_equal(found.items[i].commit.parent_count, g->commits[n].parent_count);
    }
}

static void
every_graph_gives_what_its_arrows_say(void **state)
{
    struct store_lab *l = *state;

    for (unsigned seed = 1; seed <= 4; seed++) {
        struct graph *g = calloc(1, sizeof *g);
        int64_t checked;
        struct error e;

        assert_non_null(g);
        g->state = seed;
        make_graph(g);
        store_graph(l, g);
        for (unsigned a = 0; a < GRAPH; a++) {
            for (unsigned b = 0; b < GRAPH; b++) {
                assert_int_equal(leads_to(l, &g->commits[a], &g->commits[b]), g->above[a][b]);
            }
            assert_lineage(l, g, a);
        }
        assert_int_equal(store_verify(l->store, &checked, &e), ERR_OK);
        free(g);
        store_lab_fini(l);
        store_lab_init(l);
        store_lab_open(l);
    }
}

/* -- what two histories share */

static bool
is_greater(const struct commit *a, const struct commit *b)
{
    return a->rev != b->rev ? a->rev > b->rev : memcmp(&a->id, &b->id, sizeof a->id) > 0;
}

static struct commit
newest_of(struct store_lab *l, const struct hash *of, const struct hash *among, size_t count)
{
    struct commit found;
    struct error e;

    if (store_newest_ancestor(l->store, of, among, count, &found, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    return found;
}

/* All there are, from the skip'th on. */
static void
assert_ancestors(struct store_lab *l, struct graph *g, unsigned head, size_t skip)
{
    struct hash *found = calloc(STORE_ANCESTORS, sizeof *found);
    size_t count = 0;
    size_t wanted = 0;
    struct error e;

    assert_non_null(found);
    for (unsigned a = 0; a < GRAPH; a++) {
        wanted += g->above[a][head] ? 1 : 0;
    }
    if (store_ancestors(l->store, &g->commits[head].id, skip, found, &count, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    assert_int_equal(count, wanted > skip ? wanted - skip : 0);
    for (size_t i = 0; i < count; i++) {
        unsigned n = nth_of(g, &found[i]);

        assert_true(g->above[n][head]);
        assert_true(i > 0 || skip > 0 || n == head);
        assert_true(
            i == 0 || is_greater(&g->commits[nth_of(g, &found[i - 1])], &g->commits[n]));
    }
    free(found);
}

static void
assert_shared(struct store_lab *l, const struct graph *g, unsigned a, unsigned b)
{
    struct hash *of_a = calloc(STORE_ANCESTORS, sizeof *of_a);
    unsigned wanted = GRAPH;
    size_t count = 0;
    struct commit found;
    struct error e;

    assert_non_null(of_a);
    for (unsigned n = 0; n < GRAPH; n++) {
        if (g->above[n][a] && g->above[n][b] &&
            (wanted == GRAPH || is_greater(&g->commits[n], &g->commits[wanted]))) {
            wanted = n;
        }
    }
    assert_int_equal(store_ancestors(l->store, &g->commits[a].id, 0, of_a, &count, &e), ERR_OK);
    found = newest_of(l, &g->commits[b].id, of_a, count);
    assert_int_equal(found.rev, wanted == GRAPH ? 0 : g->commits[wanted].rev);
    assert_true(wanted == GRAPH || hash_equal(&found.id, &g->commits[wanted].id));
    free(of_a);
}

/* With several roots, and commits with several parents as an overwrite makes them. */
static void
the_newest_that_two_heads_share_is_found(void **state)
{
    struct store_lab *l = *state;

    for (unsigned seed = 11; seed <= 12; seed++) {
        struct graph *g = calloc(1, sizeof *g);
        unsigned apart = 0;

        assert_non_null(g);
        g->state = seed;
        make_graph(g);
        store_graph(l, g);
        for (unsigned a = 0; a < GRAPH; a++) {
            assert_ancestors(l, g, a, 0);
            assert_ancestors(l, g, a, pick(g, 20));
            for (unsigned b = 0; b < GRAPH; b++) {
                assert_shared(l, g, a, b);
                apart += g->above[a][b] || g->above[b][a] ? 0 : 1;
            }
        }
        assert_in_range(apart, GRAPH, GRAPH * GRAPH);
        free(g);
        store_lab_fini(l);
        store_lab_init(l);
        store_lab_open(l);
    }
}

static void
what_is_not_stored_is_shared_by_nobody(void **state)
{
    static const struct hash unknown[2] = {{{7}}, {{8}}};
    struct store_lab *l = *state;
    struct commit *line = calloc(20, sizeof *line);
    struct commit found;
    struct hash *ids = calloc(STORE_ANCESTORS, sizeof *ids);
    const struct hash among[4] = {unknown[0], {{9}}, unknown[1], {{1}}};
    struct hash mixed[3];
    size_t count = 0;
    struct error e;

    assert_non_null(line);
    assert_non_null(ids);
    extend(l, line, 20);
    assert_int_equal(newest_of(l, &line[19].id, among, ARRAY_LEN(among)).rev, 0);
    assert_int_equal(newest_of(l, &line[19].id, NULL, 0).rev, 0);
    mixed[0] = unknown[1];
    mixed[1] = line[3].id;
    mixed[2] = line[9].id;
    found = newest_of(l, &line[19].id, mixed, 3);
    assert_true(hash_equal(&found.id, &line[9].id));
    found = newest_of(l, &line[5].id, mixed, 3); /* the other one is above it */
    assert_true(hash_equal(&found.id, &line[3].id));
    assert_int_equal(newest_of(l, &line[2].id, mixed, 3).rev, 0);
    assert_int_equal(
        store_newest_ancestor(l->store, unknown, mixed, 3, &found, &e), ERR_NOT_FOUND);
    assert_int_equal(store_ancestors(l->store, unknown, 0, ids, &count, &e), ERR_NOT_FOUND);
    free(ids);
    free(line);
}

/* -- content */

static void
index_and_objects_give_the_content(void **state)
{
    static const char *const members[] = {"web1", "web2"};
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf line = {.max = 256};
    struct snapshot *now = store_lab_shared(l);
    struct snapshot *wanted = NULL;
    struct commit heads[6];
    struct error e;

    for (unsigned i = 0; i < ARRAY_LEN(heads); i++) {
        struct snapshot *from = now;

        now = i == 2   ? store_lab_with(from, store_lab_certificate(6, &line))
              : i == 3 ? store_lab_with(from, store_lab_pool(7, from, members, 2))
              : i == 4 ? store_lab_without(from, K_CERTIFICATE, "cert6")
                       : store_lab_with(from, store_lab_server(i + 1, NULL, 80));
        heads[i] = store_lab_commit(l, now, NULL);
        if (i == 3) {
            wanted = snapshot_ref(now);
        }
        snapshot_unref(from);
    }
    for (int round = 0; round < 2; round++) {
        struct lineage_entry *entries = NULL;
        struct object **objects = NULL;
        size_t count = 0;

        assert_int_equal(store_index(l->store, &heads[3].id, &entries, &count, &e), ERR_OK);
        assert_int_equal(count, snapshot_count(wanted));
        assert_int_equal(store_objects(l->store, entries, count, &objects, &e), ERR_OK);
        for (size_t i = 0; i < count; i++) {
            const struct object *o = snapshot_at(wanted, i);

            assert_int_equal(entries[i].kind, o->kind);
            assert_string_equal(entries[i].id, o->id);
            assert_true(entries[i].has_object);
            assert_true(hash_equal(&entries[i].objhash, &o->objhash));
            assert_true(hash_equal(&objects[i]->objhash, &o->objhash));
            assert_string_equal(objects[i]->id, o->id);
            object_unref(objects[i]);
        }
        free(objects);
        free(entries);
        store_lab_reopen(l); /* nothing in memory that could serve instead */
    }
    snapshot_unref(wanted);
    snapshot_unref(now);
}

static void
objects_that_are_not_there_are_null(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *to = store_lab_with(first, store_lab_server(1, NULL, 80));
    const struct object *o = snapshot_by_name(to, K_SERVER, "web1");
    struct lineage_entry entries[4] = {
        {.kind = K_SERVER, .has_object = true, .objhash = {{1}}},
        {.kind = K_SERVER, .has_object = true, .objhash = o->objhash},
        {.kind = K_POOL, .has_object = true, .objhash = o->objhash},
        {.kind = K_SERVER, .objhash = o->objhash},
    };
    struct object **objects = NULL;
    struct error e;

    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        store_lab_id(1, entries[i].id);
    }
    (void)store_lab_commit(l, to, NULL);
    assert_int_equal(store_objects(l->store, entries, 4, &objects, &e), ERR_OK);
    assert_null(objects[0]);
    assert_true(hash_equal(&objects[1]->objhash, &o->objhash));
    assert_null(objects[2]);
    assert_null(objects[3]);
    object_unref(objects[1]);
    free(objects);
    store_lab_script(l, "UPDATE body SET data = x'7b7d' WHERE kind = 'server'");
    store_lab_reopen(l);
    objects = NULL;
    assert_int_equal(store_objects(l->store, entries, 4, &objects, &e), ERR_CORRUPT);
    assert_null(objects);
}

static void
index_of_a_commit_whose_content_has_left_is_not_found(void **state)
{
    struct store_lab *l = *state;
    const size_t count = STORE_KEPT_COMMITS + (size_t)3 * STORE_FULL_EVERY;
    struct commit *line = calloc(count, sizeof *line);
    struct lineage_entry *entries = NULL;
    size_t n = 0;
    struct error e;

    assert_non_null(line);
    extend(l, line, count);
    assert_int_equal(store_index(l->store, &line[1].id, &entries, &n, &e), ERR_NOT_FOUND);
    assert_non_null(strstr(e.msg, "revision 2 "));
    assert_null(entries);
    assert_int_equal(store_index(l->store, &line[count - 1].id, &entries, &n, &e), ERR_OK);
    free(entries);
    free(line);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        STORE_LAB_TEST(line_is_given_from_where_the_other_is),
        STORE_LAB_TEST(unknown_commits_are_named_or_passed_over),
        STORE_LAB_TEST(every_graph_gives_what_its_arrows_say),
        STORE_LAB_TEST(the_newest_that_two_heads_share_is_found),
        STORE_LAB_TEST(what_is_not_stored_is_shared_by_nobody),
        STORE_LAB_TEST(index_and_objects_give_the_content),
        STORE_LAB_TEST(objects_that_are_not_there_are_null),
        STORE_LAB_TEST(index_of_a_commit_whose_content_has_left_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

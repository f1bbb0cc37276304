/* SPDX-License-Identifier: Apache-2.0 */
/* While a member runs an older release, revisions are made and offered as it understands them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cluster_hook.h"
#include "engine/members.h"
#include "engine/sync.h"
#include "tests/support/engine_lab.h"

#define OLD_LEVEL (SCHEMA_VERSION - 1)

struct lab {
    struct engine_lab *l;
    struct commit offered; /* to the other nodes, before it was committed */
    struct engine_cluster cluster;
};

static json_t *
note_offer(void *ctx, const struct cluster_candidate *q, struct problems *p)
{
    struct lab *x = ctx;

    (void)p;
    assert_int_equal(q->doc->commits.count, 1);
    x->offered = q->doc->commits.items[0].commit;
    return json_array();
}

static json_t *
try_nowhere(void *ctx, const struct cluster_candidate *q, struct problems *p)
{
    (void)ctx;
    (void)q;
    (void)p;
    return NULL;
}

static json_t *
push_nowhere(void *ctx, int64_t task, const char *first)
{
    (void)ctx;
    (void)task;
    (void)first;
    return json_array();
}

static void
ignore(void *ctx)
{
    (void)ctx;
}

static struct commit
head_of(const struct lab *x)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(x->l->en);

    return v->head;
}

/* The same content as an older release wrote it. */
static void
go_back_a_level(struct lab *x)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(x->l->en);
    struct sync_result result;
    struct sync_doc d;
    struct commit c = {
        .rev = v->head.rev + 1,
        .schema_version = OLD_LEVEL,
        .fp = snapshot_fp(v->now.shared, OLD_LEVEL),
        .parents = {v->head.id},
        .parent_count = 1,
        .node = "n9",
        .author = "admin maria",
        .summary = "as before",
        .at_ms = 1,
    };
    struct error e;
    json_t *task;

    c.id = commit_compute_id(&c);
    assert_int_equal(
        sync_doc_make(x->l->en, &(struct sync_wanted){.on_top = &c}, &d, &e), ERR_OK);
    assert_int_equal(
        sync_take(
            x->l->en, &d, &(struct sync_origin){.how = SYNC_PUSHED, .from = "n9"}, &result, &e),
        ERR_OK);
    task = engine_lab_task(x->l, result.task);
    assert_string_equal(json_string_value(json_object_get(task, "state")), "ok");
    json_decref(task);
    assert_int_equal(head_of(x).schema_version, OLD_LEVEL);
}

static void
say_level(struct lab *x, int64_t seq, int level)
{
    struct member m = {
        .name = "n9",
        .url = "https://192.0.2.9:8443",
        .release = "0.0.9",
        .seq = seq,
        .schema_version = level,
    };
    struct members_taken taken = {.changed = false};
    struct error e;

    (void)snprintf(m.id, sizeof m.id, "%032d", 9);
    (void)snprintf(
        m.pin, sizeof m.pin, "%s", "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    if (members_merge(
            x->l->en, &(struct members_offer){&m, 1, m.id, MEMBERS_TOLD}, &taken, &e) !=
        ERR_OK) {
        fail_msg("%s", e.msg);
    }
    assert_true(taken.changed);
}

static void
apply_title(struct lab *x, const char *title)
{
    char ops[160];

    (void)snprintf(
        ops, sizeof ops,
        "[{'op': 'merge', 'kind': 'haproxy', 'name': 'haproxy', 'body': {'error_title': '%s'}}]",
        title);
    engine_lab_apply_ok(x->l, ops);
}

/* What is offered has to be what is committed, for the push to find its check still there. */
static void
assert_offered(const struct lab *x, int level)
{
    struct commit head = head_of(x);

    assert_int_equal(head.schema_version, level);
    assert_int_equal(x->offered.schema_version, level);
    assert_int_equal(x->offered.rev, head.rev);
    assert_true(hash_equal(&x->offered.fp, &head.fp));
}

static void
what_is_offered_is_what_the_lowest_member_understands(void **state)
{
    struct lab *x = *state;

    say_level(x, 1, OLD_LEVEL);
    apply_title(x, "while one is behind");
    assert_offered(x, OLD_LEVEL);
    say_level(x, 2, SCHEMA_VERSION);
    apply_title(x, "when all are there");
    assert_offered(x, SCHEMA_VERSION);
}

/* A node that comes late cannot turn back what is stored everywhere. */
static void
a_later_member_of_an_older_release_changes_no_level(void **state)
{
    struct lab *x = *state;

    apply_title(x, "before it came");
    say_level(x, 1, OLD_LEVEL);
    apply_title(x, "after it came");
    assert_offered(x, SCHEMA_VERSION);
}

static int
set_up(void **state)
{
    static struct lab x;

    x = (struct lab){.l = engine_lab_new()};
    x.cluster = (struct engine_cluster){
        .ctx = &x,
        .push = push_nowhere,
        .check = note_offer,
        .trial = try_nowhere,
        .changed = ignore,
    };
    engine_lab_start(x.l);
    go_back_a_level(&x);
    engine_set_cluster(x.l->en, &x.cluster);
    *state = &x;
    return 0;
}

static int
tear_down(void **state)
{
    const struct lab *x = *state;

    engine_set_cluster(x->l->en, NULL);
    engine_lab_delete(x->l);
    return 0;
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            what_is_offered_is_what_the_lowest_member_understands, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_later_member_of_an_older_release_changes_no_level, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

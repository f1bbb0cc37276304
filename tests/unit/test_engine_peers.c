/* SPDX-License-Identifier: Apache-2.0 */
/* An apply in a cluster whose other node says what the test wants it to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cluster_hook.h"
#include "engine/members.h"
#include "tests/support/engine_lab.h"

#define OFFERS 4

struct other {
    struct engine_cluster ops;
    bool serves; /* on trial */
    struct hash offered[OFFERS], ended[OFFERS];
    int64_t offered_at_ms[OFFERS];
    size_t offers, ends, pushes;
};

static struct other other;

static json_t *
row(bool ok)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s}", "node", "other", "state", ok ? "ok" : "failed", "code",
        ok ? "" : "timeout", "detail", ok ? "" : "no answer");
}

static json_t *
checks(void *ctx, const struct cluster_candidate *q, struct problems *p)
{
    (void)ctx;
    (void)q;
    (void)p;
    return json_pack("[o]", row(true));
}

static json_t *
tries(void *ctx, const struct cluster_candidate *q, struct problems *p)
{
    struct other *o = ctx;

    (void)p;
    assert_true(o->offers < OFFERS);
    o->offered_at_ms[o->offers] = q->doc->commits.items[0].commit.at_ms;
    o->offered[o->offers++] = q->doc->head;
    return row(o->serves);
}

static void
ends(void *ctx, const char *node, const struct hash *candidate)
{
    struct other *o = ctx;

    assert_string_equal(node, "other");
    assert_true(o->ends < OFFERS);
    o->ended[o->ends++] = *candidate;
}

static json_t *
takes(void *ctx, int64_t task, const char *first)
{
    struct other *o = ctx;

    (void)task;
    (void)first;
    o->pushes++;
    return json_pack("[o]", row(true));
}

static void
moved(void *ctx)
{
    (void)ctx;
}

static int
set_up(void **state)
{
    const struct member m = {
        .id = "0123456789abcdef0123456789abcdef",
        .seq = 1,
        .name = "other",
        .release = "0.1.0",
        .schema_version = SCHEMA_VERSION,
    };
    struct members_taken taken;
    struct engine_lab *l;

    assert_int_equal(engine_lab_setup(state), 0);
    l = *state;
    other = (struct other){
        .ops = {
            .ctx = &other,
            .push = takes,
            .check = checks,
            .trial = tries,
            .trial_end = ends,
            .changed = moved,
        }};
    assert_int_equal(
        members_merge(
            l->en, &(struct members_offer){.items = &m, .count = 1, .how = MEMBERS_TOLD},
            &taken, &l->error),
        ERR_OK);
    engine_set_cluster(l->en, &other.ops);
    return 0;
}

static int
tear_down(void **state)
{
    struct engine_lab *l = *state;

    engine_set_cluster(l->en, NULL);
    return engine_lab_teardown(state);
}

static bool
is_settled(struct engine_lab *l)
{
    struct fake_facts facts = fake_look(&l->fake);

    return facts.good == facts.current && engine_lab_serves_head(l);
}

/* A trial that was taken back is not begun any more, so who tries again has to be told from it.
 */
static void
an_apply_that_is_repeated_offers_what_was_not_cancelled(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_TITLE("new") "]");
    for (size_t i = 0; i < OFFERS; i++) {
        json_t *task;

        other.serves = i + 1 == OFFERS;
        l->wall_shift_ms = -1000 * (int64_t)i; /* the clock goes back meanwhile */
        task = engine_lab_applied(l);
        engine_lab_ended(
            task, other.serves ? "ok" : "failed", "trial", other.serves ? "ok" : "failed");
        json_decref(task);
        assert_int_equal(other.offers, i + 1);
        for (size_t k = 0; k < i; k++) {
            assert_false(hash_equal(&other.offered[i], &other.offered[k]));
            assert_true(hash_equal(&other.ended[k], &other.offered[k]));
            assert_true(other.offered_at_ms[k] < other.offered_at_ms[i]);
        }
    }
    assert_int_equal(other.ends, OFFERS - 1);
    assert_int_equal(other.pushes, 1);
}

/* Else all others would fetch it, and load it, at the same time. */
static void
what_cannot_be_marked_as_good_is_handed_on_all_the_same(void **state)
{
    struct engine_lab *l = *state;
    json_t *task;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    fake_fail(&l->fake, FAKE_SETTLE, 1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "failed");
    engine_lab_ended(task, "ok", "push", "ok");
    json_decref(task);
    assert_int_equal(other.pushes, 1);
    assert_int_equal(engine_lab_rev(l), 2);
    /* That the mark is made up for is no revision, so nobody is told. */
    engine_lab_await(l, is_settled);
    assert_int_equal(other.pushes, 1);
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WITH(what_cannot_be_marked_as_good_is_handed_on_all_the_same),
        WITH(an_apply_that_is_repeated_offers_what_was_not_cancelled),
    };
#undef WITH

    return cmocka_run_group_tests(tests, NULL, NULL);
}

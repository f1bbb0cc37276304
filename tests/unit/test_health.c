/* SPDX-License-Identifier: Apache-2.0 */
/* What a node says of itself in each round of each of the others, and what these make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "engine/edit.h"
#include "engine/facts.h"
#include "sync/inner.h"
#include "tests/support/engine_lab.h"
#include "tests/support/pair.h"

#define PROMISED_BYTES 1024
#define LONGEST_INT    (INT64_MAX >> 11) /* that a node takes from another one */
#define LONGEST_SCHEMA 1000000
#define TIMES          200
#define PROMISED_US    1000

static struct hash
head_of(struct engine_lab *l)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);

    return v->head.id;
}

static struct cluster *
open_cluster(struct engine_lab *l)
{
    struct cluster *c = NULL;

    assert_int_equal(cluster_make(l->en, &l->tunables, &l->clock, &c, &l->error), ERR_OK);
    return c;
}

/* The longest name that a node can have, and an author with what JSON writes as six bytes. */
static void
fill_texts(struct engine_lab *l, struct cluster *c)
{
    static char author[400];
    const struct actor who = {author};
    struct change_set set;
    json_t *ops = pair_json(
        "[{'op': 'create', 'kind': 'server', 'body': {'name': 's', 'address': '192.0.2.1', "
        "'port': 80}}]");

    engine_lab_apply_ok(
        l, "[{'op': 'merge', 'kind': 'node', 'name': 'node', 'body': {'name': "
           "'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl'}}]");
    memset(author, '\x01', sizeof author - 1);
    change_set_init(&set);
    change_set_parse(&set, ops, l->arena, &l->problems);
    assert_int_equal(edit_draft(l->en, &set, &who, &l->problems, &l->error), ERR_OK);
    change_set_fini(&set);
    json_decref(ops);
    memset(c->refusing, '"', sizeof c->refusing - 1);
}

/* Numbers as long as another node takes them, and the longest words. */
static void
fill_rest(json_t *health)
{
    static const enum fact facts[] = {FACT_YES, FACT_NO, FACT_UNKNOWN};

    json_t *head = json_object_get(health, "head");
    const char *serving = "";
    char release[sizeof((struct peer *)NULL)->release];

    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        const char *name = fact_name(facts[i]);

        serving = strlen(name) > strlen(serving) ? name : serving;
    }
    memset(release, '9', sizeof release - 1);
    release[sizeof release - 1] = '\0';
    (void)json_object_set_new(head, "rev", json_integer(LONGEST_INT));
    (void)json_object_set_new(head, "schema_version", json_integer(LONGEST_SCHEMA));
    (void)json_object_set_new(health, "time_ms", json_integer(LONGEST_INT));
    (void)json_object_set_new(health, "drafted", json_integer(INT32_MAX));
    (void)json_object_set_new(health, "release", json_string(release));
    (void)json_object_set_new(health, "serving", json_string(serving));
    for (const char *const *key =
             (const char *const[]){"have", "leads", "holds", "held", "pages_lost", NULL};
         *key != NULL; key++) {
        assert_true(json_is_boolean(json_object_get(health, *key)));
        (void)json_object_set_new(health, *key, json_false());
    }
}

static void
the_longest_answer_is_under_one_kib(void **state)
{
    struct engine_lab *l = *state;
    struct cluster *c = open_cluster(l);
    struct hash head = head_of(l);
    CLEANUP(buf_fini) struct buf text;
    json_t *health = NULL;

    fill_texts(l, c);
    assert_int_equal(cluster_health(c, &head, &health, &l->error), ERR_OK);
    assert_int_equal(json_string_length(json_object_get(health, "name")), 64);
    assert_int_equal(
        json_string_length(json_object_get(health, "draft_author")), SAID_TEXT_BYTES - 1);
    assert_int_equal(
        json_string_length(json_object_get(health, "refusing")), SAID_TEXT_BYTES - 1);
    /* Who reads it sees that it is cut. */
    assert_non_null(strstr(json_string_value(json_object_get(health, "refusing")), "'..."));
    assert_int_equal(
        json_string_length(json_object_get(health, "running")), NODE_RUNNING_DIGITS - 1);
    fill_rest(health);
    buf_init(&text, (size_t)4 * PROMISED_BYTES);
    json_canonical(health, &text);
    assert_in_range(text.len, PROMISED_BYTES / 2, PROMISED_BYTES - 1);
    json_decref(health);
    cluster_close(c);
}

static void
it_is_made_in_less_than_a_millisecond(void **state)
{
    struct engine_lab *l = *state;
    struct cluster *c = open_cluster(l);
    struct hash head = head_of(l);
    int64_t best_us = INT64_MAX;

    fill_texts(l, c);
    for (int i = 0; i < TIMES; i++) {
        struct timespec began, ended;
        json_t *health = NULL;
        int64_t took_us;

        (void)clock_gettime(CLOCK_MONOTONIC, &began);
        assert_int_equal(cluster_health(c, &head, &health, &l->error), ERR_OK);
        (void)clock_gettime(CLOCK_MONOTONIC, &ended);
        json_decref(health);
        took_us =
            (ended.tv_sec - began.tv_sec) * 1000000 + (ended.tv_nsec - began.tv_nsec) / 1000;
        best_us = took_us < best_us ? took_us : best_us;
    }
    assert_in_range(best_us, 0, PROMISED_US - 1);
    cluster_close(c);
}

/* Since the round that compared it with this node's head of then, 7. */
static void
who_lacks_a_head_that_moved_is_behind(void **state)
{
    static const struct {
        enum relation then;
        int64_t peer, own;
        enum relation now;
    } rows[] = {
        {REL_IN_STEP, 7, 7, REL_IN_STEP},         {REL_IN_STEP, 7, 8, REL_PEER_BEHIND},
        {REL_IN_STEP, 8, 7, REL_IN_STEP}, /* heard, and not compared yet */
        {REL_PEER_BEHIND, 6, 7, REL_PEER_BEHIND}, {REL_SELF_BEHIND, 8, 7, REL_SELF_BEHIND},
        {REL_SELF_BEHIND, 8, 8, REL_IN_STEP}, /* taken over */
        {REL_SELF_BEHIND, 8, 9, REL_PEER_BEHIND}, {REL_DIVERGED, 7, 9, REL_DIVERGED},
        {REL_DIVERGED, 9, 9, REL_IN_STEP}, /* overwritten */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct peer p = {.relation = rows[i].then};
        struct commit head = {.rev = rows[i].own};

        p.head.rev = rows[i].peer;
        p.head.id.b[0] = (unsigned char)rows[i].peer;
        head.id.b[0] = (unsigned char)rows[i].own;
        assert_int_equal(cluster_relation(&p, &head), rows[i].now);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_lacks_a_head_that_moved_is_behind),
        ENGINE_LAB_TEST(the_longest_answer_is_under_one_kib),
        ENGINE_LAB_TEST(it_is_made_in_less_than_a_millisecond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

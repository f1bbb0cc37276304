/* SPDX-License-Identifier: Apache-2.0 */
/* Which new names of pools and servers go along with a reload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper/protocol.h"
#include "tests/support/engine_lab.h"

#define POOL                                                                                   \
    "{'op': 'create', 'kind': 'pool', 'body': {'name': 'app', 'members': [{'server': "         \
    "'web1'}]}}"
#define DELETE_POOL "{'op': 'delete', 'kind': 'pool', 'name': 'app'}"
#define OTHER_WEB1                                                                             \
    "{'op': 'create', 'kind': 'server', 'body': {'name': 'web1', 'address': '10.0.0.2', "      \
    "'port': 8080}}"
#define POOL_OF_TWO                                                                            \
    "{'op': 'create', 'kind': 'pool', 'body': {'name': 'app', 'members': [{'server': "         \
    "'web1'}, {'server': 'w'}]}}"
#define RENAME(kind, from, to)                                                                 \
    "{'op': 'merge', 'kind': '" kind "', 'name': '" from "', 'body': {'name': '" to "'}}"
#define BOTH  "[" RENAME("pool", "app", "shop") "," RENAME("server", "web1", "web2") "]"
#define THERE "backend app=shop server web1=web2 "
#define BACK  "backend shop=app server web2=web1 "

static int
lab_open(void **state)
{
    struct engine_lab *l;

    (void)engine_lab_setup(state);
    l = *state;
    engine_lab_must(l, "[" LAB_LISTENER "," LAB_SERVER("web1") "," POOL "]");
    engine_lab_apply_ends(l, "ok", "ok");
    return 0;
}

static void
were(struct engine_lab *l, const char *renames)
{
    struct fake_facts facts = fake_look(&l->fake);

    assert_string_equal(facts.renames, renames);
}

static void
an_apply_tells_the_new_names(void **state)
{
    struct engine_lab *l = *state;

    were(l, "");
    engine_lab_must(l, BOTH);
    engine_lab_apply_ends(l, "ok", "ok");
    were(l, THERE);
    /* Not once more. */
    engine_lab_must(l, "[" LAB_TITLE("a") "," LAB_SERVER("other") "]");
    engine_lab_apply_ends(l, "ok", "ok");
    were(l, "");
}

static void
names_that_are_taken_over_are_no_renames(void **state)
{
    struct engine_lab *l = *state;

    /* A new pool and a new server under names that became free. */
    engine_lab_must(l, "[" DELETE_POOL "," RENAME("server", "web1", "w") "]");
    engine_lab_must(l, "[" OTHER_WEB1 "," POOL_OF_TWO "]");
    engine_lab_apply_ends(l, "ok", "ok");
    were(l, "server web1=w ");
}

static void
the_way_back_tells_the_former_names(void **state)
{
    struct engine_lab *l = *state;
    json_t *task;

    engine_lab_must(l, BOTH);
    fake_fail(&l->fake, FAKE_SERVE, -1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "failed", "back_load", "ok");
    json_decref(task);
    were(l, BACK);
}

static void
a_worker_that_was_never_replaced_keeps_its_names(void **state)
{
    struct engine_lab *l = *state;
    int reloads = fake_look(&l->fake).reloads;

    engine_lab_must(l, BOTH);
    fake_fail(&l->fake, FAKE_LOAD, 1);
    engine_lab_apply_ends(l, "failed", "unavailable");
    assert_int_equal(fake_look(&l->fake).reloads, reloads + 2);
    were(l, "");
}

/* The digest of what the draft would be. */
static void
digest_of_draft(struct engine_lab *l, char out[RENDER_DIGEST_HEX + 1])
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);
    struct rendered *files = NULL;

    assert_int_equal(apply_render(l->en, &v->draft, &l->problems, &files, &l->error), ERR_OK);
    memcpy(out, files->digest, RENDER_DIGEST_HEX + 1);
    apply_rendered_done(l->en, files);
}

static void
a_start_after_a_crash_between_load_and_commit_tells_them(void **state)
{
    struct engine_lab *l = *state;
    char digest[RENDER_DIGEST_HEX + 1];

    engine_lab_must(l, BOTH);
    digest_of_draft(l, digest);
    engine_lab_close(l);
    fake_run(&l->fake, digest);
    engine_lab_start(l);
    were(l, BACK);
}

static void
an_earlier_revision_that_runs_is_known_by_its_generation(void **state)
{
    struct engine_lab *l = *state;
    struct fake_facts facts = fake_look(&l->fake);

    engine_lab_must(l, BOTH);
    engine_lab_apply_ends(l, "ok", "ok");
    engine_lab_close(l);
    fake_run(&l->fake, facts.running);
    engine_lab_start(l);
    were(l, THERE);
}

static void
files_that_nobody_knows_have_no_names(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, BOTH);
    engine_lab_close(l);
    fake_run(&l->fake, "0123456789abcdef");
    engine_lab_start(l);
    were(l, "");
}

#define MANY (HELPER_RENAMES_MAX + 1)

/* Each of many servers gets the name of the next one, or, first, they are made. */
static const char *
many(struct buf *out, bool made)
{
    buf_init(out, (size_t)1 << 20);
    for (int i = MANY - 1; i >= 0; i--) {
        buf_puts(out, i == MANY - 1 ? "[" : ",");
        if (made) {
            buf_printf(out, RENAME("server", "s%d", "s%d"), i, i + 1);
        } else {
            buf_printf(out, LAB_SERVER("s%d"), i);
        }
    }
    buf_puts(out, "]");
    return buf_str(out);
}

#define PLAIN   "HAProxy loaded it: reload: "
#define LOST(x) "HAProxy loaded it: all servers start without their state: " x "; reload: "

/* An apply with a reload, whose step says so. */
static void
tells(struct engine_lab *l, const char *what)
{
    json_auto_t *task = engine_lab_applied(l);
    char *text = json_dumps(task, 0);

    engine_lab_ended(task, "ok", "load", "ok");
    assert_non_null(strstr(text, what));
    free(text);
}

static void
with_too_many_new_names_no_server_gets_a_state(void **state)
{
    struct engine_lab *l = *state;

    for (int made = 0; made < 2; made++) {
        CLEANUP(buf_fini) struct buf ops;

        engine_lab_must(l, many(&ops, made == 1));
        engine_lab_must(l, made == 1 ? BOTH : "[" LAB_TITLE("a") "]"); /* for a reload */
        tells(l, made == 1 ? LOST("too many new names") : PLAIN);
    }
    were(l, "no states");
}

static void
that_states_were_lost_is_told(void **state)
{
    struct engine_lab *l = *state;

    fake_fail(&l->fake, FAKE_STATES, 1);
    engine_lab_must(l, "[" LAB_TITLE("a") "]");
    tells(l, LOST("the disk is full"));
    engine_lab_must(l, "[" LAB_TITLE("b") "]");
    tells(l, PLAIN);
}

#define LAB_TEST(name) cmocka_unit_test_setup_teardown(name, lab_open, engine_lab_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(an_apply_tells_the_new_names),
        LAB_TEST(names_that_are_taken_over_are_no_renames),
        LAB_TEST(the_way_back_tells_the_former_names),
        LAB_TEST(a_worker_that_was_never_replaced_keeps_its_names),
        LAB_TEST(a_start_after_a_crash_between_load_and_commit_tells_them),
        LAB_TEST(an_earlier_revision_that_runs_is_known_by_its_generation),
        LAB_TEST(files_that_nobody_knows_have_no_names),
        LAB_TEST(with_too_many_new_names_no_server_gets_a_state),
        LAB_TEST(that_states_were_lost_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

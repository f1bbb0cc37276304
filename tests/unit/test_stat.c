/* SPDX-License-Identifier: Apache-2.0 */
/* "show stat" and "show servers state": what HAProxy 2.6.12 printed, and what it never should.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "haproxy/admin.h"
#include "haproxy/server_states.h"
#include "haproxy/stat.h"
#include "tests/support/dialogue.h"

#define MEGABYTE ((size_t)1 << 20)
#define SHORT_MS 200
#define LONG_MS  20000

struct lab {
    struct arena *arena;
    struct stat_table stat;
    struct server_table states;
    struct error e;
};

static int
set_up(void **state)
{
    struct lab *l = xcalloc(1, sizeof *l);

    l->arena = arena_new(64 * MEGABYTE);
    *state = l;
    return 0;
}

static int
tear_down(void **state)
{
    struct lab *l = *state;

    stat_table_fini(&l->stat);
    server_table_fini(&l->states);
    arena_free(l->arena);
    free(l);
    return 0;
}

static err_t
parse(struct lab *l, const char *text)
{
    stat_table_fini(&l->stat);
    return stat_parse(text, strlen(text), l->arena, &l->stat, &l->e);
}

/* A file under tests/golden/stat. */
static const char *
recorded(struct lab *l, const char *name)
{
    CLEANUP(buf_fini) struct buf bytes;
    const char *path =
        arena_printf(l->arena, "%s/tests/golden/stat/%s", getenv("LOCKSTEP_SOURCE"), name);

    buf_init(&bytes, MEGABYTE);
    assert_int_equal(file_read_at(-1, path, &bytes, &l->e), ERR_OK);
    return arena_memdup0(l->arena, buf_str(&bytes), bytes.len);
}

static const struct stat_row *
find(const struct lab *l, const char *proxy, const char *server)
{
    for (size_t i = 0; i < l->stat.count; i++) {
        if (strcmp(l->stat.rows[i].pxname, proxy) == 0 &&
            strcmp(l->stat.rows[i].svname, server) == 0) {
            return &l->stat.rows[i];
        }
    }
    fail_msg("no row %s/%s", proxy, server);
    return NULL;
}

static void
load(struct lab *l, const char *stat, const char *states)
{
    const char *text = recorded(l, states);

    assert_int_equal(parse(l, recorded(l, stat)), ERR_OK);
    server_table_fini(&l->states);
    assert_int_equal(
        server_table_parse(text, strlen(text), l->arena, &l->states, &l->e), ERR_OK);
    assert_int_equal(l->stat.parse_errors + l->states.parse_errors, 0);
}

/* ---- recorded ---- */

static void
a_recorded_answer_is_read(void **state)
{
    struct lab *l = *state;
    const struct stat_row *row;

    load(l, "stat.csv", "state.txt");
    assert_int_equal(l->stat.count, 20);
    assert_int_equal(l->states.count, 15);
    row = find(l, "app", "down");
    assert_int_equal(row->type, STAT_SERVER);
    assert_string_equal(row->check_status, "L4CON");
    assert_string_equal(row->last_chk, "Connection refused");
    assert_int_equal(row->weight, 1);
    assert_int_equal(row->lastchg, 2);
    assert_int_equal(row->check_code, -1);
    assert_int_equal(row->slim, -1);
    row = find(l, "app", "up");
    assert_int_equal(row->check_code, 200);
    assert_int_equal(find(l, "app", "BACKEND")->act, 4);
    assert_int_equal(find(l, "web", "FRONTEND")->slim, 9979);
    assert_int_equal(server_table_find(&l->states, "app", "half")->weight, 5);
    assert_int_equal(server_table_find(&l->states, "app", "half")->configured_weight, 10);
    assert_true(server_table_find(&l->states, "agent", "ag")->agent);
    assert_null(server_table_find(&l->states, "app", "ag"));
}

static void
expect(struct lab *l, const char *proxy, const char *server, const char *name, const char *by)
{
    const struct stat_row *row = find(l, proxy, server);
    const char *found =
        server_taken_out_by(row->status, server_table_find(&l->states, proxy, server));

    assert_string_equal(server_state_name(server_state_of(row->status)), name);
    assert_string_equal(found != NULL ? found : "", by);
}

static void
every_recorded_state_is_told_apart(void **state)
{
    struct lab *l = *state;

    load(l, "stat.csv", "state.txt");
    expect(l, "app", "up", "up", "");
    expect(l, "app", "down", "down", "");
    expect(l, "app", "nocheck", "no_check", "");
    expect(l, "app", "drain", "drain", "operator");
    expect(l, "app", "maint", "maint", "operator");
    expect(l, "app", "tracked", "maint", "tracked");
    expect(l, "app", "trackeddrain", "drain", "tracked");
    expect(l, "app", "dns", "maint", "dns");
    expect(l, "app", "dnsmaint", "maint", "operator+dns");
    expect(l, "app", "configured", "maint", "configured");
    expect(l, "nolb", "nolb", "nolb", "check");
    expect(l, "agent", "ag", "drain", "agent");
    load(l, "agent-down.csv", "agent-down.txt");
    expect(l, "agent", "ag", "down", "agent");
}

static void
every_text_of_a_state_is_known(void **state)
{
    static const struct {
        const char *status;
        enum server_state wanted;
    } cases[] = {
        {"UP", SERVER_UP},
        {"UP 1/3", SERVER_UP},
        {"DOWN", SERVER_DOWN},
        {"DOWN 1/2", SERVER_DOWN},
        {"DOWN (agent)", SERVER_DOWN},
        {"no check", SERVER_NO_CHECK},
        {"DRAIN", SERVER_DRAIN},
        {"DRAIN 1/3", SERVER_DRAIN},
        {"DRAIN (agent)", SERVER_DRAIN},
        {"MAINT", SERVER_MAINT},
        {"MAINT (via be/s1)", SERVER_MAINT},
        {"MAINT (resolution)", SERVER_MAINT},
        {"NOLB", SERVER_NOLB},
        {"NOLB 1/3", SERVER_NOLB},
        {"UPSIDE", SERVER_UNKNOWN},
        {"up", SERVER_UNKNOWN},
        {"", SERVER_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(server_state_of(cases[i].status), cases[i].wanted);
    }
}

static void
bits_say_who_put_it_in_maintenance(void **state)
{
    static const struct {
        unsigned admin;
        const char *by;
    } cases[] = {
        {1, "operator"},   {2, "tracked"},       {32, "dns"},     {33, "operator+dns"},
        {96, "dns"},       {8, "operator"},      {16, "tracked"}, {4, "configured"},
        {5, "configured"}, {97, "operator+dns"}, {64, NULL},      {0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct server_line line = {.admin = cases[i].admin, .weight = 1};
        const char *by = server_taken_out_by("MAINT", &line);

        assert_string_equal(by != NULL ? by : "", cases[i].by != NULL ? cases[i].by : "");
    }
    /* Without the bits. */
    assert_string_equal(server_taken_out_by("MAINT (via be/s1)", NULL), "tracked");
    assert_string_equal(server_taken_out_by("MAINT (resolution)", NULL), "dns");
    assert_string_equal(server_taken_out_by("MAINT", NULL), "operator");
    assert_null(server_taken_out_by("DOWN 1/2", NULL));
    /* A weight of 0 drains, too. */
    assert_string_equal(
        server_taken_out_by("DRAIN", &(struct server_line){.weight = 0}), "weight");
}

/* ---- dirty ---- */

static void
columns_may_stand_in_any_order_beside_unknown_ones(void **state)
{
    struct lab *l = *state;

    assert_int_equal(
        parse(
            l, "# type,extra,status,scur,svname,pxname,\n"
               "2,x,UP,7,s1,app,\n"
               "1,,UP,,BACKEND,app,\n\n"),
        ERR_OK);
    assert_int_equal(l->stat.count, 2);
    assert_int_equal(l->stat.parse_errors, 0);
    assert_int_equal(find(l, "app", "s1")->scur, 7);
    assert_int_equal(find(l, "app", "BACKEND")->scur, -1);
    assert_int_equal(find(l, "app", "s1")->ttime, -1);
}

static void
quotes_hold_commas_quotes_and_newlines(void **state)
{
    struct lab *l = *state;

    assert_int_equal(
        parse(
            l, "# pxname,svname,status,type,last_chk,scur,\n"
               "app,s1,UP,2,\"a, \"\"b\"\"\nc\",3,\n"
               "app,s2,UP,2,\"\",4,\n"
               "app,s3,UP,2,\"x\"y,5,\n"
               "app,s4,UP,2,plain,6,\n\n"),
        ERR_OK);
    assert_string_equal(find(l, "app", "s1")->last_chk, "a, \"b\" c");
    assert_string_equal(find(l, "app", "s2")->last_chk, "");
    assert_int_equal(l->stat.count, 3);
    assert_int_equal(l->stat.parse_errors, 1);
    assert_int_equal(find(l, "app", "s4")->scur, 6);
}

static void
bad_rows_are_left_out_and_counted(void **state)
{
    struct lab *l = *state;

    assert_int_equal(
        parse(
            l, "# pxname,svname,status,type,scur,\n"
               "app,,UP,2,1,\n"                      /* no name */
               "app,s1,,2,1,\n"                      /* no status */
               ",s1,UP,2,1,\n"                       /* no proxy */
               "app,s1,UP,9,1,\n"                    /* no such type */
               "app,s1,UP,2,x,\n"                    /* no number */
               "app,s1,UP,2,-1,\n"                   /* none either */
               "app,s1,UP,2,99999999999999999999,\n" /* too large */
               "app,s1,UP,2,\n"                      /* too short */
               "app,s1,UP,2,1,1,\n"                  /* too long */
               "app,\x01\xff,UP,2,1,\n"              /* odd, but a name */
               "app,good,UP,2,1,\n"
               "app,cut,UP,2,"),
        ERR_OK);
    assert_int_equal(l->stat.count, 2);
    assert_int_equal(l->stat.parse_errors, 10);
    assert_int_equal(find(l, "app", "good")->scur, 1);
    assert_string_equal(l->stat.rows[0].svname, "??");
}

static void
no_header_is_no_answer(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "Unknown command.\n\n",
        "app,s1,UP,2,\n\n",
        "# pxname,svname,status\n\n",     /* no type */
        "# pxname,svname,type,scur,\n\n", /* no status */
        "# pxname,svname,status,type",    /* cut */
    };
    struct lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(parse(l, texts[i]), ERR_INVALID);
        assert_non_null(strstr(l->e.msg, "show stat"));
    }
    assert_int_equal(
        server_table_parse("1\n# a b\n\n", 8, l->arena, &l->states, &l->e), ERR_INVALID);
    assert_int_equal(server_table_parse("", 0, l->arena, &l->states, &l->e), ERR_INVALID);
}

/* Five megabytes, cut at any place, cost no more than they are worth. */
static void
large_answers_are_bounded(void **state)
{
    CLEANUP(buf_fini) struct buf text;
    struct lab *l = *state;

    buf_init(&text, 8 * MEGABYTE);
    buf_puts(&text, "# pxname,svname,status,type,scur,\n");
    for (int i = 0; text.len < 5 * MEGABYTE; i++) {
        buf_printf(&text, i % 2 == 0 ? "a,s%d,UP,2,%d,\n" : "a,s%d,UP,2,x%d,\n", i, i);
    }
    assert_int_equal(stat_parse(text.data, text.len, l->arena, &l->stat, &l->e), ERR_OK);
    assert_int_equal(l->stat.count, STAT_MAX_ROWS);
    assert_true(l->stat.parse_errors > STAT_MAX_ROWS);
    assert_true(arena_used_bytes(l->arena) < 16 * MEGABYTE);
    assert_int_equal(l->stat.rows[STAT_MAX_ROWS - 1].scur, 2 * (STAT_MAX_ROWS - 1));
}

static void
bad_lines_of_states_are_counted(void **state)
{
    static const char text[] = "1\n"
                               "# be_id be_name srv_name srv_admin_state srv_uweight "
                               "srv_iweight srv_agent_state\n"
                               "2 b s2 1 50 100 0\n"
                               "2 b s3 x 50 100 0\n"
                               "2 b s4 1 50\n"
                               "2 a s1 0 100 100 22\n"
                               "2 a cut 0 10";
    struct lab *l = *state;

    assert_int_equal(
        server_table_parse(text, sizeof text - 1, l->arena, &l->states, &l->e), ERR_OK);
    assert_int_equal(l->states.count, 2);
    assert_int_equal(l->states.parse_errors, 3);
    assert_int_equal(server_table_find(&l->states, "b", "s2")->admin, 1);
}

/* ---- the socket ---- */

static char socket_path[] = "/tmp/lockstep-test-stat-XXXXXX";

static const char *
fixed(void *ctx, const char *command)
{
    (void)command;
    return ctx;
}

static err_t
set_state(struct dialogue *d, int64_t deadline_ms, struct error *e)
{
    err_t code;

    d->answer = fixed;
    dialogue_open(d, socket_path);
    code = admin_set_state(
        socket_path, &(struct admin_server){"app", "s1"}, "drain", deadline_ms, e);
    dialogue_close(d);
    return code;
}

static void
only_an_empty_line_is_success(void **state)
{
    char done[] = "\n";
    char no_server[] = "No such server.\n\n";
    char odd[] = "\x1b[31mno\xff\n\n";
    char half[] = "No such";
    char nothing[] = "";
    struct dialogue d = {.ctx = done};
    struct lab *l = *state;

    assert_int_equal(set_state(&d, LONG_MS, &l->e), ERR_OK);
    d.ctx = no_server;
    assert_int_equal(set_state(&d, LONG_MS, &l->e), ERR_CONFLICT);
    assert_non_null(strstr(l->e.msg, "set server app/s1 state drain"));
    assert_non_null(strstr(l->e.msg, "No such server."));
    d.ctx = odd;
    assert_int_equal(set_state(&d, LONG_MS, &l->e), ERR_CONFLICT);
    assert_non_null(strstr(l->e.msg, "?[31mno?"));
    d.ctx = half;
    assert_int_equal(set_state(&d, LONG_MS, &l->e), ERR_INVALID);
    d.ctx = nothing;
    assert_int_equal(set_state(&d, LONG_MS, &l->e), ERR_INVALID);
    assert_non_null(strstr(l->e.msg, "was cut"));
}

static void
a_hanging_socket_ends_at_the_deadline(void **state)
{
    char slow_text[] = "No such server, but slowly.\n\n";
    struct dialogue mute = {.mute = 1};
    struct dialogue slow = {.ctx = slow_text, .byte_ms = 50};
    struct lab *l = *state;
    int64_t start_ms = clock_mono_ms(&clock_system);

    assert_int_equal(set_state(&mute, SHORT_MS, &l->e), ERR_TIMEOUT);
    assert_int_equal(set_state(&slow, SHORT_MS, &l->e), ERR_TIMEOUT);
    assert_in_range(clock_mono_ms(&clock_system) - start_ms, 2 * SHORT_MS - 10, LONG_MS / 2);
    (void)unlink(socket_path);
    assert_int_equal(
        admin_set_weight(socket_path, &(struct admin_server){"app", "s1"}, 50, LONG_MS, &l->e),
        ERR_UNAVAILABLE);
}

static void
names_that_end_a_command_are_refused(void **state)
{
    static const char *const names[] = {"", "a b", "a;show info", "a\nb", "a/b", "a\\b", "<<"};
    struct lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct admin_server first = {names[i], "s1"};
        struct admin_server second = {"app", names[i]};

        assert_int_equal(
            admin_set_state(socket_path, &first, "maint", LONG_MS, &l->e), ERR_INVALID);
        assert_int_equal(
            admin_set_weight(socket_path, &second, 50, LONG_MS, &l->e), ERR_INVALID);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_recorded_answer_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_recorded_state_is_told_apart, set_up, tear_down),
        cmocka_unit_test(every_text_of_a_state_is_known),
        cmocka_unit_test(bits_say_who_put_it_in_maintenance),
        cmocka_unit_test_setup_teardown(
            columns_may_stand_in_any_order_beside_unknown_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            quotes_hold_commas_quotes_and_newlines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_rows_are_left_out_and_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_header_is_no_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_answers_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_lines_of_states_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_an_empty_line_is_success, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_hanging_socket_ends_at_the_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            names_that_end_a_command_are_refused, set_up, tear_down),
    };
    int fd = mkstemp(socket_path);
    int failed;

    if (fd < 0) {
        return 1;
    }
    (void)close(fd);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(socket_path);
    return failed;
}

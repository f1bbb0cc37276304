/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "helper/state_filter.h"

#define SHOWN(lines)    "1\n# be_id be_name srv_id srv_name srv_addr ...\n" lines "\n"
#define CONFIG(servers) "global\n    maxconn 9\ndefaults\n    mode http\n" servers
#define CHECKED(server) CONFIG("backend b\n    default-server check\n    server " server "\n")
#define PLAIN(server)   CONFIG("backend b\n    server " server "\n")
/* What a worker says of a server that it checks: up, down. */
#define UP   " 2 0 100 100 9 6 3 4 6 0 0 0 "
#define DOWN " 0 0 100 100 9 8 2 0 6 0 0 0 "
#define REST " - 0 0 - - 0\n"

struct row {
    const char *shown, *config;
    const char *kept; /* lines of the file */
};

static const struct renames no_renames;

static void
check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];
        struct buf CLEANUP(buf_fini) out;
        struct error e = {.code = ERR_OK};

        buf_init(&out, STATE_MAX_BYTES);
        if (state_filter(span_of(r->shown), span_of(r->config), &no_renames, true, &out, &e) !=
            ERR_OK) {
            fail_msg("row %zu: %s", i, e.msg);
        }
        assert_memory_equal(buf_str(&out), SERVER_STATE_EMPTY, 2);
        assert_string_equal(buf_str(&out) + 2, r->kept);
    }
}

static void
health_is_kept_and_what_the_configuration_says_is_its_own(void **state)
{
    static const struct row rows[] = {
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST), CHECKED("s 10.0.0.1:80"),
         "3 b 1 s 10.0.0.1" DOWN "- 80 -\n"},
        {SHOWN("3 b 1 s ::1" UP "- 80" REST), CHECKED("s [::1]:80"),
         "3 b 1 s ::1" UP "- 80 -\n"},
        /* Another address, another port. */
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST), CHECKED("s 10.0.0.2:81"),
         "3 b 1 s 10.0.0.2" DOWN "- 81 -\n"},
        /* TLS, places of checks and agents are not handed over. */
        {SHOWN("3 b 1 s 10.0.0.1" UP "- 80 - 1 99 10.9.9.9 10.9.9.9 98\n"),
         CHECKED("s 10.0.0.1:80 port 97"), "3 b 1 s 10.0.0.1" UP "- 80 -\n"},
        /* A server that is gone, a backend that is gone. */
        {SHOWN("3 b 2 t 10.0.0.1" DOWN "- 80" REST), CHECKED("s 10.0.0.1:80"), ""},
        {SHOWN("3 c 1 s 10.0.0.1" DOWN "- 80" REST), CHECKED("s 10.0.0.1:80"), ""},
    };

    (void)state;
    check(rows, ARRAY_LEN(rows));
}

static void
a_server_that_nothing_checks_any_more_is_up(void **state)
{
    static const struct row rows[] = {
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST), PLAIN("s 10.0.0.1:80"),
         "3 b 1 s 10.0.0.1 2 0 100 100 9 8 2 0 6 0 0 0 - 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST), CHECKED("s 10.0.0.1:80 no-check"),
         "3 b 1 s 10.0.0.1 2 0 100 100 9 8 2 0 6 0 0 0 - 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST), PLAIN("s 10.0.0.1:80 agent-check"),
         "3 b 1 s 10.0.0.1" DOWN "- 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST), PLAIN("s 10.0.0.1:80 track c/check"),
         "3 b 1 s 10.0.0.1" DOWN "- 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST), PLAIN("s 10.0.0.1:80 cookie check"),
         "3 b 1 s 10.0.0.1 2 0 100 100 9 8 2 0 6 0 0 0 - 80 -\n"},
        /* The defaults of another section say nothing. */
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST),
         CONFIG("backend a\n    default-server check\nbackend b\n    server s 10.0.0.1:80\n"),
         "3 b 1 s 10.0.0.1 2 0 100 100 9 8 2 0 6 0 0 0 - 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1" DOWN "- 80" REST),
         "defaults\n    default-server check\nbackend b\n    server s 10.0.0.1:80\n",
         "3 b 1 s 10.0.0.1" DOWN "- 80 -\n"},
    };

    (void)state;
    check(rows, ARRAY_LEN(rows));
}

/* The worker would take the first failure of "fall" for an exception. */
static void
a_server_that_no_check_has_reached_starts_anew(void **state)
{
    static const struct row rows[] = {
        {SHOWN("3 b 1 s 10.0.0.1 2 0 100 100 0 1 0 2 6 0 0 0 - 80" REST),
         CHECKED("s 10.0.0.1:80"), ""},
        /* But for what an operator did, and for the address of a name. */
        {SHOWN("3 b 1 s 10.0.0.1 2 8 100 100 0 1 0 2 6 0 0 0 - 80" REST),
         CHECKED("s 10.0.0.1:80"), "3 b 1 s 10.0.0.1 2 8 100 100 0 1 0 2 6 0 0 0 - 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1 2 0 50 100 0 1 0 2 6 0 0 0 - 80" REST),
         CHECKED("s 10.0.0.1:80"), "3 b 1 s 10.0.0.1 2 0 50 100 0 1 0 2 6 0 0 0 - 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1 2 0 100 100 0 1 0 2 6 0 0 0 x.test 80" REST),
         CHECKED("s x.test:80"), "3 b 1 s 10.0.0.1 2 0 100 100 0 1 0 2 6 0 0 0 x.test 80 -\n"},
    };

    (void)state;
    check(rows, ARRAY_LEN(rows));
}

static void
what_an_operator_did_is_kept_and_what_haproxy_inherits_is_not(void **state)
{
    static const struct {
        int shown, kept;
    } bits[] = {{0, 0},  {1, 1}, {4, 4},   {8, 8}, {32, 0}, {33, 1}, {96, 0},
                {64, 0}, {9, 1}, {12, 12}, {2, 0}, {16, 0}, {13, 5}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
        struct buf CLEANUP(buf_fini) shown;
        struct buf CLEANUP(buf_fini) kept;
        struct row row = {.config = CHECKED("s 10.0.0.1:80")};

        buf_init(&shown, 4096);
        buf_init(&kept, 4096);
        buf_printf(
            &shown, SHOWN("3 b 1 s 10.0.0.1 0 %d 50 100 9 8 2 0 6 0 0 0 - 80" REST),
            bits[i].shown);
        buf_printf(
            &kept, "3 b 1 s 10.0.0.1 0 %d 50 100 9 8 2 0 6 0 0 0 - 80 -\n", bits[i].kept);
        row.shown = buf_str(&shown);
        row.kept = buf_str(&kept);
        check(&row, 1);
    }
}

static void
the_address_of_a_name_is_that_names_only(void **state)
{
    static const struct row rows[] = {
        {SHOWN("3 b 1 s 10.0.0.1" UP "x.test 80" REST), CHECKED("s x.test:81 resolvers r"),
         "3 b 1 s 10.0.0.1" UP "x.test 81 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1" UP "x.test 80" REST), CHECKED("s y.test:80 resolvers r"),
         "3 b 1 s -" UP "y.test 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1" UP "- 80" REST), CHECKED("s y.test:80 resolvers r"),
         "3 b 1 s -" UP "y.test 80 -\n"},
        {SHOWN("3 b 1 s 10.0.0.1" UP "x.test 80" REST), CHECKED("s 10.0.0.2:80"),
         "3 b 1 s 10.0.0.2" UP "- 80 -\n"},
        {SHOWN("3 b 1 s -" UP "x.test 80" REST), CHECKED("s x.test:80"),
         "3 b 1 s -" UP "x.test 80 -\n"},
        {SHOWN("3 b 1 s bad;addr" UP "x.test 80" REST), CHECKED("s x.test:80"),
         "3 b 1 s -" UP "x.test 80 -\n"},
    };

    (void)state;
    check(rows, ARRAY_LEN(rows));
}

#define BACKEND(name, servers)            "backend " name "\n    default-server check\n" servers
#define SERVER(name, n)                   "    server " name " 10.0.0." n ":80\n"
#define LINE(backend, id, name, n, state) "3 " backend " " id " " name " 10.0.0." n state "- 80"

static const struct {
    const char *request; /* single quotes stand for double ones */
    const char *shown, *config, *kept;
} renamed[] = {
    {"{'servers': [{'from': 's', 'to': 't'}]}", SHOWN(LINE("b", "1", "s", "1", DOWN) REST),
     BACKEND("b", SERVER("t", "1")), LINE("b", "1", "t", "1", DOWN) " -\n"},
    {"{'backends': [{'from': 'b', 'to': 'c'}]}", SHOWN(LINE("b", "1", "s", "1", DOWN) REST),
     BACKEND("c", SERVER("s", "1")), LINE("c", "1", "s", "1", DOWN) " -\n"},
    {"{'backends': [{'from': 'b', 'to': 'c'}], 'servers': [{'from': 's', 'to': 't'}]}",
     SHOWN(LINE("b", "1", "s", "1", DOWN) REST LINE("d", "1", "s", "1", UP) REST),
     BACKEND("c", SERVER("t", "1")) BACKEND("d", SERVER("t", "1")),
     LINE("c", "1", "t", "1", DOWN) " -\n" LINE("d", "1", "t", "1", UP) " -\n"},
    /* Two change places. */
    {"{'servers': [{'from': 's', 'to': 't'}, {'from': 't', 'to': 's'}]}",
     SHOWN(LINE("b", "1", "s", "1", DOWN) REST LINE("b", "2", "t", "2", UP) REST),
     BACKEND("b", SERVER("s", "2") SERVER("t", "1")),
     LINE("b", "1", "t", "1", DOWN) " -\n" LINE("b", "2", "s", "2", UP) " -\n"},
    /* The name that became free went to a new server, which nobody has checked. */
    {"{'servers': [{'from': 's', 'to': 't'}]}", SHOWN(LINE("b", "1", "s", "1", DOWN) REST),
     BACKEND("b", SERVER("s", "2") SERVER("t", "1")), LINE("b", "1", "t", "1", DOWN) " -\n"},
    /* The name was taken from a server that is gone. */
    {"{'servers': [{'from': 's', 'to': 't'}]}",
     SHOWN(LINE("b", "1", "s", "1", DOWN) REST LINE("b", "2", "t", "2", UP) REST),
     BACKEND("b", SERVER("t", "1")), LINE("b", "1", "t", "1", DOWN) " -\n"},
    {"{'backends': [{'from': 'b', 'to': 'c'}]}",
     SHOWN(LINE("b", "1", "s", "1", DOWN) REST LINE("c", "1", "s", "2", UP) REST),
     BACKEND("c", SERVER("s", "1")), LINE("c", "1", "s", "1", DOWN) " -\n"},
};

static void
a_server_keeps_its_state_under_another_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(renamed); i++) {
        struct buf CLEANUP(buf_fini) text;
        struct buf CLEANUP(buf_fini) out;
        CLEANUP(renames_fini) struct renames renames = {.backends = {NULL, NULL, 0}};
        json_auto_t *request = NULL;
        struct error e = {.code = ERR_OK};

        buf_init(&text, 4096);
        buf_init(&out, STATE_MAX_BYTES);
        for (const char *p = renamed[i].request; *p != '\0'; p++) {
            buf_putc(&text, *p == '\'' ? '"' : *p);
        }
        assert_int_equal(json_parse(text.data, text.len, &request, &e), ERR_OK);
        assert_int_equal(renames_read(request, &renames, &e), ERR_OK);
        assert_int_equal(
            state_filter(
                span_of(renamed[i].shown), span_of(renamed[i].config), &renames, true, &out,
                &e),
            ERR_OK);
        assert_memory_equal(buf_str(&out), SERVER_STATE_EMPTY, 2);
        assert_string_equal(buf_str(&out) + 2, renamed[i].kept);
    }
}

/* A weight that an apply has changed by the admin socket is no operator's. */
static void
a_changed_worker_gets_the_weights_of_the_configuration(void **state)
{
    struct buf CLEANUP(buf_fini) out;
    struct error e;

    (void)state;
    buf_init(&out, STATE_MAX_BYTES);
    assert_int_equal(
        state_filter(
            span_of(SHOWN("3 b 1 s 10.0.0.1 2 8 50 100 9 6 3 4 6 0 0 0 - 80" REST)),
            span_of(CHECKED("s 10.0.0.1:80 weight 100")), &no_renames, false, &out, &e),
        ERR_OK);
    assert_string_equal(
        buf_str(&out),
        SERVER_STATE_EMPTY "3 b 1 s 10.0.0.1 2 8 100 100 9 6 3 4 6 0 0 0 - 80 -\n");
}

/* One such line, and HAProxy takes none of the file. */
static void
lines_of_another_form_are_left_out(void **state)
{
    static const char *const lines[] = {
        "3 b 1 s 10.0.0.1 2 0 100 100 9 6 3 4 6 0 0 0 - 80\n",
        "3 b 1 s 10.0.0.1 7 0 100 100 9 6 3 4 6 0 0 0 - 80 -\n",
        "3 b 1 s 10.0.0.1 2 x 100 100 9 6 3 4 6 0 0 0 - 80 -\n",
        "3 b 1 s 10.0.0.1 2 0 257 100 9 6 3 4 6 0 0 0 - 80 -\n",
        "3 b 1 s 10.0.0.1 2 0 100 100 -9 6 3 4 6 0 0 0 - 80 -\n",
        "3 b 1 s 10.0.0.1 2 0 100 100 9 6 5 4 6 0 0 0 - 80 -\n",
        "3 b\n",
        "#\n",
        "\t\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct buf CLEANUP(buf_fini) shown;
        struct row row = {
            .config = CHECKED("s 10.0.0.1:80\n    server t 10.0.0.2:80"),
            .kept = "3 b 2 t 10.0.0.2" UP "- 80 -\n",
        };

        buf_init(&shown, 4096);
        buf_printf(&shown, SHOWN("%s3 b 2 t 10.0.0.2" UP "- 80" REST), lines[i]);
        row.shown = buf_str(&shown);
        check(&row, 1);
    }
}

static void
an_answer_cut_anywhere_is_refused(void **state)
{
    static const char shown[] = SHOWN("3 b 1 s 10.0.0.1" UP "- 80" REST);

    (void)state;
    for (size_t n = 0; n < sizeof shown - 2; n++) {
        struct buf CLEANUP(buf_fini) out;
        struct error e;

        buf_init(&out, STATE_MAX_BYTES);
        assert_int_equal(
            state_filter(
                (struct span){shown, n}, span_of(PLAIN("s 10.0.0.1:80")), &no_renames, true,
                &out, &e),
            ERR_INVALID);
    }
}

static void
what_is_no_answer_or_no_configuration_is_refused(void **state)
{
    static const struct {
        const char *shown, *config;
    } rows[] = {
        {"2\n\n", PLAIN("s 10.0.0.1:80")},
        {"Permission denied\n\n", PLAIN("s 10.0.0.1:80")},
        {SHOWN(""), PLAIN("\"s 10.0.0.1:80")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf CLEANUP(buf_fini) out;
        struct error e;

        buf_init(&out, STATE_MAX_BYTES);
        assert_int_equal(
            state_filter(
                span_of(rows[i].shown), span_of(rows[i].config), &no_renames, true, &out, &e),
            ERR_INVALID);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(health_is_kept_and_what_the_configuration_says_is_its_own),
        cmocka_unit_test(a_server_that_nothing_checks_any_more_is_up),
        cmocka_unit_test(a_server_that_no_check_has_reached_starts_anew),
        cmocka_unit_test(what_an_operator_did_is_kept_and_what_haproxy_inherits_is_not),
        cmocka_unit_test(the_address_of_a_name_is_that_names_only),
        cmocka_unit_test(a_server_keeps_its_state_under_another_name),
        cmocka_unit_test(a_changed_worker_gets_the_weights_of_the_configuration),
        cmocka_unit_test(lines_of_another_form_are_left_out),
        cmocka_unit_test(an_answer_cut_anywhere_is_refused),
        cmocka_unit_test(what_is_no_answer_or_no_configuration_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

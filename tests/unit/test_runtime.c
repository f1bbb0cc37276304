/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/running.h"
#include "haproxy/admin.h"
#include "haproxy/runtime.h"
#include "tests/support/dialogue.h"

#define DIGEST   "0123456789abcdef"
#define TEXT_MAX ((size_t)1 << 20)
#define MAP_TEXT "# s\na/ b\n\nc/ d\n"
#define SHOWN    "0x1 a/ b\n0x2 c/ d\n\n"

static char socket_path[] = "/tmp/lockstep-test-runtime-XXXXXX";

/* What HAProxy 2.6.12 says, by the beginning of the command. */
struct line {
    const char *command, *answer;
};

static const struct line good[] = {
    {"show info", "Pid: 5\ndescription: lockstep x\n\n0x5 digest " DIGEST "\n\n"},
    {"set map " RUNNING_MAP " digest ", "\n"},
    {"set server b/s weight 7\n", "\n"},
    {"set maxconn server b/s 8\n", "\n"},
    {"set server b/s addr ::1 port 80\n",
     "IP changed from '127.0.0.1' to '::1', no need to change the port by 'stats socket "
     "command'\n\n"},
    {"prepare map map/x.map\n", "New version created: 3\n\n"},
    {"add map @3 map/x.map <<\na/ b\nc/ d\n\n", "\n"},
    {"show map @3 map/x.map\n", SHOWN},
    {"commit map @3 map/x.map\n", "\n"},
    {"set ssl cert crt/x.pem <<\nA\nB\n\n",
     "Transaction created for certificate crt/x.pem!\n\n"},
    {"commit ssl cert crt/x.pem\n", "Committing crt/x.pem.\nSuccess!\n\n"},
};

/* HAProxy, but for one answer. */
struct player {
    const char *other; /* to commands that begin so */
    const char *answer;
    struct buf seen; /* all commands */
};

static const char *
play(void *ctx, const char *command)
{
    struct player *p = ctx;

    buf_puts(&p->seen, command);
    if (p->other != NULL && strncmp(command, p->other, strlen(p->other)) == 0) {
        return p->answer;
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        if (strncmp(command, good[i].command, strlen(good[i].command)) == 0) {
            return good[i].answer;
        }
    }
    return "Unknown command.\n\n";
}

static err_t
change_all(const struct runtime *r, struct error *e)
{
    static const struct admin_server at = {"b", "s"};
    static const struct admin_target target = {"::1", 80};
    static const char pem[] = "A\r\n\r\n\nB\n";
    err_t code = runtime_begin(r, DIGEST, e);

    if (code == ERR_OK) {
        code = admin_set_weight(r->socket_path, &at, 7, r->socket_ms, e);
    }
    if (code == ERR_OK) {
        code = admin_set_maxconn(r->socket_path, &at, 8, r->socket_ms, e);
    }
    if (code == ERR_OK) {
        code = admin_set_address(r->socket_path, &at, &target, r->socket_ms, e);
    }
    if (code == ERR_OK) {
        code = runtime_map(r, "map/x.map", MAP_TEXT, sizeof MAP_TEXT - 1, e);
    }
    if (code == ERR_OK) {
        code = runtime_certificate(r, "crt/x.pem", pem, sizeof pem - 1, e);
    }
    return code == ERR_OK ? runtime_end(r, DIGEST, e) : code;
}

static err_t
run(struct player *p, int byte_ms, int64_t socket_ms, struct error *e)
{
    struct dialogue d = {.answer = play, .ctx = p, .byte_ms = byte_ms};
    struct runtime r = {socket_path, socket_ms, clock_mono_ms(&clock_system) + 20000};
    err_t code;

    buf_init(&p->seen, TEXT_MAX);
    dialogue_open(&d, socket_path);
    code = change_all(&r, e);
    dialogue_close(&d);
    return code;
}

static void
all_changes_stand_between_the_mark_and_the_digest(void **state)
{
    static const char begin[] = "set map " RUNNING_MAP " digest changing\nset server b/s";
    static const char end[] =
        "commit ssl cert crt/x.pem\nset map " RUNNING_MAP " digest " DIGEST "\n";
    struct player p = {.other = NULL};
    struct error e = {.code = ERR_OK};

    (void)state;
    if (run(&p, 0, 5000, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    assert_non_null(strstr(buf_str(&p.seen), begin));
    assert_string_equal(strstr(buf_str(&p.seen), "commit ssl"), end);
    buf_fini(&p.seen);
}

static void
any_other_answer_is_a_failure_and_ends_the_changes(void **state)
{
    static const char *const answers[] = {NULL,       "",       "No such server.\n\n",
                                          "\xff\x01", "\n\n\n", "Success!"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        for (size_t k = 0; k < ARRAY_LEN(answers); k++) {
            struct player p = {.other = good[i].command, .answer = answers[k]};
            struct error e = {.code = ERR_OK};
            const char *last;

            if (run(&p, 0, 5000, &e) == ERR_OK) {
                fail_msg("%s: %zu is taken for a success", good[i].command, k);
            }
            assert_true(strlen(e.msg) > 0);
            /* Nothing but what failed is said last. */
            last = strstr(buf_str(&p.seen), good[i].command);
            assert_non_null(last);
            assert_null(strstr(buf_str(&p.seen), "digest " DIGEST "\n"));
            buf_fini(&p.seen);
        }
    }
}

static void
an_answer_cut_anywhere_is_no_success(void **state)
{
    (void)state;
    for (size_t i = 1; i < ARRAY_LEN(good); i++) {
        char cut[256] = "";
        struct player p = {.other = good[i].command, .answer = cut};
        struct error e;

        memcpy(cut, good[i].answer, strlen(good[i].answer) / 2);
        assert_int_not_equal(run(&p, 0, 5000, &e), ERR_OK);
        buf_fini(&p.seen);
    }
}

static void
a_map_that_haproxy_took_otherwise_is_not_committed(void **state)
{
    static const char *const shown[] = {
        "\n",
        "0x1 a/ b\n\n",
        "0x1 a/ b\n0x2 c/ e\n\n",
        "0x1 c/ d\n0x2 a/ b\n\n",
        "0x1 a/ b\n0x2 c/ d\n0x3 e/ f\n\n",
        "0x1 a/ b\n0x2 c/ d",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        struct player p = {.other = "show map @3", .answer = shown[i]};
        struct error e;

        assert_int_equal(run(&p, 0, 5000, &e), ERR_INVALID);
        assert_null(strstr(buf_str(&p.seen), "commit map"));
        buf_fini(&p.seen);
    }
}

static void
other_files_than_before_are_left_alone(void **state)
{
    struct player p = {
        .other = "show info",
        .answer = "Pid: 5\ndescription: x\n\n0x5 digest fedcba9876543210\n\n"};
    struct error e;

    (void)state;
    assert_int_equal(run(&p, 0, 5000, &e), ERR_CONFLICT);
    assert_null(strstr(buf_str(&p.seen), "set "));
    buf_fini(&p.seen);
}

static void
a_trickle_ends_at_the_deadline(void **state)
{
    struct player p = {.other = NULL};
    struct error e;

    (void)state;
    assert_int_equal(run(&p, 50, 200, &e), ERR_TIMEOUT);
    buf_fini(&p.seen);
}

static void
no_name_begins_another_command(void **state)
{
    static const char *const names[] = {"a;b", "a b", "a\nb", "a\\b", "a<", "\xff"};
    const struct runtime r = {"/nowhere", 100, clock_mono_ms(&clock_system) + 1000};
    const struct admin_server good_name = {"b", "s"};
    const struct admin_target target = {"::1", 80};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct admin_server backend = {names[i], "s"};
        const struct admin_server server = {"b", names[i]};
        const struct admin_target bad = {names[i], 80};

        assert_int_equal(admin_set_weight("/nowhere", &backend, 1, 100, NULL), ERR_INVALID);
        assert_int_equal(admin_set_weight("/nowhere", &server, 1, 100, NULL), ERR_INVALID);
        assert_int_equal(admin_set_maxconn("/nowhere", &backend, 1, 100, NULL), ERR_INVALID);
        assert_int_equal(
            admin_set_address("/nowhere", &server, &target, 100, NULL), ERR_INVALID);
        assert_int_equal(
            admin_set_address("/nowhere", &good_name, &bad, 100, NULL), ERR_INVALID);
        assert_int_equal(runtime_map(&r, names[i], "", 0, NULL), ERR_INVALID);
        assert_int_equal(runtime_certificate(&r, names[i], "", 0, NULL), ERR_INVALID);
    }
}

/* A cut command could be another one. */
static void
commands_are_never_cut(void **state)
{
    const struct admin_server short_name = {"b", "s"};
    const struct admin_target target = {"10.0.0.1", 1};
    char text[1024];
    const struct admin_server backend = {text, "s"};
    const struct admin_server server = {"b", text};
    const struct admin_target address = {text, 1};

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(admin_set_weight("/nowhere", &backend, 1, 100, NULL), ERR_INVALID);
    assert_int_equal(admin_set_maxconn("/nowhere", &server, 1, 100, NULL), ERR_INVALID);
    assert_int_equal(admin_set_state("/nowhere", &server, "drain", 100, NULL), ERR_INVALID);
    assert_int_equal(admin_set_address("/nowhere", &server, &target, 100, NULL), ERR_INVALID);
    text[128 - sizeof "addr  port 1" + 1] = '\0';
    assert_int_equal(
        admin_set_address("/nowhere", &short_name, &address, 100, NULL), ERR_INVALID);
    text[128 - sizeof "addr  port 1"] = '\0';
    assert_int_equal(
        admin_set_address("/nowhere", &short_name, &address, 100, NULL), ERR_UNAVAILABLE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_changes_stand_between_the_mark_and_the_digest),
        cmocka_unit_test(any_other_answer_is_a_failure_and_ends_the_changes),
        cmocka_unit_test(an_answer_cut_anywhere_is_no_success),
        cmocka_unit_test(a_map_that_haproxy_took_otherwise_is_not_committed),
        cmocka_unit_test(other_files_than_before_are_left_alone),
        cmocka_unit_test(a_trickle_ends_at_the_deadline),
        cmocka_unit_test(no_name_begins_another_command),
        cmocka_unit_test(commands_are_never_cut),
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

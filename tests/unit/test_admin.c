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
#include "haproxy/admin.h"
#include "haproxy/output.h"
#include "tests/support/dialogue.h"

#define LONG_MS  20000
#define SHORT_MS 200

static char socket_path[] = "/tmp/lockstep-test-admin-XXXXXX";

/* As HAProxy 2.6.12 prints it, shortened. */
static const char recorded[] = "Name: HAProxy\n"
                               "Version: 2.6.12-1+deb12u4\n"
                               "Release_date: 2026/10/17\n"
                               "Nbthread: 2\n"
                               "Pid: 12816\n"
                               "Uptime: 0d 0h00m42s\n"
                               "Uptime_sec: 42\n"
                               "Maxsock: 440\n"
                               "Maxconn: 200\n"
                               "Hard_maxconn: 200\n"
                               "CurrConns: 3\n"
                               "CumConns: 11\n"
                               "CumReq: 9\n"
                               "node: vm\n"
                               "description: lockstep 0123456789abcdef\n"
                               "Stopping: 0\n"
                               "TotalBytesOut: 0\n"
                               "\n"
                               "0x55c94ac32130 digest fedcba9876543210\n"
                               "\n";

static const char *
fixed(void *ctx, const char *command)
{
    assert_string_equal(command, "show info;show map " RUNNING_MAP "\n");
    return ctx;
}

static err_t
ask(struct dialogue *d, int64_t deadline_ms, struct haproxy_info *ret, struct error *e)
{
    err_t code;

    d->answer = fixed;
    dialogue_open(d, socket_path);
    code = admin_info(socket_path, deadline_ms, ret, e);
    dialogue_close(d);
    return code;
}

static err_t
ask_text(const char *text, struct haproxy_info *ret, struct error *e)
{
    /* The callback takes a context that may be written to, and does not. */
    union {
        const char *in;
        void *out;
    } ctx = {.in = text};

    struct dialogue d = {.ctx = ctx.out};

    return ask(&d, LONG_MS, ret, e);
}

static void
recorded_answer_is_read(void **state)
{
    struct haproxy_info info;

    (void)state;
    assert_int_equal(ask_text(recorded, &info, NULL), ERR_OK);
    assert_string_equal(info.version, "2.6.12-1+deb12u4");
    assert_string_equal(info.description, "lockstep 0123456789abcdef");
    assert_string_equal(info.running, "fedcba9876543210");
    assert_int_equal(info.pid, 12816);
    assert_int_equal(info.uptime_s, 42);
    assert_int_equal(info.max_connections, 200);
    assert_int_equal(info.connections, 3);
    assert_int_equal(info.requests, 9);
}

static void
an_answer_cut_anywhere_before_the_description_is_invalid(void **state)
{
    size_t end = (size_t)(strstr(recorded, "Stopping") - recorded);

    (void)state;
    for (size_t len = 0; len <= end; len += len + 8 < end ? 8 : 1) {
        char text[sizeof recorded];
        struct haproxy_info info = {.pid = 7};
        err_t code;

        memcpy(text, recorded, len);
        text[len] = '\0';
        code = ask_text(text, &info, NULL);
        assert_int_equal(code, len < end ? ERR_INVALID : ERR_OK);
        assert_int_equal(info.pid, len < end ? 7 : 12816);
    }
}

static void
garbage_is_invalid(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "Unknown command.\n",
        "\xff\xfe\x01\x02\n",
        "Pid: 0\ndescription: x\n",
        "Pid: -5\ndescription: x\n",
        "Pid: 99999999999\ndescription: x\n",
        "Pid: 12x\ndescription: x\n",
        "Pid:\ndescription: x\n",
        "Pid: 5\n",
        "description: x\n",
    };
    struct haproxy_info info;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct error e;

        assert_int_equal(ask_text(texts[i], &info, &e), ERR_INVALID);
        assert_non_null(strstr(e.msg, "show info"));
    }
}

static void
long_and_odd_values_are_cut_and_made_printable(void **state)
{
    CLEANUP(buf_fini) struct buf text;
    struct haproxy_info info;

    (void)state;
    buf_init(&text, 4096);
    buf_puts(&text, "Pid: 5\nMaxconn: 99999999999999999999\ndescription: a\tb\x80");
    for (int i = 0; i < 300; i++) {
        buf_putc(&text, 'x');
    }
    buf_puts(&text, "\nVersion: \xff\n");
    assert_int_equal(ask_text(text.data, &info, NULL), ERR_OK);
    assert_int_equal(strlen(info.description), sizeof info.description - 1);
    assert_memory_equal(info.description, "a?b?xxx", 7);
    assert_string_equal(info.version, "?");
    assert_int_equal(info.max_connections, 0);
}

static void
a_worker_in_change_or_without_the_map_runs_nothing_known(void **state)
{
    static const char *const maps[] = {
        "",
        "Unknown map identifier. Please use #<id> or <file>.\n\n",
        "0x5 digest changing\n",
        "0x5 digest fedcba9876543210",
        "0x5 digest fedcba987654321\n",
        "0x5 digest fedcba98765432100\n",
        "0x5 digest FEDCBA9876543210\n",
        "0x5 other fedcba9876543210\n",
        "0x5 digest\n",
        "0x5\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        CLEANUP(buf_fini) struct buf text;
        struct haproxy_info info;

        buf_init(&text, 4096);
        buf_printf(&text, "Pid: 5\ndescription: lockstep x\n\n%s", maps[i]);
        assert_int_equal(ask_text(buf_str(&text), &info, NULL), ERR_OK);
        assert_string_equal(info.running, "");
    }
}

static void
five_megabytes_are_invalid(void **state)
{
    CLEANUP(buf_fini) struct buf text;
    struct haproxy_info info;
    struct error e;

    (void)state;
    buf_init(&text, (size_t)6 << 20);
    while (text.len < (size_t)5 << 20) {
        buf_puts(&text, "Name: HAProxy\n");
    }
    assert_int_equal(ask_text(text.data, &info, &e), ERR_INVALID);
    assert_non_null(strstr(e.msg, "longer than"));
}

static void
late_answer(struct dialogue *d)
{
    struct haproxy_info info;
    int64_t start_ms = clock_mono_ms(&clock_system);

    assert_int_equal(ask(d, SHORT_MS, &info, NULL), ERR_TIMEOUT);
    assert_in_range(clock_mono_ms(&clock_system) - start_ms, SHORT_MS - 5, LONG_MS / 2);
}

static void
silence_and_a_trickle_end_at_the_deadline(void **state)
{
    struct dialogue silent = {.mute = 1};
    char text[] = "Pid: 5\ndescription: x\n";
    struct dialogue slow = {.ctx = text, .byte_ms = 50};

    (void)state;
    late_answer(&silent);
    late_answer(&slow);
}

static void
nobody_there_is_unavailable(void **state)
{
    struct haproxy_info info;

    (void)state;
    (void)unlink(socket_path);
    assert_int_equal(admin_info(socket_path, LONG_MS, &info, NULL), ERR_UNAVAILABLE);
}

static void
output_of_programs_is_made_clean_text(void **state)
{
    char text[] = "a\tb\nc\x01\x7f caf\xc3\xa9 \xc2\x85 \xff\xc3";

    (void)state;
    output_clean(text, sizeof text - 1);
    assert_string_equal(text, "a\tb\nc?? caf\xc3\xa9 ?? ??");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_answer_is_read),
        cmocka_unit_test(an_answer_cut_anywhere_before_the_description_is_invalid),
        cmocka_unit_test(garbage_is_invalid),
        cmocka_unit_test(long_and_odd_values_are_cut_and_made_printable),
        cmocka_unit_test(a_worker_in_change_or_without_the_map_runs_nothing_known),
        cmocka_unit_test(five_megabytes_are_invalid),
        cmocka_unit_test(silence_and_a_trickle_end_at_the_deadline),
        cmocka_unit_test(nobody_there_is_unavailable),
        cmocka_unit_test(output_of_programs_is_made_clean_text),
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

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/utf8.h"
#include "tests/support/self.h"

/* What this program writes to standard error when told what to log. */
static void
logged(const char *what, struct buf *out)
{
    struct error e;
    int status;

    assert_int_equal(self_run(what, SELF_LONG_MS, out, &status, &e), ERR_OK);
    assert_int_equal(status, 0);
}

static void
lines_have_program_and_level(void **state)
{
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&out, 65536);
    logged("levels", &out);
    assert_string_equal(
        buf_str(&out), "prog: error: e 1\n"
                       "prog: warning: w 2\n"
                       "prog: info: i 3\n"
                       "prog: debug: d 4\n");
}

static void
records_above_the_level_are_dropped(void **state)
{
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&out, 65536);
    logged("quiet", &out);
    assert_string_equal(buf_str(&out), "prog: error: e 1\n");
}

static void
foreign_text_cannot_forge_a_line(void **state)
{
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&out, 65536);
    logged("hostile", &out);
    assert_string_equal(
        buf_str(&out),
        "prog: info: a\\x0aprog: error: b\\x1b[2J\\x7f\\xc2\\x9b\\xff\xc3\xa9\n");
}

static void
long_record_is_one_write_cut_at_a_character(void **state)
{
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&out, 65536);
    logged("long", &out);
    assert_true(out.len <= 4096);
    assert_true(out.len > 4090);
    assert_int_equal(out.data[out.len - 1], '\n');
    assert_true(utf8_valid(out.data, out.len));
    assert_ptr_equal(strchr(out.data, '\n'), out.data + out.len - 1);
}

static void
long_hostile_record_stays_bounded(void **state)
{
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&out, 65536);
    logged("escapes", &out);
    assert_true(out.len <= 4096);
    assert_true(out.len > 4080);
    assert_int_equal(out.data[out.len - 1], '\n');
}

static void
errno_is_kept(void **state)
{
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&out, 65536);
    logged("errno", &out);
}

static void
fill(char *text, size_t bytes, const char *unit)
{
    size_t n = strlen(unit);

    for (size_t i = 0; i + n < bytes; i += n) {
        memcpy(text + i, unit, n);
    }
}

static int
child(const char *what)
{
    char text[9000] = {0};

    log_open("prog", strcmp(what, "quiet") == 0 ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG);
    if (strcmp(what, "levels") == 0 || strcmp(what, "quiet") == 0) {
        log_error("e %d", 1);
        log_warning("w %d", 2);
        log_info("i %d", 3);
        log_debug("d %d", 4);
    } else if (strcmp(what, "hostile") == 0) {
        log_info("%s", "a\nprog: error: b\x1b[2J\x7f\xc2\x9b\xff\xc3\xa9");
    } else if (strcmp(what, "long") == 0) {
        fill(text, sizeof text, "\xe2\x82\xac");
        log_info("%s", text);
    } else if (strcmp(what, "escapes") == 0) {
        fill(text, sizeof text, "\n");
        log_info("%s", text);
    } else {
        errno = ENOSPC;
        log_info("x");
        return errno == ENOSPC ? 0 : 1;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_program_and_level),
        cmocka_unit_test(records_above_the_level_are_dropped),
        cmocka_unit_test(foreign_text_cannot_forge_a_line),
        cmocka_unit_test(long_record_is_one_write_cut_at_a_character),
        cmocka_unit_test(long_hostile_record_stays_bounded),
        cmocka_unit_test(errno_is_kept),
    };

    return argc > 1 ? child(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}

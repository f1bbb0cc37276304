/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void
appends_grow_and_stay_terminated(void **state)
{
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&b, 100000);
    assert_string_equal(buf_str(&b), "");
    for (size_t i = 0; i < 100000; i++) {
        buf_putc(&b, (char)('a' + i % 26));
        assert_int_equal(b.data[b.len], '\0');
    }
    assert_int_equal(b.len, 100000);
    assert_int_equal(buf_status(&b, NULL), ERR_OK);
    for (size_t i = 0; i < b.len; i++) {
        assert_int_equal(b.data[i], 'a' + i % 26);
    }
}

static void
over_the_maximum_keeps_what_it_has(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    struct error e;

    (void)state;
    buf_init(&b, 4);
    buf_puts(&b, "abc");
    buf_puts(&b, "de");
    assert_true(b.failed);
    assert_string_equal(buf_str(&b), "abc");
    buf_puts(&b, "d");
    assert_string_equal(buf_str(&b), "abc");
    assert_int_equal(buf_status(&b, &e), ERR_LIMIT);
    assert_non_null(strstr(e.msg, "4 bytes"));
}

static void
failed_buffer_ignores_appends_that_would_fit(void **state)
{
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&b, 200);
    buf_puts(&b, "abc");
    assert_false(buf_reserve(&b, 198));
    buf_putc(&b, 'x');
    buf_i64(&b, 1);
    buf_printf(&b, "x");
    assert_false(buf_reserve(&b, 1));
    assert_string_equal(buf_str(&b), "abc");
}

static void
exactly_the_maximum_fits(void **state)
{
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&b, 3);
    buf_puts(&b, "abc");
    assert_int_equal(buf_status(&b, NULL), ERR_OK);
    buf_puts(&b, "");
    buf_put(&b, NULL, 0);
    assert_int_equal(buf_status(&b, NULL), ERR_OK);
    buf_putc(&b, 'd');
    assert_int_equal(buf_status(&b, NULL), ERR_LIMIT);
}

static void
maximum_zero_takes_nothing(void **state)
{
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&b, 0);
    buf_puts(&b, "");
    buf_printf(&b, "%s", "");
    assert_int_equal(buf_status(&b, NULL), ERR_OK);
    buf_putc(&b, 'a');
    assert_int_equal(buf_status(&b, NULL), ERR_LIMIT);
    assert_string_equal(buf_str(&b), "");
}

static void
extends_only_where_memory_is(void **state)
{
    struct buf b;
    size_t room;

    (void)state;
    buf_init(&b, 100);
    assert_null(buf_extend(&b, 0));
    buf_putc(&b, 'a');
    room = b.cap - b.len - 1; /* the NUL needs one */
    assert_null(buf_extend(&b, room + 1));
    assert_int_equal(b.len, 1);
    memset(buf_extend(&b, room), 'b', room);
    assert_int_equal(strlen(buf_str(&b)), 1 + room);
    assert_null(buf_extend(&b, 1));
    for (int i = 0; i < 200; i++) {
        buf_putc(&b, 'c');
    }
    assert_true(b.failed);
    assert_null(buf_extend(&b, 1));
    buf_fini(&b);
}

static void
reserve_prevents_moving(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    const char *data;

    (void)state;
    buf_init(&b, 5000);
    assert_true(buf_reserve(&b, 5000));
    data = b.data;
    for (int i = 0; i < 5000; i++) {
        buf_putc(&b, 'x');
    }
    assert_ptr_equal(b.data, data);
    assert_false(buf_reserve(&b, SIZE_MAX));
}

static void
printf_grows_and_obeys_the_maximum(void **state)
{
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&b, 300);
    buf_printf(&b, "%d:%s", 1, "a");
    assert_string_equal(buf_str(&b), "1:a");
    buf_printf(&b, "%0200d", 7);
    assert_int_equal(b.len, 203);
    buf_printf(&b, "%098d", 7);
    assert_int_equal(b.len, 203);
    assert_true(b.failed);
    assert_int_equal(b.data[203], '\0');
    buf_reset(&b);
    buf_printf(&b, "%0300d", 7);
    assert_int_equal(b.len, 300);
    assert_false(b.failed);
}

static void
integers_are_written_in_full_range(void **state)
{
    static const struct {
        int64_t v;
        const char *text;
    } rows[] = {
        {0, "0"},
        {7, "7"},
        {-1, "-1"},
        {10, "10"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_fini) struct buf b;

        buf_init(&b, 20);
        buf_i64(&b, rows[i].v);
        assert_string_equal(buf_str(&b), rows[i].text);
    }
}

static void
reset_keeps_memory_and_clears_the_failure(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    const char *data;

    (void)state;
    buf_init(&b, 3);
    buf_reset(&b);
    buf_puts(&b, "abc");
    buf_putc(&b, 'd');
    data = b.data;
    buf_reset(&b);
    assert_string_equal(buf_str(&b), "");
    buf_puts(&b, "xyz");
    assert_string_equal(buf_str(&b), "xyz");
    assert_ptr_equal(b.data, data);
}

static void
wipe_overwrites_all_of_the_memory(void **state)
{
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&b, 100);
    buf_wipe(&b);
    buf_puts(&b, "secret");
    buf_reset(&b);
    buf_putc(&b, 'x');
    buf_wipe(&b);
    for (size_t i = 0; i < b.cap; i++) {
        assert_int_equal(b.data[i], 0);
    }
    assert_int_equal(b.len, 0);
}

static void
take_moves_the_bytes_out(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    char *taken;

    (void)state;
    buf_init(&b, 10);
    taken = buf_take(&b);
    assert_string_equal(taken, "");
    free(taken);
    buf_puts(&b, "abc");
    taken = buf_take(&b);
    assert_string_equal(taken, "abc");
    free(taken);
    assert_string_equal(buf_str(&b), "");
    buf_puts(&b, "0123456789");
    assert_int_equal(buf_status(&b, NULL), ERR_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_grow_and_stay_terminated),
        cmocka_unit_test(over_the_maximum_keeps_what_it_has),
        cmocka_unit_test(failed_buffer_ignores_appends_that_would_fit),
        cmocka_unit_test(exactly_the_maximum_fits),
        cmocka_unit_test(maximum_zero_takes_nothing),
        cmocka_unit_test(reserve_prevents_moving),
        cmocka_unit_test(extends_only_where_memory_is),
        cmocka_unit_test(printf_grows_and_obeys_the_maximum),
        cmocka_unit_test(integers_are_written_in_full_range),
        cmocka_unit_test(reset_keeps_memory_and_clears_the_failure),
        cmocka_unit_test(wipe_overwrites_all_of_the_memory),
        cmocka_unit_test(take_moves_the_bytes_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

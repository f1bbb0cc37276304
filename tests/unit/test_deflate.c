/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crypt.h"
#include "base/deflate.h"

static void
gives_back_what_it_took(void **state)
{
    static const size_t sizes[] = {0, 1, 1023, 16384, 16385, 300000};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (int random = 0; random < 2; random++) {
            CLEANUP(buf_fini) struct buf plain = {.max = 400000};
            CLEANUP(buf_fini) struct buf packed = {.max = 400000};
            /* No byte more than the text has. */
            CLEANUP(buf_fini) struct buf out = {.max = sizes[i] + 3};
            struct error e;

            assert_true(buf_reserve(&plain, sizes[i]));
            memset(plain.data, 'a', sizes[i]);
            if (random != 0 && sizes[i] > 0) {
                crypt_random(plain.data, sizes[i]);
            }
            plain.len = sizes[i];
            deflate_put(plain.data, plain.len, &packed);
            assert_false(packed.failed);
            assert_true(random != 0 || sizes[i] < 1023 || packed.len < sizes[i] / 10);
            buf_puts(&out, "abc");
            assert_int_equal(inflate_put(packed.data, packed.len, &out, &e), ERR_OK);
            assert_int_equal(out.len, 3 + sizes[i]);
            assert_memory_equal(out.data, "abc", 3);
            assert_memory_equal(out.data + 3, plain.data, sizes[i]);
        }
    }
}

static void
stops_at_the_maximum(void **state)
{
    static char plain[100000];
    CLEANUP(buf_fini) struct buf packed = {.max = 2 * sizeof plain};
    struct error e;

    (void)state;
    deflate_put(plain, sizeof plain, &packed);
    assert_false(packed.failed);
    for (size_t max = 1; max < sizeof plain; max = max * 2 + 1) {
        CLEANUP(buf_fini) struct buf out = {.max = max};

        assert_int_equal(inflate_put(packed.data, packed.len, &out, &e), ERR_LIMIT);
        assert_true(out.len <= max);
    }
    {
        CLEANUP(buf_fini) struct buf out = {.max = sizeof plain - 1};

        assert_int_equal(inflate_put(packed.data, packed.len, &out, &e), ERR_LIMIT);
    }
}

static void
marks_the_output_that_is_too_long(void **state)
{
    static char plain[1000];
    CLEANUP(buf_fini) struct buf out = {.max = 5};

    (void)state;
    deflate_put(plain, sizeof plain, &out);
    assert_true(out.failed);
}

static void
refuses_damaged_bytes(void **state)
{
    static const char text[] = "a text that is long enough, long enough, long enough";
    CLEANUP(buf_fini) struct buf packed = {.max = 1000};
    size_t harmless = 0;
    struct error e;

    (void)state;
    deflate_put(text, sizeof text, &packed);
    for (size_t cut = 0; cut < packed.len; cut++) {
        CLEANUP(buf_fini) struct buf out = {.max = 1000};

        assert_int_equal(inflate_put(packed.data, cut, &out, &e), ERR_CORRUPT);
    }
    for (size_t i = 0; i < packed.len; i++) {
        CLEANUP(buf_fini) struct buf out = {.max = 1000};

        packed.data[i] ^= 0x10;
        /* The last block ends with bits that mean nothing. */
        if (inflate_put(packed.data, packed.len, &out, &e) == ERR_OK) {
            assert_int_equal(out.len, sizeof text);
            assert_memory_equal(out.data, text, sizeof text);
            harmless++;
        } else {
            assert_int_equal(e.code, ERR_CORRUPT);
        }
        packed.data[i] ^= 0x10;
    }
    assert_true(harmless <= 1);
    buf_putc(&packed, 'x');
    {
        CLEANUP(buf_fini) struct buf out = {.max = 1000};

        assert_int_equal(inflate_put(packed.data, packed.len, &out, &e), ERR_CORRUPT);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_what_it_took),
        cmocka_unit_test(stops_at_the_maximum),
        cmocka_unit_test(marks_the_output_that_is_too_long),
        cmocka_unit_test(refuses_damaged_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/self.h"
/* The variant for test builds, whichever the library was built with. */
#include "base/crashpoint_hooks.c" // NOLINT(bugprone-suspicious-include)

/* How a program ends that is armed like this and passes a, b, a, b, a. */
static int
status_when_armed(const char *spec)
{
    CLEANUP(buf_fini) struct buf out;
    int status;

    buf_init(&out, 65536);
    assert_int_equal(self_run(spec, SELF_LONG_MS, &out, &status, NULL), ERR_OK);
    return status;
}

static void
armed_place_dies_without_clean_up(void **state)
{
    (void)state;
    assert_int_equal(status_when_armed("a"), 128 + SIGKILL);
    assert_int_equal(status_when_armed("b"), 128 + SIGKILL);
}

static void
other_places_pass(void **state)
{
    (void)state;
    assert_int_equal(status_when_armed("c"), 0);
    assert_int_equal(status_when_armed("ab"), 0);
    assert_int_equal(status_when_armed("disarm"), 0);
}

static void
place_named_in_a_file_dies_once(void **state)
{
    (void)state;
    char path[] = "/tmp/lockstep-crashpoint-XXXXXX";
    int fd = mkstemp(path);
    struct error e;
    char spec[64];

    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(file_write_at(AT_FDCWD, path, "b", 1, 0600, &e), ERR_OK);
    (void)snprintf(spec, sizeof(spec), "@%s", path);
    assert_int_equal(status_when_armed(spec), 128 + SIGKILL);
    assert_false(file_exists_at(AT_FDCWD, path));
    assert_int_equal(status_when_armed(spec), 0);
}

static int
child(const char *spec)
{
    crashpoint("a");
    if (strcmp(spec, "disarm") == 0) {
        crashpoint_arm("a");
        crashpoint_arm(NULL);
    } else {
        crashpoint_arm(spec);
    }
    for (int i = 0; i < 5; i++) {
        crashpoint(i % 2 == 0 ? "a" : "b");
    }
    crashpoint_arm(NULL);
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(armed_place_dies_without_clean_up),
        cmocka_unit_test(other_places_pass),
        cmocka_unit_test(place_named_in_a_file_dies_once),
    };

    return argc > 1 ? child(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}

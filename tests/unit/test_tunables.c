/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/tunables.h"

static char path[] = "/tmp/lockstep-test-tunables-XXXXXX";

static int
make_file(void **state)
{
    CLEANUP(fd_cleanup) int fd = -1;

    (void)state;
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    fd = mkostemp(path, O_CLOEXEC);
    return fd < 0 ? -1 : 0;
}

static int
remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static err_t
load(const char *text, struct tunables *t, struct error *e)
{
    assert_int_equal(file_write_at(AT_FDCWD, path, text, strlen(text), 0600, NULL), ERR_OK);
    return tunables_load(t, path, e);
}

static void
defaults_are_within_their_limits(void **state)
{
    struct tunables t;

    (void)state;
    tunables_default(&t);
#define CHECK_ROW(name, def, min, max)                                                         \
    assert_int_equal(t.name, def);                                                             \
    assert_true(t.name >= (min) && t.name <= (max));
    TUNABLES_LIST(CHECK_ROW)
#undef CHECK_ROW
}

static void
file_overrides_what_it_names(void **state)
{
    struct tunables t;
    struct error e;

    (void)state;
    memset(&t, 0, sizeof t);
    assert_int_equal(load("{\"check_ms\":100,\"stop_ms\":600000}", &t, &e), ERR_OK);
    assert_int_equal(t.check_ms, 100);
    assert_int_equal(t.stop_ms, 600000);
    assert_int_equal(t.reload_ms, 30000);
    assert_int_equal(load("{}", &t, &e), ERR_OK);
    assert_int_equal(t.check_ms, 60000);
}

static void
rejects_a_value_and_names_it(void **state)
{
    static const struct {
        const char *text;
        const char *names;
    } rows[] = {
        {"{\"check_ms\":99}", "\"check_ms\" is 99"},
        {"{\"check_ms\":600001}", "\"check_ms\" is 600001"},
        {"{\"stop_ms\":\"1\"}", "\"stop_ms\" is not an integer"},
        {"{\"no_such_ms\":1}", "\"no_such_ms\""},
        {"[]", "expected an object"},
        {"{", "line 1"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tunables t = {.check_ms = 5};
        struct error e;

        assert_int_equal(load(rows[i].text, &t, &e), ERR_INVALID);
        assert_int_equal(e.code, ERR_INVALID);
        assert_non_null(strstr(e.msg, rows[i].names));
        assert_non_null(strstr(e.msg, path));
        assert_int_equal(t.check_ms, 5);
        assert_int_equal(load(rows[i].text, &t, NULL), ERR_INVALID);
    }
}

static void
missing_file_is_not_found(void **state)
{
    struct tunables t;
    struct error e;

    (void)state;
    assert_int_equal(tunables_load(&t, "/lockstep-no-such-file", &e), ERR_NOT_FOUND);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_within_their_limits),
        cmocka_unit_test_setup_teardown(file_overrides_what_it_names, make_file, remove_file),
        cmocka_unit_test_setup_teardown(rejects_a_value_and_names_it, make_file, remove_file),
        cmocka_unit_test(missing_file_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which generations stay. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/helper_lab.h"

static bool
exists(struct helper_lab *l, const char *path)
{
    return file_exists_at(AT_FDCWD, helper_lab_path(l, "state/generation/%s", path));
}

static const char *
path_in(int n, const char *name)
{
    static char path[64];

    (void)snprintf(path, sizeof path, "%d/%s", n, name);
    return path;
}

static void
ask(struct helper_lab *l, const char *verb, int n)
{
    char request[64];

    (void)snprintf(request, sizeof request, "{'verb': '%s', 'generation': %d}", verb, n);
    helper_lab_ok(l, request);
}

static void
stage(struct helper_lab *l, int n)
{
    helper_lab_put(l, n, "haproxy.cfg", "global\n    description \"lockstep 1\"\n");
    ask(l, "stage", n);
}

/* Up to n, and from first to last. */
static void
are_there(struct helper_lab *l, int n, int first, int last)
{
    for (int i = 1; i <= 20; i++) {
        char number[16];

        (void)snprintf(number, sizeof number, "%d", i);
        assert_int_equal(exists(l, number), i <= n || (i >= first && i <= last));
    }
}

static void
old_ones_go_but_for_what_is_in_use_and_the_newest_five(void **state)
{
    struct helper_lab *l = *state;

    assert_int_equal(mkdir(helper_lab_path(l, "state/generation/other"), 0755), 0);
    stage(l, 1);
    ask(l, "install", 1);
    stage(l, 2);
    ask(l, "settle", 2);
    for (int n = 3; n <= 12; n++) {
        stage(l, n);
    }
    are_there(l, 2, 7, 12);
    ask(l, "settle", 2);
    are_there(l, 2, 8, 12);
    /* An old number that is staged once more stays. */
    stage(l, 13);
    stage(l, 8);
    are_there(l, 2, 8, 13);
    assert_true(exists(l, "other"));
}

static void
of_those_that_served_the_newest_five_stay(void **state)
{
    struct helper_lab *l = *state;

    for (int n = 1; n <= 9; n++) {
        stage(l, n);
        ask(l, "install", n);
        ask(l, "settle", n);
    }
    are_there(l, 0, 4, 9);
}

static void
what_was_refused_pushes_none_out_that_served(void **state)
{
    struct helper_lab *l = *state;

    for (int n = 1; n <= 6; n++) {
        stage(l, n);
        ask(l, "install", n);
        ask(l, "settle", n);
    }
    /* Before they were installed, and after that. */
    for (int n = 7; n <= 20; n++) {
        stage(l, n);
        if (n % 2 == 0) {
            ask(l, "install", n);
            ask(l, "install", 6);
        }
    }
    are_there(l, 6, 15, 20);
    /* The same files under its number are not made anew. */
    stage(l, 2);
    assert_true(exists(l, "2/.served"));
}

/* Whoever has deleted a certificate expects its key to be gone. */
static void
keys_are_only_where_they_are_in_use(void **state)
{
    struct helper_lab *l = *state;

    for (int n = 1; n <= 4; n++) {
        helper_lab_put(l, n, "crt/site.pem", "key\n");
        helper_lab_put(l, n, "ca/pool.pem", "authority\n");
        stage(l, n);
    }
    ask(l, "install", 1);
    helper_lab_ok(l, "{'verb': 'settle', 'generation': 2, 'keep': 4}");
    assert_true(exists(l, "1/crt/site.pem")); /* current yet */
    ask(l, "install", 2);
    helper_lab_ok(l, "{'verb': 'settle', 'generation': 2, 'keep': 4}");
    for (int n = 1; n <= 4; n++) {
        bool in_use = n == 2 || n == 4;

        assert_int_equal(exists(l, path_in(n, "crt/site.pem")), in_use);
        assert_int_equal(exists(l, path_in(n, "ca/pool.pem")), in_use);
        assert_true(exists(l, path_in(n, "haproxy.cfg")));
    }
    helper_lab_refused(l, "{'verb': 'install', 'generation': 3}", "conflict", "not checked");
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        HELPER_LAB_TEST(old_ones_go_but_for_what_is_in_use_and_the_newest_five),
        HELPER_LAB_TEST(of_those_that_served_the_newest_five_stay),
        HELPER_LAB_TEST(what_was_refused_pushes_none_out_that_served),
        HELPER_LAB_TEST(keys_are_only_where_they_are_in_use),
    };

    if (argc == 4 && strcmp(argv[1], "-c") == 0) {
        return 0; /* as the checker */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

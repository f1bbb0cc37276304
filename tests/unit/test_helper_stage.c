/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "haproxy/span.h"
#include "tests/support/helper_lab.h"
#include "tests/support/self.h"

#define GOOD "global\n    description \"lockstep 1\"\n"
/* What the checker of this test refuses, see main(). */
#define BAD  "global\n    description BAD\n"
#define SLOW "global\n    description SLOW\n"

static bool
exists(struct helper_lab *l, const char *path)
{
    return file_exists_at(AT_FDCWD, helper_lab_path(l, "state/generation/%s", path));
}

static void
has_text(struct helper_lab *l, const char *path, const char *text)
{
    CLEANUP(buf_fini) struct buf found;

    buf_init(&found, 1 << 20);
    assert_int_equal(
        file_read_at(AT_FDCWD, helper_lab_path(l, "state/generation/%s", path), &found, NULL),
        ERR_OK);
    assert_string_equal(buf_str(&found), text);
}

/* With the exit status of the checker. */
static void
is_marked(struct helper_lab *l, int n, int exit_status)
{
    CLEANUP(buf_fini) struct buf found;
    struct span rest;
    struct span line;
    int64_t marked = -1;

    buf_init(&found, 1 << 20);
    assert_int_equal(
        file_read_at(
            AT_FDCWD, helper_lab_path(l, "state/generation/%d/.checked", n), &found, NULL),
        ERR_OK);
    rest = (struct span){buf_str(&found), found.len};
    assert_true(span_line(&rest, &line) && span_number(line, 255, &marked));
    assert_int_equal(marked, exit_status);
}

static void
no_trace_is_left_of(struct helper_lab *l, const char *number)
{
    char temporary[64];

    assert_false(exists(l, number));
    (void)snprintf(temporary, sizeof temporary, ".%s.tmp", number);
    assert_false(exists(l, temporary));
}

static void
a_generation_is_copied_and_checked(void **state)
{
    struct helper_lab *l = *state;
    struct stat st;

    helper_lab_put(l, 7, "haproxy.cfg", GOOD);
    helper_lab_put(l, 7, "map/a.map", "a b\n");
    helper_lab_put(l, 7, "crt/A-1_x.y:z.pem", "secret\n");
    helper_lab_put(l, 7, "crt-list/a.list", "crt/A-1_x.y:z.pem\n");
    helper_lab_put(l, 7, "error/503.http", "HTTP/1.0 503\r\n\r\n");
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 7}");
    assert_int_equal(helper_lab_int(l, "exit_status"), 0);
    assert_non_null(strstr(helper_lab_text(l, "output"), "checked "));
    assert_non_null(strstr(helper_lab_text(l, "output"), "/generation/7/haproxy.cfg"));
    has_text(l, "7/haproxy.cfg", GOOD);
    has_text(l, "7/crt/A-1_x.y:z.pem", "secret\n");
    is_marked(l, 7, 0);
    assert_int_equal(stat(helper_lab_path(l, "state/generation/7/crt/A-1_x.y:z.pem"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(stat(helper_lab_path(l, "state/generation/7"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_false(exists(l, ".7.tmp"));
}

static void
what_the_checker_says_is_told(void **state)
{
    struct helper_lab *l = *state;

    helper_lab_put(l, 1, "haproxy.cfg", BAD);
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 1}");
    assert_int_equal(helper_lab_int(l, "exit_status"), 3);
    /* Not UTF-8 and a control character. */
    assert_non_null(strstr(helper_lab_text(l, "output"), "bad ?? line\n"));
    helper_lab_refused(l, "{'verb': 'install', 'generation': 1}", "conflict", "refused");
}

static void
a_checker_that_hangs_is_ended(void **state)
{
    struct helper_lab *l = *state;

    l->context.tunables.check_ms = 200;
    helper_lab_put(l, 1, "haproxy.cfg", SLOW);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 1}", "timeout", "did not end");
    helper_lab_refused(l, "{'verb': 'install', 'generation': 1}", "conflict", "not checked");
}

static void
nothing_staged_is_not_found(void **state)
{
    struct helper_lab *l = *state;

    helper_lab_refused(l, "{'verb': 'stage', 'generation': 1}", "not_found", "staged as 1");
    helper_lab_put(l, 1, "map/a.map", "a b\n");
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 1}", "not_found", "haproxy.cfg");
}

static void
other_names_are_refused(void **state)
{
    static const char *const names[] = {
        "extra",
        "haproxy.cfg2",
        ".checked",
        ".served",
        "map/a.pem",
        "map/.a.map",
        "crt/a b.pem",
        "crt/-a.pem",
        "crt/a.key",
        "error/503",
        "crt-list/a\xc3\xa9.list",
        "scripts/a.map",
        "map/\x01x.map",
        "map/.map",
    };
    struct helper_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char request[64];
        int number = (int)i + 1;

        helper_lab_put(l, number, "haproxy.cfg", GOOD);
        helper_lab_put(l, number, names[i], "x\n");
        (void)snprintf(request, sizeof request, "{'verb': 'stage', 'generation': %d}", number);
        helper_lab_refused(l, request, "denied", "not allowed");
    }
}

static void
other_kinds_of_files_are_refused(void **state)
{
    struct helper_lab *l = *state;
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    char target[LAB_PATH_BYTES];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    for (int n = 1; n <= 6; n++) {
        helper_lab_put(l, n, "haproxy.cfg", GOOD);
        helper_lab_put(l, n, "map/a.map", "x y\n");
    }
    (void)snprintf(target, sizeof target, "%s", helper_lab_path(l, "state/secret"));
    assert_int_equal(file_write_at(AT_FDCWD, target, "s", 1, 0600, NULL), ERR_OK);

    assert_int_equal(symlink(target, helper_lab_path(l, "state/stage/1/map/b.map")), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 1}", "denied", "map/b.map");

    assert_int_equal(link(target, helper_lab_path(l, "state/stage/2/map/b.map")), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 2}", "denied", "second name");

    assert_int_equal(mkfifo(helper_lab_path(l, "state/stage/3/map/b.map"), 0600), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 3}", "denied", "regular");

    assert_int_equal(mkdir(helper_lab_path(l, "state/stage/4/map/b.map"), 0700), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 4}", "denied", "regular");

    assert_int_equal(symlink("/etc", helper_lab_path(l, "state/stage/5/crt")), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 5}", "not_found", "crt");

    (void)snprintf(
        sun.sun_path, sizeof sun.sun_path, "%s", helper_lab_path(l, "state/stage/6/map/b.map"));
    assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof sun), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 6}", "denied", "map/b.map");
    (void)close(fd);

    assert_int_equal(symlink("1", helper_lab_path(l, "state/stage/7")), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 7}", "not_found", "7");

    for (int n = 1; n <= 7; n++) {
        char number[16];

        (void)snprintf(number, sizeof number, "%d", n);
        no_trace_is_left_of(l, number);
    }
}

static void
files_of_somebody_else_are_refused(void **state)
{
    struct helper_lab *l = *state;

    helper_lab_put(l, 1, "haproxy.cfg", GOOD);
    l->context.uid++;
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 1}", "denied", "belongs to uid");
    no_trace_is_left_of(l, "1");
}

static void
hostile_content_is_refused_and_leaves_no_trace(void **state)
{
    struct helper_lab *l = *state;

    helper_lab_put(l, 1, "haproxy.cfg", GOOD "program x\n");
    helper_lab_refused(
        l, "{'verb': 'stage', 'generation': 1}", "denied", "line 3: \"program\"");
    no_trace_is_left_of(l, "1");
    helper_lab_put(l, 2, "haproxy.cfg", GOOD);
    helper_lab_put(l, 2, "crt-list/a.list", "/etc/x.pem\n");
    helper_lab_refused(
        l, "{'verb': 'stage', 'generation': 2}", "denied", "crt-list/a.list line 1");
    no_trace_is_left_of(l, "2");
}

static void
more_than_256_megabytes_are_refused(void **state)
{
    struct helper_lab *l = *state;

    helper_lab_put(l, 1, "haproxy.cfg", GOOD);
    helper_lab_put(l, 1, "map/a.map", "");
    assert_int_equal(
        truncate(helper_lab_path(l, "state/stage/1/map/a.map"), ((off_t)256 << 20) + 1), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 1}", "limit", "256 MiB");
    no_trace_is_left_of(l, "1");
}

static void
the_same_content_may_be_staged_again(void **state)
{
    struct helper_lab *l = *state;
    struct stat first;
    struct stat second;

    helper_lab_put(l, 1, "haproxy.cfg", GOOD);
    helper_lab_put(l, 1, "map/a.map", "a b\n");
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 1}");
    helper_lab_ok(l, "{'verb': 'install', 'generation': 1}");
    assert_int_equal(stat(helper_lab_path(l, "state/generation/1/map/a.map"), &first), 0);
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 1}");
    assert_int_equal(helper_lab_int(l, "exit_status"), 0);
    assert_int_equal(stat(helper_lab_path(l, "state/generation/1/map/a.map"), &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
}

static void
another_content_replaces_what_is_not_in_use(void **state)
{
    struct helper_lab *l = *state;

    helper_lab_put(l, 1, "haproxy.cfg", BAD);
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 1}");
    helper_lab_put(l, 1, "haproxy.cfg", GOOD);
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 1}");
    has_text(l, "1/haproxy.cfg", GOOD);
    is_marked(l, 1, 0);
    helper_lab_put(l, 1, "map/a.map", "a b\n");
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 1}");
    has_text(l, "1/map/a.map", "a b\n");
    /* What is no generation of ours, by mischance. */
    assert_int_equal(unlink(helper_lab_path(l, "state/generation/1/haproxy.cfg")), 0);
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 1}");
    has_text(l, "1/haproxy.cfg", GOOD);
}

static void
what_is_in_use_is_never_overwritten(void **state)
{
    static const char *const verbs[] = {"install", "settle"};
    struct helper_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        char request[64];
        int n = (int)i + 1;

        helper_lab_put(l, n, "haproxy.cfg", GOOD);
        (void)snprintf(request, sizeof request, "{'verb': 'stage', 'generation': %d}", n);
        helper_lab_ok(l, request);
        (void)snprintf(
            request, sizeof request, "{'verb': '%s', 'generation': %d}", verbs[i], n);
        helper_lab_ok(l, request);
        helper_lab_put(l, n, "haproxy.cfg", GOOD "# other\n");
        (void)snprintf(request, sizeof request, "{'verb': 'stage', 'generation': %d}", n);
        helper_lab_refused(l, request, "conflict", "in use");
    }
    has_text(l, "1/haproxy.cfg", GOOD);
    has_text(l, "2/haproxy.cfg", GOOD);
}

static void
only_checked_generations_are_installed(void **state)
{
    struct helper_lab *l = *state;

    helper_lab_refused(l, "{'verb': 'install', 'generation': 1}", "not_found", "generation 1");
    helper_lab_refused(l, "{'verb': 'settle', 'generation': 1}", "not_found", "generation 1");
    assert_int_equal(mkdir(helper_lab_path(l, "state/generation/1"), 0750), 0);
    helper_lab_refused(l, "{'verb': 'install', 'generation': 1}", "conflict", "not checked");
    assert_false(exists(l, "current"));
    assert_false(exists(l, "good"));
}

static void
links_name_the_generation(void **state)
{
    struct helper_lab *l = *state;
    char target[16] = "";

    helper_lab_put(l, 3, "haproxy.cfg", GOOD);
    helper_lab_ok(l, "{'verb': 'stage', 'generation': 3}");
    helper_lab_ok(l, "{'verb': 'install', 'generation': 3}");
    assert_int_equal(
        readlink(helper_lab_path(l, "state/generation/current"), target, sizeof target), 1);
    assert_memory_equal(target, "3", 1);
    assert_false(exists(l, "good"));
    helper_lab_ok(l, "{'verb': 'settle', 'generation': 3}");
    assert_true(exists(l, "good"));
}

static void
stage(struct helper_lab *l, int n)
{
    char request[64];

    helper_lab_put(l, n, "haproxy.cfg", GOOD);
    (void)snprintf(request, sizeof request, "{'verb': 'stage', 'generation': %d}", n);
    helper_lab_ok(l, request);
}

static void
a_link_that_names_no_generation_is_corrupt(void **state)
{
    struct helper_lab *l = *state;

    helper_lab_put(l, 1, "haproxy.cfg", GOOD);
    assert_int_equal(symlink("/etc", helper_lab_path(l, "state/generation/current")), 0);
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 1}", "corrupt", "current");
    helper_lab_refused(l, "{'verb': 'status'}", "corrupt", "current");
}

/* A file or link that is written anew is a temporary one first. */
static void
opening_removes_what_a_kill_left_of_a_write(void **state)
{
    struct helper_lab *l = *state;
    struct error e;

    if (getuid() != 0) {
        return; /* as below */
    }
    stage(l, 9);
    assert_int_equal(
        file_write_at(
            AT_FDCWD, helper_lab_path(l, "state/generation/9/.tmp-0123"), "0", 1, 0600, NULL),
        ERR_OK);
    assert_int_equal(symlink("9", helper_lab_path(l, "state/generation/.tmp-0123")), 0);
    helper_context_close(&l->context);
    assert_int_equal(helper_context_open(&l->context, &e), ERR_OK);
    assert_false(exists(l, ".tmp-0123"));
    assert_false(exists(l, "9/.tmp-0123"));
    stage(l, 9);
    helper_lab_ok(l, "{'verb': 'install', 'generation': 9}");
}

static void
opening_removes_what_an_interrupted_stage_left(void **state)
{
    struct helper_lab *l = *state;
    struct error e;

    if (getuid() != 0) {
        return; /* generation must be root's, and is */
    }
    assert_int_equal(mkdir(helper_lab_path(l, "state/generation/.9.tmp"), 0750), 0);
    assert_int_equal(mkdir(helper_lab_path(l, "state/generation/9"), 0750), 0);
    helper_context_close(&l->context);
    assert_int_equal(helper_context_open(&l->context, &e), ERR_OK);
    assert_false(exists(l, ".9.tmp"));
    assert_true(exists(l, "9"));
    helper_context_close(&l->context);
    assert_int_equal(chown(helper_lab_path(l, "state/generation"), 1, 1), 0);
    assert_int_equal(helper_context_open(&l->context, &e), ERR_DENIED);
    assert_non_null(strstr(e.msg, "belongs to uid 1"));
}

/* A file beside the generations that says what the checker does, see main(). */
static void
tell_checker(struct helper_lab *l, const char *name)
{
    assert_int_equal(
        file_write_at(AT_FDCWD, helper_lab_path(l, "state/%s", name), "", 0, 0600, NULL),
        ERR_OK);
}

static void
let_checker_be(struct helper_lab *l, const char *name)
{
    assert_int_equal(unlink(helper_lab_path(l, "state/%s", name)), 0);
}

static void
what_is_in_use_stays_installable_whatever_the_checker_says_later(void **state)
{
    struct helper_lab *l = *state;

    stage(l, 1);
    stage(l, 2);
    stage(l, 3);
    helper_lab_ok(l, "{'verb': 'install', 'generation': 1}");
    helper_lab_ok(l, "{'verb': 'settle', 'generation': 2}");
    tell_checker(l, "fail");
    for (int n = 1; n <= 3; n++) {
        stage(l, n);
        assert_int_equal(helper_lab_int(l, "exit_status"), 4);
    }
    /* And no longer by whom it was accepted. */
    has_text(l, "1/.checked", "0\n");
    has_text(l, "2/.checked", "0\n");
    is_marked(l, 3, 4);
    helper_lab_ok(l, "{'verb': 'install', 'generation': 2}");
    helper_lab_ok(l, "{'verb': 'settle', 'generation': 1}");
    helper_lab_refused(l, "{'verb': 'install', 'generation': 3}", "conflict", "refused");
    let_checker_be(l, "fail");
    stage(l, 3);
    helper_lab_ok(l, "{'verb': 'install', 'generation': 3}");
    /* What was never accepted does not become so by being in use. */
    assert_int_equal(unlink(helper_lab_path(l, "state/generation/3/.checked")), 0);
    tell_checker(l, "fail");
    stage(l, 3);
    helper_lab_refused(l, "{'verb': 'install', 'generation': 3}", "conflict", "not checked");
}

/* As when memory is short. */
static void
a_checker_that_is_killed_decides_nothing(void **state)
{
    struct helper_lab *l = *state;

    stage(l, 1);
    helper_lab_ok(l, "{'verb': 'install', 'generation': 1}");
    stage(l, 2);
    tell_checker(l, "kill");
    for (int n = 1; n <= 3; n++) {
        char request[64];

        helper_lab_put(l, n, "haproxy.cfg", GOOD);
        (void)snprintf(request, sizeof request, "{'verb': 'stage', 'generation': %d}", n);
        helper_lab_refused(l, request, "unavailable", "was ended by signal 9");
    }
    helper_lab_ok(l, "{'verb': 'install', 'generation': 2}");
    helper_lab_ok(l, "{'verb': 'install', 'generation': 1}");
    helper_lab_refused(l, "{'verb': 'install', 'generation': 3}", "conflict", "not checked");
}

static bool
is_told(const char *path, const char *what)
{
    const char *end = strstr(path, "/generation/");
    char name[LAB_PATH_BYTES];

    (void)snprintf(
        name, sizeof name, "%.*s/%s", end != NULL ? (int)(end - path) : 0, path, what);
    return file_exists_at(AT_FDCWD, name);
}

/* The checker: haproxy -c -f FILE. */
static int
checker(const char *path)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (is_told(path, "kill")) {
        (void)raise(SIGKILL);
    }
    if (is_told(path, "fail")) {
        return 4;
    }
    buf_init(&text, (size_t)1 << 20);
    if (file_read_at(AT_FDCWD, path, &text, NULL) != ERR_OK) {
        return 2;
    }
    if (strstr(buf_str(&text), "SLOW") != NULL) {
        (void)pause();
    }
    if (strstr(buf_str(&text), "BAD") != NULL) {
        (void)fputs("bad \xff\x01 line\n", stderr);
        return 3;
    }
    (void)printf("checked %s\n", path);
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        HELPER_LAB_TEST(a_generation_is_copied_and_checked),
        HELPER_LAB_TEST(what_the_checker_says_is_told),
        HELPER_LAB_TEST(a_checker_that_hangs_is_ended),
        HELPER_LAB_TEST(nothing_staged_is_not_found),
        HELPER_LAB_TEST(other_names_are_refused),
        HELPER_LAB_TEST(other_kinds_of_files_are_refused),
        HELPER_LAB_TEST(files_of_somebody_else_are_refused),
        HELPER_LAB_TEST(hostile_content_is_refused_and_leaves_no_trace),
        HELPER_LAB_TEST(more_than_256_megabytes_are_refused),
        HELPER_LAB_TEST(the_same_content_may_be_staged_again),
        HELPER_LAB_TEST(another_content_replaces_what_is_not_in_use),
        HELPER_LAB_TEST(what_is_in_use_is_never_overwritten),
        HELPER_LAB_TEST(what_is_in_use_stays_installable_whatever_the_checker_says_later),
        HELPER_LAB_TEST(a_checker_that_is_killed_decides_nothing),
        HELPER_LAB_TEST(only_checked_generations_are_installed),
        HELPER_LAB_TEST(links_name_the_generation),
        HELPER_LAB_TEST(a_link_that_names_no_generation_is_corrupt),
        HELPER_LAB_TEST(opening_removes_what_a_kill_left_of_a_write),
        HELPER_LAB_TEST(opening_removes_what_an_interrupted_stage_left),
    };

    if (argc == 4 && strcmp(argv[1], "-c") == 0) {
        return checker(argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

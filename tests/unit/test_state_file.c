/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/running.h"
#include "haproxy/state_file.h"

#define STATES "1\n3 b 1 s 10.0.0.1 0 0 1 1 9 8 2 0 6 0 0 0 - 80 -\n"

struct place {
    char dir[64];
    int fd;
};

static int
set_up(void **state)
{
    static struct place p;
    struct error e;

    (void)snprintf(p.dir, sizeof p.dir, "/tmp/lockstep-test-state-XXXXXX");
    assert_non_null(mkdtemp(p.dir));
    assert_int_equal(file_open_dir_at(AT_FDCWD, p.dir, &p.fd, &e), ERR_OK);
    *state = &p;
    return 0;
}

static int
tear_down(void **state)
{
    struct place *p = *state;
    struct error e;

    fd_cleanup(&p->fd);
    return file_remove_tree_at(AT_FDCWD, p->dir, &e) == ERR_OK ? 0 : 1;
}

static void
put(const struct place *p, const char *text)
{
    struct error e;

    assert_int_equal(
        file_write_at(p->fd, SERVER_STATE_FILE, text, strlen(text), 0600, &e), ERR_OK);
}

static void
is_empty(const struct place *p)
{
    CLEANUP(buf_fini) struct buf text;
    struct error e;

    buf_init(&text, 4096);
    assert_int_equal(file_read_at(p->fd, SERVER_STATE_FILE, &text, &e), ERR_OK);
    assert_string_equal(buf_str(&text), SERVER_STATE_EMPTY);
}

static void
it_is_made_and_emptied(void **state)
{
    const struct place *p = *state;

    state_file_clear(p->fd);
    is_empty(p);
    put(p, STATES);
    state_file_clear(p->fd);
    is_empty(p);
    put(p, "");
    state_file_clear(p->fd);
    is_empty(p);
}

/* Stands for a full disk: there are descriptors for the file, but none for a second one. */
static void
it_is_emptied_where_no_other_can_be_made(void **state)
{
    const struct place *p = *state;
    struct rlimit before;
    struct rlimit one;
    int next = dup(p->fd);

    put(p, STATES);
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    one = before;
    one.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &one), 0);
    state_file_clear(p->fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    is_empty(p);
}

/* What is none of ours stays as it is. */
static void
a_link_is_replaced_and_not_followed(void **state)
{
    const struct place *p = *state;
    struct error e;
    struct stat st;

    assert_int_equal(file_write_at(p->fd, "other", STATES, 10, 0600, &e), ERR_OK);
    assert_int_equal(symlinkat("other", p->fd, SERVER_STATE_FILE), 0);
    state_file_clear(p->fd);
    assert_int_equal(fstatat(p->fd, SERVER_STATE_FILE, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(fstatat(p->fd, "other", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_size, 10);
}

#define STATE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STATE_TEST(it_is_made_and_emptied),
        STATE_TEST(it_is_emptied_where_no_other_can_be_made),
        STATE_TEST(a_link_is_replaced_and_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

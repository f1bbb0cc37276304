/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "run/child.h"
#include "run/commands.h"
#include "run/output.h"
#include "run/record.h"
#include "tests/support/self.h"

struct place {
    char path[64];
    int fd;
};

static int
set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    if (p == NULL) {
        return 1;
    }
    (void)snprintf(p->path, sizeof p->path, "/tmp/lockstep-test-run-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    assert_int_equal(file_open_dir_at(AT_FDCWD, p->path, &p->fd, NULL), ERR_OK);
    *state = p;
    return 0;
}

static int
tear_down(void **state)
{
    struct place *p = *state;

    fd_cleanup(&p->fd);
    assert_int_equal(file_remove_tree_at(AT_FDCWD, p->path, NULL), ERR_OK);
    free(p);
    return 0;
}

/* ---- record ----------------------------------------------------------------------------- */

static void
a_record_is_read_as_it_was_written(void **state)
{
    struct place *p = *state;
    const struct record r = {
        .haproxy = {11, 12},
        .helper = {13, 14},
        .daemon = {0, 0},
        .on_good = true,
        .generation = 15,
    };
    struct record found = {.generation = 99};
    struct stat st;

    assert_int_equal(record_read(p->fd, &found, NULL), ERR_OK);
    assert_int_equal(found.generation + found.haproxy.pid, 0);
    assert_int_equal(record_write(p->fd, &r, NULL), ERR_OK);
    assert_int_equal(record_read(p->fd, &found, NULL), ERR_OK);
    assert_int_equal(found.haproxy.pid, 11);
    assert_int_equal(found.haproxy.ticks, 12);
    assert_int_equal(found.helper.pid, 13);
    assert_int_equal(found.daemon.pid, 0);
    assert_true(found.on_good);
    assert_int_equal(found.generation, 15);
    assert_int_equal(fstatat(p->fd, RECORD_NAME, &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void
a_record_of_another_boot_is_empty(void **state)
{
    static const char text[] = "{\"boot\":\"x\",\"haproxy\":{\"pid\":1,\"ticks\":1}}";
    struct place *p = *state;
    struct record found = {.generation = 99};

    assert_int_equal(
        file_write_at(p->fd, RECORD_NAME, text, sizeof text - 1, 0600, NULL), ERR_OK);
    assert_int_equal(record_read(p->fd, &found, NULL), ERR_OK);
    assert_int_equal(found.haproxy.pid + found.generation, 0);
}

static void
a_damaged_record_is_an_error(void **state)
{
    struct place *p = *state;
    CLEANUP(buf_fini) struct buf boot;
    struct record found = {.generation = 99};
    char text[4][128];

    buf_init(&boot, 64);
    assert_int_equal(
        file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &boot, NULL), ERR_OK);
    boot.data[boot.len - 1] = '\0';
    (void)snprintf(text[0], sizeof text[0], "{");
    (void)snprintf(text[1], sizeof text[1], "[]");
    (void)snprintf(text[2], sizeof text[2], "{\"boot\":\"%s\"}", boot.data);
    (void)snprintf(
        text[3], sizeof text[3], "{\"boot\":\"%s\",\"haproxy\":{\"pid\":-1,\"ticks\":0}}",
        boot.data);
    for (size_t i = 0; i < ARRAY_LEN(text); i++) {
        assert_int_equal(
            file_write_at(p->fd, RECORD_NAME, text[i], strlen(text[i]), 0600, NULL), ERR_OK);
        assert_int_not_equal(record_read(p->fd, &found, NULL), ERR_OK);
        assert_int_equal(found.generation, 99);
    }
}

/* ---- output ----------------------------------------------------------------------------- */

static void
print(const struct output *o, const char *text)
{
    assert_int_equal(write(o->writer_fd, text, strlen(text)), strlen(text));
}

static void
output_is_kept_and_given_from_a_position_on(void **state)
{
    struct place *p = *state;
    CLEANUP(buf_fini) struct buf text;
    struct output o;
    int64_t middle;

    buf_init(&text, OUTPUT_KEPT_BYTES);
    assert_int_equal(output_open(&o, p->fd, NULL), ERR_OK);
    output_read(&o);
    assert_int_equal(o.end, 0);
    print(&o, "one\ntw");
    output_read(&o);
    middle = o.end;
    print(&o, "o\n\x01\xff\n");
    output_read(&o);
    output_since(&o, 0, &text);
    assert_string_equal(text.data, "one\ntwo\n??\n");
    buf_reset(&text);
    output_since(&o, middle, &text);
    assert_string_equal(text.data, "o\n??\n");
    buf_reset(&text);
    output_since(&o, INT64_MAX, &text);
    assert_string_equal(buf_str(&text), "");
    output_close(&o);
}

static void
only_the_last_of_much_output_is_kept(void **state)
{
    struct place *p = *state;
    CLEANUP(buf_fini) struct buf text;
    struct output o;
    char line[1024];

    buf_init(&text, OUTPUT_KEPT_BYTES);
    memset(line, 'x', sizeof line);
    assert_int_equal(output_open(&o, p->fd, NULL), ERR_OK);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(write(o.writer_fd, line, sizeof line), sizeof line);
        output_read(&o);
    }
    print(&o, "\nlast\n");
    output_read(&o);
    assert_int_equal(o.end, 200 * 1024 + 6);
    output_since(&o, 0, &text);
    assert_int_equal(text.len, OUTPUT_KEPT_BYTES);
    assert_string_equal(text.data + text.len - 6, "\nlast\n");
    output_close(&o);
}

static void
a_writer_never_waits_for_a_reader(void **state)
{
    struct place *p = *state;
    struct output o;
    char block[4096];
    ssize_t n;

    memset(block, '\n', sizeof block);
    assert_int_equal(output_open(&o, p->fd, NULL), ERR_OK);
    do {
        n = write(o.writer_fd, block, sizeof block);
    } while (n > 0);
    assert_int_equal(n, -1);
    output_close(&o);
}

static void
something_else_in_place_of_the_fifo_is_refused(void **state)
{
    struct place *p = *state;
    struct output o;

    assert_int_equal(file_write_at(p->fd, OUTPUT_NAME, "", 0, 0600, NULL), ERR_OK);
    assert_int_equal(output_open(&o, p->fd, NULL), ERR_DENIED);
}

/* ---- child ------------------------------------------------------------------------------ */

static struct tunables
short_times(void)
{
    struct tunables t;

    tunables_default(&t);
    t.restart_first_ms = 100;
    t.restart_max_ms = 350;
    t.stop_ms = 200;
    return t;
}

static void
delays_double_up_to_the_limit_and_begin_anew_when_asked(void **state)
{
    static const int64_t delays[] = {100, 200, 350, 350};
    struct tunables t = short_times();
    struct child c;

    (void)state;
    child_init(&c, "x", &t);
    assert_int_equal(child_deadline_ms(&c), CHILD_NEVER);
    assert_false(child_is_due(&c));
    child_due_now(&c);
    assert_true(child_is_due(&c));
    for (size_t i = 0; i < ARRAY_LEN(delays); i++) {
        int64_t now_ms = clock_mono_ms(&clock_system);

        c.start_ms = now_ms;
        (void)child_ended(&c);
        assert_in_range(child_deadline_ms(&c) - now_ms, delays[i], delays[i] + 50);
        assert_false(child_is_due(&c));
    }
    child_due_now(&c);
    assert_true(child_is_due(&c));
    assert_int_equal(c.delay_ms, 100);
    /* Who lived long is started again soon. */
    c.delay_ms = 350;
    c.start_ms = clock_mono_ms(&clock_system) - 10000;
    (void)child_ended(&c);
    assert_in_range(child_deadline_ms(&c) - clock_mono_ms(&clock_system), 50, 100);
    c.wanted = false;
    assert_int_equal(child_deadline_ms(&c), CHILD_NEVER);
}

static void
wait_for_end(pid_t pid, int *ret_status)
{
    assert_int_equal(waitpid(pid, ret_status, 0), pid);
}

static void
a_child_is_started_with_its_output_and_ended(void **state)
{
    struct place *p = *state;
    const char *argv[] = {self_path(), "say", NULL};
    struct tunables t = short_times();
    CLEANUP(buf_fini) struct buf text;
    struct output o;
    struct child c;
    int status;

    buf_init(&text, 1000);
    assert_int_equal(output_open(&o, p->fd, NULL), ERR_OK);
    child_init(&c, "x", &t);
    assert_int_equal(child_start(&c, argv, o.writer_fd, NULL), ERR_OK);
    for (int i = 0; i < 500 && o.end < 4; i++) {
        (void)poll(NULL, 0, 10);
        output_read(&o);
    }
    output_since(&o, 0, &text);
    assert_string_equal(text.data, "said\n");
    assert_false(child_is_ending(&c));
    child_end(&c);
    assert_true(child_is_ending(&c));
    wait_for_end(c.pid, &status);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    (void)child_ended(&c);
    assert_int_equal(c.pid, 0);
    output_close(&o);
}

static void
a_child_that_does_not_listen_is_killed(void **state)
{
    const char *argv[] = {self_path(), "stubborn", NULL};
    struct tunables t = short_times();
    struct child c;
    int64_t kill_ms;
    int status;

    (void)state;
    child_init(&c, "x", &t);
    assert_int_equal(child_start(&c, argv, -1, NULL), ERR_OK);
    assert_int_equal(kill(c.pid, SIGSTOP), 0);
    kill_ms = c.kill_ms = clock_mono_ms(&clock_system) + t.stop_ms;
    child_tick(&c);
    while (clock_mono_ms(&clock_system) < kill_ms + 50) {
        (void)poll(NULL, 0, 20);
        child_tick(&c);
    }
    wait_for_end(c.pid, &status);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
a_program_that_cannot_be_started_is_tried_again_later(void **state)
{
    const char *argv[] = {"/no/such/program", NULL};
    struct tunables t = short_times();
    struct child c;

    (void)state;
    child_init(&c, "x", &t);
    child_due_now(&c);
    if (child_start(&c, argv, -1, NULL) == ERR_OK) {
        /* Under valgrind, whose vfork is a fork, posix_spawn cannot tell. */
        wait_for_end(c.pid, NULL);
        (void)child_ended(&c);
    }
    assert_int_equal(c.pid, 0);
    assert_false(child_is_due(&c));
    assert_true(child_deadline_ms(&c) != CHILD_NEVER);
}

/* valgrind 3.19 does not know the call. */
static bool
has_pidfd(void)
{
    CLEANUP(fd_cleanup) int fd = pidfd_open(getpid(), 0);

    return fd >= 0;
}

static void
only_the_same_process_is_adopted(void **state)
{
    const char *argv[] = {self_path(), "say", NULL};
    struct tunables t = short_times();
    struct child first;
    struct child second;
    int status;

    (void)state;
    child_init(&first, "x", &t);
    child_init(&second, "x", &t);
    assert_int_equal(child_start(&first, argv, -1, NULL), ERR_OK);
    assert_int_equal(child_adopt(&second, first.pid, first.ticks + 1, NULL), ERR_NOT_FOUND);
    assert_int_equal(second.pid, 0);
    if (has_pidfd()) {
        assert_int_equal(child_adopt(&second, first.pid, first.ticks, NULL), ERR_OK);
        assert_int_equal(second.pid, first.pid);
        assert_true(second.pidfd >= 0);
        child_end(&second);
    } else {
        child_end(&first);
    }
    wait_for_end(first.pid, &status);
    assert_int_equal(child_adopt(&second, first.pid, 0, NULL), ERR_NOT_FOUND);
    child_fini(&second);
}

/* ---- commands --------------------------------------------------------------------------- */

static const char *
joined(const struct commands_argv *a, struct buf *out)
{
    buf_reset(out);
    for (size_t i = 0; a->items[i] != NULL; i++) {
        buf_printf(out, "%s%s", i > 0 ? " " : "", a->items[i]);
    }
    return buf_str(out);
}

static void
commands_say_what_each_program_may_do(void **state)
{
    CLEANUP(buf_fini) struct buf text;
    struct run_options o = {
        .state_dir = "/s",
        .run_dir = "/r",
        .haproxy = "/h",
        .listen = "[::]:8443",
        .tunables_path = "/t",
        .daemon_args = {"--crash", "x"},
        .daemon_arg_count = 2,
        .uid = 5,
        .gid = 6,
        .group_name = "g",
        .helper_path = "/p/lockstep-helper",
        .daemon_path = "/p/lockstepd",
    };
    struct commands_argv argv;

    (void)state;
    buf_init(&text, 4096);
    commands_helper(&o, &argv);
    assert_string_equal(
        joined(&argv, &text),
        "/usr/bin/setpriv --regid=6 --clear-groups --no-new-privs --inh-caps=-all "
        "--bounding-set=-all,+dac_read_search,+net_bind_service,+sys_ptrace "
        "/p/lockstep-helper --state-dir /s --run-dir /r --haproxy /h --tunables /t "
        "--uid 5 --gid 6");
    commands_daemon(&o, &argv);
    assert_string_equal(
        joined(&argv, &text),
        "/usr/bin/setpriv --reuid=5 --regid=6 --clear-groups --no-new-privs --inh-caps=-all "
        "--bounding-set=-all /p/lockstepd --state-dir /s --run-dir /r --socket-group g "
        "--listen [::]:8443 --tunables /t --crash x");
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(a_record_is_read_as_it_was_written),
        RUN_TEST(a_record_of_another_boot_is_empty),
        RUN_TEST(a_damaged_record_is_an_error),
        RUN_TEST(output_is_kept_and_given_from_a_position_on),
        RUN_TEST(only_the_last_of_much_output_is_kept),
        RUN_TEST(a_writer_never_waits_for_a_reader),
        RUN_TEST(something_else_in_place_of_the_fifo_is_refused),
        RUN_TEST(delays_double_up_to_the_limit_and_begin_anew_when_asked),
        RUN_TEST(a_child_is_started_with_its_output_and_ended),
        RUN_TEST(a_child_that_does_not_listen_is_killed),
        RUN_TEST(a_program_that_cannot_be_started_is_tried_again_later),
        RUN_TEST(only_the_same_process_is_adopted),
        RUN_TEST(commands_say_what_each_program_may_do),
    };

    if (argc > 1 && strcmp(argv[1], "say") == 0) {
        assert_int_equal(write(STDERR_FILENO, "said\n", 5), 5);
        return pause();
    }
    if (argc > 1 && strcmp(argv[1], "stubborn") == 0) {
        return pause();
    }
    log_open("test", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

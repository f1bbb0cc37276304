/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "haproxy/master.h"
#include "tests/support/dialogue.h"

#define LONG_MS  20000
#define SHORT_MS 400
#define HEADING                                                                                \
    "#<PID>          <type>          <reloads>       <uptime>        <version>      \n"

static char folder[] = "/tmp/lockstep-test-master-XXXXXX";
static char master_path[64];
static char admin_path[64];

/* ---- show proc ------------------------------------------------------------------------- */

/* 2.6.12 after a failed reload, a good one and with a connection that did not end. */
static const char recorded_2_6[] =
    HEADING "28498           master          4 [failed: 1]   1d02h00m12s     2.6.12-1+deb12u4\n"
            "# workers\n"
            "28633           worker          1               0d00h01m01s     2.6.12-1+deb12u4\n"
            "# old workers\n"
            "28501           worker          3               0d01h00m02s     2.6.12-1+deb12u4\n"
            "28401           worker          4               1d00h00m00s     2.6.12-1+deb12u4\n"
            "# programs\n"
            "\n";

/* 3.0.11 */
static const char recorded_3_0[] =
    HEADING "22006           master          4 [failed: 0]   0d00h00m05s     3.0.11-1+deb13u4\n"
            "# workers\n"
            "22469           worker          0               0d00h00m01s     3.0.11-1+deb13u4\n"
            "# old workers\n"
            "22096           worker          3               0d00h00m04s     3.0.11-1+deb13u4\n"
            "# programs\n"
            "\n";

static const char *
fixed(void *ctx, const char *command)
{
    assert_string_equal(command, "show proc\n");
    return ctx;
}

static err_t
show(const char *text, struct master_state *ret, struct error *e)
{
    union {
        const char *in;
        void *out;
    } ctx = {.in = text};

    struct dialogue d = {.answer = fixed, .ctx = ctx.out};
    err_t code;

    dialogue_open(&d, master_path);
    code = master_show(master_path, LONG_MS, ret, e);
    dialogue_close(&d);
    return code;
}

static void
processes_of_2_6_are_read(void **state)
{
    struct master_state st;

    (void)state;
    assert_int_equal(show(recorded_2_6, &st, NULL), ERR_OK);
    assert_int_equal(st.master, 28498);
    assert_int_equal(st.reloads, 4);
    assert_int_equal(st.failed_reloads, 1);
    assert_int_equal(st.worker.pid, 28633);
    assert_int_equal(st.worker.reloads, 1);
    assert_int_equal(st.worker.uptime_s, 61);
    assert_int_equal(st.old_count, 2);
    assert_int_equal(st.old[0].pid, 28501);
    assert_int_equal(st.old[1].uptime_s, 86400);
}

static void
processes_of_3_0_are_read(void **state)
{
    struct master_state st;

    (void)state;
    assert_int_equal(show(recorded_3_0, &st, NULL), ERR_OK);
    assert_int_equal(st.master, 22006);
    assert_int_equal(st.failed_reloads, 0);
    assert_int_equal(st.worker.pid, 22469);
    assert_int_equal(st.old_count, 1);
    assert_int_equal(st.old[0].pid, 22096);
}

static void
programs_and_unknown_sections_are_passed_over(void **state)
{
    struct master_state st;

    (void)state;
    assert_int_equal(
        show(
            "1 master 0 [failed: 0] 0d00h00m01s 2.6\n# programs\nwhat ever\n# else\n12 x\n",
            &st, NULL),
        ERR_OK);
    assert_int_equal(st.worker.pid, 0);
    assert_int_equal(
        show("1 master 0 0d00h00m01s 2.6\n# workers\n3 thing 0 0d00h00m01s 2.6\n", &st, NULL),
        ERR_OK);
    assert_int_equal(st.worker.pid, 0);
}

static void
more_old_workers_than_fit_are_counted(void **state)
{
    CLEANUP(buf_fini) struct buf text;
    struct master_state st;

    (void)state;
    buf_init(&text, 1 << 20);
    buf_puts(&text, "1 master 0 [failed: 0] 0d00h00m01s 2.6\n# old workers\n");
    for (int i = 0; i < 100; i++) {
        buf_printf(&text, "%d worker 1 0d00h00m01s 2.6\n", 100 + i);
    }
    assert_int_equal(show(text.data, &st, NULL), ERR_OK);
    assert_int_equal(st.old_count, 100);
    assert_int_equal(st.old[MASTER_OLD_WORKERS_MAX - 1].pid, 163);
}

static void
unknown_forms_are_invalid(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        HEADING,
        "Unknown command\n",
        "x master 0 [failed: 0] 0d00h00m01s 2.6\n",
        "0 master 0 [failed: 0] 0d00h00m01s 2.6\n",
        "1 master x [failed: 0] 0d00h00m01s 2.6\n",
        "1 master 0 [failed: x] 0d00h00m01s 2.6\n",
        "1 master 0 [failed: 0 0d00h00m01s 2.6\n",
        "1 master 0 [failed:\n",
        "1 master 0 [failed: 0] 0h00m01s 2.6\n",
        "1 master 0 [failed: 0] 0d00h00m01sx 2.6\n",
        "1 master 0 [failed: 0]\n",
        "1 master 0\n",
        "1 master\n",
        "1\n",
        "2 worker 0 0d00h00m01s 2.6\n",
        "1 master 0 [failed: 0] 0d00h00m01s 2.6", /* cut */
    };
    struct master_state st = {.master = 77};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct error e;

        assert_int_equal(show(texts[i], &st, &e), ERR_INVALID);
        assert_non_null(strstr(e.msg, "show proc"));
        assert_int_equal(st.master, 77);
    }
}

static void
a_flood_is_invalid(void **state)
{
    CLEANUP(buf_fini) struct buf text;
    struct master_state st;

    (void)state;
    buf_init(&text, (size_t)6 << 20);
    while (text.len < (size_t)5 << 20) {
        buf_puts(&text, "1 worker 1 0d00h00m01s 2.6\n");
    }
    assert_int_equal(show(text.data, &st, NULL), ERR_INVALID);
}

static void
nobody_there_is_unavailable(void **state)
{
    struct master_state st;
    bool loaded;

    (void)state;
    (void)unlink(master_path);
    assert_int_equal(master_show(master_path, LONG_MS, &st, NULL), ERR_UNAVAILABLE);
    assert_int_equal(
        master_reload(master_path, admin_path, LONG_MS, &loaded, &st, NULL), ERR_UNAVAILABLE);
}

/* ---- reload ---------------------------------------------------------------------------- */

/* A master that plays a reload. The test's own pid stands for the master's. */
struct play {
    pid_t master;
    int lost;         /* so many "reload" leave no trace */
    int gone;         /* then the master answers nothing for so many looks */
    int fails;        /* the reload fails */
    int no_worker;    /* the new worker never appears */
    int other_master; /* another master answers after the reload */
    int admin_late;   /* so long the old worker answers on the admin socket */
    int before_failed;
    atomic_int reloads_seen;
    atomic_int done;
    char text[512];
    char info[128];
};

static const char *
play_show(struct play *p)
{
    int done = p->done;
    int failed = p->before_failed;
    int worker = 100;

    if (done && p->gone > 0) {
        p->gone--;
        return NULL;
    }
    if (done) {
        failed = p->fails ? failed + 1 : 0;
        worker = p->fails || p->no_worker ? 100 : 101;
    }
    (void)snprintf(
        p->text, sizeof p->text,
        HEADING "%d master %d [failed: %d] 0d00h00m05s 2.6\n# workers\n"
                "%d worker 0 0d00h00m01s 2.6\n# programs\n\n",
        done && p->other_master ? p->master + 1 : p->master, done ? 8 : 7, failed, worker);
    return p->text;
}

static const char *
play_master(void *ctx, const char *command)
{
    struct play *p = ctx;

    if (strcmp(command, "reload\n") == 0) {
        p->reloads_seen++;
        if (p->lost > 0) {
            p->lost--;
        } else {
            p->done = 1;
        }
        return NULL;
    }
    return play_show(p);
}

static const char *
play_admin(void *ctx, const char *command)
{
    struct play *p = ctx;
    int pid = 101;

    (void)command;
    if (p->admin_late > 0) {
        p->admin_late--;
        pid = 100;
    }
    (void)snprintf(p->info, sizeof p->info, "Pid: %d\ndescription: lockstep x\n", pid);
    return p->info;
}

static err_t
reload(struct play *p, int64_t deadline_ms, bool *ret_loaded, struct master_state *ret)
{
    struct dialogue master = {.answer = play_master, .ctx = p};
    struct dialogue admin = {.answer = play_admin, .ctx = p};
    err_t code;

    if (p->master == 0) {
        p->master = getpid();
    }
    dialogue_open(&master, master_path);
    dialogue_open(&admin, admin_path);
    code = master_reload(master_path, admin_path, deadline_ms, ret_loaded, ret, NULL);
    dialogue_close(&master);
    dialogue_close(&admin);
    return code;
}

static void
a_reload_is_done_when_the_new_worker_answers(void **state)
{
    struct play p = {.gone = 5, .admin_late = 3, .before_failed = 2};
    struct master_state st = {.master = 0};
    bool loaded = false;

    (void)state;
    assert_int_equal(reload(&p, LONG_MS, &loaded, &st), ERR_OK);
    assert_true(loaded);
    assert_int_equal(st.worker.pid, 101);
    assert_int_equal(p.reloads_seen, 1);
    assert_int_equal(p.admin_late, 0);
}

static void
a_failed_reload_is_told_as_such(void **state)
{
    struct play p = {.fails = 1, .before_failed = 2};
    struct master_state st = {.master = 0};
    bool loaded = true;

    (void)state;
    assert_int_equal(reload(&p, LONG_MS, &loaded, &st), ERR_OK);
    assert_false(loaded);
    assert_int_equal(st.failed_reloads, 3);
    assert_int_equal(st.worker.pid, 100);
}

static void
a_lost_reload_is_sent_once_more_after_a_quiet_second(void **state)
{
    struct play p = {.lost = 1};
    struct master_state st;
    bool loaded = false;
    int64_t start_ms = clock_mono_ms(&clock_system);

    (void)state;
    assert_int_equal(reload(&p, LONG_MS, &loaded, &st), ERR_OK);
    assert_true(loaded);
    assert_int_equal(p.reloads_seen, 2);
    assert_true(clock_mono_ms(&clock_system) - start_ms >= 1000);
}

static void
a_reload_that_stays_lost_ends_at_the_deadline(void **state)
{
    struct play p = {.lost = 5};
    struct master_state st = {.master = 77};
    bool loaded = true;

    (void)state;
    assert_int_equal(reload(&p, 2500, &loaded, &st), ERR_TIMEOUT);
    assert_true(loaded);
    assert_int_equal(st.master, 77);
    assert_int_equal(p.reloads_seen, 2);
}

static void
a_worker_that_never_comes_ends_at_the_deadline(void **state)
{
    struct play p = {.no_worker = 1};
    struct play old = {.admin_late = 1000};
    struct master_state st;
    bool loaded;

    (void)state;
    assert_int_equal(reload(&p, SHORT_MS, &loaded, &st), ERR_TIMEOUT);
    assert_int_equal(reload(&old, SHORT_MS, &loaded, &st), ERR_TIMEOUT);
}

static void
a_master_that_ends_or_is_replaced_is_unavailable(void **state)
{
    struct play other = {.other_master = 1};
    struct play dead = {.master = INT32_MAX - 1, .gone = 1000};
    struct master_state st;
    bool loaded;

    (void)state;
    assert_int_equal(reload(&other, LONG_MS, &loaded, &st), ERR_UNAVAILABLE);
    assert_int_equal(reload(&dead, LONG_MS, &loaded, &st), ERR_UNAVAILABLE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_of_2_6_are_read),
        cmocka_unit_test(processes_of_3_0_are_read),
        cmocka_unit_test(programs_and_unknown_sections_are_passed_over),
        cmocka_unit_test(more_old_workers_than_fit_are_counted),
        cmocka_unit_test(unknown_forms_are_invalid),
        cmocka_unit_test(a_flood_is_invalid),
        cmocka_unit_test(nobody_there_is_unavailable),
        cmocka_unit_test(a_reload_is_done_when_the_new_worker_answers),
        cmocka_unit_test(a_failed_reload_is_told_as_such),
        cmocka_unit_test(a_lost_reload_is_sent_once_more_after_a_quiet_second),
        cmocka_unit_test(a_reload_that_stays_lost_ends_at_the_deadline),
        cmocka_unit_test(a_worker_that_never_comes_ends_at_the_deadline),
        cmocka_unit_test(a_master_that_ends_or_is_replaced_is_unavailable),
    };
    int failed;

    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    (void)snprintf(master_path, sizeof master_path, "%s/m", folder);
    (void)snprintf(admin_path, sizeof admin_path, "%s/a", folder);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(master_path);
    (void)unlink(admin_path);
    (void)rmdir(folder);
    return failed;
}

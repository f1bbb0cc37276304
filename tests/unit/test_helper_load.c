/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "haproxy/span.h"
#include "helper/service.h"
#include "tests/support/dialogue.h"
#include "tests/support/helper_lab.h"
#include "tests/support/self.h"

#define CONFIG                                                                                 \
    "# description \"no\"\nglobal\n    description \"lockstep abc\"\n    maxconn 10\n"         \
    "backend b\n    server s 10.0.0.1:80 check\n"
#define STATES "1\n3 b 1 s 10.0.0.9 0 0 1 1 9 8 2 0 6 0 0 0 - 99 - 0 0 - - 0\n\n"
#define KEPT   "1\n3 b 1 s 10.0.0.1 0 0 1 1 9 8 2 0 6 0 0 0 - 80 -\n"

/* HAProxy and lockstep-run, played on their three sockets. */
struct node {
    struct helper_lab lab;
    struct dialogue master, admin, run;
    const char *description; /* what the worker says */
    const char *next_state;  /* of the service after start or restart */
    int reload_fails;
    int reload_lost;    /* 1: it leaves no trace; 2: another master is there after it */
    int other_until;    /* so many reloads it takes until the worker runs the description */
    atomic_int running; /* the master answers */
    atomic_int reloads, starts, restarts, failures, starting_looks, on_good;
    atomic_int window_seen; /* while the reload went on */
    const char *states;     /* of the servers */
    char states_seen[256];  /* in the file, while the reload went on */
    const char *state;
    char master_text[512], admin_text[256], run_text[512];
    char run_dir[LAB_PATH_BYTES];
};

static bool
window_is_right(const char *run_dir)
{
    CLEANUP(buf_fini) struct buf text;
    char path[LAB_PATH_BYTES + 32];
    struct timespec now;
    int64_t end_ms = 0;
    int64_t now_ms;

    (void)snprintf(path, sizeof path, "%s/reload-window", run_dir);
    buf_init(&text, 64);
    if (file_read_at(AT_FDCWD, path, &text, NULL) != ERR_OK) {
        return false;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return text.len > 1 &&
           span_number((struct span){text.data, text.len - 1}, INT64_MAX, &end_ms) &&
           end_ms > now_ms && end_ms <= now_ms + 10000;
}

static void
read_states(const char *run_dir, char *out, size_t bytes)
{
    CLEANUP(buf_fini) struct buf text;
    char path[LAB_PATH_BYTES + 32];

    (void)snprintf(path, sizeof path, "%s/server-state", run_dir);
    buf_init(&text, bytes);
    if (file_read_at(AT_FDCWD, path, &text, NULL) == ERR_OK) {
        (void)snprintf(out, bytes, "%s", buf_str(&text));
    }
}

static const char *
play_master(void *ctx, const char *command)
{
    struct node *n = ctx;
    int reloads;

    if (!n->running) {
        return NULL;
    }
    if (strcmp(command, "reload\n") == 0) {
        n->reloads += n->reload_lost == 1 ? 0 : 1;
        n->window_seen = window_is_right(n->run_dir) ? 1 : 0;
        read_states(n->run_dir, n->states_seen, sizeof n->states_seen);
        return NULL;
    }
    reloads = n->reloads;
    (void)snprintf(
        n->master_text, sizeof n->master_text,
        "%d master %d [failed: %d] 0d00h00m09s 2.6\n# workers\n"
        "%d worker 0 0d00h00m01s 2.6\n# old workers\n55 worker 2 0d00h01m00s 2.6\n",
        n->reload_lost == 2 && reloads > 0 ? getppid() : getpid(), reloads,
        n->reload_fails ? reloads : 0, n->reload_fails ? 100 : 100 + reloads);
    return n->master_text;
}

static const char *
play_admin(void *ctx, const char *command)
{
    struct node *n = ctx;

    if (!n->running) {
        return NULL;
    }
    if (strcmp(command, "show servers state\n") == 0) {
        return n->states;
    }
    (void)snprintf(
        n->admin_text, sizeof n->admin_text, "Pid: %d\ndescription: %s\n",
        n->reload_fails ? 100 : 100 + n->reloads,
        n->reloads < n->other_until ? "lockstep abd" : n->description);
    return n->admin_text;
}

static void
become(struct node *n)
{
    n->state = n->next_state;
    n->running = strcmp(n->state, "running") == 0;
    n->failures += strcmp(n->state, "waiting") == 0;
    n->on_good = 0;
}

static const char *
play_run(void *ctx, const char *command)
{
    struct node *n = ctx;

    if (strstr(command, "\"start\"") != NULL) {
        n->starts++;
        become(n);
        return "{\"ok\":true}\n";
    }
    if (strstr(command, "\"restart\"") != NULL) {
        n->restarts++;
        become(n);
        return "{\"ok\":true}\n";
    }
    if (strcmp(n->state, "starting") == 0 && n->starting_looks > 0) {
        n->starting_looks--;
        if (n->starting_looks == 0) {
            become(n);
        }
    }
    (void)snprintf(
        n->run_text, sizeof n->run_text,
        "{\"ok\":true,\"state\":\"%s\",\"pid\":9,\"on_good\":%s,\"generation\":1,"
        "\"failures\":%d,\"output\":\"%s\",\"output_end\":500}\n",
        n->state, n->on_good ? "true" : "false", (int)n->failures,
        strstr(command, ":500,") != NULL ? "[ALERT] what it said\\n" : "");
    return n->run_text;
}

static int
set_up(void **state)
{
    struct node *n = calloc(1, sizeof *n);

    if (n == NULL) {
        return 1;
    }
    helper_lab_open(&n->lab, self_path());
    (void)snprintf(n->run_dir, sizeof n->run_dir, "%s", n->lab.run_dir);
    n->lab.context.tunables.reload_ms = 3000;
    n->lab.context.tunables.socket_ms = 1000;
    n->description = "lockstep abc";
    n->states = STATES;
    n->state = "running";
    n->next_state = "running";
    n->running = 1;
    n->master = (struct dialogue){.answer = play_master, .ctx = n};
    n->admin = (struct dialogue){.answer = play_admin, .ctx = n};
    n->run = (struct dialogue){.answer = play_run, .ctx = n};
    dialogue_open(&n->master, n->lab.context.master_path);
    dialogue_open(&n->admin, n->lab.context.admin_path);
    dialogue_open(&n->run, n->lab.context.service_path);
    helper_lab_put(&n->lab, 4, "haproxy.cfg", CONFIG);
    helper_lab_ok(&n->lab, "{'verb': 'stage', 'generation': 4}");
    helper_lab_ok(&n->lab, "{'verb': 'install', 'generation': 4}");
    *state = n;
    return 0;
}

static int
tear_down(void **state)
{
    struct node *n = *state;

    dialogue_close(&n->master);
    dialogue_close(&n->admin);
    if (n->run.end > 0) {
        dialogue_close(&n->run);
    }
    helper_lab_close(&n->lab);
    free(n);
    return 0;
}

static void
ends(struct node *n, const char *verb, bool loaded, const char *output)
{
    char request[64];

    (void)snprintf(request, sizeof request, "{'verb': '%s'}", verb);
    helper_lab_ok(&n->lab, request);
    if (json_is_true(json_object_get(n->lab.answer, "loaded")) != loaded ||
        strstr(helper_lab_text(&n->lab, "output"), output) == NULL) {
        fail_msg(
            "loaded %d: %s", json_is_true(json_object_get(n->lab.answer, "loaded")),
            helper_lab_text(&n->lab, "output"));
    }
    assert_int_equal(helper_lab_int(&n->lab, "worker") != 0, loaded);
    assert_false(file_exists_at(AT_FDCWD, helper_lab_path(&n->lab, "run/reload-window")));
}

static void
a_running_haproxy_is_reloaded_within_the_window(void **state)
{
    struct node *n = *state;

    ends(n, "reload", true, "");
    assert_string_equal(helper_lab_text(&n->lab, "output"), "");
    assert_int_equal(helper_lab_int(&n->lab, "worker"), 101);
    assert_int_equal(n->reloads, 1);
    assert_int_equal(n->window_seen, 1);
    assert_int_equal(n->starts + n->restarts, 0);
}

static void
has_no_states(const struct node *n)
{
    char text[sizeof n->states_seen] = "";

    read_states(n->run_dir, text, sizeof text);
    assert_string_equal(text, "1\n");
}

static void
the_new_worker_gets_the_states_of_servers_and_nobody_after_it(void **state)
{
    struct node *n = *state;

    ends(n, "reload", true, "");
    assert_string_equal(n->states_seen, KEPT);
    has_no_states(n);
    n->reload_fails = 1;
    ends(n, "reload", false, "");
    assert_string_equal(n->states_seen, KEPT);
    has_no_states(n);
}

static void
states_are_left_only_to_a_reload_that_may_go_on(void **state)
{
    struct node *n = *state;
    char text[sizeof n->states_seen] = "";

    n->reload_lost = 2;
    ends(n, "reload", false, "HAProxy ended");
    assert_string_equal(n->states_seen, KEPT);
    has_no_states(n);
    n->reloads = 0;
    n->reload_lost = 1;
    n->lab.context.tunables.reload_ms = 300;
    ends(n, "reload", false, "in time");
    read_states(n->run_dir, text, sizeof text);
    assert_string_equal(text, KEPT);
    n->running = 0;
    helper_lab_ok(&n->lab, "{'verb': 'status'}");
    read_states(n->run_dir, text, sizeof text);
    assert_string_equal(text, KEPT);
    n->running = 1;
    helper_lab_ok(&n->lab, "{'verb': 'status'}");
    has_no_states(n);
}

static void
states_are_handed_over_under_new_names(void **state)
{
    struct node *n = *state;

    n->states = "1\n3 a 1 t 10.0.0.9 0 0 1 1 9 8 2 0 6 0 0 0 - 99 - 0 0 - - 0\n\n";
    helper_lab_ok(
        &n->lab, "{'verb': 'reload', 'backends': [{'from': 'a', 'to': 'b'}], 'servers': "
                 "[{'from': 't', 'to': 's'}, {'from': 'x', 'to': 'y'}]}");
    assert_string_equal(n->states_seen, KEPT);
    helper_lab_ok(&n->lab, "{'verb': 'reload', 'backends': [{'from': 'a', 'to': 'b'}]}");
    assert_string_equal(n->states_seen, "1\n");
    helper_lab_ok(
        &n->lab, "{'verb': 'reload', 'backends': [{'from': 'a', 'to': 'b'}], 'servers': "
                 "[{'from': 't', 'to': 's'}], 'states': true}");
    assert_string_equal(n->states_seen, KEPT);
    helper_lab_ok(&n->lab, "{'verb': 'reload', 'states': false}");
    assert_string_equal(n->states_seen, "1\n");
    assert_string_equal(helper_lab_text(&n->lab, "no_states"), "");
}

/* As when the run directory is full: neither file can be written or removed. */
static void
hints_that_cannot_be_written_stop_no_reload(void **state)
{
    static const char *const names[] = {
        "run/reload-window", "run/reload-window/x", "run/server-state", "run/server-state/x"};
    struct node *n = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(mkdir(helper_lab_path(&n->lab, "%s", names[i]), 0700), 0);
    }
    for (int reloads = 1; reloads <= 2; reloads++) {
        helper_lab_ok(&n->lab, "{'verb': 'reload'}");
        assert_true(json_is_true(json_object_get(n->lab.answer, "loaded")));
        assert_int_equal(n->reloads, reloads);
        assert_int_equal(n->window_seen, 0);
        assert_non_null(strstr(helper_lab_text(&n->lab, "no_states"), "server-state"));
    }
}

static void
states_that_cannot_be_read_stop_no_reload(void **state)
{
    static const char *const answers[] = {
        NULL, "", "1\n3 b 1 s 10.0.0", "Permission denied\n\n"};
    struct node *n = *state;

    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        n->states = answers[i];
        ends(n, "reload", true, "");
        assert_string_equal(n->states_seen, "1\n");
        assert_string_not_equal(helper_lab_text(&n->lab, "no_states"), "");
    }
    n->states = STATES;
    ends(n, "reload", true, "");
    assert_string_equal(helper_lab_text(&n->lab, "no_states"), "");
}

static void
a_failed_reload_tells_what_haproxy_said(void **state)
{
    struct node *n = *state;

    n->reload_fails = 1;
    ends(n, "reload", false, "[ALERT] what it said\n");
}

static void
another_configuration_in_the_worker_is_not_loaded(void **state)
{
    struct node *n = *state;

    n->description = "lockstep abd";
    ends(
        n, "reload", false,
        "HAProxy runs \"lockstep abd\" and not the current \"lockstep abc\"");
    assert_int_equal(n->reloads, 2);
}

/* Another helper's reload was under way and read the files of before. */
static void
a_reload_that_was_not_ours_is_followed_by_ours(void **state)
{
    struct node *n = *state;

    n->other_until = 2;
    ends(n, "reload", true, "");
    assert_int_equal(n->reloads, 2);
}

static void
a_stopped_haproxy_is_started(void **state)
{
    struct node *n = *state;

    n->state = "stopped";
    n->running = 0;
    ends(n, "reload", true, "");
    assert_int_equal(n->starts, 1);
    assert_int_equal(n->reloads, 0);
}

static void
a_start_that_fails_tells_what_haproxy_said(void **state)
{
    struct node *n = *state;

    n->state = "stopped";
    n->running = 0;
    n->next_state = "waiting";
    ends(n, "reload", false, "[ALERT] what it said\n");
    n->state = "stopped";
    ends(n, "restart", false, "[ALERT] what it said\n");
}

static void
a_start_that_never_ends_is_given_up(void **state)
{
    struct node *n = *state;

    n->lab.context.tunables.reload_ms = 300;
    n->state = "stopped";
    n->running = 0;
    n->next_state = "starting";
    ends(n, "reload", false, "did not start in time");
}

static void
a_waiting_haproxy_is_started_at_once(void **state)
{
    struct node *n = *state;

    n->state = "waiting";
    n->running = 0;
    ends(n, "reload", true, "");
    assert_int_equal(n->restarts, 1);
}

static void
a_start_under_way_is_waited_for_and_reloaded(void **state)
{
    struct node *n = *state;

    n->state = "starting";
    n->running = 0;
    n->starting_looks = 5;
    ends(n, "reload", true, "");
    assert_int_equal(n->reloads, 1);
}

static void
haproxy_on_the_good_generation_is_restarted_on_the_current(void **state)
{
    struct node *n = *state;

    n->on_good = 1;
    ends(n, "reload", true, "");
    assert_int_equal(n->reloads, 0);
    assert_int_equal(n->restarts, 1);
}

static void
a_restart_goes_by_lockstep_run(void **state)
{
    struct node *n = *state;

    ends(n, "restart", true, "");
    assert_int_equal(n->restarts, 1);
    assert_int_equal(n->reloads, 0);
    assert_string_equal(helper_lab_text(&n->lab, "no_states"), "");
}

static void
without_lockstep_run_the_master_is_asked(void **state)
{
    struct node *n = *state;

    dialogue_close(&n->run);
    n->run.end = 0;
    ends(n, "reload", true, "");
    helper_lab_refused(&n->lab, "{'verb': 'restart'}", "unavailable", "run.sock");
    n->running = 0;
    helper_lab_refused(&n->lab, "{'verb': 'reload'}", "invalid", "show proc");
}

static void
a_generation_without_description_is_corrupt(void **state)
{
    struct node *n = *state;

    helper_lab_put(&n->lab, 5, "haproxy.cfg", "global\n    maxconn 10\n");
    helper_lab_ok(&n->lab, "{'verb': 'stage', 'generation': 5}");
    helper_lab_ok(&n->lab, "{'verb': 'install', 'generation': 5}");
    helper_lab_refused(&n->lab, "{'verb': 'reload'}", "corrupt", "description");
}

static void
status_tells_processes_and_generations(void **state)
{
    struct node *n = *state;
    const json_t *old;

    helper_lab_ok(&n->lab, "{'verb': 'status'}");
    assert_string_equal(helper_lab_text(&n->lab, "state"), "running");
    assert_int_equal(helper_lab_int(&n->lab, "master"), getpid());
    assert_int_equal(helper_lab_int(&n->lab, "worker"), 100);
    assert_int_equal(helper_lab_int(&n->lab, "current"), 4);
    assert_int_equal(helper_lab_int(&n->lab, "good"), 0);
    old = json_array_get(json_object_get(n->lab.answer, "old_workers"), 0);
    assert_int_equal(json_integer_value(json_object_get(old, "pid")), 55);
    assert_int_equal(json_integer_value(json_object_get(old, "age_s")), 60);
}

static void
status_without_an_answer_is_that_of_lockstep_run(void **state)
{
    static const struct {
        const char *service;
        const char *told;
    } cases[] = {
        {"running", "running"},
        {"waiting", "failed"},
        {"starting", "stopped"},
        {"stopped", "stopped"},
    };
    struct node *n = *state;

    n->running = 0;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        n->state = cases[i].service;
        helper_lab_ok(&n->lab, "{'verb': 'status'}");
        assert_string_equal(helper_lab_text(&n->lab, "state"), cases[i].told);
    }
}

static void
odd_answers_of_lockstep_run_are_errors(void **state)
{
    struct node *n = *state;
    struct service_status st = {.pid = 77};
    struct error e;

    n->state = "odd";
    assert_int_equal(
        service_status(n->lab.context.service_path, 0, 1000, &st, NULL, &e), ERR_INVALID);
    assert_int_equal(st.pid, 77);
    assert_int_equal(
        service_call("/tmp/lockstep-no/s", SERVICE_STOP, 1000, &e), ERR_UNAVAILABLE);
}

#define LOAD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOAD_TEST(a_running_haproxy_is_reloaded_within_the_window),
        LOAD_TEST(the_new_worker_gets_the_states_of_servers_and_nobody_after_it),
        LOAD_TEST(states_are_left_only_to_a_reload_that_may_go_on),
        LOAD_TEST(states_are_handed_over_under_new_names),
        LOAD_TEST(hints_that_cannot_be_written_stop_no_reload),
        LOAD_TEST(states_that_cannot_be_read_stop_no_reload),
        LOAD_TEST(a_failed_reload_tells_what_haproxy_said),
        LOAD_TEST(another_configuration_in_the_worker_is_not_loaded),
        LOAD_TEST(a_reload_that_was_not_ours_is_followed_by_ours),
        LOAD_TEST(a_stopped_haproxy_is_started),
        LOAD_TEST(a_start_that_fails_tells_what_haproxy_said),
        LOAD_TEST(a_start_that_never_ends_is_given_up),
        LOAD_TEST(a_waiting_haproxy_is_started_at_once),
        LOAD_TEST(a_start_under_way_is_waited_for_and_reloaded),
        LOAD_TEST(haproxy_on_the_good_generation_is_restarted_on_the_current),
        LOAD_TEST(a_restart_goes_by_lockstep_run),
        LOAD_TEST(without_lockstep_run_the_master_is_asked),
        LOAD_TEST(a_generation_without_description_is_corrupt),
        LOAD_TEST(status_tells_processes_and_generations),
        LOAD_TEST(status_without_an_answer_is_that_of_lockstep_run),
        LOAD_TEST(odd_answers_of_lockstep_run_are_errors),
    };

    if (argc == 4 && strcmp(argv[1], "-c") == 0) {
        (void)puts("fine");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "run/control.h"
#include "run/service.h"
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
wait_for_end(pid_t pid, int *ret_status)
{
    assert_int_equal(waitpid(pid, ret_status, 0), pid);
}

struct node {
    struct run_options options;
    struct layout layout;
    struct service service;
    struct control control;
};

static void
node_open(struct node *n, const struct place *p)
{
    n->options = (struct run_options){
        .state_dir = p->path,
        .run_dir = p->path,
        .haproxy = self_path(),
        .tunables = short_times(),
    };
    assert_int_equal(mkdirat(p->fd, "generation", 0755), 0);
    n->layout = (struct layout){.run_fd = p->fd, .lock_fd = -1};
    assert_int_equal(
        file_open_dir_at(p->fd, "generation", &n->layout.generation_fd, NULL), ERR_OK);
    assert_int_equal(service_open(&n->service, &n->options, &n->layout, NULL), ERR_OK);
    assert_int_equal(control_open(&n->control, p->path, &n->service, NULL), ERR_OK);
}

static void
node_close(struct node *n)
{
    control_close(&n->control);
    service_close(&n->service);
    fd_cleanup(&n->layout.generation_fd);
}

static void
asked(struct node *n, const char *request, const char *part)
{
    CLEANUP(buf_fini) struct buf answer;

    buf_init(&answer, 1 << 20);
    control_answer(&n->control, request, strlen(request), &answer);
    if (strstr(answer.data, part) == NULL || answer.data[answer.len - 1] != '\n') {
        fail_msg("%s: %s", request, answer.data);
    }
}

#define CALL(verb) "{\"verb\":\"" verb "\",\"service\":\"haproxy\"}"

/* Lets HAProxy (this program, which ends at once) be started and end. */
static void
start_and_end(struct node *n)
{
    int status;

    child_due_now(&n->service.child);
    assert_true(service_tick(&n->service));
    assert_true(n->service.child.pid > 0);
    assert_int_equal(
        service_state(&n->service), n->service.failing ? SERVICE_WAITING : SERVICE_STARTING);
    wait_for_end(n->service.child.pid, &status);
    service_ended(&n->service, "ended with status 1");
}

static void
two_ends_in_a_row_lead_to_the_other_generation_and_back(void **state)
{
    static const bool on_good[] = {false, false, true, true, false, false, true};
    struct node n;

    node_open(&n, *state);
    assert_int_equal(symlinkat("3", n.layout.generation_fd, "current"), 0);
    assert_int_equal(symlinkat("2", n.layout.generation_fd, "good"), 0);
    for (size_t i = 0; i < ARRAY_LEN(on_good); i++) {
        start_and_end(&n);
        assert_int_equal(n.service.on_good, on_good[i]);
        assert_int_equal(n.service.generation, on_good[i] ? 2 : 3);
        assert_int_equal(n.service.failures, i + 1);
        assert_int_equal(service_state(&n.service), SERVICE_WAITING);
    }
    asked(&n, CALL("status"), "\"failures\":7,\"generation\":2,\"ok\":true,\"on_good\":true");
    /* What is asked for begins with the current one. */
    asked(&n, CALL("restart"), "{\"ok\":true}");
    assert_false(n.service.on_good);
    start_and_end(&n);
    assert_int_equal(n.service.generation, 3);
    node_close(&n);
}

static void
without_another_generation_the_same_is_tried_again(void **state)
{
    struct node n;

    node_open(&n, *state);
    assert_int_equal(symlinkat("3", n.layout.generation_fd, "current"), 0);
    assert_int_equal(symlinkat("3", n.layout.generation_fd, "good"), 0);
    for (int i = 0; i < 5; i++) {
        start_and_end(&n);
        assert_false(n.service.on_good);
    }
    node_close(&n);
}

static void
without_any_generation_nothing_is_started(void **state)
{
    struct node n;

    node_open(&n, *state);
    child_due_now(&n.service.child);
    assert_true(service_tick(&n.service));
    assert_int_equal(n.service.child.pid, 0);
    assert_int_equal(service_state(&n.service), SERVICE_STOPPED);
    assert_int_equal(service_deadline_ms(&n.service), CHILD_NEVER);
    asked(&n, CALL("start"), "\"code\":\"not_found\"");
    asked(&n, CALL("restart"), "\"code\":\"not_found\"");
    asked(&n, CALL("stop"), "{\"ok\":true}");
    asked(&n, CALL("status"), "\"state\":\"stopped\"");
    node_close(&n);
}

static void
calls_of_another_form_are_refused(void **state)
{
    struct node n;

    node_open(&n, *state);
    asked(&n, "", "\"code\":\"syntax\"");
    asked(&n, "7", "\"code\":\"syntax\"");
    asked(&n, "{\"verb\":\"start\"}", "\"code\":\"syntax\"");
    asked(&n, "{\"verb\":\"start\",\"service\":\"x\"}", "\"code\":\"invalid\"");
    asked(&n, CALL("reload"), "\"code\":\"invalid\"");
    asked(
        &n, "{\"verb\":\"stop\",\"service\":\"haproxy\",\"output_from\":1}",
        "\"code\":\"syntax\"");
    asked(
        &n, "{\"verb\":\"status\",\"service\":\"haproxy\",\"output_from\":-1}",
        "\"code\":\"invalid\"");
    n.control.closing = true;
    asked(&n, CALL("start"), "\"code\":\"busy\"");
    asked(&n, CALL("status"), "\"ok\":true");
    node_close(&n);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(two_ends_in_a_row_lead_to_the_other_generation_and_back),
        RUN_TEST(without_another_generation_the_same_is_tried_again),
        RUN_TEST(without_any_generation_nothing_is_started),
        RUN_TEST(calls_of_another_form_are_refused),
    };

    if (argc > 1 && strcmp(argv[1], "-W") == 0) {
        return 1;
    }
    log_open("test", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

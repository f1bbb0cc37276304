/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "helper/client.h"
#include "helper/protocol.h"
#include "helper/server.h"
#include "tests/support/dialogue.h"
#include "tests/support/helper_lab.h"
#include "tests/support/self.h"

#define LONG_MS 20000

/* The helper on a thread, and its client. */
struct service {
    struct helper_lab lab;
    struct helper helper;
    struct arena *arena;
    char path[LAB_PATH_BYTES + 16];
    int signals;
    err_t code;
    pthread_t thread;
};

static void *
serve(void *ctx)
{
    struct service *s = ctx;

    s->code = helper_serve(&s->lab.context, s->signals, NULL);
    return NULL;
}

static bool
listens(const char *path)
{
    struct stat st;

    /* The mode is set before it listens, and connecting waits for that. */
    return stat(path, &st) == 0 && (st.st_mode & 07777) == 0660;
}

static int
set_up(void **state)
{
    struct service *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return 1;
    }
    helper_lab_open(&s->lab, self_path());
    (void)snprintf(s->path, sizeof s->path, "%s/helper.sock", s->lab.run_dir);
    s->helper = (struct helper){s->path, LONG_MS};
    s->arena = arena_new(ARENA_DEFAULT_BYTES);
    s->signals = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    for (int i = 0; i < LONG_MS && !listens(s->path); i++) {
        (void)poll(NULL, 0, 1);
    }
    *state = s;
    return 0;
}

static int
tear_down(void **state)
{
    struct service *s = *state;
    uint64_t one = 1;

    assert_int_equal(write(s->signals, &one, sizeof one), sizeof one);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    assert_int_equal(s->code, ERR_OK);
    assert_int_equal(access(s->path, F_OK), -1);
    fd_cleanup(&s->signals);
    arena_free(s->arena);
    helper_lab_close(&s->lab);
    free(s);
    return 0;
}

static const struct helper_renames none;

/* ---- requests -------------------------------------------------------------------------- */

static void
requests_of_another_form_are_refused(void **state)
{
    static const struct {
        const char *request;
        const char *code;
    } cases[] = {
        {"", "syntax"},
        {"x", "syntax"},
        {"[]", "syntax"},
        {"null", "syntax"},
        {"{}", "syntax"},
        {"{'verb': 1}", "syntax"},
        {"{'verb': 'stop'}", "invalid"},
        {"{'verb': 'Stage', 'generation': 1}", "invalid"},
        {"{'verb': 'stage'}", "syntax"},
        {"{'verb': 'stage', 'generation': '1'}", "syntax"},
        {"{'verb': 'stage', 'generation': 1.0}", "syntax"},
        {"{'verb': 'stage', 'generation': 0}", "invalid"},
        {"{'verb': 'stage', 'generation': -1}", "invalid"},
        {"{'verb': 'stage', 'generation': 9007199254740992}", "syntax"},
        {"{'verb': 'stage', 'generation': 1, 'path': '/etc'}", "syntax"},
        {"{'verb': 'stage', 'verb': 'reload', 'generation': 1}", "syntax"},
        {"{'verb': 'install', 'generation': true}", "syntax"},
        {"{'verb': 'settle', 'generation': [1]}", "syntax"},
        {"{'verb': 'reload', 'generation': 1}", "syntax"},
        {"{'verb': 'reload', 'states': 1}", "syntax"},
        {"{'verb': 'restart', 'servers': []}", "syntax"},
        {"{'verb': 'status', 'verbose': true}", "syntax"},
        {"{'verb': 'status'} x", "syntax"},
        {"{'verb': 'bind-test'}", "syntax"},
        {"{'verb': 'bind-test', 'binds': {}}", "syntax"},
        {"{'verb': 'bind-test', 'binds': [1]}", "syntax"},
        {"{'verb': 'bind-test', 'binds': [{}]}", "syntax"},
        {"{'verb': 'bind-test', 'binds': [{'address': '::', 'port': 0}]}", "invalid"},
        {"{'verb': 'bind-test', 'binds': [{'address': '::', 'port': 65536}]}", "invalid"},
        {"{'verb': 'bind-test', 'binds': [{'address': 'localhost', 'port': 80}]}", "invalid"},
        {"{'verb': 'bind-test', 'binds': [{'address': '127.1', 'port': 80}]}", "invalid"},
        {"{'verb': 'bind-test', 'binds': [{'address': '/x', 'port': 80}]}", "invalid"},
        {"{'verb': 'bind-test', 'binds': [{'address': '::1%no0', 'port': 80}]}", "invalid"},
        {"{'verb': 'bind-test', 'binds': [{'address': '::', 'port': 1, 'x': 1}]}", "syntax"},
        {"{'verb': 'bind-test', 'binds': [{'address': '::', 'port': 1, 'vip': 1}]}", "syntax"},
    };
    struct service *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        helper_lab_refused(&s->lab, cases[i].request, cases[i].code, "");
    }
}

static void
renames_of_another_form_are_refused(void **state)
{
    static const struct {
        const char *list, *code;
    } rows[] = {
        {"{}", "syntax"},
        {"['a']", "syntax"},
        {"[{}]", "syntax"},
        {"[{'from': 'a'}]", "syntax"},
        {"[{'from': 'a', 'to': 1}]", "syntax"},
        {"[{'from': 'a', 'to': 'b', 'x': 1}]", "syntax"},
        {"[{'from': '', 'to': 'b'}]", "invalid"},
        {"[{'from': 'a', 'to': ''}]", "invalid"},
        {"[{'from': 'a b', 'to': 'b'}]", "invalid"},
        {"[{'from': 'a', 'to': 'b\\n3 c'}]", "invalid"},
        {"[{'from': 'a', 'to': '../b'}]", "invalid"},
        {"[{'from': 'a', 'to': '-b'}]", "invalid"},
        {"[{'from': 'a', 'to': 'b\xc3\xa9'}]", "invalid"},
        {"[{'from': 'a', 'to': '0123456789012345678901234567890123456789012345678901234567890123"
         "4'}]",
         "invalid"},
        {"[{'from': 'a', 'to': 'b'}, {'from': 'a', 'to': 'c'}]", "invalid"},
        {"[{'from': 'a', 'to': 'c'}, {'from': 'b', 'to': 'c'}]", "invalid"},
    };

    static const char *const keys[] = {"backends", "servers"};
    struct service *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(keys); i++) {
        char request[256];

        (void)snprintf(
            request, sizeof request, "{'verb': 'reload', '%s': %s}", keys[i % 2],
            rows[i / 2].list);
        helper_lab_refused(&s->lab, request, rows[i / 2].code, "");
    }
}

static void
renames_are_bounded_and_so_many_fit(void **state)
{
    struct service *s = *state;

    for (int count = HELPER_RENAMES_MAX; count <= HELPER_RENAMES_MAX + 1; count++) {
        CLEANUP(buf_fini) struct buf text;

        buf_init(&text, HELPER_REQUEST_MAX_BYTES);
        buf_puts(&text, "{'verb': 'reload'");
        for (int list = 0; list < 2; list++) {
            buf_puts(&text, list == 0 ? ", 'backends': [" : ", 'servers': [");
            for (int i = 0; i < count; i++) {
                buf_printf(
                    &text, "%s{'from': 'f%063d', 'to': 't%063d'}", i > 0 ? "," : "", i, i);
            }
            buf_puts(&text, "]");
        }
        buf_puts(&text, "}");
        assert_false(text.failed);
        if (count > HELPER_RENAMES_MAX) {
            helper_lab_refused(&s->lab, buf_str(&text), "limit", "renames");
        } else {
            /* It is read, and there is nothing to load. */
            helper_lab_refused(&s->lab, buf_str(&text), "not_found", "installed");
        }
    }
}

static void
an_address_of_any_length_is_refused(void **state)
{
    struct service *s = *state;
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, 100000);
    buf_puts(&text, "{'verb': 'bind-test', 'binds': [{'port': 1, 'address': '");
    for (int i = 0; i < 60000; i++) {
        buf_putc(&text, ':');
    }
    buf_puts(&text, "'}]}");
    helper_lab_refused(&s->lab, text.data, "invalid", "literal address");
}

static void
at_most_a_thousand_binds_are_tried(void **state)
{
    struct service *s = *state;
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, 1 << 20);
    buf_puts(&text, "{'verb': 'bind-test', 'binds': [");
    for (int i = 0; i < 1000; i++) {
        buf_puts(&text, "{'address': '10.255.255.254', 'port': 80}, ");
    }
    buf_puts(&text, "{'address': '10.255.255.254', 'port': 80}]}");
    helper_lab_refused(&s->lab, text.data, "limit", "1000");
}

/* ---- the client's side ------------------------------------------------------------------ */

static void
the_client_stages_installs_and_settles(void **state)
{
    struct service *s = *state;
    struct helper_check check;
    struct helper_status st;
    struct error e;

    helper_lab_put(&s->lab, 5, "haproxy.cfg", "global\n");
    assert_int_equal(helper_stage(&s->helper, 5, s->arena, &check, &e), ERR_OK);
    assert_int_equal(check.exit_status, 0);
    assert_string_equal(check.output, "fine\n");
    assert_false(check.only_weights);
    assert_int_equal(helper_install(&s->helper, 5, &e), ERR_OK);
    assert_int_equal(helper_settle(&s->helper, 5, 0, &e), ERR_OK);
    assert_int_equal(helper_get_status(&s->helper, s->arena, &st, &e), ERR_OK);
    assert_string_equal(st.state, "stopped");
    assert_int_equal(st.current, 5);
    assert_int_equal(st.good, 5);
    assert_int_equal(st.master, 0);
}

static void
refusals_reach_the_client_with_code_and_reason(void **state)
{
    struct service *s = *state;
    struct helper_check check = {.exit_status = 77};
    struct helper_load load;
    struct error e;

    assert_int_equal(helper_stage(&s->helper, 5, s->arena, &check, &e), ERR_NOT_FOUND);
    assert_string_equal(e.msg, "nothing is staged as 5");
    assert_int_equal(check.exit_status, 77);
    helper_lab_put(&s->lab, 6, "haproxy.cfg", "program x\n");
    assert_int_equal(helper_stage(&s->helper, 6, s->arena, &check, &e), ERR_DENIED);
    assert_non_null(strstr(e.msg, "line 1"));
    assert_int_equal(helper_install(&s->helper, 5, &e), ERR_NOT_FOUND);
    assert_int_equal(helper_reload(&s->helper, &none, s->arena, &load, &e), ERR_NOT_FOUND);
    assert_int_equal(helper_restart(&s->helper, s->arena, &load, &e), ERR_NOT_FOUND);
    assert_int_equal(helper_stage(&s->helper, 0, s->arena, &check, &e), ERR_INVALID);
}

static int
own_listener(int *ret_port)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof sin;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof sin), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &size), 0);
    *ret_port = ntohs(sin.sin_port);
    return fd;
}

static void
binds_that_would_fail_are_told(void **state)
{
    struct service *s = *state;
    struct helper_bind binds[6] = {{"127.0.0.1", 0, false},    {"192.0.2.77", 8080, false},
                                   {"::1", 0, true},           {"2001:db8::77", 8080, false},
                                   {"192.0.2.78", 8080, true}, {"2001:db8::78", 80, true}};
    struct helper_bind_result result = {NULL, 99};
    struct error e;
    int fd = own_listener(&binds[0].port);

    binds[2].port = binds[0].port;
    assert_int_equal(helper_bind_test(&s->helper, binds, 6, s->arena, &result, &e), ERR_OK);
    /* The two addresses that are VIPs need not be here. The test's own process is the helper
     * here, whose sockets are not looked at. */
    assert_int_equal(result.count, 3);
    assert_string_equal(result.failures[0].reason, "Address already in use");
    assert_string_equal(result.failures[0].address, "127.0.0.1");
    assert_int_equal(result.failures[0].port, binds[0].port);
    assert_string_equal(result.failures[0].holder, "");
    assert_string_equal(result.failures[1].reason, "no interface of this node has 192.0.2.77");
    assert_string_equal(
        result.failures[2].reason, "no interface of this node has 2001:db8::77");
    (void)close(fd);
    assert_int_equal(helper_bind_test(&s->helper, binds, 1, s->arena, &result, &e), ERR_OK);
    assert_int_equal(result.count, 0);
    assert_int_equal(helper_bind_test(&s->helper, binds, 0, s->arena, &result, &e), ERR_OK);
    binds[0].address = "\xff";
    assert_int_equal(
        helper_bind_test(&s->helper, binds, 1, s->arena, &result, &e), ERR_INVALID);
}

/* Those of every request are told, in their order. */
static void
more_binds_than_a_request_takes_are_asked_in_several(void **state)
{
    struct service *s = *state;
    size_t count = 2 * HELPER_BINDS_MAX + 1;
    struct helper_bind *binds = xcalloc(count, sizeof *binds);
    struct helper_bind_result result;
    struct error e;
    int port = 0;
    int fd = own_listener(&port);

    for (size_t i = 0; i < count; i++) {
        binds[i] = (struct helper_bind){"192.0.2.78", 1 + (int)i, true};
    }
    binds[3].vip = false;
    binds[HELPER_BINDS_MAX] = (struct helper_bind){"127.0.0.1", port, false};
    binds[count - 1].vip = false;
    assert_int_equal(helper_bind_test(&s->helper, binds, count, s->arena, &result, &e), ERR_OK);
    assert_int_equal(result.count, 3);
    assert_int_equal(result.failures[0].port, 4);
    assert_int_equal(result.failures[1].port, port);
    assert_int_equal(result.failures[2].port, (int)count);
    assert_string_equal(result.failures[2].reason, "no interface of this node has 192.0.2.78");
    (void)close(fd);
    free(binds);
}

static const char *
scripted(void *ctx, const char *command)
{
    (void)command;
    return ctx;
}

/* Calls of a client whose helper answers so. */
static void
odd_answer(struct service *s, const char *answer, err_t want)
{
    union {
        const char *in;
        void *out;
    } ctx = {.in = answer};

    struct dialogue d = {.answer = scripted, .ctx = ctx.out};
    char path[LAB_PATH_BYTES + 8];
    struct helper odd = {path, LONG_MS};
    struct helper_bind bind = {"::", 1, false};
    struct helper_bind_result result;
    struct helper_check check;
    struct helper_load load;
    struct helper_status st;

    (void)snprintf(path, sizeof path, "%s/odd", s->lab.run_dir);
    dialogue_open(&d, path);
    assert_int_equal(helper_stage(&odd, 1, s->arena, &check, NULL), want);
    assert_int_equal(helper_bind_test(&odd, &bind, 1, s->arena, &result, NULL), want);
    assert_int_equal(helper_reload(&odd, &none, s->arena, &load, NULL), want);
    assert_int_equal(helper_get_status(&odd, s->arena, &st, NULL), want);
    dialogue_close(&d);
}

static void
answers_of_another_form_are_internal_errors(void **state)
{
    static const char *const answers[] = {
        "x\n",
        "[]\n",
        "{\"ok\":1}\n",
        "{\"ok\":true}\n",
        "{\"ok\":true,\"failures\":[1],\"loaded\":1,\"output\":1,\"exit_status\":900}\n",
        "{\"ok\":true,\"failures\":[{\"address\":\"::\",\"port\":0}],\"loaded\":true}\n",
        "{\"ok\":true,\"exit_status\":0,\"output\":\"\",\"loaded\":true,\"worker\":1}\n",
        "{\"ok\":true,\"exit_status\":0,\"output\":\"\",\"only_weights\":0}\n",
        "{\"ok\":false,\"code\":\"no such code\",\"message\":\"m\"}\n",
    };
    struct service *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        odd_answer(s, answers[i], ERR_INTERNAL);
    }
    odd_answer(s, "{\"ok\":false,\"code\":\"busy\",\"message\":\"m\"}\n", ERR_BUSY);
    odd_answer(s, "{\"ok\":false,\"code\":\"ok\",\"message\":\"m\"}\n", ERR_INTERNAL);
}

static void
a_call_without_a_helper_is_unavailable(void **state)
{
    struct service *s = *state;
    struct helper nobody = {"/tmp/lockstep-no/helper.sock", LONG_MS};

    (void)s;
    assert_int_equal(helper_install(&nobody, 1, NULL), ERR_UNAVAILABLE);
}

/* ---- connections ------------------------------------------------------------------------ */

static int
connect_to(const struct service *s)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(sun.sun_path, s->path, strlen(s->path));
    assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof sun), 0);
    return fd;
}

static void
the_socket_is_for_root_and_the_group_only(void **state)
{
    struct service *s = *state;
    struct stat st;

    assert_int_equal(stat(s->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0660);
    assert_int_equal(st.st_gid, getegid());
}

static void
a_silent_client_does_not_hold_up_the_next(void **state)
{
    struct service *s = *state;
    int64_t start_ms = clock_mono_ms(&clock_system);
    int silent = connect_to(s);
    struct helper_status st;
    char c;

    assert_int_equal(helper_get_status(&s->helper, s->arena, &st, NULL), ERR_OK);
    assert_in_range(clock_mono_ms(&clock_system) - start_ms, 1900, LONG_MS / 2);
    assert_int_equal(recv(silent, &c, 1, 0), 0);
    (void)close(silent);
}

static void
a_client_that_gave_up_is_not_served(void **state)
{
    static const char request[] = "{\"verb\":\"install\",\"generation\":5}\n";
    struct service *s = *state;
    struct helper_check check;
    struct helper_status st;
    int silent;
    int hasty;

    helper_lab_put(&s->lab, 5, "haproxy.cfg", "global\n");
    assert_int_equal(helper_stage(&s->helper, 5, s->arena, &check, NULL), ERR_OK);
    silent = connect_to(s);
    hasty = connect_to(s);
    assert_int_equal(send(hasty, request, sizeof request - 1, 0), sizeof request - 1);
    (void)close(hasty);
    (void)close(silent);
    assert_int_equal(helper_get_status(&s->helper, s->arena, &st, NULL), ERR_OK);
    assert_int_equal(st.current, 0);
}

static void
a_request_that_is_too_long_is_refused(void **state)
{
    static char chunk[65536];
    struct service *s = *state;
    char answer[512] = "";
    size_t len = 0;
    ssize_t n;
    int fd = connect_to(s);

    memset(chunk, ' ', sizeof chunk);
    for (size_t i = 0; i < HELPER_REQUEST_MAX_BYTES / sizeof chunk + 1; i++) {
        assert_int_equal(send(fd, chunk, sizeof chunk, MSG_NOSIGNAL), sizeof chunk);
    }
    assert_int_equal(send(fd, "\n", 1, MSG_NOSIGNAL), 1);
    while ((n = recv(fd, answer + len, sizeof answer - 1 - len, 0)) > 0) {
        len += (size_t)n;
    }
    assert_non_null(strstr(answer, "\"code\":\"limit\""));
    (void)close(fd);
}

static void
another_user_is_refused(void **state)
{
    struct service *s = *state;
    struct helper_lab *l = &s->lab;
    struct helper_status st;
    struct error e;

    if (getuid() == 0) {
        /* root is always heard: this test's process becomes somebody else for a moment. */
        assert_int_equal(chmod(l->top, 0755), 0);
        assert_int_equal(chmod(s->path, 0666), 0);
        assert_int_equal(seteuid(64124), 0);
    } else {
        l->context.uid++;
    }
    assert_int_equal(helper_get_status(&s->helper, s->arena, &st, &e), ERR_DENIED);
    if (getuid() == 0) {
        assert_int_equal(seteuid(0), 0);
    } else {
        l->context.uid--;
    }
}

#define PROTOCOL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PROTOCOL_TEST(requests_of_another_form_are_refused),
        PROTOCOL_TEST(renames_of_another_form_are_refused),
        PROTOCOL_TEST(renames_are_bounded_and_so_many_fit),
        PROTOCOL_TEST(an_address_of_any_length_is_refused),
        PROTOCOL_TEST(at_most_a_thousand_binds_are_tried),
        PROTOCOL_TEST(the_client_stages_installs_and_settles),
        PROTOCOL_TEST(refusals_reach_the_client_with_code_and_reason),
        PROTOCOL_TEST(binds_that_would_fail_are_told),
        PROTOCOL_TEST(more_binds_than_a_request_takes_are_asked_in_several),
        PROTOCOL_TEST(answers_of_another_form_are_internal_errors),
        PROTOCOL_TEST(a_call_without_a_helper_is_unavailable),
        PROTOCOL_TEST(the_socket_is_for_root_and_the_group_only),
        PROTOCOL_TEST(a_silent_client_does_not_hold_up_the_next),
        PROTOCOL_TEST(a_client_that_gave_up_is_not_served),
        PROTOCOL_TEST(a_request_that_is_too_long_is_refused),
        PROTOCOL_TEST(another_user_is_refused),
    };

    if (argc == 4 && strcmp(argv[1], "-c") == 0) {
        (void)puts("fine");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

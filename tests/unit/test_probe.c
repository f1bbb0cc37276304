/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/probe.h"
#include "tests/support/server.h"

#define LONG_MS  20000
#define SHORT_MS 200

/* wrap: poll */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);

/* The listener that accepts and resets a connection before the next poll; -1: none. */
static int resetting = -1;

int
__wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    struct linger at_once = {1, 0};

    if (resetting >= 0) {
        int fd = accept(resetting, NULL, NULL);

        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
        assert_int_equal(close(fd), 0);
        assert_int_equal(close(resetting), 0);
        resetting = -1;
    }
    return __real_poll(fds, count, timeout);
}

static char socket_path[] = "/tmp/lockstep-test-probe-XXXXXX";

/* One probe of a server that acts like this, by TCP. */
static err_t
probe_of(
    struct server *s, const char *answer, int64_t deadline_ms, int *ret_status, struct error *e)
{
    struct probe p = {
        .address = "127.0.0.1",
        .host = "a.example:80",
        .path = "/health?x=1",
        .tls = s->act == ACT_TLS || s->act == ACT_TLS_SILENT,
    };
    err_t code;

    server_listen_inet(s);
    p.port = s->port;
    server_start(s, s->act, answer);
    code = probe_http(&p, deadline_ms, ret_status, e);
    server_stop(s);
    return code;
}

static void
gives(enum act act, const char *answer, err_t want, int want_status)
{
    struct server s = {.act = act};
    struct error e = {.msg = ""};
    int status = -1;

    assert_int_equal(probe_of(&s, answer, LONG_MS, &status, &e), want);
    assert_int_equal(status, want_status);
    if (want != ERR_OK) {
        assert_non_null(strstr(e.msg, "127.0.0.1"));
    }
}

static void
status_of_the_answer_is_returned(void **state)
{
    (void)state;
    gives(ACT_ANSWER, "HTTP/1.1 200 OK\r\n\r\n", ERR_OK, 200);
    gives(ACT_ANSWER, "HTTP/1.0 503 Service Unavailable\r\nX: y\r\n\r\nbody", ERR_OK, 503);
    gives(ACT_ANSWER, "HTTP/1.1 100\r\n", ERR_OK, 100);
    gives(ACT_ANSWER, "HTTP/1.1 599\n", ERR_OK, 599);
    gives(ACT_TRICKLE, "HTTP/1.1 404 Not Found\r\n\r\n", ERR_OK, 404);
}

static void
request_is_one_well_formed_get(void **state)
{
    struct server s = {.act = ACT_ANSWER};
    int status = 0;

    (void)state;
    assert_int_equal(probe_of(&s, "HTTP/1.1 200 OK\r\n\r\n", LONG_MS, &status, NULL), ERR_OK);
    assert_string_equal(
        s.request, "GET /health?x=1 HTTP/1.1\r\n"
                   "Host: a.example:80\r\n"
                   "User-Agent: lockstep\r\n"
                   "Accept: */*\r\n"
                   "Connection: close\r\n"
                   "\r\n");
}

/* A probe that keeps what is answered. */
static err_t
probe_head(enum act act, const char *answer, struct buf *head, struct error *e)
{
    struct probe p = {
        .address = "127.0.0.1",
        .host = "a.example",
        .path = "/",
        .source = "127.0.0.9",
        .proxied = true,
        .head = head,
    };
    struct server s = {.act = act};
    int status = 0;
    err_t code;

    server_listen_inet(&s);
    p.port = s.port;
    server_start(&s, act, answer);
    buf_reset(head);
    code = probe_http(&p, LONG_MS, &status, e);
    server_stop(&s);
    assert_int_equal(status, code == ERR_OK ? 204 : 0);
    assert_string_equal(s.source, "127.0.0.9");
    assert_ptr_equal(strstr(s.request, "PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n"), s.request);
    return code;
}

static void
head_is_kept_and_proxy_and_source_are_said(void **state)
{
    static const char answer[] = "HTTP/1.1 204 No Content\r\nA: b\r\nC: d\r\n\r\n";
    static const char cut[] = "HTTP/1.1 204 No Content\r\nA: b\r\n";
    CLEANUP(buf_fini) struct buf head;
    struct error e;

    (void)state;
    buf_init(&head, sizeof answer);
    assert_int_equal(probe_head(ACT_ANSWER, answer, &head, NULL), ERR_OK);
    assert_string_equal(buf_str(&head), answer);
    assert_int_equal(probe_head(ACT_TRICKLE, answer, &head, NULL), ERR_OK);
    assert_string_equal(buf_str(&head), answer);
    assert_int_equal(probe_head(ACT_ANSWER, cut, &head, &e), ERR_UNAVAILABLE);
    buf_fini(&head);
    buf_init(&head, 20);
    assert_int_equal(probe_head(ACT_ANSWER, answer, &head, &e), ERR_INVALID);
}

static void
answer_that_is_not_http_is_invalid(void **state)
{
    (void)state;
    gives(ACT_ANSWER, "SSH-2.0-OpenSSH_9.2\r\n", ERR_INVALID, -1);
    gives(ACT_ANSWER, "HTTP/2.0 200 OK\r\n", ERR_INVALID, -1);
    gives(ACT_ANSWER, "HTTP/1.1 2x0 OK\r\n", ERR_INVALID, -1);
    gives(ACT_ANSWER, "HTTP/1.1 2000 OK\r\n", ERR_INVALID, -1);
    gives(ACT_ANSWER, "HTTP/1.1 099 OK\r\n", ERR_INVALID, -1);
    gives(ACT_ANSWER, "HTTP/1.1 600 OK\r\n", ERR_INVALID, -1);
    gives(ACT_TRICKLE, "x", ERR_INVALID, -1);
}

static void
closed_connection_is_unavailable(void **state)
{
    (void)state;
    gives(ACT_CLOSE, "", ERR_UNAVAILABLE, -1);
    gives(ACT_ANSWER, "", ERR_UNAVAILABLE, -1);
    gives(ACT_ANSWER, "HTTP/1.1 20", ERR_UNAVAILABLE, -1);
}

static void
silent_server_is_a_timeout(void **state)
{
    struct server s = {.act = ACT_SILENT};
    struct error e;
    int64_t before = clock_mono_ms(&clock_system);
    int status = -1;

    (void)state;
    assert_int_equal(probe_of(&s, "", SHORT_MS, &status, &e), ERR_TIMEOUT);
    assert_true(clock_mono_ms(&clock_system) - before >= SHORT_MS);
    assert_true(clock_mono_ms(&clock_system) - before < LONG_MS);
    s = (struct server){.act = ACT_SILENT};
    assert_int_equal(probe_of(&s, "", 0, &status, &e), ERR_TIMEOUT);
    assert_int_equal(status, -1);
}

static void
tls_is_spoken_without_verification(void **state)
{
    struct server s = {.act = ACT_TLS};
    int status = 0;

    (void)state;
    assert_int_equal(
        probe_of(&s, "HTTP/1.1 204 No Content\r\n\r\n", LONG_MS, &status, NULL), ERR_OK);
    assert_int_equal(status, 204);
    assert_string_equal(s.server_name, "a.example");
    assert_memory_equal(s.request, "GET /health?x=1 HTTP/1.1\r\n", 26);
}

static void
addresses_are_not_sent_as_server_name(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "[::1]:443", "::1"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct server s = {.act = ACT_TLS};
        struct probe p = {.address = "127.0.0.1", .tls = true, .host = hosts[i], .path = "/"};
        int status = 0;

        server_listen_inet(&s);
        p.port = s.port;
        server_start(&s, ACT_TLS, "HTTP/1.1 200 OK\r\n\r\n");
        assert_int_equal(probe_http(&p, LONG_MS, &status, NULL), ERR_OK);
        server_stop(&s);
        assert_string_equal(s.server_name, "(none)");
    }
}

static void
tls_failures_have_their_codes(void **state)
{
    struct server s = {.act = ACT_TLS_SILENT};
    struct error e;
    int status = -1;

    (void)state;
    assert_int_equal(probe_of(&s, "", 1000, &status, &e), ERR_TIMEOUT);
    assert_int_equal(s.request[0], 'G');
    /* Closed without an answer, behind a completed handshake. */
    s = (struct server){.act = ACT_TLS};
    assert_int_equal(probe_of(&s, "", LONG_MS, &status, &e), ERR_UNAVAILABLE);
    s = (struct server){.act = ACT_TLS};
    assert_int_equal(probe_of(&s, "garbage garbage", LONG_MS, &status, &e), ERR_INVALID);
    assert_int_equal(status, -1);
}

/* A TLS client hello meets a server that does something else. */
static err_t
tls_probe_meets(enum act act, const char *answer, int64_t deadline_ms)
{
    struct server s = {.act = act};
    struct probe p = {.address = "127.0.0.1", .tls = true, .host = "a", .path = "/"};
    struct error e;
    int status = -1;
    err_t code;

    server_listen_inet(&s);
    p.port = s.port;
    server_start(&s, act, answer);
    code = probe_http(&p, deadline_ms, &status, &e);
    server_stop(&s);
    assert_int_equal(status, -1);
    return code;
}

static void
server_without_tls_is_told_apart(void **state)
{
    (void)state;
    assert_int_equal(
        tls_probe_meets(ACT_EARLY, "HTTP/1.1 400 Bad\r\n\r\n", LONG_MS), ERR_INVALID);
    assert_int_equal(tls_probe_meets(ACT_SILENT, "", SHORT_MS), ERR_TIMEOUT);
    assert_int_equal(tls_probe_meets(ACT_CLOSE, "", LONG_MS), ERR_UNAVAILABLE);
}

static void
refused_connection_is_unavailable(void **state)
{
    struct server s = {.fd = -1};
    struct probe p = {.address = "127.0.0.1", .host = "a", .path = "/"};
    struct error e;
    int status = -1;

    (void)state;
    server_listen_inet(&s);
    p.port = s.port;
    fd_cleanup(&s.fd);
    assert_int_equal(probe_http(&p, LONG_MS, &status, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.msg, "cannot connect to 127.0.0.1: Connection refused");
    p.address = "::1";
    assert_int_equal(probe_http(&p, LONG_MS, &status, &e), ERR_UNAVAILABLE);
}

static int
resetting_listener(void)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof sin;

    resetting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(resetting, (struct sockaddr *)&sin, sizeof sin), 0);
    assert_int_equal(listen(resetting, 1), 0);
    assert_int_equal(getsockname(resetting, (struct sockaddr *)&sin, &size), 0);
    return ntohs(sin.sin_port);
}

/* As HAProxy does for who is not allowed, perhaps before the one who connects gets to look. */
static void
connection_that_is_reset_was_accepted(void **state)
{
    struct probe p = {.address = "127.0.0.1", .host = "a", .path = "/"};
    struct error e;
    int status;
    int port = resetting_listener();

    (void)state;
    assert_int_equal(probe_connect("127.0.0.1", port, LONG_MS, &e), ERR_OK);
    assert_int_equal(probe_connect("127.0.0.1", port, LONG_MS, &e), ERR_UNAVAILABLE);
    p.port = resetting_listener();
    assert_int_equal(probe_http(&p, LONG_MS, &status, &e), ERR_UNAVAILABLE);
}

static void
rejects_unusable_requests(void **state)
{
    static const struct probe bad[] = {
        {"localhost", 80, false, "a", "/"},
        {"127.0.0.1", 0, false, "a", "/"},
        {"127.0.0.1", 65536, false, "a", "/"},
        {"", 80, false, "a", "/"},
        {"127.0.0.1", 80, false, "a\r\nX: y", "/"},
        {"127.0.0.1", 80, false, "a b", "/"},
        {"127.0.0.1", 80, false, "", "/"},
        {"127.0.0.1", 80, false, "a", "/ HTTP/1.1\r\nX: y"},
        {"127.0.0.1", 80, false, "a", "/\n"},
        {"127.0.0.1", 80, false, "a", "/\xc3\xa9"},
        {"127.0.0.1", 80, false, "a", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error e;
        int status = -1;

        assert_int_equal(probe_http(&bad[i], LONG_MS, &status, &e), ERR_INVALID);
        assert_int_equal(status, -1);
    }
}

static void
request_line_is_bounded(void **state)
{
    static char path[20000];
    struct probe p = {.address = "127.0.0.1", .port = 1, .host = "a", .path = path};
    int status;

    (void)state;
    memset(path, '/', sizeof path - 1);
    assert_int_equal(probe_http(&p, LONG_MS, &status, NULL), ERR_INVALID);
}

static void
unix_socket_is_probed(void **state)
{
    struct server s = {.fd = -1};
    struct probe p = {.address = socket_path, .host = "a", .path = "/"};
    int status = 0;

    (void)state;
    server_listen_unix(&s, socket_path, 8);
    server_start(&s, ACT_ANSWER, "HTTP/1.1 200 OK\r\n\r\n");
    assert_int_equal(probe_http(&p, LONG_MS, &status, NULL), ERR_OK);
    server_stop(&s);
    assert_int_equal(status, 200);
}

static void
command_gets_its_whole_answer(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct server s = {.fd = -1};

    (void)state;
    buf_init(&out, 1000);
    server_listen_unix(&s, socket_path, 8);
    server_start(&s, ACT_TO_END, "Name: HAProxy\nVersion: 2.6.12\n\n");
    assert_int_equal(probe_unix(socket_path, "show info\n", 10, LONG_MS, &out, NULL), ERR_OK);
    server_stop(&s);
    assert_int_equal(s.received, 10);
    assert_string_equal(buf_str(&out), "Name: HAProxy\nVersion: 2.6.12\n\n");
}

static void
empty_command_is_only_half_closed(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct server s = {.fd = -1};

    (void)state;
    buf_init(&out, 1000);
    server_listen_unix(&s, socket_path, 8);
    server_start(&s, ACT_TO_END, "x");
    assert_int_equal(probe_unix(socket_path, "", 0, LONG_MS, &out, NULL), ERR_OK);
    server_stop(&s);
    assert_string_equal(buf_str(&out), "x");
}

static void
long_command_and_long_answer_do_not_block(void **state)
{
    static char command[4 << 20];
    CLEANUP(buf_fini) struct buf out;
    struct server s = {.fd = -1};

    (void)state;
    for (size_t i = 0; i < sizeof command; i++) {
        command[i] = (char)('a' + i % 23);
    }
    buf_init(&out, sizeof command);
    server_listen_unix(&s, socket_path, 8);
    server_start(&s, ACT_ECHO, "");
    assert_int_equal(
        probe_unix(socket_path, command, sizeof command, LONG_MS, &out, NULL), ERR_OK);
    server_stop(&s);
    assert_int_equal(out.len, sizeof command);
    assert_memory_equal(out.data, command, sizeof command);
}

static void
early_answer_counts(void **state)
{
    static const char command[4 << 20];
    CLEANUP(buf_fini) struct buf out;
    struct server s = {.fd = -1};

    (void)state;
    buf_init(&out, 1000);
    server_listen_unix(&s, socket_path, 8);
    server_start(&s, ACT_EARLY, "Permission denied\n");
    assert_int_equal(
        probe_unix(socket_path, command, sizeof command, LONG_MS, &out, NULL), ERR_OK);
    server_stop(&s);
    assert_string_equal(buf_str(&out), "Permission denied\n");
}

static void
command_failures_have_their_codes(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct server s = {.fd = -1};
    struct error e;
    char path[109];

    (void)state;
    buf_init(&out, 10);
    server_listen_unix(&s, socket_path, 8);
    server_start(&s, ACT_TO_END, "longer than ten bytes");
    assert_int_equal(probe_unix(socket_path, "x", 1, LONG_MS, &out, &e), ERR_LIMIT);
    server_stop(&s);
    buf_reset(&out);
    assert_int_equal(probe_unix(socket_path, "x", 1, LONG_MS, &out, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.msg, "Connection refused"));
    assert_int_equal(
        probe_unix("/tmp/lockstep-no/s", "x", 1, LONG_MS, &out, &e), ERR_UNAVAILABLE);
    memset(path, '/', sizeof path - 1);
    path[108] = '\0';
    assert_int_equal(probe_unix(path, "x", 1, LONG_MS, &out, &e), ERR_INVALID);
    path[107] = '\0';
    assert_int_equal(probe_unix(path, "x", 1, LONG_MS, &out, &e), ERR_UNAVAILABLE);
    assert_int_equal(out.len, 0);
}

static void
full_backlog_and_no_answer_are_timeouts(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct server s = {.fd = -1};
    struct error e;
    err_t code = ERR_OK;

    (void)state;
    buf_init(&out, 1000);
    server_listen_unix(&s, socket_path, 0);
    for (int i = 0; i < 3 && code != ERR_INTERNAL; i++) {
        code = probe_unix(socket_path, "x", 1, SHORT_MS, &out, &e);
        assert_int_equal(code, ERR_TIMEOUT);
    }
    assert_int_equal(probe_unix(socket_path, "x", 1, 0, &out, &e), ERR_TIMEOUT);
    fd_cleanup(&s.fd);
}

static int
choose_path(void **state)
{
    (void)state;
    memcpy(socket_path + sizeof socket_path - 7, "XXXXXX", 6);
    return mkdtemp(socket_path) == NULL || rmdir(socket_path) != 0 ? -1 : 0;
}

static int
remove_socket(void **state)
{
    (void)state;
    (void)unlink(socket_path);
    return 0;
}

#define UNIX_TEST(name) cmocka_unit_test_setup_teardown(name, choose_path, remove_socket)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_of_the_answer_is_returned),
        cmocka_unit_test(request_is_one_well_formed_get),
        cmocka_unit_test(head_is_kept_and_proxy_and_source_are_said),
        cmocka_unit_test(answer_that_is_not_http_is_invalid),
        cmocka_unit_test(closed_connection_is_unavailable),
        cmocka_unit_test(silent_server_is_a_timeout),
        cmocka_unit_test(tls_is_spoken_without_verification),
        cmocka_unit_test(addresses_are_not_sent_as_server_name),
        cmocka_unit_test(tls_failures_have_their_codes),
        cmocka_unit_test(server_without_tls_is_told_apart),
        cmocka_unit_test(refused_connection_is_unavailable),
        cmocka_unit_test(connection_that_is_reset_was_accepted),
        cmocka_unit_test(rejects_unusable_requests),
        cmocka_unit_test(request_line_is_bounded),
        UNIX_TEST(unix_socket_is_probed),
        UNIX_TEST(command_gets_its_whole_answer),
        UNIX_TEST(empty_command_is_only_half_closed),
        UNIX_TEST(long_command_and_long_answer_do_not_block),
        UNIX_TEST(early_answer_counts),
        UNIX_TEST(command_failures_have_their_codes),
        UNIX_TEST(full_backlog_and_no_answer_are_timeouts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/http_lab.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"

#define ANSWER_MAX ((size_t)8 << 20)
#define LONG_MS    20000 /* only ever reached by a failure */

static void
forget(struct http_lab *l)
{
    json_decref(l->json);
    l->json = NULL;
    l->status = 0;
    l->closed = false;
    l->head = "";
    l->body = "";
    buf_reset(&l->bytes);
}

/* ---- life ---- */

static void
make_accounts(struct http_lab *l)
{
    static const struct actor who = {"test"};
    struct account_login login = {"maria", HTTP_LAB_PASSWORD, "192.0.2.1"};
    struct engine *en = l->engine->en;
    struct problems *p = &l->engine->problems;
    json_auto_t *body = json_pack("{s:s}", "name", "deploy");
    CLEANUP(buf_fini) struct buf token;
    char path[512];
    int64_t retry_s;

    buf_init(&token, 256);
    buf_init(&l->token, 256);
    buf_init(&l->key, 256);
    problems_init(p, l->engine->arena);
    (void)snprintf(path, sizeof path, "%s/data/setup-token", l->engine->fake.state_dir);
    assert_int_equal(file_read_at(AT_FDCWD, path, &token, NULL), ERR_OK);
    assert_int_equal(
        account_setup(en, buf_str(&token), "maria", HTTP_LAB_PASSWORD, p, NULL), ERR_OK);
    assert_int_equal(account_login(en, &login, &l->token, &l->session, &retry_s, NULL), ERR_OK);
    assert_int_equal(account_key_create(en, body, &who, &l->key, p, NULL), ERR_OK);
}

/* As the server says it when a session ends. */
static void
find_cookie_name(struct http_lab *l)
{
    const char *cookie;

    assert_int_equal(http_lab_ask(l, "DELETE /api/v1/session", HTTP_LAB_KEY, NULL, NULL), 204);
    cookie = http_lab_field(l, "Set-Cookie");
    assert_non_null(cookie);
    (void)snprintf(
        l->cookie_name, sizeof l->cookie_name, "%.*s", (int)strcspn(cookie, "="), cookie);
}

struct http_lab *
http_lab_new(void (*tune)(struct tunables *t))
{
    return http_lab_new_in(FAKE_FOLDER, tune);
}

struct http_lab *
http_lab_new_in(const char *folder, void (*tune)(struct tunables *t))
{
    struct http_lab *l = xcalloc(1, sizeof *l);
    struct http_config config = {.address = "127.0.0.1"};
    struct error e;

    l->engine = engine_lab_new_in(folder);
    if (tune != NULL) {
        tune(&l->engine->tunables);
    }
    engine_lab_start(l->engine);
    buf_init(&l->bytes, ANSWER_MAX);
    make_accounts(l);
    config.engine = l->engine->en;
    config.tunables = &l->engine->tunables;
    config.clock = &l->engine->clock;
    if (http_open(&config, &l->http, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    find_cookie_name(l);
    forget(l);
    return l;
}

void
http_lab_close_server(struct http_lab *l)
{
    http_close(l->http);
    l->http = NULL;
}

void
http_lab_delete(struct http_lab *l)
{
    http_close(l->http);
    engine_lab_delete(l->engine);
    json_decref(l->json);
    buf_fini(&l->bytes);
    buf_fini(&l->key);
    buf_fini(&l->token);
    free(l);
}

int
http_lab_setup(void **state)
{
    *state = http_lab_new(NULL);
    return 0;
}

int
http_lab_teardown(void **state)
{
    http_lab_delete(*state);
    return 0;
}

/* ---- bytes ---- */

int
http_lab_connect(struct http_lab *l)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)http_port(l->http)),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

void
http_lab_send(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = send(fd, bytes, count, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return; /* closed: the answer tells */
        }
        bytes += n;
        count -= (size_t)n;
    }
}

/* False: the server closed, or reset. */
static bool
read_some(struct http_lab *l, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char piece[8192];
    ssize_t n;

    if (poll(&p, 1, LONG_MS) != 1) {
        fail_msg("no answer; so far: %s", buf_str(&l->bytes));
    }
    n = recv(fd, piece, sizeof piece, 0);
    if (n > 0) {
        buf_put(&l->bytes, piece, (size_t)n);
    }
    return n > 0;
}

static size_t
number(const char *s)
{
    size_t n = 0;

    for (; *s >= '0' && *s <= '9'; s++) {
        n = n * 10 + (size_t)(*s - '0');
    }
    return n;
}

/* Takes the header apart once it is complete; false before. */
static bool
find_head(struct http_lab *l)
{
    char *end = l->bytes.len > 0 ? strstr(l->bytes.data, "\r\n\r\n") : NULL;

    if (end == NULL || strncmp(l->bytes.data, "HTTP/1.1 ", 9) != 0) {
        return false;
    }
    l->status = (int)number(l->bytes.data + 9);
    l->head = l->bytes.data;
    l->body = end + 4;
    return true;
}

/* Drops "100 Continue": the answer comes behind it. */
static void
drop_interim(struct http_lab *l)
{
    size_t rest;

    if (find_head(l) && l->status == 100) {
        rest = l->bytes.len - (size_t)(l->body - l->bytes.data);
        memmove(l->bytes.data, l->body, rest + 1);
        l->bytes.len = rest;
    }
}

static bool
is_complete(struct http_lab *l, bool head)
{
    const char *length;

    drop_interim(l);
    if (!find_head(l)) {
        return false;
    }
    length = http_lab_field(l, "Content-Length");
    return head || length == NULL ||
           l->bytes.len - (size_t)(l->body - l->bytes.data) >= number(length);
}

bool
http_lab_read(struct http_lab *l, int fd, bool head)
{
    const char *type;

    forget(l);
    while (!is_complete(l, head)) {
        if (!read_some(l, fd)) {
            l->closed = true;
            return false;
        }
    }
    type = http_lab_field(l, "Content-Type");
    if (!head && type != NULL && strstr(type, "json") != NULL) {
        assert_int_equal(json_parse(l->body, strlen(l->body), &l->json, NULL), ERR_OK);
    }
    return true;
}

void
http_lab_read_until(struct http_lab *l, int fd, const char *text)
{
    while (strstr(buf_str(&l->bytes), text) == NULL) {
        if (!read_some(l, fd)) {
            fail_msg("closed before %s: %s", text, buf_str(&l->bytes));
        }
    }
    (void)find_head(l);
}

int64_t
http_lab_read_end(struct http_lab *l, int fd)
{
    int64_t from_ms = clock_mono_ms(&clock_system);

    while (read_some(l, fd)) {
    }
    return clock_mono_ms(&clock_system) - from_ms;
}

/* ---- requests ---- */

int
http_lab_raw(struct http_lab *l, const char *bytes)
{
    int fd = http_lab_connect(l);

    http_lab_send(fd, bytes, strlen(bytes));
    (void)http_lab_read(l, fd, strncmp(bytes, "HEAD ", 5) == 0);
    (void)close(fd);
    return l->status;
}

static void
put_credentials(struct http_lab *l, const char *with, struct buf *out)
{
    if (with != NULL && strcmp(with, HTTP_LAB_KEY) == 0) {
        buf_printf(out, "Authorization: Bearer %s\r\n", buf_str(&l->key));
    } else if (with != NULL) {
        assert_string_equal(with, HTTP_LAB_COOKIE);
        buf_printf(
            out, "Cookie: %s=%s\r\nLockstep-CSRF: %s\r\n", l->cookie_name, buf_str(&l->token),
            l->session.csrf);
    }
}

int
http_lab_ask(
    struct http_lab *l, const char *line, const char *with, const char *fields,
    const char *body)
{
    CLEANUP(buf_fini) struct buf out;
    int status;

    buf_init(&out, ANSWER_MAX);
    buf_printf(&out, "%s HTTP/1.1\r\nHost: node\r\n", line);
    put_credentials(l, with, &out);
    buf_puts(&out, fields != NULL ? fields : "");
    if (body != NULL) {
        if (fields == NULL || strstr(fields, "Content-Type") == NULL) {
            buf_puts(&out, "Content-Type: application/json\r\n");
        }
        buf_printf(&out, "Content-Length: %zu\r\n", strlen(body));
    }
    buf_puts(&out, "\r\n");
    for (const char *p = body != NULL ? body : ""; *p != '\0'; p++) {
        buf_putc(&out, *p == '\'' ? '"' : *p);
    }
    status = http_lab_raw(l, buf_str(&out));
    return status;
}

void
http_lab_must(
    struct http_lab *l, int status, const char *line, const char *fields, const char *body)
{
    if (http_lab_ask(l, line, HTTP_LAB_KEY, fields, body) != status) {
        fail_msg("%s: %d, not %d: %s", line, l->status, status, buf_str(&l->bytes));
    }
}

/* ---- the answer ---- */

const char *
http_lab_field(struct http_lab *l, const char *name)
{
    size_t len = strlen(name);
    const char *at = strstr(l->head, "\r\n");

    while (at != NULL && at + 2 < l->body) {
        at += 2;
        if (strncasecmp(at, name, len) == 0 && at[len] == ':') {
            const char *value = at + len + 1 + strspn(at + len + 1, " ");

            return arena_memdup0(l->engine->arena, value, strcspn(value, "\r"));
        }
        at = strstr(at, "\r\n");
    }
    return NULL;
}

const char *
http_lab_text(struct http_lab *l, const char *key)
{
    const char *text = json_string_value(json_object_get(l->json, key));

    return text != NULL ? text : "";
}

const char *
http_lab_if_match(struct http_lab *l, const char *path)
{
    const char *etag;

    http_lab_must(l, 200, arena_printf(l->engine->arena, "GET %s", path), NULL, NULL);
    etag = http_lab_field(l, "ETag");
    assert_non_null(etag);
    return arena_printf(l->engine->arena, "If-Match: %s\r\n", etag);
}

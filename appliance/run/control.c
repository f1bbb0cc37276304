/* SPDX-License-Identifier: Apache-2.0 */
#include "run/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

#define REQUEST_MAX_BYTES ((size_t)4096)
#define ANSWER_MAX_BYTES  ((size_t)512 << 10)
#define REQUEST_MS        2000
#define MAX_JSON          ((int64_t)9007199254740991)

typedef err_t (*verb_fn)(
    struct control *c, const json_t *request, json_t *answer, struct error *e);

static err_t
verb_start(struct control *c, const json_t *request, json_t *answer, struct error *e)
{
    (void)request;
    (void)answer;
    return service_start(c->service, e);
}

static err_t
verb_stop(struct control *c, const json_t *request, json_t *answer, struct error *e)
{
    (void)request;
    (void)answer;
    (void)e;
    service_stop(c->service);
    return ERR_OK;
}

static err_t
verb_restart(struct control *c, const json_t *request, json_t *answer, struct error *e)
{
    (void)request;
    (void)answer;
    return service_restart(c->service, e);
}

static err_t
verb_status(struct control *c, const json_t *request, json_t *answer, struct error *e)
{
    CLEANUP(buf_fini) struct buf output = {0};
    struct service *s = c->service;
    json_auto_t *v = NULL;
    int64_t from = 0;
    err_t code = json_opt_int(request, "output_from", 0, MAX_JSON, &from, e);

    if (code != ERR_OK) {
        return code;
    }
    output_read(&s->output);
    buf_init(&output, OUTPUT_KEPT_BYTES);
    output_since(&s->output, from, &output);
    v = json_pack(
        "{s:s, s:i, s:b, s:I, s:I, s:s, s:I}", "state", service_state_name(service_state(s)),
        "pid", s->child.pid, "on_good", s->on_good ? 1 : 0, "generation",
        (json_int_t)s->generation, "failures", (json_int_t)s->failures, "output",
        buf_str(&output), "output_end", (json_int_t)s->output.end);
    return json_object_update(answer, v) == 0
               ? ERR_OK
               : error_set(e, ERR_INTERNAL, "cannot tell the status");
}

static const char *const call_keys[] = {"verb", "service", NULL};
static const char *const status_keys[] = {"verb", "service", "output_from", NULL};

static const struct verb {
    const char *name;
    const char *const *keys;
    verb_fn run;
    bool changes;
} verbs[] = {
    {"start", call_keys, verb_start, true},
    {"stop", call_keys, verb_stop, true},
    {"restart", call_keys, verb_restart, true},
    {"status", status_keys, verb_status, false},
};

static err_t
run_verb(struct control *c, const json_t *request, json_t *answer, struct error *e)
{
    const char *name = NULL;
    const char *service = NULL;
    const struct verb *verb = NULL;
    err_t code = json_is_object(request) ? json_get_str(request, "verb", &name, e)
                                         : error_set(e, ERR_SYNTAX, "not a JSON object");

    if (code == ERR_OK) {
        code = json_get_str(request, "service", &service, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    ASSERT(name != NULL && service != NULL);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            verb = &verbs[i];
        }
    }
    if (verb == NULL || strcmp(service, "haproxy") != 0) {
        return error_set(e, ERR_INVALID, "unknown verb or service");
    }
    if (verb->changes && c->closing) {
        return error_set(e, ERR_BUSY, "lockstep-run is ending");
    }
    code = json_only_keys(request, verb->keys, e);
    return code == ERR_OK ? verb->run(c, request, answer, e) : code;
}

void
control_answer(struct control *c, const char *request, size_t bytes, struct buf *answer)
{
    json_auto_t *parsed = NULL;
    json_auto_t *result = json_object();
    struct error e = {.code = ERR_OK};
    err_t code = json_parse(request, bytes, &parsed, &e);

    if (code == ERR_OK) {
        code = run_verb(c, parsed, result, &e);
    }
    if (code != ERR_OK) {
        json_decref(result);
        result =
            json_pack("{s:b, s:s, s:s}", "ok", 0, "code", error_name(code), "message", e.msg);
    } else {
        ASSERT(json_object_set_new(result, "ok", json_true()) == 0);
    }
    ASSERT(result != NULL);
    json_canonical(result, answer);
    buf_putc(answer, '\n');
}

static void
connection_end(struct connection *n)
{
    fd_cleanup(&n->fd);
    buf_fini(&n->request);
}

static bool
listen_at(int fd, const struct sockaddr_un *sun)
{
    mode_t mask;
    int rc;

    if (fd < 0 || (unlink(sun->sun_path) != 0 && errno != ENOENT)) {
        return false;
    }
    mask = umask(0177);
    rc = bind(fd, (const struct sockaddr *)sun, sizeof *sun);
    (void)umask(mask);
    return rc == 0 && listen(fd, CONTROL_CONNECTIONS) == 0;
}

err_t
control_open(struct control *c, const char *run_dir, struct service *s, struct error *e)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int n = snprintf(sun.sun_path, sizeof sun.sun_path, "%s/%s", run_dir, CONTROL_NAME);

    *c = (struct control){.listener = -1, .service = s};
    for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
        c->connections[i].fd = -1;
    }
    if (n < 0 || (size_t)n >= sizeof sun.sun_path) {
        return error_set(e, ERR_INVALID, "the path %s is too long for a socket", run_dir);
    }
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (!listen_at(c->listener, &sun)) {
        err_t code = error_errno(e, ERR_IO, errno, "cannot listen on %s", sun.sun_path);

        fd_cleanup(&c->listener);
        return code;
    }
    return ERR_OK;
}

void
control_close(struct control *c)
{
    for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
        connection_end(&c->connections[i]);
    }
    fd_cleanup(&c->listener);
}

void
control_poll_fds(const struct control *c, struct pollfd *fds)
{
    bool full = true;

    for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
        fds[i + 1] = (struct pollfd){.fd = c->connections[i].fd, .events = POLLIN};
        full = full && c->connections[i].fd >= 0;
    }
    fds[0] = (struct pollfd){.fd = full ? -1 : c->listener, .events = POLLIN};
}

int64_t
control_deadline_ms(const struct control *c)
{
    int64_t first = CHILD_NEVER;

    for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
        if (c->connections[i].fd >= 0 && c->connections[i].end_ms < first) {
            first = c->connections[i].end_ms;
        }
    }
    return first;
}

/* The answer fits the socket's buffer; a client that does not take it loses it. */
static void
serve(struct control *c, struct connection *n, size_t bytes)
{
    CLEANUP(buf_fini) struct buf answer;
    int room = (int)ANSWER_MAX_BYTES;

    buf_init(&answer, ANSWER_MAX_BYTES);
    control_answer(c, n->request.data, bytes, &answer);
    (void)setsockopt(n->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    if (send(n->fd, buf_str(&answer), answer.len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)answer.len) {
        log_debug("an answer was not taken");
    }
}

/* True when a request was served. */
static bool
receive(struct control *c, struct connection *n)
{
    char chunk[1024];
    ssize_t got = recv(n->fd, chunk, sizeof chunk, MSG_DONTWAIT);
    const char *end;

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        connection_end(n);
        return false;
    }
    buf_put(&n->request, chunk, (size_t)got);
    end = n->request.len > 0 ? memchr(n->request.data, '\n', n->request.len) : NULL;
    if (end == NULL && !n->request.failed) {
        return false;
    }
    if (end != NULL) {
        serve(c, n, (size_t)(end - n->request.data));
    }
    connection_end(n);
    return end != NULL;
}

static bool
may_call(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return false;
    }
    if (peer.uid != 0) {
        log_warning("refused a call of uid %u (pid %d)", peer.uid, peer.pid);
    }
    return peer.uid == 0;
}

static void
accept_one(struct control *c)
{
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
    struct connection *n = c->connections;

    while (n < c->connections + CONTROL_CONNECTIONS && n->fd >= 0) {
        n++;
    }
    if (fd < 0 || !may_call(fd) || n == c->connections + CONTROL_CONNECTIONS) {
        fd_cleanup(&fd);
        return;
    }
    n->fd = fd;
    n->end_ms = clock_mono_ms(&clock_system) + REQUEST_MS;
    buf_init(&n->request, REQUEST_MAX_BYTES);
}

bool
control_tick(struct control *c, const struct pollfd *fds)
{
    bool changed = false;

    for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
        struct connection *n = &c->connections[i];

        if (n->fd >= 0 && fds[i + 1].fd == n->fd && fds[i + 1].revents != 0) {
            changed = receive(c, n) || changed;
        }
        if (n->fd >= 0 && n->end_ms <= clock_mono_ms(&clock_system)) {
            connection_end(n);
        }
    }
    if (fds[0].revents != 0) {
        accept_one(c);
    }
    return changed;
}

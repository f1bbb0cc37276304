/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "helper/protocol.h"
#include "helper/verbs.h"

#define SOCKET_NAME "helper.sock"
/* To send the request, and to take the answer. */
#define CLIENT_MS 2000
#define BACKLOG   16

static const char *const only_verb[] = {"verb", NULL};
static const char *const verb_and_generation[] = {"verb", "generation", NULL};
static const char *const verb_and_keep[] = {"verb", "generation", "keep", NULL};
static const char *const verb_and_binds[] = {"verb", "binds", NULL};
static const char *const verb_and_renames[] = {"verb", "backends", "servers", "states", NULL};

static const struct verb {
    const char *name;
    const char *const *keys;
    helper_verb_fn run;
} verbs[] = {
    {"stage", verb_and_generation, verb_stage},
    {"bind-test", verb_and_binds, verb_bind_test},
    {"install", verb_and_generation, verb_install},
    {"settle", verb_and_keep, verb_settle},
    {"reload", verb_and_renames, verb_reload},
    {"restart", only_verb, verb_restart},
    {"status", only_verb, verb_status},
};

static err_t
run_verb(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    const char *name = "";
    err_t code = json_is_object(request) ? json_get_str(request, "verb", &name, e)
                                         : error_set(e, ERR_SYNTAX, "not a JSON object");

    if (code != ERR_OK) {
        return code;
    }
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            code = json_only_keys(request, verbs[i].keys, e);
            return code != ERR_OK ? code : verbs[i].run(c, request, answer, e);
        }
    }
    return error_set(e, ERR_INVALID, "unknown verb");
}

static void
put_refusal(const struct error *e, struct buf *answer)
{
    json_auto_t *v =
        json_pack("{s:b, s:s, s:s}", "ok", 0, "code", error_name(e->code), "message", e->msg);

    ASSERT(v != NULL);
    json_canonical(v, answer);
    buf_putc(answer, '\n');
}

static err_t
answer_of(
    struct helper_context *c, const char *request, size_t bytes, struct buf *answer,
    struct error *e)
{
    json_auto_t *parsed = NULL;
    json_auto_t *result = json_object();
    err_t code = json_parse(request, bytes, &parsed, e);

    ASSERT(result != NULL);
    if (code == ERR_OK) {
        code = run_verb(c, parsed, result, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    ASSERT(json_object_set_new(result, "ok", json_true()) == 0);
    json_canonical(result, answer);
    buf_putc(answer, '\n');
    return buf_status(answer, e);
}

void
helper_answer(struct helper_context *c, const char *request, size_t bytes, struct buf *answer)
{
    struct error e = {.code = ERR_OK};

    if (answer_of(c, request, bytes, answer, &e) != ERR_OK) {
        buf_reset(answer);
        put_refusal(&e, answer);
    }
}

static bool
wait_for(int fd, short events, int64_t end_ms)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = end_ms - clock_mono_ms(&clock_system);
        int n;

        if (left <= 0) {
            return false;
        }
        n = poll(&p, 1, (int)left);
        if (n > 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
    }
}

/* One line, whose newline is taken off. False when the client does not send one in time. */
static bool
read_request(int fd, struct buf *out)
{
    int64_t end_ms = clock_mono_ms(&clock_system) + CLIENT_MS;
    char chunk[8192];

    while (wait_for(fd, POLLIN, end_ms)) {
        ssize_t n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
        const char *end;

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        /* Read to its end even when it is too long: a client that still sends would not
         * see the answer. */
        end = memchr(chunk, '\n', (size_t)n);
        buf_put(out, chunk, end != NULL ? (size_t)(end - chunk) : (size_t)n);
        if (end != NULL) {
            return true;
        }
    }
    return false;
}

/* A caller that gave up while another one was served wants nothing done any more. One that
 * only closed its sending half is still there. */
static bool
has_hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = 0};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

static void
write_answer(int fd, const struct buf *answer)
{
    int64_t end_ms = clock_mono_ms(&clock_system) + CLIENT_MS;
    const char *p = buf_str(answer);
    size_t left = answer->len;

    while (left > 0 && wait_for(fd, POLLOUT, end_ms)) {
        ssize_t n = send(fd, p, left, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            p += n;
            left -= (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            return;
        }
    }
}

static bool
may_call(const struct helper_context *c, int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return false;
    }
    if (peer.uid != 0 && peer.uid != c->uid) {
        log_warning("refused a call of uid %u (pid %d)", peer.uid, peer.pid);
        return false;
    }
    return true;
}

static void
serve_one(struct helper_context *c, int fd)
{
    CLEANUP(buf_fini) struct buf request;
    CLEANUP(buf_fini) struct buf answer;
    struct error e;
    bool allowed = may_call(c, fd);

    buf_init(&request, HELPER_REQUEST_MAX_BYTES);
    buf_init(&answer, HELPER_ANSWER_MAX_BYTES);
    if (!read_request(fd, &request) || has_hung_up(fd)) {
        return;
    }
    if (!allowed) {
        (void)error_set(&e, ERR_DENIED, "this user may not call the helper");
        put_refusal(&e, &answer);
    } else if (buf_status(&request, &e) != ERR_OK) {
        put_refusal(&e, &answer);
    } else {
        helper_answer(c, buf_str(&request), request.len, &answer);
    }
    write_answer(fd, &answer);
}

/* The mode last: who may connect finds somebody listening. */
static bool
listen_at(int fd, const struct sockaddr_un *sun)
{
    return (unlink(sun->sun_path) == 0 || errno == ENOENT) &&
           bind(fd, (const struct sockaddr *)sun, sizeof *sun) == 0 &&
           listen(fd, BACKLOG) == 0 && chmod(sun->sun_path, 0660) == 0;
}

static err_t
listen_on(const char *path, int *ret_fd, struct error *e)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof sun.sun_path) {
        return error_set(e, ERR_INVALID, "the path %s is too long for a socket", path);
    }
    memcpy(sun.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || !listen_at(fd, &sun)) {
        err_t code = error_errno(e, ERR_IO, errno, "cannot listen on %s", path);

        fd_cleanup(&fd);
        return code;
    }
    *ret_fd = fd;
    return ERR_OK;
}

static err_t
serve(struct helper_context *c, int listener, int signal_fd, struct error *e)
{
    struct pollfd p[2] = {
        {.fd = listener, .events = POLLIN},
        {.fd = signal_fd, .events = POLLIN},
    };

    for (;;) {
        int n = poll(p, 2, -1);

        if (n < 0 && errno != EINTR) {
            return error_errno(e, ERR_IO, errno, "cannot wait for calls");
        }
        if (n > 0 && p[1].revents != 0) {
            return ERR_OK;
        }
        if (n > 0 && p[0].revents != 0) {
            CLEANUP(fd_cleanup) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

            if (fd >= 0) {
                serve_one(c, fd);
            }
        }
    }
}

err_t
helper_serve(struct helper_context *c, int signal_fd, struct error *e)
{
    CLEANUP(fd_cleanup) int listener = -1;
    char path[PATH_MAX];
    err_t code;

    (void)snprintf(path, sizeof path, "%s/%s", c->run_dir, SOCKET_NAME);
    /* Nobody else may connect between bind and chmod. */
    (void)umask(0177);
    code = listen_on(path, &listener, e);
    if (code == ERR_OK) {
        code = serve(c, listener, signal_fd, e);
        (void)unlink(path);
    }
    return code;
}

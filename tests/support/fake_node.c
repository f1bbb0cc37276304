/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/fake_node.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lock.h"
#include "render/haproxy.h"

#define FILE_BYTES    ((size_t)16 << 20)
#define REQUEST_BYTES ((size_t)1 << 20)

static void
must(err_t code, const struct error *e)
{
    if (code != ERR_OK) {
        (void)fprintf(stderr, "%s: %s\n", error_name(code), e->msg);
        abort();
    }
}

/* ---- sockets ---- */

static int
listen_unix(const struct fake_node *f, const char *name)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ASSERT(
        snprintf(sun.sun_path, sizeof sun.sun_path, "%s/%s", f->run_dir, name) <
        (int)sizeof sun.sun_path);
    (void)unlink(sun.sun_path);
    ASSERT(fd >= 0 && bind(fd, (const struct sockaddr *)&sun, sizeof sun) == 0);
    ASSERT(listen(fd, 32) == 0);
    return fd;
}

static int
listen_inet(int *port)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)*port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof sin;
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ASSERT(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    ASSERT(bind(fd, (const struct sockaddr *)&sin, sizeof sin) == 0);
    ASSERT(getsockname(fd, (struct sockaddr *)&sin, &size) == 0);
    ASSERT(listen(fd, 32) == 0);
    *port = ntohs(sin.sin_port);
    return fd;
}

/* Until end is there; what a client that goes away sent does not matter. */
static void
receive(int fd, const char *end, struct buf *out)
{
    char chunk[4096];
    ssize_t n;

    while (strstr(buf_str(out), end) == NULL && (n = recv(fd, chunk, sizeof chunk, 0)) > 0) {
        buf_put(out, chunk, (size_t)n);
    }
}

static void
send_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);

        if (n <= 0) {
            return;
        }
        text += n;
        bytes -= (size_t)n;
    }
}

/* The next connection to one of the sockets, and which it is; -1 at the end. */
static int
next_connection(const struct fake_node *f, const int *fds, nfds_t count, nfds_t *ret_which)
{
    struct pollfd p[4] = {{.fd = f->stop_fds[0], .events = POLLIN}};

    for (nfds_t i = 0; i < count; i++) {
        p[i + 1] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    }
    for (;;) {
        ASSERT(poll(p, count + 1, -1) > 0);
        if (p[0].revents != 0) {
            return -1;
        }
        for (nfds_t i = 0; i < count; i++) {
            if (p[i + 1].revents != 0) {
                *ret_which = i;
                return accept4(fds[i], NULL, NULL, SOCK_CLOEXEC);
            }
        }
    }
}

/* ---- state ---- */

static void
take(struct fake_node *f)
{
    lock_take(&f->lock);
}

static void
give(struct fake_node *f)
{
    ASSERT(pthread_cond_broadcast(&f->changed) == 0);
    lock_give(&f->lock);
}

static bool
fails(struct fake_node *f, enum fake_fault fault)
{
    bool failing = f->faults[fault] != 0;

    if (f->faults[fault] > 0) {
        f->faults[fault]--;
    }
    return failing;
}

void
fake_fail(struct fake_node *f, enum fake_fault fault, int times)
{
    take(f);
    f->faults[fault] = times;
    give(f);
}

void
fake_hold(struct fake_node *f)
{
    take(f);
    f->hold = true;
    give(f);
}

void
fake_await_held(struct fake_node *f)
{
    take(f);
    while (!f->held) {
        ASSERT(pthread_cond_wait(&f->changed, &f->lock) == 0);
    }
    give(f);
}

void
fake_release(struct fake_node *f)
{
    take(f);
    f->hold = false;
    give(f);
}

struct fake_facts
fake_look(struct fake_node *f)
{
    struct fake_facts facts;

    take(f);
    facts = f->facts;
    memcpy(facts.current_digest, f->digests[facts.current], sizeof facts.current_digest);
    give(f);
    return facts;
}

void
fake_set_current(struct fake_node *f, int64_t number, const char *digest)
{
    take(f);
    ASSERT(number < FAKE_GENERATIONS);
    f->facts.current = number;
    ASSERT(snprintf(f->digests[number], sizeof f->digests[number], "%s", digest) > 0);
    give(f);
}

void
fake_run(struct fake_node *f, const char *digest)
{
    take(f);
    f->down = digest == NULL;
    if (digest != NULL) {
        ASSERT(snprintf(f->facts.running, sizeof f->facts.running, "%s", digest) > 0);
    }
    give(f);
}

/* ---- the helper ---- */

static json_t *
refusal(const char *message)
{
    return json_pack("{s:b, s:s, s:s}", "ok", 0, "code", "denied", "message", message);
}

/* Copies what was staged, and finds its digest. */
static void
copy_generation(struct fake_node *f, int64_t number)
{
    static const char prefix[] = "description \"" RUNNING_DESCRIPTION;
    char from[3 * FAKE_PATH_BYTES], to[2 * FAKE_PATH_BYTES];
    const char *digest;
    struct buf config;
    struct error e;

    (void)snprintf(from, sizeof from, "%s/stage/%lld", f->state_dir, (long long)number);
    (void)snprintf(to, sizeof to, "%s/generation/%lld", f->state_dir, (long long)number);
    must(file_remove_tree_at(AT_FDCWD, to, &e), &e);
    ASSERT(rename(from, to) == 0);
    (void)snprintf(from, sizeof from, "%s/haproxy.cfg", to);
    buf_init(&config, FILE_BYTES);
    must(file_read_at(AT_FDCWD, from, &config, &e), &e);
    digest = strstr(buf_str(&config), prefix);
    ASSERT(digest != NULL && number < FAKE_GENERATIONS);
    memcpy(f->digests[number], digest + sizeof prefix - 1, 16);
    f->rejected[number] =
        fails(f, FAKE_CHECK) ||
        (f->forbidden[0] != '\0' && strstr(buf_str(&config), f->forbidden) != NULL);
    buf_fini(&config);
}

static json_t *
stage(struct fake_node *f, int64_t number)
{
    bool refused;

    f->facts.stages++;
    copy_generation(f, number);
    refused = f->rejected[number];
    f->held = true;
    while (f->hold) {
        ASSERT(pthread_cond_broadcast(&f->changed) == 0);
        ASSERT(pthread_cond_wait(&f->changed, &f->lock) == 0);
    }
    f->held = false;
    return json_pack(
        "{s:b, s:i, s:s, s:b}", "ok", 1, "exit_status", refused ? 1 : 0, "output",
        refused ? "[ALERT]    (7) : config : parsing [haproxy.cfg:1] : this line is refused.\n"
                : "",
        "only_weights", 0);
}

static json_t *
bind_test(struct fake_node *f, const json_t *request)
{
    const json_t *binds = json_object_get(request, "binds");
    json_t *failures = json_array();
    const json_t *bind_asked;
    bool failing = fails(f, FAKE_BIND);
    size_t i;

    f->facts.bind_tests++;
    json_array_foreach(binds, i, bind_asked)
    {
        if (failing) {
            (void)json_array_append_new(
                failures,
                json_pack(
                    "{s:O, s:O, s:s, s:s}", "address", json_object_get(bind_asked, "address"),
                    "port", json_object_get(bind_asked, "port"), "reason",
                    "Address already in use", "holder", "nginx (pid 812)"));
        }
    }
    return json_pack("{s:b, s:o}", "ok", 1, "failures", failures);
}

static json_t *
install(struct fake_node *f, int64_t number)
{
    char target[24], dir[2 * FAKE_PATH_BYTES];
    struct error e;
    int fd = -1;

    f->facts.installs++;
    if (fails(f, FAKE_INSTALL)) {
        return refusal("not today");
    }
    f->facts.current = number;
    (void)snprintf(target, sizeof target, "%lld", (long long)number);
    (void)snprintf(dir, sizeof dir, "%s/generation", f->state_dir);
    must(file_open_dir_at(AT_FDCWD, dir, &fd, &e), &e);
    must(file_symlink_at(fd, target, "current", &e), &e);
    (void)close(fd);
    return json_pack("{s:b}", "ok", 1);
}

static void
note_renames(struct fake_node *f, const char *what, const json_t *list)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        size_t used = strlen(f->facts.renames);

        (void)snprintf(
            f->facts.renames + used, sizeof f->facts.renames - used, "%s %s=%s ", what,
            json_string_value(json_object_get(item, "from")),
            json_string_value(json_object_get(item, "to")));
    }
}

static json_t *
reload(struct fake_node *f, const json_t *request)
{
    bool loaded = !fails(f, FAKE_LOAD);

    f->facts.reloads++;
    f->facts.renames[0] = '\0';
    note_renames(f, "backend", json_object_get(request, "backends"));
    note_renames(f, "server", json_object_get(request, "servers"));
    if (!json_is_true(json_object_get(request, "states"))) {
        (void)snprintf(f->facts.renames, sizeof f->facts.renames, "no states");
    }
    if (loaded) {
        memcpy(f->facts.running, f->digests[f->facts.current], sizeof f->facts.running);
        f->facts.ran_rejected += f->rejected[f->facts.current] ? 1 : 0;
        f->down = false;
        f->facts.pid++;
    }
    return json_pack(
        "{s:b, s:b, s:s, s:i, s:s}", "ok", 1, "loaded", loaded ? 1 : 0, "output",
        loaded ? "" : "[ALERT]    (7) : Starting frontend web: cannot bind socket", "worker",
        f->facts.pid, "no_states", fails(f, FAKE_STATES) ? "the disk is full" : "");
}

static json_t *
settle(struct fake_node *f, int64_t number)
{
    f->facts.settles++;
    if (fails(f, FAKE_SETTLE)) {
        return refusal("not today");
    }
    f->facts.good = number;
    return json_pack("{s:b}", "ok", 1);
}

static json_t *
status(struct fake_node *f)
{
    if (fails(f, FAKE_STATUS)) {
        return refusal("not today");
    }
    return json_pack(
        "{s:b, s:s, s:i, s:i, s:i, s:i, s:[], s:I, s:I}", "ok", 1, "state",
        f->down ? "stopped" : "running", "master", 6, "worker", f->facts.pid, "reloads",
        f->facts.reloads, "failed_reloads", 0, "old_workers", "current",
        (json_int_t)f->facts.current, "good", (json_int_t)f->facts.good);
}

static json_t *
answer_verb(struct fake_node *f, const json_t *request)
{
    const char *verb = json_string_value(json_object_get(request, "verb"));
    int64_t number = json_integer_value(json_object_get(request, "generation"));

    if (strcmp(verb, "stage") == 0) {
        return stage(f, number);
    }
    if (strcmp(verb, "bind-test") == 0) {
        return bind_test(f, request);
    }
    if (strcmp(verb, "install") == 0) {
        return install(f, number);
    }
    if (strcmp(verb, "reload") == 0) {
        return reload(f, request);
    }
    return strcmp(verb, "settle") == 0 ? settle(f, number) : status(f);
}

static void
answer_helper(struct fake_node *f, int fd)
{
    struct buf text;
    json_t *request = NULL, *answer = NULL;

    buf_init(&text, REQUEST_BYTES);
    receive(fd, "\n", &text);
    if (text.len > 0 && json_parse(buf_str(&text), text.len, &request, NULL) == ERR_OK) {
        take(f);
        answer = answer_verb(f, request);
        give(f);
        buf_reset(&text);
        json_canonical(answer, &text);
        buf_putc(&text, '\n');
        send_all(fd, text.data, text.len);
    }
    json_decref(request);
    json_decref(answer);
    buf_fini(&text);
}

static void
play_helper(void *ctx)
{
    struct fake_node *f = ctx;
    nfds_t which;
    int fd = next_connection(f, &f->helper_fd, 1, &which);

    while (fd >= 0) {
        answer_helper(f, fd);
        (void)close(fd);
        fd = next_connection(f, &f->helper_fd, 1, &which);
    }
}

/* ---- HAProxy ---- */

/* "set ..." */
static void
change(struct fake_node *f, const char *command, struct buf *answer)
{
    static const char digest[] = "set map " RUNNING_MAP " " RUNNING_KEY " ";
    const char *value = command + sizeof digest - 1;

    if (strncmp(command, digest, sizeof digest - 1) == 0) {
        (void)snprintf(
            f->facts.running, sizeof f->facts.running, "%.*s", (int)strcspn(value, "\n"),
            value);
        f->facts.ran_rejected += f->rejected[f->facts.current] ? 1 : 0;
        buf_putc(answer, '\n');
    } else if (fails(f, FAKE_SOCKET)) {
        buf_puts(answer, "No such server.\n\n");
    } else {
        f->facts.changes++;
        buf_putc(answer, '\n');
    }
}

static void
answer_admin(struct fake_node *f, int fd)
{
    struct buf text, answer;

    buf_init(&text, REQUEST_BYTES);
    buf_init(&answer, REQUEST_BYTES);
    receive(fd, "\n", &text);
    take(f);
    if (!f->down && strncmp(buf_str(&text), "set ", 4) == 0) {
        change(f, buf_str(&text), &answer);
    } else if (!f->down) {
        buf_printf(
            &answer,
            "Name: HAProxy\nVersion: 2.6.12-1\nPid: %d\nUptime_sec: 5\nMaxconn: 4000\n"
            "CurrConns: 1\nCumReq: 3\ndescription: " RUNNING_DESCRIPTION
            "%s\n\n0x5 " RUNNING_KEY " %s\n\n",
            f->facts.pid, f->facts.running, f->facts.running);
    }
    give(f);
    send_all(fd, buf_str(&answer), answer.len);
    buf_fini(&text);
    buf_fini(&answer);
}

static void
answer_http(struct fake_node *f, int fd, bool listener)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct buf text;
    bool silent;

    buf_init(&text, REQUEST_BYTES);
    receive(fd, "\r\n\r\n", &text);
    take(f);
    silent = f->down || (listener && fails(f, FAKE_SERVE));
    give(f);
    if (!silent) {
        send_all(fd, answer, sizeof answer - 1);
    }
    buf_fini(&text);
}

static void
play_haproxy(void *ctx)
{
    struct fake_node *f = ctx;
    const int fds[] = {f->admin_fd, f->probe_fd, f->listen_fd};
    nfds_t which = 0;
    int fd = next_connection(f, fds, 3, &which);

    while (fd >= 0) {
        if (which == 0) {
            answer_admin(f, fd);
        } else {
            answer_http(f, fd, which == 2);
        }
        (void)close(fd);
        fd = next_connection(f, fds, 3, &which);
    }
}

/* ---- life ---- */

static void
make_path(char out[FAKE_PATH_BYTES], const char *dir, const char *name)
{
    ASSERT(snprintf(out, FAKE_PATH_BYTES, "%s%s", dir, name) < FAKE_PATH_BYTES);
}

void
fake_paths(struct fake_node *f, const char *dir)
{
    char top[FAKE_PATH_BYTES];

    make_path(top, dir, "");
    make_path(f->dir, top, "");
    make_path(f->state_dir, top, "/state");
    make_path(f->run_dir, top, "/run");
}

static void
make_dir(const char *path)
{
    struct error e;

    must(file_mkdir_at(AT_FDCWD, path, 0700, &e), &e);
}

void
fake_init(struct fake_node *f, const char *folder)
{
    char top[FAKE_PATH_BYTES];
    char generation[FAKE_PATH_BYTES];

    make_path(top, folder, "/lockstep-engine-XXXXXX");
    *f = (struct fake_node){.facts.pid = 100, .down = true};
    ASSERT(mkdtemp(top) != NULL);
    fake_paths(f, top);
    make_path(generation, f->state_dir, "/generation");
    make_dir(f->state_dir);
    make_dir(f->run_dir);
    make_dir(generation);
    ASSERT(pthread_mutex_init(&f->lock, NULL) == 0);
    ASSERT(pthread_cond_init(&f->changed, NULL) == 0);
}

void
fake_start(struct fake_node *f)
{
    struct error e;

    f->helper_fd = listen_unix(f, "helper.sock");
    f->admin_fd = listen_unix(f, "haproxy.sock");
    f->probe_fd = listen_unix(f, "probe.sock");
    f->listen_fd = listen_inet(&f->port);
    ASSERT(pipe2(f->stop_fds, O_CLOEXEC) == 0);
    must(mailbox_open("fake helper", 1, 1, &f->helper_thread, &e), &e);
    must(mailbox_open("fake haproxy", 1, 1, &f->haproxy_thread, &e), &e);
    must(mailbox_post(f->helper_thread, play_helper, f, &e), &e);
    must(mailbox_post(f->haproxy_thread, play_haproxy, f, &e), &e);
}

void
fake_stop(struct fake_node *f)
{
    fd_cleanup(&f->stop_fds[1]);
    mailbox_close(TAKE(f->helper_thread));
    mailbox_close(TAKE(f->haproxy_thread));
    fd_cleanup(&f->stop_fds[0]);
    fd_cleanup(&f->helper_fd);
    fd_cleanup(&f->admin_fd);
    fd_cleanup(&f->probe_fd);
    fd_cleanup(&f->listen_fd);
}

void
fake_fini(struct fake_node *f)
{
    struct error e;

    must(file_remove_tree_at(AT_FDCWD, f->dir, &e), &e);
    (void)pthread_cond_destroy(&f->changed);
    (void)pthread_mutex_destroy(&f->lock);
}

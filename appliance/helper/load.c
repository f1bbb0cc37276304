/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "haproxy/admin.h"
#include "haproxy/master.h"
#include "haproxy/state_file.h"
#include "helper/generation.h"
#include "helper/service.h"
#include "helper/staged.h"
#include "helper/state_keep.h"
#include "helper/verbs.h"
#include "helper/words.h"

#define WINDOW_NAME "reload-window"
/* lockstep-run tells nobody by itself. */
#define LOOK_INTERVAL_MS 20
#define OUTPUT_MAX_BYTES ((size_t)128 << 10)

/* One reload or restart and its outcome. */
struct load {
    struct helper_context *c;
    const struct renames *renames; /* since the configuration that runs */
    int64_t end_ms;
    struct buf config; /* haproxy.cfg of "current" */
    char description[sizeof((struct haproxy_info *)0)->description]; /* of it */
    bool supervised;                                                 /* lockstep-run answers */
    struct service_status before;
    bool loaded;
    pid_t worker;
    struct buf output;      /* why not */
    struct error no_states; /* why no state of a server was handed over; "": it was */
};

static void
load_cleanup(struct load *l)
{
    buf_fini(&l->config);
    buf_fini(&l->output);
}

static int64_t
left_ms(const struct load *l, int64_t at_most_ms)
{
    int64_t left = l->end_ms - clock_mono_ms(&clock_system);

    if (left < 1) {
        return 1;
    }
    return left < at_most_ms ? left : at_most_ms;
}

static bool
is_over(const struct load *l)
{
    return clock_mono_ms(&clock_system) >= l->end_ms;
}

static err_t
find_description(struct span text, char *ret, size_t ret_bytes, struct error *e)
{
    CLEANUP(words_fini) struct words words;
    struct span line;

    words_init(&words);
    while (span_line(&text, &line)) {
        err_t code = words_parse(&words, line, e);

        if (code != ERR_OK) {
            return code;
        }
        if (words.count == 2 && strcmp(words.at[0], "description") == 0) {
            span_copy(span_of(words.at[1]), ret, ret_bytes);
            return ERR_OK;
        }
    }
    return error_set(e, ERR_CORRUPT, "the current generation has no description to know it by");
}

static err_t
read_config(struct load *l, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    int64_t n = 0;
    err_t code = generation_link(l->c->generation_fd, "current", &n, e);

    if (code == ERR_OK && n == 0) {
        code = error_set(e, ERR_NOT_FOUND, "no generation is installed");
    }
    if (code == ERR_OK) {
        char name[GENERATION_NAME_BYTES];

        generation_name(n, name);
        code = file_open_dir_at(l->c->generation_fd, name, &fd, e);
    }
    if (code == ERR_OK) {
        code = file_read_at(fd, STAGED_CONFIG, &l->config, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    return find_description(
        (struct span){buf_str(&l->config), l->config.len}, l->description,
        sizeof l->description, e);
}

static err_t
load_begin(struct load *l, struct helper_context *c, struct error *e)
{
    *l = (struct load){.c = c};
    buf_init(&l->config, (size_t)STAGED_MAX_BYTES);
    buf_init(&l->output, OUTPUT_MAX_BYTES);
    l->end_ms = clock_mono_ms(&clock_system) + c->tunables.reload_ms;
    l->supervised = service_status(
                        c->service_path, OUTPUT_NONE, c->tunables.socket_ms, &l->before, NULL,
                        NULL) == ERR_OK;
    return read_config(l, e);
}

static void
fail(struct load *l, const char *reason)
{
    struct service_status now;

    l->loaded = false;
    if (l->supervised && service_status(
                             l->c->service_path, l->before.output_end, l->c->tunables.socket_ms,
                             &now, &l->output, NULL) != ERR_OK) {
        l->supervised = false;
    }
    if (reason[0] != '\0') {
        buf_printf(&l->output, "%s\n", reason);
    }
}

/* Whether the worker that answers runs the current generation. */
static void
verify(struct load *l)
{
    struct haproxy_info info;
    struct error reason;

    if (admin_info(l->c->admin_path, left_ms(l, l->c->tunables.socket_ms), &info, &reason) !=
        ERR_OK) {
        fail(l, reason.msg);
    } else if (strcmp(info.description, l->description) != 0) {
        (void)error_set(
            &reason, ERR_CONFLICT, "HAProxy runs \"%s\" and not the current \"%s\"",
            info.description, l->description);
        fail(l, reason.msg);
    } else {
        l->loaded = true;
        l->worker = info.pid;
    }
}

/* For the prober, whose deadlines are too short for a reload. Only a hint: nothing that is
 * wrong with it is a reason not to reload, least of all on the way back. */
static void
window_open(const struct helper_context *c)
{
    struct timespec now;
    struct error e;
    char text[32];

    ASSERT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    (void)snprintf(
        text, sizeof text, "%" PRId64 "\n",
        (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + c->tunables.reload_window_ms);
    if (file_write_at(c->run_fd, WINDOW_NAME, text, strlen(text), 0644, &e) != ERR_OK) {
        log_warning("probers are not told of the reload: %s", e.msg);
    }
}

static void
window_close(const struct helper_context *c)
{
    struct error e;

    if (unlinkat(c->run_fd, WINDOW_NAME, 0) != 0 && errno != ENOENT) {
        (void)error_errno(&e, ERR_IO, errno, "cannot remove %s", WINDOW_NAME);
        log_warning("%s", e.msg);
    }
}

static bool
runs_other_files(const struct load *l)
{
    struct haproxy_info info;
    struct error unused;

    return admin_info(l->c->admin_path, left_ms(l, l->c->tunables.socket_ms), &info, &unused) ==
               ERR_OK &&
           strcmp(info.description, l->description) != 0;
}

static err_t
reload_running(struct load *l, struct error *e)
{
    struct helper_context *c = l->c;
    struct master_state st;
    bool loaded = false;
    err_t code = ERR_OK;

    window_open(c);
    /* A reload that a helper before us left under way counts for ours, but it read the files
     * of its own time: once more then. */
    for (int tries = 0; tries < 2; tries++) {
        if (state_keep(
                c, (struct span){buf_str(&l->config), l->config.len}, l->renames,
                &l->no_states) == ERR_OK) {
            l->no_states.msg[0] = '\0';
        }
        code = master_reload(
            c->master_path, c->admin_path, left_ms(l, c->tunables.reload_ms), &loaded, &st, e);
        if (code != ERR_OK || !loaded || !runs_other_files(l)) {
            break;
        }
    }
    if (code != ERR_TIMEOUT) {
        /* A reload that is not ours must not find what was true now. One that goes on may
         * still read it: "status" sees its end. */
        state_file_clear(c->run_fd);
    }
    if (code == ERR_OK && loaded) {
        verify(l);
    } else if (code == ERR_OK) {
        fail(l, "");
    } else if (l->supervised) {
        fail(l, e->msg);
        code = ERR_OK;
    }
    window_close(c);
    return code;
}

/* After a start was asked for: until it serves or ended without having served. */
static err_t
wait_start(struct load *l, struct error *e)
{
    while (!is_over(l)) {
        struct service_status now;
        err_t code = service_status(
            l->c->service_path, OUTPUT_NONE, left_ms(l, l->c->tunables.socket_ms), &now, NULL,
            e);

        if (code != ERR_OK) {
            return code;
        }
        if (now.failures > l->before.failures) {
            fail(l, "");
            return ERR_OK;
        }
        if (now.state == SERVICE_RUNNING) {
            verify(l);
            return ERR_OK;
        }
        (void)poll(NULL, 0, LOOK_INTERVAL_MS);
    }
    fail(l, "HAProxy did not start in time");
    return ERR_OK;
}

static err_t
start(struct load *l, enum service_verb verb, struct error *e)
{
    err_t code = service_call(l->c->service_path, verb, l->c->tunables.socket_ms, e);

    return code == ERR_OK ? wait_start(l, e) : code;
}

/* A start that is under way may still read the generation before this one: it is waited
 * for, whatever comes of it. */
static err_t
await_present_start(struct load *l, struct error *e)
{
    err_t code = ERR_OK;

    while (code == ERR_OK && l->supervised && l->before.state == SERVICE_STARTING &&
           !is_over(l)) {
        (void)poll(NULL, 0, LOOK_INTERVAL_MS);
        code = service_status(
            l->c->service_path, OUTPUT_NONE, l->c->tunables.socket_ms, &l->before, NULL, e);
    }
    return code;
}

static err_t
reload(struct load *l, struct error *e)
{
    err_t code = await_present_start(l, e);

    if (code != ERR_OK || !l->supervised) {
        return code != ERR_OK ? code : reload_running(l, e);
    }
    switch (l->before.state) {
    case SERVICE_STOPPED: return start(l, SERVICE_START, e);
    case SERVICE_STARTING:
    case SERVICE_WAITING: return start(l, SERVICE_RESTART, e);
    case SERVICE_RUNNING: break;
    }
    /* A master that was started on "good" would read that again. */
    return l->before.on_good ? start(l, SERVICE_RESTART, e) : reload_running(l, e);
}

static err_t
tell(const struct load *l, json_t *answer, struct error *e)
{
    json_auto_t *v = json_pack(
        "{s:b, s:s, s:i, s:s}", "loaded", l->loaded ? 1 : 0, "output",
        l->loaded ? "" : buf_str(&l->output), "worker", l->worker, "no_states",
        l->no_states.msg);

    return json_object_update(answer, v) == 0
               ? ERR_OK
               : error_set(e, ERR_INTERNAL, "cannot tell the outcome of the reload");
}

err_t
verb_reload(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    CLEANUP(renames_fini) struct renames renames;
    CLEANUP(load_cleanup) struct load l = {.c = c};
    err_t code = renames_read(request, &renames, e);

    if (code == ERR_OK) {
        code = load_begin(&l, c, e);
    }
    if (code == ERR_OK) {
        l.renames = &renames;
        code = reload(&l, e);
    }
    return code == ERR_OK ? tell(&l, answer, e) : code;
}

err_t
verb_restart(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    CLEANUP(load_cleanup) struct load l;
    err_t code = load_begin(&l, c, e);

    (void)request;
    if (code == ERR_OK) {
        code = start(&l, SERVICE_RESTART, e);
    }
    return code == ERR_OK ? tell(&l, answer, e) : code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "run/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "haproxy/master.h"
#include "haproxy/span.h"
#include "haproxy/state_file.h"

#define LINK_BYTES 32
/* Nothing announces that HAProxy serves; one look is a few tenths of a millisecond. */
#define LOOK_INTERVAL_MS 50
#define LOOK_MS          50
/* So often in a row one generation is tried before the other one. */
#define TRIES 2
/* At take-over HAProxy may be in the middle of a reload. */
#define ADOPT_MS 2000

static const char *const stale_sockets[] = {
    "master.sock", "haproxy.sock", "probe.sock", "reload-window", NULL,
};

err_t
service_open(
    struct service *s, const struct run_options *o, const struct layout *l, struct error *e)
{
    *s = (struct service){.options = o, .layout = l};
    child_init(&s->child, "haproxy", &o->tunables);
    (void)snprintf(s->master_path, sizeof s->master_path, "%s/master.sock", o->run_dir);
    return output_open(&s->output, l->run_fd, e);
}

void
service_close(struct service *s)
{
    child_fini(&s->child);
    output_close(&s->output);
}

/* The number that a link names, 0: none. */
static int64_t
linked(const struct service *s, const char *link)
{
    char target[LINK_BYTES];
    ssize_t n = readlinkat(s->layout->generation_fd, link, target, sizeof target);
    int64_t number = 0;

    return n > 0 && span_number((struct span){target, (size_t)n}, INT64_MAX, &number) ? number
                                                                                      : 0;
}

/* After some ends in a row it is the other generation's turn, if there is another. */
static void
choose(struct service *s)
{
    int64_t current = linked(s, "current");
    int64_t good = linked(s, "good");

    if (s->in_a_row >= TRIES) {
        s->in_a_row = 0;
        s->on_good = !s->on_good && good != 0 && good != current;
        if (s->on_good) {
            log_warning(
                "HAProxy does not start with generation %" PRId64
                " and is started with the last good one, %" PRId64,
                current, good);
        }
    }
    s->generation = s->on_good ? good : current;
}

static void
start(struct service *s)
{
    const struct run_options *o = s->options;
    char listener[PATH_MAX + 16];
    char config[PATH_MAX + 64];
    const char *argv[] = {o->haproxy, "-W", "-S", listener, "-f", config, NULL};
    struct error e;

    choose(s);
    if (s->generation == 0) {
        s->child.due_ms = CHILD_NEVER;
        return;
    }
    (void)snprintf(listener, sizeof listener, "%s,mode,600", s->master_path);
    (void)snprintf(
        config, sizeof config, "%s/generation/%s/haproxy.cfg", o->state_dir,
        s->on_good ? "good" : "current");
    layout_remove(s->layout, stale_sockets);
    /* What an earlier HAProxy knew of its servers is no news. */
    state_file_clear(s->layout->run_fd);
    s->serves = false;
    if (child_start(&s->child, argv, s->output.writer_fd, &e) != ERR_OK) {
        s->failures++;
        s->in_a_row++;
        s->failing = true;
        log_error("%s", e.msg);
        return;
    }
    s->look_ms = clock_mono_ms(&clock_system) + LOOK_INTERVAL_MS;
    log_info("HAProxy started (pid %d, generation %" PRId64 ")", s->child.pid, s->generation);
}

static void
look(struct service *s)
{
    struct master_state st;

    s->look_ms = clock_mono_ms(&clock_system) + LOOK_INTERVAL_MS;
    if (master_show(s->master_path, LOOK_MS, &st, NULL) == ERR_OK &&
        st.master == s->child.pid && st.worker.pid != 0) {
        s->serves = true;
        s->failing = false;
        s->in_a_row = 0;
        log_info("HAProxy serves (worker pid %d)", st.worker.pid);
    }
}

bool
service_tick(struct service *s)
{
    child_tick(&s->child);
    if (child_is_due(&s->child)) {
        start(s);
        return true;
    }
    if (s->child.pid != 0 && !s->serves && !child_is_ending(&s->child) &&
        s->look_ms <= clock_mono_ms(&clock_system)) {
        look(s);
    }
    return false;
}

int64_t
service_deadline_ms(const struct service *s)
{
    int64_t due = child_deadline_ms(&s->child);

    return s->child.pid != 0 && !s->serves && !child_is_ending(&s->child) && s->look_ms < due
               ? s->look_ms
               : due;
}

void
service_ended(struct service *s, const char *how)
{
    bool told = child_is_ending(&s->child);
    pid_t pid = s->child.pid;

    output_read(&s->output);
    s->failing = s->failing || !told;
    if (!s->serves && !told) {
        s->failures++;
        s->in_a_row++;
    }
    (void)child_ended(&s->child);
    if (s->restarting) {
        s->restarting = false;
        child_due_now(&s->child);
    }
    if (told) {
        log_info("HAProxy (pid %d) %s", pid, how);
    } else {
        log_error("HAProxy (pid %d) %s%s", pid, how, s->serves ? "" : " before it served");
    }
}

void
service_adopt(struct service *s, const struct record *r)
{
    struct master_state st;
    struct error e;
    bool answers = master_show(s->master_path, ADOPT_MS, &st, &e) == ERR_OK;
    pid_t pid = answers ? st.master : r->haproxy.pid;
    bool known = pid == r->haproxy.pid;

    if (pid == 0 || child_adopt(&s->child, pid, known ? r->haproxy.ticks : 0, &e) != ERR_OK) {
        return;
    }
    s->child.wanted = true;
    s->serves = answers && st.worker.pid != 0;
    s->on_good = known && r->on_good;
    s->generation = known ? r->generation : linked(s, "current");
    log_info("HAProxy goes on (pid %d, generation %" PRId64 ")", s->child.pid, s->generation);
}

static err_t
want(struct service *s, struct error *e)
{
    if (linked(s, "current") == 0) {
        return error_set(e, ERR_NOT_FOUND, "no generation is installed");
    }
    s->child.wanted = true;
    s->failing = false;
    s->on_good = false;
    s->in_a_row = 0;
    return ERR_OK;
}

err_t
service_start(struct service *s, struct error *e)
{
    bool up = s->child.pid != 0 && !child_is_ending(&s->child);
    err_t code;

    if (up) {
        return ERR_OK;
    }
    code = want(s, e);
    if (code == ERR_OK && s->child.pid == 0) {
        child_due_now(&s->child);
    } else if (code == ERR_OK) {
        s->restarting = true;
    }
    return code;
}

err_t
service_restart(struct service *s, struct error *e)
{
    err_t code = want(s, e);

    if (code == ERR_OK && s->child.pid == 0) {
        child_due_now(&s->child);
    } else if (code == ERR_OK) {
        s->restarting = true;
        child_end(&s->child);
    }
    return code;
}

void
service_stop(struct service *s)
{
    s->child.wanted = false;
    s->restarting = false;
    s->failing = false;
    child_end(&s->child);
}

enum service_state
service_state(const struct service *s)
{
    if (s->failing) {
        return SERVICE_WAITING;
    }
    if (s->child.pid != 0) {
        return s->serves && !s->restarting ? SERVICE_RUNNING : SERVICE_STARTING;
    }
    return s->child.wanted && s->child.due_ms != CHILD_NEVER ? SERVICE_STARTING
                                                             : SERVICE_STOPPED;
}

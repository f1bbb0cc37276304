/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/master.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/probe.h"
#include "haproxy/admin.h"
#include "haproxy/span.h"

#define SHOW_MAX_BYTES ((size_t)1 << 20)
/* One look at the master. It hangs while the master loads a configuration, so it is given
 * up and repeated; the deadline of the whole counts. */
#define LOOK_MS 500
/* Nothing announces the end of a reload. */
#define LOOK_INTERVAL_MS 20
/* A reload that another program asked for may be under way: the master refuses meanwhile. */
#define AWAY_MS 3000
/* A "reload" that left no trace for so long in a master that answers was lost. */
#define QUIET_MS 1000

enum section { SECTION_MASTER, SECTION_WORKERS, SECTION_OLD_WORKERS, SECTION_OTHER };

/* "0d00h01m15s" */
static bool
parse_uptime(struct span s, int64_t *ret_s)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};

    int64_t total = 0;

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        int64_t v = 0;
        size_t n = 0;

        while (n < s.n && s.p[n] != units[i].unit) {
            n++;
        }
        if (n == s.n || !span_number((struct span){s.p, n}, 1000000, &v)) {
            return false;
        }
        total += v * units[i].seconds;
        s = (struct span){s.p + n + 1, s.n - n - 1};
    }
    if (s.n != 0) {
        return false;
    }
    *ret_s = total;
    return true;
}

static enum section
section_of(struct span line, enum section present)
{
    if (span_is(line, "# workers")) {
        return SECTION_WORKERS;
    }
    if (span_is(line, "# old workers")) {
        return SECTION_OLD_WORKERS;
    }
    return span_starts(line, "#<PID>") ? present : SECTION_OTHER;
}

/* PID TYPE RELOADS [failed: N] UPTIME VERSION; the part in brackets is there for the master. */
struct row {
    struct master_worker process;
    struct span type;
    int64_t failed;
};

static bool
parse_row(struct span line, struct row *ret)
{
    struct row row = {.failed = 0};
    struct span word;
    int64_t pid;

    if (!span_word(&line, &word) || !span_number(word, INT32_MAX, &pid) || pid == 0 ||
        !span_word(&line, &row.type) || !span_word(&line, &word) ||
        !span_number(word, INT64_MAX, &row.process.reloads) || !span_word(&line, &word)) {
        return false;
    }
    if (span_is(word, "[failed:")) {
        if (!span_word(&line, &word) || word.n < 2 || word.p[word.n - 1] != ']' ||
            !span_number((struct span){word.p, word.n - 1}, INT64_MAX, &row.failed) ||
            !span_word(&line, &word)) {
            return false;
        }
    }
    if (!parse_uptime(word, &row.process.uptime_s)) {
        return false;
    }
    row.process.pid = (pid_t)pid;
    *ret = row;
    return true;
}

static void
take_row(struct master_state *st, enum section section, const struct row *row)
{
    if (span_is(row->type, "master")) {
        st->master = row->process.pid;
        st->reloads = row->process.reloads;
        st->failed_reloads = row->failed;
    } else if (!span_is(row->type, "worker")) {
        return;
    } else if (section == SECTION_WORKERS && st->worker.pid == 0) {
        st->worker = row->process;
    } else if (section == SECTION_OLD_WORKERS) {
        if (st->old_count < MASTER_OLD_WORKERS_MAX) {
            st->old[st->old_count] = row->process;
        }
        st->old_count++;
    }
}

static err_t
parse_show(struct span text, struct master_state *ret, struct error *e)
{
    struct master_state st = {.master = 0};
    enum section section = SECTION_MASTER;
    struct span line;
    struct row row;

    while (span_line(&text, &line)) {
        if (line.n == 0) {
            continue;
        }
        if (line.p[0] == '#') {
            section = section_of(line, section);
        } else if (section != SECTION_OTHER) {
            if (!parse_row(line, &row)) {
                return error_set(
                    e, ERR_INVALID, "the answer to \"show proc\" has an unknown form");
            }
            take_row(&st, section, &row);
        }
    }
    if (st.master == 0) {
        return error_set(e, ERR_INVALID, "the answer to \"show proc\" names no master");
    }
    *ret = st;
    return ERR_OK;
}

err_t
master_show(
    const char *socket_path, int64_t deadline_ms, struct master_state *ret, struct error *e)
{
    static const char command[] = "show proc\n";
    CLEANUP(buf_fini) struct buf out;
    err_t code;

    buf_init(&out, SHOW_MAX_BYTES);
    code = probe_unix(socket_path, command, sizeof command - 1, deadline_ms, &out, e);
    if (code == ERR_LIMIT) {
        return error_set(
            e, ERR_INVALID, "the answer to \"show proc\" is longer than %zu bytes",
            SHOW_MAX_BYTES);
    }
    if (code != ERR_OK) {
        return code;
    }
    return parse_show((struct span){buf_str(&out), out.len}, ret, e);
}

struct reload {
    const char *socket_path;
    const char *admin_path;
    int64_t end_ms;
    struct master_state before;
    struct master_state now;
    int64_t quiet_since_ms; /* 0: the last look found no answer, or a change */
    bool repeated;
};

/* What one look at the master tells about the reload. */
enum look { LOOK_WAIT, LOOK_LOST, LOOK_LOADED, LOOK_FAILED, LOOK_GONE };

static int64_t
left_ms(const struct reload *r, int64_t at_most_ms)
{
    int64_t left = r->end_ms - clock_mono_ms(&clock_system);

    return left < at_most_ms ? left : at_most_ms;
}

/* The answer says nothing: 2.6 answers at once and empty, 3.0 at the end. A connection that
 * breaks is no failure either: the master executes itself anew. */
static void
reload_send(const struct reload *r)
{
    static const char command[] = "reload\n";
    CLEANUP(buf_fini) struct buf out;
    int64_t deadline_ms = left_ms(r, LOOK_MS);

    buf_init(&out, SHOW_MAX_BYTES);
    if (deadline_ms > 0) {
        err_t code =
            probe_unix(r->socket_path, command, sizeof command - 1, deadline_ms, &out, NULL);

        (void)code;
    }
}

static bool
worker_answers(const struct reload *r)
{
    struct haproxy_info info;
    int64_t deadline_ms = left_ms(r, LOOK_MS);

    return deadline_ms > 0 && admin_info(r->admin_path, deadline_ms, &info, NULL) == ERR_OK &&
           info.pid == r->now.worker.pid;
}

static bool
is_gone(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

static err_t
first_look(struct reload *r, struct error *e)
{
    int64_t away_end_ms = clock_mono_ms(&clock_system) + AWAY_MS;
    err_t code = master_show(r->socket_path, left_ms(r, INT64_MAX), &r->before, e);

    while (code == ERR_UNAVAILABLE && clock_mono_ms(&clock_system) < away_end_ms) {
        (void)poll(NULL, 0, LOOK_INTERVAL_MS);
        code = master_show(r->socket_path, left_ms(r, INT64_MAX), &r->before, e);
    }
    return code;
}

static enum look
reload_look(struct reload *r)
{
    int64_t now_ms = clock_mono_ms(&clock_system);
    int64_t deadline_ms = left_ms(r, LOOK_MS);

    if (deadline_ms <= 0) {
        return LOOK_WAIT;
    }
    if (master_show(r->socket_path, deadline_ms, &r->now, NULL) != ERR_OK) {
        r->quiet_since_ms = 0;
        return is_gone(r->before.master) ? LOOK_GONE : LOOK_WAIT;
    }
    if (r->now.master != r->before.master) {
        return LOOK_GONE;
    }
    if (r->now.reloads == r->before.reloads) {
        if (r->quiet_since_ms == 0) {
            r->quiet_since_ms = now_ms;
        }
        return now_ms - r->quiet_since_ms >= QUIET_MS ? LOOK_LOST : LOOK_WAIT;
    }
    r->quiet_since_ms = 0;
    /* A success sets the count of failures back to 0. */
    if (r->now.failed_reloads > r->before.failed_reloads) {
        return LOOK_FAILED;
    }
    if (r->now.worker.pid == 0 || r->now.worker.pid == r->before.worker.pid) {
        return LOOK_WAIT;
    }
    return worker_answers(r) ? LOOK_LOADED : LOOK_WAIT;
}

static err_t
reload_watch(struct reload *r, bool *ret_loaded, struct error *e)
{
    while (left_ms(r, 1) > 0) {
        switch (reload_look(r)) {
        case LOOK_LOADED: *ret_loaded = true; return ERR_OK;
        case LOOK_FAILED: *ret_loaded = false; return ERR_OK;
        case LOOK_GONE: return error_set(e, ERR_UNAVAILABLE, "HAProxy ended during the reload");
        case LOOK_LOST:
            if (!r->repeated) {
                r->repeated = true;
                r->quiet_since_ms = 0;
                reload_send(r);
            }
            break;
        case LOOK_WAIT: break;
        }
        (void)poll(NULL, 0, LOOK_INTERVAL_MS);
    }
    return error_set(e, ERR_TIMEOUT, "HAProxy did not finish the reload in time");
}

err_t
master_reload(
    const char *socket_path, const char *admin_path, int64_t deadline_ms, bool *ret_loaded,
    struct master_state *ret, struct error *e)
{
    struct reload r = {
        .socket_path = socket_path,
        .admin_path = admin_path,
        .end_ms = clock_mono_ms(&clock_system) + deadline_ms,
    };
    err_t code = first_look(&r, e);

    if (code != ERR_OK) {
        return code;
    }
    reload_send(&r);
    code = reload_watch(&r, ret_loaded, e);
    if (code == ERR_OK) {
        *ret = r.now;
    }
    return code;
}

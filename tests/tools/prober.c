/* SPDX-License-Identifier: Apache-2.0 */
/* prober RUN_DIR INTERVAL_MS DEADLINE_MS: watches HAProxy as a prober of the virtual IP will:
 * every interval "show info" on the admin socket and a request to the probe socket, each within
 * the deadline; after a failure once more at once, and two in a row are a fault. While the
 * helper's window for a reload is open a probe has 3 s. Ends with its input; then prints
 * counts as JSON. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/probe.h"
#include "haproxy/span.h"
#include "render/haproxy.h"

#define WINDOW_MS    3000
#define PATH_BYTES   256
#define ANSWER_BYTES ((size_t)64 << 10)

struct prober {
    char admin[PATH_BYTES], probe[PATH_BYTES], window[PATH_BYTES];
    int64_t interval_ms, deadline_ms;
    int64_t probes, failures, faults, windows;
    int64_t worst_ms, worst_window_ms;
    bool in_window; /* of the last probe */
};

static bool
window_is_open(const struct prober *p)
{
    struct buf CLEANUP(buf_fini) text;
    struct error unused;
    struct span rest, line;
    int64_t end_ms;

    buf_init(&text, PATH_BYTES);
    if (file_read_at(AT_FDCWD, p->window, &text, &unused) != ERR_OK) {
        return false;
    }
    rest = span_of(buf_str(&text));
    return span_line(&rest, &line) && span_number(line, INT64_MAX, &end_ms) &&
           clock_mono_ms(&clock_system) < end_ms;
}

static err_t
ask(const struct prober *p, int64_t deadline_ms, struct error *e)
{
    static const char command[] = "show info\n";
    struct probe request = {.address = p->probe, .host = "probe", .path = RENDER_PROBE_PATH};
    struct buf CLEANUP(buf_fini) out;
    int64_t end_ms = clock_mono_ms(&clock_system) + deadline_ms;
    int status = 0;
    err_t code;

    buf_init(&out, ANSWER_BYTES);
    code = probe_unix(p->admin, command, sizeof command - 1, deadline_ms, &out, e);
    if (code == ERR_OK) {
        code = probe_http(&request, end_ms - clock_mono_ms(&clock_system), &status, e);
    }
    if (code == ERR_OK && (status != 200 || strstr(buf_str(&out), "\nPid: ") == NULL)) {
        code = error_set(e, ERR_UNAVAILABLE, "status %d: %s", status, buf_str(&out));
    }
    return code;
}

/* The window may open while a probe waits: then the probe that follows it counts. */
static bool
probe_once(struct prober *p)
{
    int64_t start_ms = clock_mono_ms(&clock_system);
    bool open = window_is_open(p);
    int64_t *worst_ms = open ? &p->worst_window_ms : &p->worst_ms;
    struct error e = {.code = ERR_OK};
    err_t code = ask(p, open ? WINDOW_MS : p->deadline_ms, &e);
    int64_t took_ms = clock_mono_ms(&clock_system) - start_ms;

    p->probes++;
    p->windows += open && !p->in_window ? 1 : 0;
    p->in_window = open;
    *worst_ms = took_ms > *worst_ms ? took_ms : *worst_ms;
    if (code != ERR_OK) {
        p->failures++;
        (void)fprintf(
            stderr, "failed after %lld ms%s: %s\n", (long long)took_ms,
            open ? " in a window" : "", e.msg);
    }
    return code == ERR_OK;
}

static bool
input_ended(int64_t wait_ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&in, 1, wait_ms > 0 ? (int)wait_ms : 0) != 0;
}

static void
watch(struct prober *p)
{
    int64_t next_ms = clock_mono_ms(&clock_system);
    bool stop = false;

    while (!stop) {
        int64_t now_ms;

        if (!probe_once(p) && !probe_once(p)) {
            p->faults++;
        }
        next_ms += p->interval_ms;
        now_ms = clock_mono_ms(&clock_system);
        stop = input_ended(next_ms - now_ms);
        next_ms = next_ms > now_ms ? next_ms : now_ms;
    }
}

int
main(int argc, char **argv)
{
    struct prober p = {.probes = 0};

    if (argc != 4 || !span_number(span_of(argv[2]), 60000, &p.interval_ms) ||
        !span_number(span_of(argv[3]), 60000, &p.deadline_ms)) {
        (void)fputs("usage: prober RUN_DIR INTERVAL_MS DEADLINE_MS\n", stderr);
        return 2;
    }
    (void)snprintf(p.admin, sizeof p.admin, "%s/haproxy.sock", argv[1]);
    (void)snprintf(p.probe, sizeof p.probe, "%s/probe.sock", argv[1]);
    (void)snprintf(p.window, sizeof p.window, "%s/reload-window", argv[1]);
    watch(&p);
    (void)printf(
        "{\"probes\": %lld, \"failures\": %lld, \"faults\": %lld, \"windows\": %lld, "
        "\"worst_ms\": %lld, \"worst_window_ms\": %lld}\n",
        (long long)p.probes, (long long)p.failures, (long long)p.faults, (long long)p.windows,
        (long long)p.worst_ms, (long long)p.worst_window_ms);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, problems and tasks as people read them. */
#include "cli/show.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/file.h"
#include "base/json.h"

#define TEXT_MAX_BYTES ((size_t)4 << 20)
#define TEXT_LEAST     20 /* columns, however narrow the terminal is */

void
show_line(const char *name, const char *fmt, ...)
{
    CLEANUP(buf_fini) struct buf clean;
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    buf_init(&clean, sizeof(text) * 4);
    cli_put_text(&clean, text);
    printf("%-10s %s\n", name, buf_str(&clean));
}

const char *
show_time(struct cli *c, const char *at)
{
    const char *t = strchr(at, 'T');

    if (t == NULL || strlen(t) < 9) {
        return at;
    }
    return arena_printf(c->arena, "%.*s %.8s UTC", (int)(t - at), at, t + 1);
}

void
show_waiting(struct cli *c, const json_t *waiting)
{
    long long rev = cli_int(waiting, "rev");
    const char *node = cli_str(waiting, "node");

    if (!json_is_object(waiting)) {
        return;
    }
    if (json_is_true(json_object_get(waiting, "going_back"))) {
        show_line("confirm", "revision %lld from %s was not confirmed: going back", rev, node);
    } else if (
        json_is_true(json_object_get(waiting, "failed")) &&
        json_is_null(json_object_get(waiting, "retry_at"))) {
        show_line(
            "confirm",
            "revision %lld from %s was not confirmed, and the node that is to go back does not "
            "answer; \"lockstep confirm\" keeps it",
            rev, node);
    } else if (json_is_true(json_object_get(waiting, "failed"))) {
        show_line(
            "confirm",
            "revision %lld from %s was not confirmed and could not go back: tried again at %s; "
            "\"lockstep confirm\" keeps it",
            rev, node, show_time(c, cli_str(waiting, "retry_at")));
    } else {
        show_line(
            "confirm", "\"lockstep confirm\" keeps revision %lld from %s; it goes back at %s",
            rev, node, show_time(c, cli_str(waiting, "until")));
    }
}

const char *
show_count(struct cli *c, long long n, const char *noun)
{
    return arena_printf(c->arena, "%lld %s%s", n, noun, PLURAL(n));
}

void
show_wrapped(const struct cli *c, int indent, int hanging, const char *text)
{
    int width = c->width > 0 ? c->width : WIDTH_DEFAULT;

    do {
        size_t room = width - indent > TEXT_LEAST ? (size_t)(width - indent) : TEXT_LEAST;
        size_t len = text_line(text, room);
        printf("%*s%.*s\n", indent, "", (int)len, text);
        text += len + (text[len] == ' ');
        indent = hanging;
    } while (*text != '\0');
}

void
put_object(struct buf *out, const char *kind, const char *name)
{
    enum kind k;
    bool singleton = schema_kind_by_name(kind, &k) && schema_kind(k)->singleton;

    cli_put_text(out, kind);
    if (name[0] != '\0' && !singleton) {
        buf_puts(out, kind[0] != '\0' ? " " : "");
        cli_put_text(out, name);
    }
}

/* "on node: kind name /pointer: ", as far as it is known. */
static void
put_place(struct buf *out, const json_t *problem)
{
    const char *pointer = cli_str(problem, "pointer");
    const char *node = cli_str(problem, "node");
    size_t before = out->len;

    if (node[0] != '\0') {
        buf_puts(out, "on ");
        cli_put_text(out, node);
        buf_puts(out, ": ");
        before = out->len;
    }

    put_object(out, cli_str(problem, "kind"), cli_str(problem, "name"));
    if (pointer[0] != '\0') {
        buf_puts(out, out->len > before ? " " : "");
        cli_put_text(out, pointer);
    }
    buf_puts(out, out->len > before ? ": " : "");
}

void
show_problems(const json_t *problems)
{
    const json_t *problem;
    size_t i;

    json_array_foreach(problems, i, problem)
    {
        CLEANUP(buf_fini) struct buf line;

        buf_init(&line, TEXT_MAX_BYTES);
        put_place(&line, problem);
        if (strcmp(cli_str(problem, "severity"), "warning") == 0) {
            buf_puts(&line, "warning: ");
        }
        cli_put_text(&line, cli_str(problem, "message"));
        cli_error("%s", buf_str(&line));
    }
}

const char *
server_state(const json_t *server)
{
    bool nameless = strcmp(cli_str(server, "taken_out_by"), "dns") == 0;

    return nameless ? "no address (DNS)" : cli_str(server, "state");
}

void
show_drafted(void)
{
    puts("In the draft. \"lockstep diff\" shows it, \"lockstep apply\" applies it.");
}

static void
show_step(const json_t *step)
{
    CLEANUP(buf_fini) struct buf line;
    const char *state = cli_str(step, "state");
    const json_t *ms = json_object_get(step, "ms");
    const char *text = cli_str(step, "text");

    buf_init(&line, TEXT_MAX_BYTES);
    buf_printf(&line, "  %-6s ", strcmp(state, "ok") == 0 ? "ok" : state);
    cli_put_text(&line, cli_str(step, "title"));
    if (json_is_integer(ms)) {
        buf_printf(&line, " (%lld ms)", (long long)json_integer_value(ms));
    }
    if (text[0] != '\0') {
        buf_puts(&line, ": ");
        cli_put_text(&line, text);
    }
    puts(buf_str(&line));
}

static bool
ended(const json_t *task)
{
    const char *state = cli_str(task, "state");

    return strcmp(state, "ok") == 0 || strcmp(state, "failed") == 0;
}

/* Steps from *shown on that have ended. */
static void
show_steps(const json_t *task, size_t *shown)
{
    const json_t *steps = json_object_get(task, "steps");

    while (*shown < json_array_size(steps) && ended(json_array_get(steps, *shown))) {
        show_step(json_array_get(steps, (*shown)++));
    }
    (void)fflush(stdout);
}

static int
show_end(const json_t *task)
{
    CLEANUP(buf_fini) struct buf line;
    bool failed = strcmp(cli_str(task, "state"), "failed") == 0;

    buf_init(&line, TEXT_MAX_BYTES);
    cli_put_text(&line, cli_str(task, "message"));
    if (failed) {
        cli_error("%s", buf_str(&line));
    } else if (line.len > 0) {
        puts(buf_str(&line));
    }
    (void)fflush(stdout);
    show_problems(json_object_get(task, "problems"));
    return failed ? EXIT_NO : 0;
}

void
show_task(struct cli *c, const json_t *task)
{
    size_t shown = 0;

    if (cli_printed_json(c, task)) {
        return;
    }
    show_steps(task, &shown);
    show_end(task);
}

struct follow {
    struct cli *cli;
    json_int_t id;
    size_t shown;
    json_t *last;
};

static bool
on_task(void *ctx, const char *topic, const char *data, size_t len)
{
    struct follow *f = ctx;
    struct error e;
    json_t *task = NULL;

    if (strcmp(topic, "task") != 0) {
        return true;
    }
    if (json_parse(data, len, &task, &e) != ERR_OK) {
        return true;
    }
    if (json_integer_value(json_object_get(task, "id")) != f->id) {
        json_decref(task);
        return true;
    }
    if (!f->cli->json) {
        show_steps(task, &f->shown);
    }
    json_decref(f->last);
    json_object_del(task, "event_at");
    f->last = task;
    return !ended(task);
}

/* The end of a task as JSON; of one that a command began beside something else, with that. */
static int
print_end(const struct cli *c, json_t *result, json_t *task)
{
    if (result != NULL) {
        json_object_set(result, "task", task);
    }
    cli_printed_json(c, result != NULL ? result : task);
    return strcmp(cli_str(task, "state"), "failed") == 0 ? EXIT_NO : 0;
}

/* Reads events until the task has ended, or somebody presses Ctrl-C: that ends this program
 * and not what the node does. */
static int
read_task(struct follow *f)
{
    struct cli *c = f->cli;
    sigset_t interrupt, before;

    (void)sigemptyset(&interrupt);
    (void)sigaddset(&interrupt, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    int fd = signalfd(-1, &interrupt, SFD_CLOEXEC);
    c->config.stop_fd = fd > 0 ? fd : 0;
    int status = cli_events(c, "/api/v1/events?topics=task", on_task, f, false);
    c->config.stop_fd = 0;
    fd_cleanup(&fd);
    if (status == 0 && !ended(f->last)) {
        cli_error(
            "the node goes on with it: \"lockstep tasks %lld\" shows how", (long long)f->id);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* the signal has its effect here */
    return status;
}

int
follow_task(struct cli *c, const json_t *task, json_t *result)
{
    struct follow f = {.cli = c, .id = json_integer_value(json_object_get(task, "id"))};
    int status = read_task(&f);

    if (status != 0) {
        cli_error(
            "\"lockstep tasks %lld\" shows how it went on; if lockstepd was restarted, "
            "\"lockstep status\" and \"lockstep history\" tell what was saved",
            (long long)f.id);
    } else if (c->json) {
        status = print_end(c, result, f.last);
    } else {
        status = show_end(f.last);
    }
    json_decref(f.last);
    return status;
}

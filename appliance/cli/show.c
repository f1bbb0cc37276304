/* SPDX-License-Identifier: Apache-2.0 */
/* Changes, problems and tasks as people read them. */
#include "cli/show.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define TEXT_MAX_BYTES    ((size_t)4 << 20)
#define VALUE_SHOWN_BYTES 60

#define RED   "\033[31m"
#define GREEN "\033[32m"
#define CYAN  "\033[36m"
#define PLAIN "\033[0m"

static void
put_value(struct buf *out, const json_t *v)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (v == NULL) {
        buf_putc(out, '-');
        return;
    }
    buf_init(&text, TEXT_MAX_BYTES);
    json_canonical(v, &text);
    if (text.len <= VALUE_SHOWN_BYTES) {
        cli_put_text(out, buf_str(&text));
        return;
    }
    /* Cut at a character, not inside one. */
    size_t cut = VALUE_SHOWN_BYTES;
    while (cut > 0 && ((unsigned char)text.data[cut] & 0xc0) == 0x80) {
        cut--;
    }
    text.data[cut] = '\0';
    cli_put_text(out, text.data);
    buf_puts(out, "...");
}

static void
show_fields(const json_t *object)
{
    CLEANUP(buf_fini) struct buf line;
    const json_t *field;
    size_t i;

    buf_init(&line, TEXT_MAX_BYTES);
    json_array_foreach(json_object_get(object, "fields"), i, field)
    {
        const char *pointer = cli_str(field, "pointer");
        buf_reset(&line);
        buf_puts(&line, "      ");
        cli_put_text(&line, pointer[0] == '/' ? pointer + 1 : cli_str(field, "field"));
        buf_puts(&line, ": ");
        put_value(&line, json_object_get(field, "before"));
        buf_puts(&line, " -> ");
        put_value(&line, json_object_get(field, "after"));
        puts(buf_str(&line));
    }
}

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
show_trial(struct cli *c, const json_t *trial)
{
    if (!json_is_object(trial)) {
        return;
    }
    if (json_is_true(json_object_get(trial, "going_back"))) {
        show_line(
            "confirm", "revision %lld was not confirmed: going back", cli_int(trial, "rev"));
    } else {
        show_line(
            "confirm", "\"lockstep confirm\" keeps revision %lld; it goes back at %s",
            cli_int(trial, "rev"), show_time(c, cli_str(trial, "until")));
    }
}

static int
by_kind_and_name(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    int kind = strcmp(cli_str(*x, "kind"), cli_str(*y, "kind"));

    return kind != 0 ? kind : strcmp(cli_str(*x, "name"), cli_str(*y, "name"));
}

static void
show_changed(const struct cli *c, const json_t *object)
{
    CLEANUP(buf_fini) struct buf line;
    const char *change = cli_str(object, "change");
    bool added = strcmp(change, "added") == 0;
    bool removed = strcmp(change, "removed") == 0;
    const char *color = added ? GREEN : removed ? RED : CYAN;

    buf_init(&line, TEXT_MAX_BYTES);
    buf_printf(&line, "  %c ", added ? '+' : removed ? '-' : '~');
    cli_put_text(&line, cli_str(object, "kind"));
    buf_putc(&line, ' ');
    cli_put_text(&line, cli_str(object, "name"));
    printf("%s%s%s\n", c->color ? color : "", buf_str(&line), c->color ? PLAIN : "");
    if (!added && !removed) {
        show_fields(object);
    }
}

void
show_objects(const struct cli *c, const json_t *objects)
{
    size_t count = json_array_size(objects);
    const json_t **sorted = arena_alloc(c->arena, (count + 1) * sizeof(*sorted));

    for (size_t i = 0; i < count; i++) {
        sorted[i] = json_array_get(objects, i);
    }
    qsort(sorted, count, sizeof(*sorted), by_kind_and_name);
    for (size_t i = 0; i < count; i++) {
        show_changed(c, sorted[i]);
    }
}

/* "kind name /pointer: ", as far as it is known. */
static void
put_place(struct buf *out, const json_t *problem)
{
    static const char *const parts[] = {"kind", "name", "pointer"};
    size_t before = out->len;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const char *part = cli_str(problem, parts[i]);
        if (part[0] != '\0') {
            buf_puts(out, out->len > before ? " " : "");
            cli_put_text(out, part);
        }
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

static void
show_diff_line(const struct cli *c, const char *from, size_t len)
{
    CLEANUP(buf_fini) struct buf line;
    CLEANUP(buf_fini) struct buf clean;
    const char *color = *from == '+' ? GREEN : *from == '-' ? RED : *from == '@' ? CYAN : "";

    buf_init(&line, TEXT_MAX_BYTES);
    buf_init(&clean, TEXT_MAX_BYTES);
    buf_put(&line, from, len);
    cli_put_text(&clean, buf_str(&line));
    printf("%s%s%s\n", c->color ? color : "", buf_str(&clean), c->color ? PLAIN : "");
}

void
show_unified(const struct cli *c, const char *diff)
{
    while (*diff != '\0') {
        size_t len = strcspn(diff, "\n");
        show_diff_line(c, diff, len);
        diff += len + (diff[len] == '\n');
    }
}

void
show_diff(struct cli *c, const json_t *diff)
{
    show_objects(c, json_object_get(diff, "objects"));
    const char *text = cli_str(diff, "haproxy_cfg");
    if (text[0] != '\0') {
        putchar('\n');
        show_unified(c, text);
    }
    (void)fflush(stdout);
    show_problems(json_object_get(diff, "problems"));
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
    f->last = task;
    return !ended(task);
}

int
follow_task(struct cli *c, const json_t *task)
{
    struct follow f = {.cli = c, .id = json_integer_value(json_object_get(task, "id"))};
    int status = cli_events(c, "/api/v1/events?topics=task", on_task, &f, false);

    if (status != 0) {
        cli_error("\"lockstep tasks %lld\" shows how it went on", (long long)f.id);
    } else if (cli_printed_json(c, f.last)) {
        status = strcmp(cli_str(f.last, "state"), "failed") == 0 ? EXIT_NO : 0;
    } else {
        status = show_end(f.last);
    }
    json_decref(f.last);
    return status;
}

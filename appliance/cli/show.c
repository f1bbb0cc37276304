/* SPDX-License-Identifier: Apache-2.0 */
/* Changes, problems and tasks as people read them. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"

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
show_objects(const struct cli *c, const json_t *objects)
{
    const json_t *object;
    size_t i;

    json_array_foreach(objects, i, object)
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
}

void
show_problems(const json_t *problems)
{
    const json_t *problem;
    size_t i;

    json_array_foreach(problems, i, problem)
    {
        CLEANUP(buf_fini) struct buf line;
        const char *kind = cli_str(problem, "kind");
        const char *severity = cli_str(problem, "severity");

        buf_init(&line, TEXT_MAX_BYTES);
        buf_puts(&line, "  ");
        if (kind[0] != '\0') {
            cli_put_text(&line, kind);
            buf_putc(&line, ' ');
            cli_put_text(&line, cli_str(problem, "name"));
            buf_putc(&line, ' ');
        }
        cli_put_text(&line, cli_str(problem, "pointer"));
        if (line.len > 2) {
            buf_puts(&line, line.data[line.len - 1] == ' ' ? "- " : ": ");
        }
        if (strcmp(severity, "warning") == 0) {
            buf_puts(&line, "warning: ");
        }
        cli_put_text(&line, cli_str(problem, "message"));
        fprintf(stderr, "%s\n", buf_str(&line));
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
on_task(void *ctx, const char *data, size_t len)
{
    struct follow *f = ctx;
    struct error e;
    json_t *task = NULL;

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
    struct error e;
    int status = EXIT_UNREACHED;

    if (rest_events(c->rest, "/api/v1/events?topics=task", on_task, &f, &e) != ERR_OK) {
        cli_error("%s; \"lockstep tasks %lld\" shows how it went on", e.msg, (long long)f.id);
    } else if (cli_printed_json(c, f.last)) {
        status = strcmp(cli_str(f.last, "state"), "failed") == 0 ? EXIT_NO : 0;
    } else {
        status = show_end(f.last);
    }
    json_decref(f.last);
    return status;
}

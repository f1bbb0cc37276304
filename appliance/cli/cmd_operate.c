/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator does at once, and sees as it happens. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/show.h"

#define WEIGHT_MAX   100000 /* far above what the node takes: it says what is wrong */
#define LINE_BYTES   ((size_t)4 << 20)
#define DATE_COLUMNS 10
#define TIME_COLUMNS 19 /* with the date */

/* ---- server ---- */

static const char *
weight_text(struct cli *c, const json_t *weight, const char *unit)
{
    return json_is_integer(weight)
               ? arena_printf(c->arena, "%lld%s", (long long)json_integer_value(weight), unit)
               : NULL;
}

/* What is stored, whether HAProxy has it so, and what it says of the server in each pool. */
static void
show_state(struct cli *c, const json_t *answer)
{
    static const char *const heads[] = {"POOL",  "STATE",       "WEIGHT",
                                        "CHECK", "SINCE (UTC)", "REFUSED"};
    const json_t *stored = json_object_get(answer, "stored");
    const json_t *pools = json_object_get(answer, "pools");
    const char *note = cli_str(stored, "note"), *reason = cli_str(answer, "reason");
    const json_t *pool;
    size_t i;

    show_line("server", "%s", cli_str(answer, "server"));
    show_line(
        "stored", "%s, weight %lld%%%s%s", cli_str(stored, "state"), cli_int(stored, "weight"),
        note[0] != '\0' ? ": " : "", note);
    show_line(
        "running", "%s%s%s", cli_str(answer, "running"), reason[0] != '\0' ? ": " : "", reason);
    if (json_array_size(pools) == 0) {
        show_line("pools", "none has it");
        return;
    }
    putchar('\n');
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    json_array_foreach(pools, i, pool)
    {
        const json_t *server = json_object_get(pool, "server");
        table_cell(t, cli_str(pool, "pool"));
        table_cell(t, server_state(server));
        table_cell(t, weight_text(c, json_object_get(server, "weight"), ""));
        table_cell(t, cli_str(json_object_get(server, "check"), "status"));
        table_cell_time(t, cli_str(server, "since"));
        table_cell(t, cli_str(pool, "refused"));
    }
    table_print(t);
}

/* "50%" or "50"; -1 when it is no such thing. */
static json_int_t
percent(const char *s)
{
    json_int_t v = 0;
    size_t digits = strspn(s, "0123456789");

    if (digits == 0 || (s[digits] != '\0' && strcmp(s + digits, "%") != 0)) {
        return -1;
    }
    for (size_t i = 0; i < digits && v < WEIGHT_MAX; i++) {
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

/* The words behind the name into body; 0 or EXIT_USAGE. */
static int
read_state(const struct cli *c, int argc, char **argv, json_t *body)
{
    static const char *const states[] = {"ready", "drain", "maint"};
    json_int_t weight = argc == 4 ? percent(argv[3]) : -1;

    if (strcmp(argv[2], "weight") == 0) {
        if (weight < 0) {
            return cli_misused(c, "weight needs a percentage, as 50%%");
        }
        json_object_set_new(body, "weight", json_integer(weight));
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(states) && argc == 3; i++) {
        if (strcmp(argv[2], states[i]) == 0) {
            json_object_set_new(body, "state", json_string(states[i]));
            return 0;
        }
    }
    return cli_misused(c, "\"%s\" is no state of a server", argv[argc - 1]);
}

static int
change_state(struct cli *c, const char *path, json_t *body, json_t **ret)
{
    const struct call q = {.method = "PUT", .path = path, .body = body};

    cli_set_text(body, "note", cli_option(c, "--note"));
    return cli_call(c, &q, ret, NULL);
}

int
cmd_server(struct cli *c, int argc, char **argv)
{
    const char *path = cli_path(c, "servers", argv[1], "state", NULL);
    const struct call reset = {.method = "DELETE", .path = path};
    json_auto_t *body = json_object();
    json_t *answer = NULL;
    bool reads = argc == 2, resets = argc == 3 && strcmp(argv[2], "reset") == 0;
    int status = 0;

    if ((reads || resets) && cli_flag(c, "--note")) {
        return cli_misused(c, "--note has no meaning without a state or weight");
    }
    if (reads) {
        status = cli_get(c, path, &answer);
    } else if (resets) {
        status = cli_call(c, &reset, &answer, NULL);
    } else {
        status = read_state(c, argc, argv, body);
        if (status == 0) {
            status = change_state(c, path, body, &answer);
        }
    }
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_state(c, answer);
    }
    json_decref(answer);
    return status;
}

/* ---- events ---- */

/* The step that a running task is at. */
static const char *
present_step(const json_t *task)
{
    const json_t *step;
    size_t i;

    json_array_foreach(json_object_get(task, "steps"), i, step)
    {
        if (strcmp(cli_str(step, "state"), "running") == 0) {
            return cli_str(step, "title");
        }
    }
    return "";
}

static void
put_task(struct buf *out, const json_t *task)
{
    const char *message = cli_str(task, "message");

    buf_printf(out, "%lld ", cli_int(task, "id"));
    cli_put_text(out, cli_str(task, "title"));
    buf_printf(out, ": %s", cli_str(task, "state"));
    const char *more = message[0] != '\0' ? message : present_step(task);
    if (more[0] != '\0') {
        buf_puts(out, ", ");
        cli_put_text(out, more);
    }
}

static void
put_waiting(struct cli *c, struct buf *out, const json_t *waiting)
{
    long long rev = cli_int(waiting, "rev");

    if (!json_is_object(waiting)) {
        buf_puts(out, "no revision waits for \"lockstep confirm\"");
    } else if (json_is_true(json_object_get(waiting, "going_back"))) {
        buf_printf(out, "revision %lld goes back", rev);
    } else if (
        json_is_true(json_object_get(waiting, "failed")) &&
        json_is_null(json_object_get(waiting, "retry_at"))) {
        buf_printf(
            out, "revision %lld was not confirmed, and the node to go back does not answer",
            rev);
    } else if (json_is_true(json_object_get(waiting, "failed"))) {
        buf_printf(out, "revision %lld could not go back, tried again at ", rev);
        cli_put_text(out, show_time(c, cli_str(waiting, "retry_at")));
    } else {
        buf_printf(out, "revision %lld waits for \"lockstep confirm\" until ", rev);
        cli_put_text(out, show_time(c, cli_str(waiting, "until")));
    }
}

static void
put_status(struct cli *c, struct buf *out, const json_t *status)
{
    const json_t *running = json_object_get(status, "running");
    const json_t *serving = json_object_get(status, "serving");
    const json_t *waiting = json_object_get(status, "confirm");

    if (serving == NULL) { /* an event about this alone */
        put_waiting(c, out, waiting);
        return;
    }
    buf_printf(out, "haproxy up: %s", cli_str(json_object_get(status, "haproxy"), "up"));
    if (json_is_true(json_object_get(running, "known"))) {
        buf_printf(out, ", running revision %lld", cli_int(running, "rev"));
    }
    buf_printf(out, ", serving: %s", cli_str(serving, "state"));
    if (cli_str(serving, "detail")[0] != '\0') {
        buf_puts(out, ", ");
        cli_put_text(out, cli_str(serving, "detail"));
    }
}

/* One line on what an event says. */
static void
put_event(struct cli *c, struct buf *out, const char *topic, const json_t *data)
{
    if (strcmp(topic, "task") == 0) {
        put_task(out, data);
    } else if (strcmp(topic, "status") == 0) {
        put_status(c, out, data);
    } else if (strcmp(topic, "draft") == 0) {
        buf_printf(
            out, "%lld change%s", cli_int(data, "count"), PLURAL(cli_int(data, "count")));
    } else if (strcmp(topic, "head") == 0) {
        buf_printf(out, "revision %lld", cli_int(data, "rev"));
    } else if (strcmp(topic, "server") == 0) {
        cli_put_text(out, cli_str(data, "server"));
        buf_puts(out, ": ");
        cli_put_text(out, cli_str(data, "state"));
        buf_printf(out, ", weight %lld%%", cli_int(data, "weight"));
    } else if (strcmp(topic, "hello") == 0) {
        buf_puts(out, "node ");
        cli_put_text(out, cli_str(data, "node"));
    } else if (strcmp(topic, "reset") == 0) {
        buf_puts(out, "some events were missed");
    } else {
        cli_put_value(out, data);
    }
}

struct reader {
    struct cli *cli;
    json_t *last; /* the last line of each topic: one that says the same again is left out */
};

/* Between two steps a task has nothing to tell. */
static bool
says_nothing(const char *topic, const json_t *data)
{
    return strcmp(topic, "task") == 0 && strcmp(cli_str(data, "state"), "running") == 0 &&
           present_step(data)[0] == '\0';
}

static bool
is_again(const struct reader *r, const char *topic, const char *line)
{
    const char *last = json_string_value(json_object_get(r->last, topic));

    return last != NULL && strcmp(last, line) == 0;
}

/* "2026-01-02 03:04:05  ", in UTC as all times; blanks where it is not known. */
static void
put_event_time(const json_t *data)
{
    const char *at = cli_str(data, "event_at");
    bool known = strlen(at) > TIME_COLUMNS;

    printf(
        "%*.*s %*.*s  ", DATE_COLUMNS, DATE_COLUMNS, known ? at : "",
        TIME_COLUMNS - DATE_COLUMNS - 1, TIME_COLUMNS - DATE_COLUMNS - 1,
        known ? at + DATE_COLUMNS + 1 : "");
}

static bool
on_event(void *ctx, const char *topic, const char *data, size_t len)
{
    struct reader *r = ctx;
    CLEANUP(buf_fini) struct buf line;
    json_auto_t *parsed = NULL;
    struct error e;

    buf_init(&line, LINE_BYTES);
    if (json_parse(data, len, &parsed, &e) != ERR_OK) {
        return true;
    }
    if (r->cli->json) {
        json_auto_t *event = json_pack("{s:s, s:O}", "topic", topic, "data", parsed);
        json_canonical(event, &line);
    } else {
        buf_printf(&line, "%-7s ", topic);
        put_event(r->cli, &line, topic, parsed);
        if (says_nothing(topic, parsed) || is_again(r, topic, buf_str(&line))) {
            return true;
        }
        json_object_set_new(r->last, topic, json_string(buf_str(&line)));
    }
    if (!r->cli->json) {
        put_event_time(parsed);
    }
    puts(buf_str(&line));
    return fflush(stdout) == 0;
}

int
cmd_events(struct cli *c, int argc, char **argv)
{
    struct reader r = {.cli = c};
    bool limited = cli_flag(c, "--timeout");
    const char *path =
        cli_query(c, cli_path(c, "events", NULL), "topics", cli_option(c, "--topics"));

    (void)argc;
    (void)argv;
    if (!limited) {
        c->config.timeout_ms = 0; /* none */
    }
    r.last = json_object();
    int status = cli_events(c, path, on_event, &r, limited);
    json_decref(r.last);
    return status;
}

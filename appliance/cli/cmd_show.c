/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that only read: status, history, show, tasks, verify, config. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static int
get(struct cli *c, const char *path, json_t **ret)
{
    const struct call q = {.method = "GET", .path = path};

    return cli_call(c, &q, ret, NULL);
}

static void line(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void
line(const char *name, const char *fmt, ...)
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

static long long
number(const json_t *obj, const char *key)
{
    return (long long)json_integer_value(json_object_get(obj, key));
}

static void
show_running(const json_t *status)
{
    const json_t *running = json_object_get(status, "running");
    const json_t *head = json_object_get(status, "head");
    const char *commit = cli_str(running, "commit");

    if (!json_is_true(json_object_get(running, "known"))) {
        line("running", "unknown: HAProxy runs no configuration of this node");
    } else if (strcmp(commit, cli_str(head, "id")) == 0) {
        line("running", "revision %lld, as stored", number(running, "rev"));
    } else {
        line(
            "running", "revision %lld (%.8s), NOT the stored one", number(running, "rev"),
            commit);
    }
}

static void
show_status(const json_t *status)
{
    const json_t *head = json_object_get(status, "head");
    const json_t *draft = json_object_get(status, "draft");
    const json_t *haproxy = json_object_get(status, "haproxy");
    const json_t *serving = json_object_get(status, "serving");

    line("node", "%s, lockstep %s", cli_str(status, "node"), cli_str(status, "release"));
    line(
        "stored", "revision %lld@%s, %s, by %s", number(head, "rev"), cli_str(head, "fp8"),
        cli_str(head, "at"), cli_str(head, "author"));
    show_running(status);
    line(
        "serving", "%s%s%s", cli_str(serving, "state"),
        cli_str(serving, "detail")[0] != '\0' ? ": " : "", cli_str(serving, "detail"));
    if (strcmp(cli_str(haproxy, "up"), "yes") == 0) {
        line(
            "haproxy", "%s, up %lld s, %lld of %lld connections, %lld old workers",
            cli_str(haproxy, "version"), number(haproxy, "uptime_s"),
            number(haproxy, "connections"), number(haproxy, "max_connections"),
            number(haproxy, "old_workers"));
    } else {
        line("haproxy", "%s", strcmp(cli_str(haproxy, "up"), "no") == 0 ? "down" : "unknown");
    }
    if (number(draft, "count") > 0) {
        line(
            "draft", "%lld changes not applied, %lld in conflict", number(draft, "count"),
            number(draft, "conflicts"));
    } else {
        line("draft", "empty");
    }
    if (cli_str(status, "reason")[0] != '\0') {
        line("reason", "%s", cli_str(status, "reason"));
    }
}

int
cmd_status(struct cli *c, int argc, char **argv)
{
    json_t *status = NULL;
    int exit_status = cli_no_more(argc, argv, 0, 0);

    if (exit_status == 0) {
        exit_status = get(c, cli_path(c, "status", NULL), &status);
    }
    if (exit_status != 0) {
        return exit_status;
    }
    if (!cli_printed_json(c, status)) {
        show_status(status);
    }
    json_decref(status);
    return 0;
}

int
cmd_history(struct cli *c, int argc, char **argv)
{
    static const char *const heads[] = {"REVISION", "WHEN", "WHO", "WHAT"};
    const char *limit = cli_option(&argc, argv, "--limit");
    json_t *answer = NULL;
    const json_t *commit;
    size_t i;
    int status = cli_no_more(argc, argv, 0, 0);

    if (status == 0) {
        status = get(
            c, arena_printf(c->arena, "/api/v1/commits?limit=%s", limit != NULL ? limit : "20"),
            &answer);
    }
    if (status != 0) {
        return status;
    }
    if (!cli_printed_json(c, answer)) {
        struct table *t = table_new(c, heads, ARRAY_LEN(heads));
        json_array_foreach(json_object_get(answer, "items"), i, commit)
        {
            table_cell(
                t, arena_printf(
                       c->arena, "%lld@%s", number(commit, "rev"), cli_str(commit, "fp8")));
            table_cell(t, cli_str(commit, "at"));
            table_cell(t, cli_str(commit, "author"));
            table_cell(t, cli_str(commit, "summary"));
        }
        table_print(t);
    }
    json_decref(answer);
    return 0;
}

int
cmd_show(struct cli *c, int argc, char **argv)
{
    json_t *diff = NULL;
    int status = cli_no_more(argc, argv, 1, 2);

    if (status != 0) {
        return status;
    }
    const char *path = cli_path(c, "commits", argv[1], "diff", NULL);
    if (argc == 3) {
        CLEANUP(buf_fini) struct buf longer;
        buf_init(&longer, 8192);
        buf_puts(&longer, path);
        buf_puts(&longer, "?to=");
        rest_put_segment(&longer, argv[2]);
        path = arena_strdup(c->arena, buf_str(&longer));
    }
    status = get(c, path, &diff);
    if (status != 0) {
        return status;
    }
    if (!cli_printed_json(c, diff)) {
        show_objects(c, json_object_get(diff, "objects"));
        show_unified(c, cli_str(diff, "haproxy_cfg"));
    }
    json_decref(diff);
    return 0;
}

static void
list_tasks(struct cli *c, const json_t *items)
{
    static const char *const heads[] = {"ID", "WHEN", "STATE", "WHAT", "WHO", "RESULT"};
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    const json_t *task;
    size_t i;

    json_array_foreach(items, i, task)
    {
        table_cell_int(t, number(task, "id"));
        table_cell(t, cli_str(task, "at"));
        table_cell(t, cli_str(task, "state"));
        table_cell(t, cli_str(task, "title"));
        table_cell(t, cli_str(task, "author"));
        table_cell(t, cli_str(task, "message"));
    }
    table_print(t);
}

int
cmd_tasks(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    int status = cli_no_more(argc, argv, 0, 1);

    if (status == 0) {
        status = get(c, cli_path(c, "tasks", argc == 2 ? argv[1] : NULL, NULL), &answer);
    }
    if (status != 0) {
        return status;
    }
    if (argc == 2) {
        show_task(c, answer);
    } else if (!cli_printed_json(c, answer)) {
        list_tasks(c, json_object_get(answer, "items"));
    }
    json_decref(answer);
    return 0;
}

int
cmd_verify(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    int status = cli_no_more(argc, argv, 0, 0);

    if (status == 0) {
        status = get(c, cli_path(c, "verify", NULL), &answer);
    }
    if (status != 0) {
        return status;
    }
    if (!cli_printed_json(c, answer)) {
        printf(
            "%lld objects and commits are as their hashes say, and the files of the "
            "current generation are those of the stored revision.\n",
            number(answer, "checked"));
    }
    json_decref(answer);
    return 0;
}

int
cmd_config(struct cli *c, int argc, char **argv)
{
    struct rest_answer answer;
    bool draft = cli_flag(&argc, argv, "--draft");
    int status = cli_no_more(argc, argv, 0, 0);
    const struct call q = {
        .method = "GET",
        .path = draft ? "/api/v1/config/haproxy.cfg?draft=1" : "/api/v1/config/haproxy.cfg"};

    if (status != 0) {
        return status;
    }
    rest_answer_init(&answer);
    status = cli_call(c, &q, NULL, &answer);
    if (status == 0) {
        (void)fwrite(buf_str(&answer.body), 1, answer.body.len, stdout);
    }
    rest_answer_fini(&answer);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that only read: status, ready, whoami, history, show, tasks, verify. */
#include <stdio.h>
#include <string.h>

#include "cli/show.h"

#define NAMES_BYTES 65536

static void
show_running(const json_t *status)
{
    const json_t *running = json_object_get(status, "running");
    const json_t *head = json_object_get(status, "head");
    const char *commit = cli_str(running, "commit");

    const char *up = cli_str(json_object_get(status, "haproxy"), "up");

    if (strcmp(up, "yes") != 0) {
        show_line(
            "running", "unknown: HAProxy %s",
            strcmp(up, "no") == 0 ? "does not answer" : "was not asked yet");
    } else if (!json_is_true(json_object_get(running, "known"))) {
        show_line("running", "unknown: HAProxy runs no configuration of this node");
    } else if (strcmp(commit, cli_str(head, "id")) == 0) {
        show_line("running", "revision %lld, as stored", cli_int(running, "rev"));
    } else {
        show_line(
            "running", "revision %lld (%.8s), NOT the stored one", cli_int(running, "rev"),
            commit);
    }
}

/* "59 s", "3 min", "5 h 20 min", "8 d 5 h". */
static const char *
show_span(struct cli *c, long long s)
{
    long long min = s / 60, h = min / 60, d = h / 24;

    if (min == 0) {
        return arena_printf(c->arena, "%lld s", s);
    }
    if (h == 0) {
        return arena_printf(c->arena, "%lld min", min);
    }
    return d == 0 ? arena_printf(c->arena, "%lld h %lld min", h, min % 60)
                  : arena_printf(c->arena, "%lld d %lld h", d, h % 24);
}

/* What was seen of a HAProxy that does not answer. */
static void
show_silence(struct cli *c, const json_t *status)
{
    const json_t *haproxy = json_object_get(status, "haproxy");
    const char *detail = cli_str(haproxy, "detail");
    const char *for_long = "";

    if (strcmp(cli_str(haproxy, "up"), "no") != 0) {
        show_line("haproxy", "unknown: it was not asked yet");
        return;
    }
    if (json_is_integer(json_object_get(status, "silent_s"))) {
        for_long = arena_printf(c->arena, " for %s", show_span(c, cli_int(status, "silent_s")));
    }
    show_line(
        "haproxy", "does not answer on its admin socket%s%s%s", for_long,
        detail[0] != '\0' ? ": " : "", detail);
}

static void
show_idle(const json_t *idle)
{
    CLEANUP(buf_fini) struct buf names = {0};
    const json_t *first = json_object_get(idle, "first");
    long long left = cli_int(idle, "count") - (long long)json_array_size(first);
    const json_t *pool;
    size_t i;

    if (cli_int(idle, "count") == 0) {
        return;
    }
    buf_init(&names, NAMES_BYTES);
    json_array_foreach(first, i, pool)
    {
        bool empty = strcmp(cli_str(pool, "reason"), "no_servers") == 0;
        buf_printf(
            &names, "%s%s (%s)", i > 0 ? ", " : "", cli_str(pool, "pool"),
            empty ? "it has none" : "all are taken out");
    }
    if (left > 0) {
        buf_printf(&names, " and %lld more", left);
    }
    show_line("pools", "without a server for visitors: %s", buf_str(&names));
}

static void
show_status(struct cli *c, const json_t *status)
{
    const json_t *head = json_object_get(status, "head");
    const json_t *draft = json_object_get(status, "draft");
    const json_t *haproxy = json_object_get(status, "haproxy");
    const json_t *serving = json_object_get(status, "serving");

    show_line("node", "%s, lockstep %s", cli_str(status, "node"), cli_str(status, "release"));
    show_line(
        "stored", "revision %lld@%s, %s, by %s", cli_int(head, "rev"), cli_str(head, "fp8"),
        show_time(c, cli_str(head, "at")), cli_str(head, "author"));
    show_waiting(c, json_object_get(status, "confirm"));
    show_running(status);
    show_line(
        "serving", "%s%s%s", cli_str(serving, "state"),
        cli_str(serving, "detail")[0] != '\0' ? ": " : "", cli_str(serving, "detail"));
    if (strcmp(cli_str(haproxy, "up"), "yes") == 0) {
        show_line(
            "haproxy", "%s, up %s, %lld of %lld connections, %s", cli_str(haproxy, "version"),
            show_span(c, cli_int(haproxy, "uptime_s")), cli_int(haproxy, "connections"),
            cli_int(haproxy, "max_connections"),
            show_count(c, cli_int(haproxy, "old_workers"), "old worker"));
    } else {
        show_silence(c, status);
    }
    if (json_is_integer(json_object_get(status, "age_s"))) {
        show_line("measured", "%s ago", show_span(c, cli_int(status, "age_s")));
    }
    show_idle(json_object_get(status, "idle_pools"));
    if (cli_int(draft, "count") > 0) {
        show_line(
            "draft", "%s not applied, %lld in conflict",
            show_count(c, cli_int(draft, "count"), "change"), cli_int(draft, "conflicts"));
    } else {
        show_line("draft", "empty");
    }
    if (cli_str(status, "reason")[0] != '\0') {
        show_line("reason", "%s", cli_str(status, "reason"));
    }
}

int
cmd_status(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL, *cluster = NULL;
    int status = cli_get(c, cli_path(c, "status", NULL), &answer);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_status(c, answer);
        status = cli_get(c, cli_path(c, "cluster", NULL), &cluster);
        if (status == 0) {
            show_cluster_line(c, cluster);
        }
    }
    json_decref(cluster);
    json_decref(answer);
    return status;
}

/* The answer is one word for probers, not JSON. */
int
cmd_ready(struct cli *c, int argc, char **argv)
{
    json_auto_t *ready = json_pack("{s:b}", "ready", 1);
    int status = cli_get(c, cli_path(c, "ready", NULL), NULL);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, ready)) {
        puts("ready");
    }
    if (status == EXIT_NO && !c->json) {
        cli_error("\"lockstep status\" says what is missing");
    }
    return status;
}

int
cmd_whoami(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    int status = cli_get(c, cli_path(c, "session", NULL), &answer);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, answer)) {
        const char *key = cli_str(answer, "key");
        show_line("url", "%s", c->config.url);
        show_line(
            key[0] != '\0' ? "key" : "admin", "%s",
            key[0] != '\0' ? key : cli_str(answer, "admin"));
        show_line("config", "%s", c->config_path);
    }
    json_decref(answer);
    return status;
}

static void
list_commits(struct cli *c, const json_t *items)
{
    static const char *const heads[] = {"REVISION", "WHEN (UTC)", "WHO", "NODE", "WHAT"};
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    const json_t *commit;
    size_t i;

    json_array_foreach(items, i, commit)
    {
        table_cell_whole(
            t,
            arena_printf(c->arena, "%lld@%s", cli_int(commit, "rev"), cli_str(commit, "fp8")));
        table_cell_time(t, cli_str(commit, "at"));
        table_cell(t, cli_str(commit, "author"));
        table_cell(t, cli_str(commit, "node"));
        table_cell(t, cli_str(commit, "summary"));
    }
    if (!table_is_empty(t)) {
        table_print(t);
    } else if (cli_flag(c, "--before")) {
        printf("There is no commit before revision %s.\n", cli_option(c, "--before"));
    } else {
        puts("There is no commit yet.");
    }
}

int
cmd_history(struct cli *c, int argc, char **argv)
{
    const char *limit = cli_option(c, "--limit");
    const char *path = cli_path(c, "commits", NULL);
    json_t *answer = NULL;

    (void)argc;
    (void)argv;
    path = cli_query(c, path, "limit", limit != NULL ? limit : "20");
    path = cli_query(c, path, "before", cli_option(c, "--before"));
    int status = cli_get(c, path, &answer);
    if (status != 0) {
        return status;
    }
    if (!cli_printed_json(c, answer)) {
        list_commits(c, json_object_get(answer, "items"));
    }
    json_decref(answer);
    return 0;
}

/* What an overwrite put aside: its parents but for the first, which it goes on from. */
static int
show_discarded(struct cli *c, const json_t *parents)
{
    int status = 0;

    for (size_t i = 1; i < json_array_size(parents) && status == 0; i++) {
        const char *id = json_string_value(json_array_get(parents, i));
        json_t *parent = NULL;

        status = cli_get(c, cli_path(c, "commits", id != NULL ? id : "", NULL), &parent);
        if (status == 0) {
            show_line(
                "discarded", "%lld@%s of %s: %s", cli_int(parent, "rev"),
                cli_str(parent, "fp8"), cli_str(parent, "node"), cli_str(parent, "summary"));
        }
        json_decref(parent);
    }
    return status;
}

static int
show_commit(struct cli *c, const json_t *commit)
{
    int status;

    show_line("revision", "%lld@%s", cli_int(commit, "rev"), cli_str(commit, "fp8"));
    show_line("id", "%s", cli_str(commit, "id"));
    show_line(
        "made", "%s by %s on %s", show_time(c, cli_str(commit, "at")),
        cli_str(commit, "author"), cli_str(commit, "node"));
    show_line("summary", "%s", cli_str(commit, "summary"));
    status = show_discarded(c, json_object_get(commit, "parents"));
    putchar('\n');
    return status;
}

static void
show_equal(const json_t *diff, bool two)
{
    CLEANUP(buf_fini) struct buf names = {0};

    if (json_array_size(json_object_get(diff, "objects")) > 0 ||
        cli_str(diff, "haproxy_cfg")[0] != '\0') {
        return;
    }
    buf_init(&names, NAMES_BYTES);
    cli_put_text(&names, cli_str(diff, "from"));
    if (two) {
        buf_puts(&names, " and ");
        cli_put_text(&names, cli_str(diff, "to"));
    }
    printf(
        two ? "No difference between revisions %s.\n"
            : "It changes no object of revision %s.\n",
        buf_str(&names));
}

/* One commit: who, when and what; two: only what lies between them. */
int
cmd_show(struct cli *c, int argc, char **argv)
{
    json_t *commit = NULL, *diff = NULL;
    const char *path = cli_path(c, "commits", argv[1], "diff", NULL);
    int status = cli_get(c, cli_query(c, path, "to", argc == 3 ? argv[2] : NULL), &diff);

    if (status == 0 && argc == 2) {
        status = cli_get(c, cli_path(c, "commits", argv[1], NULL), &commit);
    }
    if (status == 0 && c->json) {
        if (commit != NULL) {
            json_object_set(diff, "commit", commit);
        }
        cli_printed_json(c, diff);
    } else if (status == 0) {
        if (commit != NULL) {
            status = show_commit(c, commit);
        }
        show_diff(c, diff);
        show_equal(diff, commit == NULL);
    }
    json_decref(commit);
    json_decref(diff);
    return status;
}

static void
list_tasks(struct cli *c, const json_t *items)
{
    static const char *const heads[] = {"ID", "WHEN (UTC)", "STATE", "WHAT", "WHO", "RESULT"};
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    const json_t *task;
    size_t i;

    json_array_foreach(items, i, task)
    {
        table_cell_int(t, cli_int(task, "id"));
        table_cell_time(t, cli_str(task, "at"));
        table_cell_whole(t, cli_str(task, "state"));
        table_cell(t, cli_str(task, "title"));
        table_cell(t, cli_str(task, "author"));
        table_cell(t, cli_str(task, "message"));
    }
    if (table_is_empty(t)) {
        puts("There is no task since lockstepd started.");
    } else {
        table_print(t);
    }
}

int
cmd_tasks(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    int status = cli_get(c, cli_path(c, "tasks", argc == 2 ? argv[1] : NULL, NULL), &answer);

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
    int status = cli_get(c, cli_path(c, "verify", NULL), &answer);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, answer)) {
        printf(
            "%lld objects and commits are as their hashes say, and the files of the\n"
            "current generation are those of the stored revision.\n",
            cli_int(answer, "checked"));
    }
    json_decref(answer);
    return status;
}

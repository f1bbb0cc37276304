/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that plan, check, apply and take back changes. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static void
set_text(json_t *body, const char *key, const char *value)
{
    if (value != NULL) {
        json_object_set_new(body, key, json_string(value));
    }
}

/* "a,b,c" as an array of strings. */
static json_t *
split(const char *list)
{
    json_t *out = json_array();

    for (const char *at = list;; at++) {
        size_t len = strcspn(at, ",");
        json_array_append_new(out, json_stringn(at, len));
        at += len;
        if (*at == '\0') {
            return out;
        }
    }
}

static void
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

static json_t *
publish_body(int argc, char **argv, const char *to, const char *check)
{
    json_t *body = json_object();
    json_t *urls = json_array();

    for (int i = 1; i < argc; i++) {
        json_array_append_new(urls, json_string(argv[i]));
    }
    json_object_set_new(body, "urls", urls);
    json_object_set_new(body, "to", split(to));
    set_text(body, "check", check);
    return body;
}

static void
show_published(struct cli *c, const json_t *answer, bool plan)
{
    const json_t *diff = json_object_get(answer, "diff");

    if (plan && json_is_object(diff)) {
        show_diff(c, diff);
        return;
    }
    show_objects(c, json_object_get(answer, "objects"));
    (void)fflush(stdout);
    show_problems(json_object_get(answer, "problems"));
    if (plan) {
        return;
    }
    if (json_array_size(json_object_get(answer, "objects")) == 0) {
        puts("Nothing to change: it is published like this.");
    } else {
        puts("In the draft. \"lockstep diff\" shows it, \"lockstep apply\" applies it.");
    }
}

int
cmd_publish(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    const char *to = cli_option(&argc, argv, "--to");
    const char *check = cli_option(&argc, argv, "--check");
    const char *name = cli_option(&argc, argv, "--name");
    const char *note = cli_option(&argc, argv, "--note");
    bool plan = cli_flag(&argc, argv, "--plan");
    bool apply = cli_flag(&argc, argv, "--apply");
    int status = cli_no_more(argc, argv, 1, 100);

    if (status != 0) {
        return status;
    }
    if (to == NULL) {
        cli_error("publish: --to HOST:PORT[,HOST:PORT ...] is missing");
        return EXIT_USAGE;
    }
    json_t *body = publish_body(argc, argv, to, check);
    set_text(body, "name", name);
    set_text(body, "note", note);
    if (apply) {
        json_object_set_new(body, "apply", json_true());
    }
    const struct call q = {
        .method = "POST",
        .path = plan ? "/api/v1/publish?plan=1" : "/api/v1/publish",
        .body = body};
    status = cli_call(c, &q, &answer, NULL);
    json_decref(body);
    if (status != 0) {
        return status;
    }
    json_t *task = json_object_get(answer, "task");
    if (json_is_object(task)) {
        status = follow_task(c, task);
    } else if (!cli_printed_json(c, answer)) {
        show_published(c, answer, plan);
    }
    json_decref(answer);
    return status;
}

int
cmd_unpublish(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    int status = cli_no_more(argc, argv, 1, 1);

    if (status != 0) {
        return status;
    }
    const struct call q = {.method = "DELETE", .path = cli_path(c, "publish", argv[1], NULL)};
    status = cli_call(c, &q, &answer, NULL);
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_published(c, answer, false);
    }
    json_decref(answer);
    return status;
}

int
cmd_diff(struct cli *c, int argc, char **argv)
{
    json_t *diff = NULL;
    const struct call q = {.method = "GET", .path = cli_path(c, "config", "diff", NULL)};
    int status = cli_no_more(argc, argv, 0, 0);

    if (status == 0) {
        status = cli_call(c, &q, &diff, NULL);
    }
    if (status != 0) {
        return status;
    }
    if (!cli_printed_json(c, diff)) {
        if (json_array_size(json_object_get(diff, "objects")) == 0) {
            puts("The draft is empty.");
        } else {
            show_diff(c, diff);
        }
    }
    json_decref(diff);
    return 0;
}

int
cmd_check(struct cli *c, int argc, char **argv)
{
    json_t *result = NULL;
    const struct call q = {.method = "POST", .path = cli_path(c, "config", "check", NULL)};
    int status = cli_no_more(argc, argv, 0, 0);

    if (status == 0) {
        status = cli_call(c, &q, &result, NULL);
    }
    if (status != 0) {
        return status;
    }
    bool ok = json_is_true(json_object_get(result, "ok"));
    if (!cli_printed_json(c, result)) {
        puts(ok ? "The draft can be applied." : "The draft cannot be applied.");
        (void)fflush(stdout);
        show_problems(json_object_get(result, "problems"));
    }
    json_decref(result);
    return ok ? 0 : EXIT_NO;
}

int
cmd_apply(struct cli *c, int argc, char **argv)
{
    json_t *task = NULL;
    json_t *body = json_object();
    const struct call q = {
        .method = "POST", .path = cli_path(c, "config", "apply", NULL), .body = body};

    set_text(body, "note", cli_option(&argc, argv, "--note"));
    int status = cli_no_more(argc, argv, 0, 0);
    if (status == 0) {
        status = cli_call(c, &q, &task, NULL);
    }
    if (status == 0) {
        status = follow_task(c, task);
    }
    json_decref(task);
    json_decref(body);
    return status;
}

int
cmd_discard(struct cli *c, int argc, char **argv)
{
    int status = cli_no_more(argc, argv, 0, 2);

    if (status == 0 && argc == 2) {
        status = cli_no_more(argc, argv, 2, 2);
    }
    if (status != 0) {
        return status;
    }
    const struct call q = {
        .method = "DELETE",
        .path = argc == 3 ? cli_path(c, "draft", argv[1], argv[2], NULL)
                          : cli_path(c, "draft", NULL)};
    return cli_call(c, &q, NULL, NULL);
}

int
cmd_restore(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    json_t *body = json_object();
    bool apply = cli_flag(&argc, argv, "--apply");

    set_text(body, "note", cli_option(&argc, argv, "--note"));
    if (apply) {
        json_object_set_new(body, "apply", json_true());
    }
    int status = cli_no_more(argc, argv, 1, 1);
    if (status == 0) {
        const char *path = cli_path(c, "commits", argv[1], "restore", NULL);
        const struct call q = {.method = "POST", .path = path, .body = body};
        status = cli_call(c, &q, &answer, NULL);
    }
    if (status == 0 && apply) {
        status = follow_task(c, answer);
    } else if (status == 0 && !cli_printed_json(c, answer)) {
        puts("In the draft. \"lockstep diff\" shows it, \"lockstep apply\" applies it.");
    }
    json_decref(answer);
    json_decref(body);
    return status;
}

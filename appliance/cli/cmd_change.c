/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that plan, check, apply and take back changes. */
#include <stdio.h>
#include <string.h>

#include "cli/show.h"

#define SHOWN_BYTES 65536 /* of a word of the command line */
#define LISTED_MAX  50    /* objects that are applied */

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
set_confirm(const struct cli *c, json_t *body)
{
    if (cli_flag(c, "--confirm")) {
        json_object_set_new(body, "confirm", json_integer(cli_number(c, "--confirm", 0)));
    }
}

/* How a task ended, and what has to follow. */
static int
follow_confirm(struct cli *c, const json_t *task, json_t *result)
{
    json_auto_t *answer = NULL;
    int status = follow_task(c, task, result);

    if (status == 0 && !c->json && cli_flag(c, "--confirm")) {
        status = cli_get(c, "/api/v1/status", &answer);
    }
    show_waiting(c, json_object_get(answer, "confirm"));
    return status;
}

/* An answer with objects and, where these are applied at once, the task of it. */
static int
follow_objects(struct cli *c, json_t *answer)
{
    if (!c->json) {
        show_objects(c, json_object_get(answer, "objects"));
        (void)fflush(stdout);
        show_problems(json_object_get(answer, "problems"));
    }
    return follow_confirm(c, json_object_get(answer, "task"), answer);
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
    cli_set_text(body, "check", check);
    return body;
}

static void
show_published(struct cli *c, const json_t *answer, bool plan)
{
    const json_t *diff = json_object_get(answer, "diff");

    if (json_is_object(diff)) {
        show_diff(c, diff);
    } else {
        show_objects(c, json_object_get(answer, "objects"));
        (void)fflush(stdout);
        show_problems(json_object_get(answer, "problems"));
    }
    if (json_array_size(json_object_get(answer, "objects")) == 0) {
        puts("Nothing to change: it is published like this.");
    } else if (!plan) {
        show_drafted();
    }
}

static json_t *
read_publish(struct cli *c, int argc, char **argv)
{
    json_t *body = publish_body(argc, argv, cli_option(c, "--to"), cli_option(c, "--check"));

    cli_set_text(body, "name", cli_option(c, "--name"));
    cli_set_text(body, "note", cli_option(c, "--note"));
    if (cli_flag(c, "--apply")) {
        json_object_set_new(body, "apply", json_true());
    }
    set_confirm(c, body);
    return body;
}

/* Before anything is stored: what the check would find, and a question when that is not well.
 */
static int
ask_about_check(struct cli *c, json_t *body)
{
    json_auto_t *plan = NULL;
    const struct call q = {.method = "POST", .path = "/api/v1/publish?plan=1", .body = body};
    int status = cli_call(c, &q, &plan, NULL);

    if (status != 0 || show_trials(json_object_get(plan, "checks"), true) ||
        cli_ask("Publish all the same?")) {
        return status;
    }
    cli_error("nothing was published");
    return EXIT_NO;
}

static int
publish(struct cli *c, const char *path, json_t *body, bool plan)
{
    json_t *answer = NULL;
    const struct call q = {.method = "POST", .path = path, .body = body};
    int status = cli_call(c, &q, &answer, NULL);

    if (status != 0) {
        return status;
    }
    if (json_is_object(json_object_get(answer, "task"))) {
        if (!c->json) {
            (void)show_trials(json_object_get(answer, "checks"), true);
        }
        status = follow_objects(c, answer);
    } else if (!cli_printed_json(c, answer)) {
        show_published(c, answer, plan);
        (void)show_trials(json_object_get(answer, "checks"), !plan);
    }
    json_decref(answer);
    return status;
}

int
cmd_publish(struct cli *c, int argc, char **argv)
{
    bool plan = cli_flag(c, "--plan"), yes = cli_flag(c, "--yes");
    bool untried = cli_flag(c, "--no-try");
    int status = 0;

    if (yes && (plan || untried)) {
        return cli_misused(
            c, "--yes has no meaning with %s, which asks nothing",
            plan ? "--plan" : "--no-try");
    }
    json_t *body = read_publish(c, argc, argv);
    if (!plan && !yes && !untried && cli_may_ask(c)) {
        untried = true; /* once is enough */
        status = ask_about_check(c, body);
    }
    const char *path = cli_query(c, "/api/v1/publish", "plan", plan ? "1" : NULL);
    path = cli_query(c, path, "try", untried ? "0" : NULL);
    if (status == 0) {
        status = publish(c, path, body, plan);
    }
    json_decref(body);
    return status;
}

/* What would go, and whether it shall. */
static int
ask_about_removal(struct cli *c, const char *path)
{
    json_auto_t *plan = NULL;
    const struct call q = {.method = "DELETE", .path = cli_query(c, path, "plan", "1")};
    int status = cli_call(c, &q, &plan, NULL);

    if (status != 0) {
        return status;
    }
    show_objects(c, json_object_get(plan, "objects"));
    if (cli_ask("Remove this?")) {
        return 0;
    }
    cli_error("nothing was removed");
    return EXIT_NO;
}

int
cmd_unpublish(struct cli *c, int argc, char **argv)
{
    bool plan = cli_flag(c, "--plan"), yes = cli_flag(c, "--yes");
    bool asks = !plan && !yes && cli_may_ask(c);
    const char *path = cli_path(c, "publish", argv[1], NULL);
    const struct call q = {
        .method = "DELETE", .path = cli_query(c, path, "plan", plan ? "1" : NULL)};
    json_auto_t *answer = NULL;
    int status = 0;

    (void)argc;
    if (yes && plan) {
        return cli_misused(c, "--yes has no meaning with --plan, which asks nothing");
    }
    if (asks) {
        status = ask_about_removal(c, path);
    }
    if (status == 0) {
        status = cli_call(c, &q, &answer, NULL);
    }
    if (status == 0 && asks) {
        show_drafted();
    } else if (status == 0 && !cli_printed_json(c, answer)) {
        show_published(c, answer, plan);
    }
    return status;
}

int
cmd_diff(struct cli *c, int argc, char **argv)
{
    json_t *diff = NULL;
    int status = cli_get(c, cli_path(c, "config", "diff", NULL), &diff);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, diff)) {
        if (json_array_size(json_object_get(diff, "objects")) == 0) {
            puts("The draft is empty.");
        } else {
            show_diff(c, diff);
        }
    }
    json_decref(diff);
    return status;
}

static void
show_draft(struct cli *c, const json_t *draft)
{
    static const char *const heads[] = {"", "KIND", "NAME", "WHO", "WHEN (UTC)", "CONFLICT"};
    const json_t *changes = json_object_get(draft, "changes");
    const json_t *change;
    size_t i;

    if (json_array_size(changes) == 0) {
        puts("The draft is empty.");
        return;
    }
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    json_array_foreach(changes, i, change)
    {
        const char *what = cli_str(change, "change");
        table_cell(
            t, strcmp(what, "added") == 0     ? "+"
               : strcmp(what, "removed") == 0 ? "-"
                                              : "~");
        table_cell(t, cli_str(change, "kind"));
        table_cell(t, cli_str(change, "name"));
        table_cell(t, cli_str(change, "author"));
        table_cell_time(t, cli_str(change, "at"));
        table_cell(t, json_is_true(json_object_get(change, "conflict")) ? "yes" : "-");
    }
    table_print(t);
}

int
cmd_draft(struct cli *c, int argc, char **argv)
{
    json_t *draft = NULL;
    int status = cli_get(c, cli_path(c, "draft", NULL), &draft);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, draft)) {
        show_draft(c, draft);
    }
    json_decref(draft);
    return status;
}

int
cmd_check(struct cli *c, int argc, char **argv)
{
    json_t *result = NULL;
    const struct call q = {.method = "POST", .path = cli_path(c, "config", "check", NULL)};
    int status = cli_call(c, &q, &result, NULL);

    (void)argc;
    (void)argv;
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

/* The words of --only, "KIND/NAME" or the kind of a singleton, as objects. */
static int
read_only(struct cli *c, const json_t *words, json_t *objects)
{
    const json_t *word;
    size_t i;

    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        size_t len = strcspn(text, "/");
        const struct schema_kind *kind = cli_kind(arena_memdup0(c->arena, text, len));
        if (kind == NULL) {
            return EXIT_USAGE;
        }
        if (text[len] == '\0' && !kind->singleton) {
            return cli_misused(c, "--only %s: it is KIND/NAME", text);
        }
        if (text[len] != '\0' && kind->singleton && strcmp(text + len + 1, kind->name) != 0) {
            return cli_misused(c, "--only %s: there is one %s only", text, kind->name);
        }
        const char *name = kind->singleton ? kind->name : text + len + 1;
        json_array_append_new(
            objects, json_pack("{s:s, s:s}", "kind", kind->name, "name", name));
    }
    return 0;
}

static int
apply_body(struct cli *c, json_t *body)
{
    json_auto_t *words = cli_option_list(c, "--only");
    json_auto_t *authors = cli_option_list(c, "--author");
    json_auto_t *skipped = cli_option_list(c, "--skip-node");
    json_auto_t *objects = json_array();
    int status = read_only(c, words, objects);

    cli_set_text(body, "note", cli_option(c, "--note"));
    if (json_array_size(objects) > 0 || json_array_size(authors) > 0) {
        json_object_set_new(
            body, "only", json_pack("{s:O, s:O}", "objects", objects, "authors", authors));
    }
    set_confirm(c, body);
    if (json_array_size(skipped) > 0) {
        json_object_set(body, "skip_nodes", skipped);
    }
    return status;
}

/* Whether the change of the draft is among the objects or authors of "only"; NULL: all are. */
static bool
is_chosen(const json_t *only, const json_t *change)
{
    const json_t *objects = json_object_get(only, "objects");
    const json_t *authors = json_object_get(only, "authors");
    const json_t *item;
    size_t i;

    json_array_foreach(objects, i, item)
    {
        if (strcmp(cli_str(item, "kind"), cli_str(change, "kind")) == 0 &&
            strcmp(cli_str(item, "name"), cli_str(change, "name")) == 0) {
            return true;
        }
    }
    json_array_foreach(authors, i, item)
    {
        if (json_equal(item, json_object_get(change, "author")) != 0) {
            return true;
        }
    }
    return only == NULL;
}

/* What is about to be applied. */
static int
show_chosen(struct cli *c, const json_t *only)
{
    json_auto_t *draft = NULL;
    json_auto_t *chosen = json_array();
    int status = cli_get(c, cli_path(c, "draft", NULL), &draft);
    json_t *change;
    long long count = 0;
    size_t i;

    json_array_foreach(json_object_get(draft, "changes"), i, change)
    {
        if (is_chosen(only, change) && count++ < LISTED_MAX) {
            json_array_append(chosen, change);
        }
    }
    show_objects(c, chosen);
    if (count > LISTED_MAX) {
        printf("  and %lld more\n", count - LISTED_MAX);
    }
    (void)fflush(stdout);
    return status;
}

int
cmd_apply(struct cli *c, int argc, char **argv)
{
    json_t *task = NULL;
    json_t *body = json_object();
    const struct call q = {
        .method = "POST", .path = cli_path(c, "config", "apply", NULL), .body = body};
    int status = apply_body(c, body);

    (void)argc;
    (void)argv;
    if (status == 0 && !c->json) {
        status = show_chosen(c, json_object_get(body, "only"));
    }
    if (status == 0) {
        status = cli_call(c, &q, &task, NULL);
    }
    if (status == 0) {
        status = follow_confirm(c, task, NULL);
    }
    json_decref(task);
    json_decref(body);
    return status;
}

int
cmd_confirm(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    const struct call q = {.method = "POST", .path = cli_path(c, "config", "confirm", NULL)};
    int status = cli_call(c, &q, &answer, NULL);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, answer)) {
        printf("Confirmed: revision %lld stays.\n", cli_int(answer, "rev"));
    }
    json_decref(answer);
    return status;
}

static int
discard_all(struct cli *c)
{
    const struct call q = {.method = "DELETE", .path = cli_path(c, "draft", NULL)};
    json_auto_t *draft = NULL;
    int status = cli_get(c, q.path, &draft);
    long long count = cli_int(draft, "count");

    if (status == 0 && count > 0) {
        status = cli_call(c, &q, NULL, NULL);
    }
    if (status == 0 && !c->json) {
        if (count > 0) {
            printf("The draft is empty: discarded %s.\n", show_count(c, count, "change"));
        } else {
            puts("The draft was empty already.");
        }
    }
    return status;
}

int
cmd_discard(struct cli *c, int argc, char **argv)
{
    bool all = cli_flag(c, "--all");
    const struct schema_kind *kind = argc > 1 ? cli_kind(argv[1]) : NULL;

    if (all == (argc > 1)) {
        return cli_misused(c, "give either KIND and NAME, or --all");
    }
    if (all) {
        return discard_all(c);
    }
    if (kind == NULL) {
        return EXIT_USAGE;
    }
    if (argc < 3 && !kind->singleton) {
        return cli_misused(c, "the name of the %s is missing", kind->name);
    }
    const char *name = argc == 3 ? argv[2] : kind->name;
    const struct call q = {
        .method = "DELETE", .path = cli_path(c, "draft", kind->name, name, NULL)};
    int status = cli_call(c, &q, NULL, NULL);
    if (status == 0 && !c->json) {
        CLEANUP(buf_fini) struct buf shown;
        buf_init(&shown, SHOWN_BYTES);
        put_object(&shown, kind->name, name);
        printf("The change of %s is out of the draft.\n", buf_str(&shown));
    }
    return status;
}

static void
show_restored(struct cli *c, const char *rev, const json_t *answer)
{
    const json_t *objects = json_object_get(answer, "objects");
    const json_t *problems = json_object_get(answer, "problems");

    show_objects(c, objects);
    (void)fflush(stdout);
    show_problems(problems);
    if (json_array_size(objects) == 0 && json_array_size(problems) > 0) {
        puts("Nothing else to change.");
    } else if (json_array_size(objects) == 0) {
        CLEANUP(buf_fini) struct buf shown;
        buf_init(&shown, SHOWN_BYTES);
        cli_put_text(&shown, rev);
        printf(
            "Nothing to change: the objects are as in revision %s. States of servers stay as "
            "they are now.\n",
            buf_str(&shown));
    } else {
        show_drafted();
    }
}

int
cmd_restore(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    json_t *body = json_object();
    bool apply = cli_flag(c, "--apply");

    (void)argc;
    cli_set_text(body, "note", cli_option(c, "--note"));
    if (apply) {
        json_object_set_new(body, "apply", json_true());
    }
    if (cli_flag(c, "--old-certificates")) {
        json_object_set_new(body, "old_certificates", json_true());
    }
    set_confirm(c, body);
    const struct call q = {
        .method = "POST",
        .path = cli_path(c, "commits", argv[1], "restore", NULL),
        .body = body};
    int status = cli_call(c, &q, &answer, NULL);
    if (status == 0 && apply) {
        status = follow_objects(c, answer);
    } else if (status == 0 && !cli_printed_json(c, answer)) {
        show_restored(c, argv[1], answer);
    }
    json_decref(answer);
    json_decref(body);
    return status;
}

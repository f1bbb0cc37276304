/* SPDX-License-Identifier: Apache-2.0 */
/* The drafts of other nodes. */
#include <stdio.h>
#include <string.h>

#include "cli/show.h"

static void
add_changes(struct table *t, const char *node, const json_t *changes)
{
    size_t i;
    const json_t *change;

    json_array_foreach(changes, i, change)
    {
        table_cell_whole(t, node);
        table_cell(t, cli_str(change, "change"));
        table_cell(t, cli_str(change, "kind"));
        table_cell(t, cli_str(change, "name"));
        table_cell(t, cli_str(change, "author"));
        table_cell_time(t, cli_str(change, "at"));
        table_cell(t, json_is_true(json_object_get(change, "conflict")) ? "yes" : "-");
    }
}

/* What does not stand in the table. */
static void
show_rest(struct cli *c, const json_t *node)
{
    CLEANUP(buf_fini) struct buf name;
    long long local = cli_int(node, "local");

    buf_init(&name, 1024);
    cli_put_text(&name, cli_str(node, "node"));
    if (json_is_null(json_object_get(node, "count"))) {
        buf_puts(&name, ": ");
        cli_put_text(&name, cli_str(node, "detail"));
        puts(buf_str(&name));
    } else if (local > 0) {
        printf("%s: %s of this node alone\n", buf_str(&name), show_count(c, local, "change"));
    }
}

static void
show_drafts(struct cli *c, const json_t *answer)
{
    static const char *const heads[] = {"NODE", "CHANGE",     "KIND",    "NAME",
                                        "WHO",  "WHEN (UTC)", "CONFLICT"};
    const json_t *nodes = json_object_get(answer, "nodes");
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    size_t i;
    const json_t *node;

    json_array_foreach(nodes, i, node)
    {
        add_changes(t, cli_str(node, "node"), json_object_get(node, "changes"));
    }
    if (table_is_empty(t)) {
        puts("No node that answers has a draft of what all nodes share.");
    } else {
        table_print(t);
    }
    json_array_foreach(nodes, i, node)
    {
        show_rest(c, node);
    }
}

int
cmd_drafts(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    int status = cli_get(c, cli_path(c, "cluster", "drafts", NULL), &answer);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_drafts(c, answer);
    }
    json_decref(answer);
    return status;
}

static void
show_taken(struct cli *c, const json_t *answer)
{
    const char *node = cli_str(answer, "node");

    printf(
        "%s of %s in this draft, %lld of them new.\n",
        show_count(c, cli_int(answer, "taken"), "change"), node, cli_int(answer, "stored"));
    (void)fflush(stdout);
    if (json_is_null(json_object_get(answer, "left"))) {
        cli_error(
            "%s did not say that they left its draft: %s; repeat this", node,
            cli_str(answer, "detail"));
    } else if (cli_int(answer, "left") > 0) {
        printf("%s has drafted more meanwhile: repeat this.\n", node);
    }
}

int
cmd_takeover(struct cli *c, int argc, char **argv)
{
    json_auto_t *body = json_pack("{s:s}", "node", argv[1]);
    const struct call q = {
        .method = "POST", .path = cli_path(c, "cluster", "drafts", "take", NULL), .body = body};
    json_t *answer = NULL;
    int status;

    (void)argc;
    if (cli_flag(c, "--theirs") && cli_flag(c, "--ours")) {
        return cli_misused(c, "--theirs or --ours, not both");
    }
    cli_set_text(
        body, "overlap",
        cli_flag(c, "--theirs") ? "theirs"
        : cli_flag(c, "--ours") ? "ours"
                                : NULL);
    status = cli_call(c, &q, &answer, NULL);
    if (status == 0) {
        status = json_is_null(json_object_get(answer, "left")) ? EXIT_NO : 0;
        if (!cli_printed_json(c, answer)) {
            show_taken(c, answer);
        }
    }
    json_decref(answer);
    return status;
}

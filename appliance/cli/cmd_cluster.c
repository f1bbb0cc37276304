/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/show.h"

/* ---- the table ---- */

/* What HAProxy of a node runs, as against its own head. */
static const char *
running_of(struct cli *c, const json_t *node)
{
    const json_t *stored = json_object_get(node, "stored");
    const char *running = json_string_value(json_object_get(node, "running"));

    if (running == NULL) {
        return "unknown";
    }
    return strcmp(running, cli_str(stored, "commit")) == 0
               ? "as stored"
               : arena_printf(c->arena, "%.8s", running);
}

/* Of its program; and of the one that made the files that HAProxy runs, where that is another.
 */
static const char *
release_of(struct cli *c, const json_t *node)
{
    const char *own = cli_str(node, "release"), *running = cli_str(node, "running_release");

    return running[0] == '\0' || strcmp(running, own) == 0
               ? own
               : arena_printf(c->arena, "%s, runs %s", own, running);
}

static const char *
local_of(struct cli *c, const json_t *node)
{
    return json_is_integer(json_object_get(node, "running_local_rev"))
               ? arena_printf(c->arena, "%lld", cli_int(node, "running_local_rev"))
               : NULL;
}

#define INDENT         4
#define TEXT_MAX_BYTES 65536

static void
show_text(const struct cli *c, int indent, const char *text)
{
    CLEANUP(buf_fini) struct buf line;

    buf_init(&line, TEXT_MAX_BYTES);
    cli_put_text(&line, text);
    show_wrapped(c, indent, indent, buf_str(&line));
}

static void
show_conditions(const struct cli *c, const json_t *conditions)
{
    static const char *const parts[] = {"cause", "next", "page"};
    size_t i;
    json_t *condition;

    json_array_foreach(conditions, i, condition)
    {
        printf("\n%s: %s\n", cli_str(condition, "severity"), cli_str(condition, "name"));
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            show_text(c, INDENT, cli_str(condition, parts[k]));
        }
    }
}

/* As people write it: "in step". */
static const char *
relation_of(struct cli *c, const json_t *node)
{
    const char *word = cli_str(node, "relation");
    char *text;

    if (json_is_true(json_object_get(node, "self"))) {
        return "this node";
    }
    if (!json_is_true(json_object_get(node, "answers"))) {
        return "no answer";
    }
    text = arena_memdup0(c->arena, word, strlen(word));
    for (char *p = text; *p != '\0'; p++) {
        *p = *p == '_' ? ' ' : *p;
    }
    return text;
}

static void
show_states(struct cli *c, const json_t *nodes)
{
    static const char *const heads[] = {"NODE",  "RELATION", "VIP",     "STORED", "RUNNING",
                                        "LOCAL", "SERVING",  "RELEASE", "ANSWER"};
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    size_t i;
    json_t *node;

    json_array_foreach(nodes, i, node)
    {
        table_cell_whole(t, cli_str(node, "name"));
        table_cell_whole(t, relation_of(c, node));
        table_cell(t, json_is_true(json_object_get(node, "holds")) ? "yes" : NULL);
        table_cell_whole(t, cli_str(json_object_get(node, "stored"), "name"));
        table_cell_whole(t, running_of(c, node));
        table_cell(t, local_of(c, node));
        table_cell(t, cli_str(node, "serving"));
        table_cell(t, release_of(c, node));
        table_cell(
            t, json_is_integer(json_object_get(node, "answer_ms"))
                   ? arena_printf(c->arena, "%lld ms", cli_int(node, "answer_ms"))
                   : NULL);
    }
    table_print(t);
}

static void
show_addresses(struct cli *c, const json_t *nodes)
{
    static const char *const heads[] = {"NODE", "KEY", "ADDRESS"};
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    size_t i;
    json_t *node;

    json_array_foreach(nodes, i, node)
    {
        table_cell_whole(t, cli_str(node, "name"));
        table_cell(t, cli_str(node, "key_fingerprint"));
        table_cell_whole(t, cli_str(node, "url"));
    }
    table_print(t);
}

void
show_edit(const struct cli *c, const json_t *cluster)
{
    const char *why = cli_str(cluster, "edit_detail");
    CLEANUP(buf_fini) struct buf line = {0};

    if (why[0] != '\0') {
        buf_init(&line, TEXT_MAX_BYTES);
        buf_printf(&line, "%-*s", LABEL_COLUMNS, "edit");
        cli_put_text(&line, why);
        show_wrapped(c, 0, LABEL_COLUMNS, buf_str(&line));
    }
}

static void
show_cluster(struct cli *c, const json_t *answer)
{
    const json_t *nodes = json_object_get(answer, "nodes");

    show_states(c, nodes);
    putchar('\n');
    show_addresses(c, nodes);
    if (cli_str(answer, "edit_detail")[0] != '\0') {
        putchar('\n');
        show_edit(c, answer);
    }
    show_conditions(c, json_object_get(answer, "conditions"));
}

/* "n1, n2"; "": nobody. */
static void
put_holders(struct buf *out, const json_t *nodes, bool *ret_known)
{
    size_t i;
    json_t *node;

    json_array_foreach(nodes, i, node)
    {
        const json_t *holds = json_object_get(node, "holds");

        *ret_known = *ret_known || json_is_boolean(holds);
        if (json_is_true(holds)) {
            buf_puts(out, out->len > 0 ? ", " : "");
            cli_put_text(out, cli_str(node, "name"));
        }
    }
}

void
show_cluster_line(struct cli *c, const json_t *cluster)
{
    const json_t *nodes = json_object_get(cluster, "nodes");
    const json_t *conditions = json_object_get(cluster, "conditions");
    CLEANUP(buf_fini) struct buf holders = {0};
    CLEANUP(buf_fini) struct buf line = {0};
    bool known = false;
    size_t i;
    json_t *condition;

    if (json_array_size(nodes) < 2 && json_array_size(conditions) == 0) {
        return;
    }
    buf_init(&holders, TEXT_MAX_BYTES);
    buf_init(&line, TEXT_MAX_BYTES);
    put_holders(&holders, nodes, &known);
    buf_printf(
        &line, "%-*s%s", LABEL_COLUMNS, "cluster",
        show_count(c, (long long)json_array_size(nodes), "node"));
    if (known) {
        buf_printf(
            &line, ", the VIP is on %s", holders.len > 0 ? buf_str(&holders) : "none of them");
    }
    json_array_foreach(conditions, i, condition)
    {
        buf_printf(&line, "%s%s ", i > 0 ? ", " : "; ", cli_str(condition, "name"));
        cli_put_text(&line, cli_str(condition, "node"));
    }
    buf_puts(&line, i > 0 ? ": \"lockstep cluster\" says more" : "");
    show_wrapped(c, 0, LABEL_COLUMNS, buf_str(&line));
    show_edit(c, cluster);
}

int
cmd_cluster(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    int status = cli_get(c, cli_path(c, "cluster", NULL), &answer);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_cluster(c, answer);
    }
    json_decref(answer);
    return status;
}

static void
show_compared(const struct cli *c, const json_t *answer)
{
    const char *self = cli_str(answer, "self"), *node = cli_str(answer, "node");

    show_line(self, "%s", cli_str(answer, "from"));
    show_line(node, "%s", cli_str(answer, "to"));
    if (json_is_true(json_object_get(answer, "same"))) {
        puts("Nothing differs.");
        return;
    }
    printf("- only on %s, + only on %s, ~ on both: %s -> %s\n", self, node, self, node);
    show_objects(c, json_object_get(answer, "objects"));
}

int
cmd_compare(struct cli *c, int argc, char **argv)
{
    const char *path = cli_query(c, cli_path(c, "cluster", "compare", NULL), "node", argv[1]);
    json_t *answer = NULL;
    int status = cli_get(c, path, &answer);

    (void)argc;
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_compared(c, answer);
    }
    json_decref(answer);
    return status;
}

int
cmd_peerkey(struct cli *c, int argc, char **argv)
{
    const struct call q = {
        .method = cli_flag(c, "--new") ? "POST" : "GET",
        .path = cli_path(c, "cluster", "key", NULL)};
    json_t *answer = NULL;
    int status = cli_call(c, &q, &answer, NULL);

    (void)argc;
    (void)argv;
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_line("node", "%s", cli_str(answer, "node"));
        show_line(
            "address", "%s",
            cli_str(answer, "url")[0] != '\0' ? cli_str(answer, "url")
                                              : "none yet: lockstep set node url=https://...");
        show_line("public key", "%s", cli_str(answer, "pin"));
        show_line("peer key", "%s", cli_str(answer, "key"));
        show_line(
            "in short", "%s (the fingerprint of the peer key)", cli_str(answer, "fingerprint"));
    }
    json_decref(answer);
    return status;
}

/* ---- joining ---- */

static void
show_checks(const json_t *answer)
{
    size_t i;
    json_t *check;

    json_array_foreach(json_object_get(answer, "checks"), i, check)
    {
        const char *next = cli_str(check, "next");

        printf(
            "%-7s %-13s %s\n", cli_str(check, "state"), cli_str(check, "name"),
            cli_str(check, "detail"));
        if (next[0] != '\0') {
            printf("%-7s %-13s %s\n", "", "", next);
        }
    }
}

/* What is a warning stops nothing. */
static bool
all_pass(const json_t *answer)
{
    size_t i;
    json_t *check;

    json_array_foreach(json_object_get(answer, "checks"), i, check)
    {
        if (strcmp(cli_str(check, "state"), "failed") == 0) {
            return false;
        }
    }
    return true;
}

/* False: not to be done. */
static bool
ask_before(struct cli *c, const json_t *plan)
{
    const json_t *replaces = json_object_get(plan, "replaces");

    show_checks(plan);
    if (!all_pass(plan)) {
        return false;
    }
    printf(
        "The configuration of %s takes the place of revision %lld of this node (%s),\n"
        "which stays in the history.\n",
        cli_str(plan, "node"), cli_int(replaces, "rev"),
        show_count(c, cli_int(replaces, "objects"), "object"));
    return cli_flag(c, "--plan") || cli_flag(c, "--yes") || isatty(STDIN_FILENO) == 0 ||
           cli_ask("Join?");
}

/* EXIT_NO when it failed on a node. */
static int
status_of_nodes(const json_t *answer)
{
    for (size_t i = 0; i < json_array_size(json_object_get(answer, "nodes")); i++) {
        const json_t *node = json_array_get(json_object_get(answer, "nodes"), i);

        if (strcmp(cli_str(node, "state"), "failed") == 0 ||
            json_is_false(json_object_get(node, "knows"))) {
            return EXIT_NO;
        }
    }
    return 0;
}

static void
show_joined(const json_t *answer)
{
    size_t i;
    json_t *node;

    printf("Joined %s.\n", cli_str(answer, "node"));
    json_array_foreach(json_object_get(answer, "nodes"), i, node)
    {
        bool knows = json_is_true(json_object_get(node, "knows"));

        printf(
            "%-4s %s%s%s\n", knows ? "ok" : "no", cli_str(node, "name"),
            knows ? " knows this node" : ": ", knows ? "" : cli_str(node, "detail"));
    }
}

int
cmd_join(struct cli *c, int argc, char **argv)
{
    const char *file = cli_option(c, "--key-file");
    const char *path = cli_path(c, "cluster", "join", NULL);
    const char *key;
    json_t *answer = NULL;
    int status = cli_read_line(c, file != NULL ? file : "-", &key);

    (void)argc;
    if (status != 0) {
        return status;
    }
    json_auto_t *body =
        json_pack("{s:s, s:s, s:s}", "url", argv[1], "pin", argv[2], "key", key);
    struct call q = {.method = "POST", .path = cli_query(c, path, "plan", "1"), .body = body};
    status = cli_call(c, &q, &answer, NULL);
    if (status == 0 && cli_flag(c, "--plan") && cli_printed_json(c, answer)) {
        json_decref(answer);
        return 0;
    }
    if (status != 0 || !ask_before(c, answer) || cli_flag(c, "--plan")) {
        status = status != 0 ? status : all_pass(answer) ? 0 : EXIT_NO;
        json_decref(answer);
        return status;
    }
    json_decref(answer);
    answer = NULL;
    q.path = path;
    status = cli_call(c, &q, &answer, NULL);
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_joined(answer);
    }
    status = status == 0 ? status_of_nodes(answer) : status;
    json_decref(answer);
    return status;
}

static int
change_members(struct cli *c, const char *path, json_t *body, const char *question)
{
    const struct call q = {.method = "POST", .path = path, .body = body};
    json_t *answer = NULL;
    int status;

    if (!cli_flag(c, "--yes") && isatty(STDIN_FILENO) != 0 && !cli_ask(question)) {
        return EXIT_NO;
    }
    status = cli_call(c, &q, &answer, NULL);
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_cluster(c, answer);
        putchar('\n');
        show_text(c, 0, cli_str(answer, "notice"));
    }
    json_decref(answer);
    return status;
}

int
cmd_leave(struct cli *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return change_members(c, cli_path(c, "cluster", "leave", NULL), NULL, "Leave the cluster?");
}

int
cmd_forget(struct cli *c, int argc, char **argv)
{
    json_auto_t *body = json_pack("{s:s}", "node", argv[1]);

    (void)argc;
    return change_members(c, cli_path(c, "cluster", "forget", NULL), body, "Forget this node?");
}

/* ---- administrators ---- */

int
cmd_admin(struct cli *c, int argc, char **argv)
{
    json_auto_t *body = json_pack(
        "{s:s, s:b}", "node", argv[2], "overwrite", cli_flag(c, "--overwrite") ? 1 : 0);
    const struct call q = {
        .method = "POST", .path = cli_path(c, "cluster", "admin", NULL), .body = body};
    json_t *answer = NULL;
    int status;

    (void)argc;
    if (strcmp(argv[1], "copy-to") != 0) {
        return cli_misused(c, "an administrator can only be copied: copy-to NODE");
    }
    cli_set_text(body, "admin", cli_option(c, "--name"));
    status = cli_call(c, &q, &answer, NULL);
    if (status == 0 && !cli_printed_json(c, answer)) {
        const char *state = cli_str(answer, "state");

        printf(
            "%s %s %s.\n", cli_str(answer, "admin"),
            strcmp(state, "same") == 0      ? "was already so on"
            : strcmp(state, "created") == 0 ? "can sign in on"
                                            : "was replaced on",
            cli_str(answer, "node"));
    }
    json_decref(answer);
    return status;
}

/* ---- overwriting ---- */

static void
show_discarded(const json_t *answer, bool done)
{
    size_t i;
    json_t *node;

    json_array_foreach(json_object_get(answer, "nodes"), i, node)
    {
        const char *discarded = cli_str(node, "discarded_name");
        bool ok = strcmp(cli_str(node, "state"), "ok") == 0;

        if (discarded[0] == '\0' || (done && !ok)) {
            printf("%s: %s\n", cli_str(node, "node"), cli_str(node, "detail"));
        } else {
            printf(
                "%s: revision %s %s; lockstep restore %s brings it back\n",
                cli_str(node, "node"), discarded, done ? "was discarded" : "is discarded",
                discarded);
        }
    }
}

int
cmd_overwrite(struct cli *c, int argc, char **argv)
{
    const char *path = cli_path(c, "cluster", "overwrite", NULL);
    json_auto_t *body = argc == 2 ? json_pack("{s:[s]}", "nodes", argv[1]) : json_object();
    struct call q = {.method = "POST", .path = cli_query(c, path, "plan", "1"), .body = body};
    bool asks = !cli_flag(c, "--yes") && isatty(STDIN_FILENO) != 0;
    json_t *answer = NULL;
    int status = 0;

    if (cli_flag(c, "--plan") || asks) {
        status = cli_call(c, &q, &answer, NULL);
        if (status == 0 && !cli_printed_json(c, answer)) {
            show_discarded(answer, false);
        }
        json_decref(answer);
        answer = NULL;
    }
    if (status != 0 || cli_flag(c, "--plan")) {
        return status;
    }
    if (asks && !cli_ask("Overwrite?")) {
        return EXIT_NO;
    }
    q.path = path;
    status = cli_call(c, &q, &answer, NULL);
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_discarded(answer, true);
    }
    status = status == 0 ? status_of_nodes(answer) : status;
    json_decref(answer);
    return status;
}

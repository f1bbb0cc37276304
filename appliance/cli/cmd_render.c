/* SPDX-License-Identifier: Apache-2.0 */
/* haproxy.cfg: as it is stored, and as it would be. */
#include <stdio.h>
#include <string.h>

#include "cli/show.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define LINE_SHOWN     72 /* columns before the origin of a line */
#define LINE_LEAST     44 /* where the terminal is narrow */
#define ORIGIN_SHOWN   36 /* columns for the origin, if it can be */

int
cmd_config(struct cli *c, int argc, char **argv)
{
    struct rest_answer answer;
    const char *path = cli_path(c, "config", "haproxy.cfg", NULL);
    const struct call q = {
        .method = "GET",
        .path = cli_query(c, path, "draft", cli_flag(c, "--draft") ? "1" : NULL)};

    (void)argc;
    (void)argv;
    rest_answer_init(&answer);
    int status = cli_call(c, &q, NULL, &answer);
    if (status == 0) {
        json_auto_t *text = json_pack("{s:s}", "haproxy_cfg", buf_str(&answer.body));
        if (!cli_printed_json(c, text)) {
            (void)fwrite(buf_str(&answer.body), 1, answer.body.len, stdout);
        }
    }
    rest_answer_fini(&answer);
    return status;
}

/* ---- render ---- */

static int
render_body(const struct cli *c, int argc, char **argv, json_t *body)
{
    const char *file = cli_option(c, "--file");
    json_t *given = NULL;

    if (c->json && cli_flag(c, "--changed")) {
        return cli_misused(c, "--changed is for text: with --json the lines are in \"added\"");
    }
    if ((argc > 1) != (file != NULL)) {
        return cli_misused(c, "an object needs KIND, its NAME, and --file");
    }
    const struct schema_kind *kind = argc > 1 ? cli_kind(argv[1]) : NULL;
    if (argc > 1 && kind == NULL) {
        return EXIT_USAGE;
    }
    int status = file != NULL ? cli_read_json(file, &given) : 0;
    if (status == 0 && given != NULL) {
        cli_set_text(body, "kind", kind->name);
        cli_set_text(body, "name", argc > 2 ? argv[2] : NULL);
        json_object_set_new(body, "body", given);
    }
    return status;
}

/* Origin of line n, NULL for a fixed one; *at goes on through the sorted list. */
static const json_t *
origin(const json_t *lines, size_t *at, json_int_t n)
{
    while (*at < json_array_size(lines) && cli_int(json_array_get(lines, *at), "n") < n) {
        (*at)++;
    }
    const json_t *found = json_array_get(lines, *at);
    return found != NULL && cli_int(found, "n") == n ? found : NULL;
}

static size_t
line_shown(const struct cli *c)
{
    size_t width = (size_t)c->width;

    if (width == 0 || width >= LINE_SHOWN + ORIGIN_SHOWN) {
        return LINE_SHOWN;
    }
    return width > LINE_LEAST + ORIGIN_SHOWN ? width - ORIGIN_SHOWN : LINE_LEAST;
}

static void
show_rendered_line(const struct cli *c, const char *text, size_t len, const json_t *from)
{
    CLEANUP(buf_fini) struct buf line;
    CLEANUP(buf_fini) struct buf clean;

    buf_init(&line, LINE_MAX_BYTES);
    buf_init(&clean, LINE_MAX_BYTES * 4);
    buf_put(&line, text, len);
    cli_put_text(&clean, buf_str(&line));
    if (from != NULL) {
        size_t shown = line_shown(c);
        size_t pad = clean.len < shown ? shown - clean.len : 1;
        buf_printf(&clean, "%*s# ", (int)pad, "");
        put_object(&clean, cli_str(from, "kind"), cli_str(from, "name"));
        if (cli_str(from, "field")[0] != '\0') {
            buf_putc(&clean, ' ');
            cli_put_text(&clean, cli_str(from, "field"));
        }
    }
    puts(buf_str(&clean));
}

static void
show_rendered(const struct cli *c, const json_t *answer, bool only_changed)
{
    const char *text = cli_str(answer, "text");
    const json_t *lines = json_object_get(answer, "lines");
    const json_t *added = json_object_get(answer, "added");
    size_t at = 0, next = 0;

    if (only_changed && json_array_size(added) == 0) {
        puts("No line is new.");
        return;
    }
    for (json_int_t n = 1; *text != '\0'; n++) {
        size_t len = strcspn(text, "\n");
        bool is_new = json_integer_value(json_array_get(added, next)) == n;
        next += is_new;
        if (is_new || !only_changed) {
            show_rendered_line(c, text, len, origin(lines, &at, n));
        }
        text += len + (text[len] == '\n');
    }
}

static void
show_messages(const json_t *check)
{
    const json_t *message;
    size_t i;

    json_array_foreach(json_object_get(check, "messages"), i, message)
    {
        CLEANUP(buf_fini) struct buf line;
        buf_init(&line, LINE_MAX_BYTES);
        cli_put_text(&line, cli_str(message, "text"));
        fprintf(
            stderr, "  line %lld: %s: %s\n", cli_int(message, "line"),
            cli_str(message, "severity"), buf_str(&line));
    }
}

int
cmd_render(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    json_auto_t *body = json_object();
    const struct call q = {.method = "POST", .path = cli_path(c, "render", NULL), .body = body};
    int status = render_body(c, argc, argv, body);

    if (status == 0) {
        status = cli_call(c, &q, &answer, NULL);
    }
    if (status != 0) {
        return status;
    }
    const json_t *check = json_object_get(answer, "check");
    bool ok = json_is_true(json_object_get(check, "ok"));
    if (!cli_printed_json(c, answer)) {
        show_rendered(c, answer, cli_flag(c, "--changed"));
        (void)fflush(stdout);
        show_problems(json_object_get(answer, "problems"));
        show_messages(check);
        if (!ok) {
            cli_error("haproxy -c does not accept it");
        }
    }
    json_decref(answer);
    return ok ? 0 : EXIT_NO;
}

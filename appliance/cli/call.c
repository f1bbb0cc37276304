/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/show.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)

void
cli_put_text(struct buf *out, const char *s)
{
    if (s == NULL) {
        buf_putc(out, '-');
        return;
    }
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        /* C1 controls (U+0080-U+009F) are C2 80 to C2 9F. */
        bool c1 = c == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] <= 0x9f;
        if (c < 0x20 || c == 0x7f || c1) {
            buf_printf(out, "\\x%02x", c);
        } else {
            buf_putc(out, (char)c);
        }
    }
}

const char *
cli_str(const json_t *obj, const char *key)
{
    const char *s = json_string_value(json_object_get(obj, key));

    return s != NULL ? s : "";
}

long long
cli_int(const json_t *obj, const char *key)
{
    return (long long)json_integer_value(json_object_get(obj, key));
}

void
cli_set_text(json_t *body, const char *key, const char *value)
{
    if (value != NULL) {
        json_object_set_new(body, key, json_string(value));
    }
}

void
cli_put_value(struct buf *out, const json_t *v)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (v == NULL || json_is_null(v)) {
        buf_putc(out, '-');
    } else if (json_is_string(v)) {
        cli_put_text(out, json_string_value(v));
    } else {
        buf_init(&text, LINE_MAX_BYTES);
        json_canonical(v, &text);
        cli_put_text(out, buf_str(&text));
    }
}

const char *
cli_path(struct cli *c, const char *first, ...)
{
    CLEANUP(buf_fini) struct buf path;
    va_list ap;

    buf_init(&path, 8192);
    buf_puts(&path, "/api/v1");
    va_start(ap, first);
    for (const char *part = first; part != NULL; part = va_arg(ap, const char *)) {
        buf_putc(&path, '/');
        rest_put_segment(&path, part);
    }
    va_end(ap);
    return arena_strdup(c->arena, buf_str(&path));
}

const char *
cli_query(struct cli *c, const char *path, const char *key, const char *value)
{
    CLEANUP(buf_fini) struct buf longer = {0};

    if (value == NULL) {
        return path;
    }
    buf_init(&longer, 8192);
    buf_printf(&longer, "%s%c%s=", path, strchr(path, '?') != NULL ? '&' : '?', key);
    rest_put_segment(&longer, value);
    return arena_strdup(c->arena, buf_str(&longer));
}

bool
cli_printed_json(const struct cli *c, const json_t *answer)
{
    if (!c->json) {
        return false;
    }
    if (answer != NULL) {
        CLEANUP(buf_fini) struct buf text;
        buf_init(&text, LINE_MAX_BYTES);
        json_pretty(answer, &text);
        (void)fwrite(buf_str(&text), 1, text.len, stdout);
    }
    return true;
}

/* The detail says what its first error says again, unless there is more to it. */
static bool
repeats(const char *detail, const json_t *errors)
{
    const char *first = cli_str(json_array_get(errors, 0), "message");

    return first[0] != '\0' && strstr(detail, first) != NULL;
}

/* What became of it on each node, where the problem says so. */
static void
show_nodes(const json_t *nodes)
{
    const json_t *node;
    size_t i;

    json_array_foreach(nodes, i, node)
    {
        CLEANUP(buf_fini) struct buf line;
        const char *code = cli_str(node, "code");

        buf_init(&line, LINE_MAX_BYTES);
        cli_put_text(&line, cli_str(node, "node"));
        buf_printf(&line, ": %s", cli_str(node, "state"));
        buf_printf(&line, code[0] != '\0' ? " (%s)" : "%s", code);
        buf_puts(&line, cli_str(node, "detail")[0] != '\0' ? ": " : "");
        cli_put_text(&line, cli_str(node, "detail"));
        fprintf(stderr, "  %s\n", buf_str(&line));
    }
}

/* A problem (RFC 9457) as people read it: what, then where, one line each. */
static void
explain(const struct cli *c, const json_t *problem, struct rest_answer *answer)
{
    CLEANUP(buf_fini) struct buf line = {0};
    const char *detail = cli_str(problem, "detail");
    const json_t *errors = json_object_get(problem, "errors");

    if (c->json && problem != NULL) {
        cli_printed_json(c, problem);
        return;
    }
    if (!repeats(detail, errors)) {
        buf_init(&line, LINE_MAX_BYTES);
        cli_put_text(&line, detail[0] != '\0' ? detail : cli_str(problem, "title"));
        if (line.len == 0) {
            buf_printf(&line, "the node answered with status %ld", answer->status);
        }
        if (problem == NULL && answer->body.len > 0) { /* one word, as of ready */
            answer->body.data[strcspn(answer->body.data, "\r\n")] = '\0';
            buf_puts(&line, ": ");
            cli_put_text(&line, answer->body.data);
        }
        fprintf(stderr, "lockstep: %s\n", buf_str(&line));
    }
    show_problems(errors);
    show_nodes(json_object_get(problem, "nodes"));
    if (cli_int(problem, "dropped") > 0) {
        cli_error("and %lld more", cli_int(problem, "dropped"));
    }
}

static bool
is_open(struct cli *c)
{
    struct error e;

    if (c->rest == NULL && rest_open(&c->config, &c->rest, &e) != ERR_OK) {
        cli_error("%s", e.msg);
        return false;
    }
    return true;
}

/* Exit status of an answer, after saying why it is none of success. *ret (may be NULL): its
 * JSON, else NULL. */
static int
judge(struct cli *c, struct rest_answer *answer, json_t **ret)
{
    json_auto_t *parsed = NULL;
    struct error e;

    if (answer->body.len > 0 && buf_str(&answer->body)[0] == '{' &&
        json_parse(buf_str(&answer->body), answer->body.len, &parsed, &e) != ERR_OK) {
        cli_error("the answer of %s is not JSON: %s", c->config.url, e.msg);
        return EXIT_UNREACHED;
    }
    if (answer->status >= 400) {
        explain(c, parsed, answer);
        return EXIT_NO;
    }
    if (ret != NULL) {
        *ret = json_incref(parsed);
    }
    return 0;
}

static int
unreached(const struct cli *c, const struct error *e)
{
    cli_error("%s", e->msg);
    if (e->code == ERR_DENIED) {
        cli_error(
            "each node has a key of its own: \"lockstep peerkey\" on that node shows its public "
            "key, which goes into a file for --config as \"pin\", beside \"url\" and \"key\" as in "
            "%s",
            c->config_path);
    }
    return EXIT_UNREACHED;
}

static int
do_call(struct cli *c, const struct call *q, json_t **ret, struct rest_answer *answer)
{
    CLEANUP(buf_wipe_fini) struct buf body;
    struct error e;

    buf_init(&body, LINE_MAX_BYTES);
    if (q->body != NULL) {
        json_canonical(q->body, &body);
    }
    if (!is_open(c)) {
        return EXIT_USAGE;
    }
    const struct rest_request request = {
        .method = q->method,
        .path = q->path,
        .body = q->body != NULL ? buf_str(&body) : NULL,
        .body_len = body.len,
        .if_match = q->if_match,
        .cookie = q->cookie,
        .csrf = q->csrf};
    if (rest_call(c->rest, &request, answer, &e) != ERR_OK) {
        return unreached(c, &e);
    }
    return judge(c, answer, ret);
}

int
cli_call(struct cli *c, const struct call *q, json_t **ret, struct rest_answer *answer)
{
    struct rest_answer own;

    if (answer != NULL) {
        return do_call(c, q, ret, answer);
    }
    rest_answer_init(&own);
    int status = do_call(c, q, ret, &own);
    rest_answer_fini(&own);
    return status;
}

int
cli_get(struct cli *c, const char *path, json_t **ret)
{
    const struct call q = {.method = "GET", .path = path};

    return cli_call(c, &q, ret, NULL);
}

int
cli_etag(struct cli *c, const char *path, const char **ret, json_t **ret_object)
{
    struct rest_answer answer;
    const struct call q = {.method = "GET", .path = path};

    rest_answer_init(&answer);
    int status = cli_call(c, &q, ret_object, &answer);
    *ret = arena_strdup(c->arena, answer.etag);
    rest_answer_fini(&answer);
    return status;
}

int
cli_events(struct cli *c, const char *path, rest_event_fn fn, void *ctx, bool may_time_out)
{
    CLEANUP(rest_answer_fini) struct rest_answer answer;
    struct error e;

    rest_answer_init(&answer);
    if (!is_open(c)) {
        return EXIT_USAGE;
    }
    err_t err = rest_events(c->rest, path, fn, ctx, &answer, &e);
    if (err == ERR_OK) {
        return judge(c, &answer, NULL);
    }
    if (err == ERR_TIMEOUT && may_time_out) {
        return 0;
    }
    return unreached(c, &e);
}

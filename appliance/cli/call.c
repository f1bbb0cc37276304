/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"

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

/* A problem (RFC 9457) as people read it: what, then where, one line each. */
static void
explain(const struct cli *c, const json_t *problem, long status)
{
    CLEANUP(buf_fini) struct buf line = {0};
    const char *detail = cli_str(problem, "detail");

    if (c->json) {
        cli_printed_json(c, problem);
        return;
    }
    buf_init(&line, LINE_MAX_BYTES);
    cli_put_text(&line, detail[0] != '\0' ? detail : cli_str(problem, "title"));
    if (line.len == 0) {
        buf_printf(&line, "the node answered with status %ld", status);
    }
    fprintf(stderr, "lockstep: %s\n", buf_str(&line));
    show_problems(json_object_get(problem, "errors"));
}

static int
do_call(struct cli *c, const struct call *q, json_t **ret, struct rest_answer *answer)
{
    CLEANUP(buf_wipe_fini) struct buf body;
    struct error e;
    json_t *parsed = NULL;

    buf_init(&body, LINE_MAX_BYTES);
    if (q->body != NULL) {
        json_canonical(q->body, &body);
    }
    if (c->rest == NULL && rest_open(&c->config, &c->rest, &e) != ERR_OK) {
        cli_error("%s", e.msg);
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
    err_t err = rest_call(c->rest, &request, answer, &e);
    if (err != ERR_OK) {
        cli_error("%s", e.msg);
        return EXIT_UNREACHED;
    }
    if (answer->body.len > 0 && buf_str(&answer->body)[0] == '{') {
        err = json_parse(buf_str(&answer->body), answer->body.len, &parsed, &e);
    }
    if (err != ERR_OK) {
        cli_error("the answer of %s is not JSON: %s", c->config.url, e.msg);
        return EXIT_UNREACHED;
    }
    int status = answer->status >= 400 ? EXIT_NO : 0;
    if (status != 0) {
        explain(c, parsed, answer->status);
    }
    if (ret != NULL && status == 0) {
        *ret = parsed;
    } else if (parsed != NULL) {
        json_decref(parsed);
    }
    return status;
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

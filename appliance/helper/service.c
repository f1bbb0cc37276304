/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/service.h"

#include <string.h>

#include "base/json.h"
#include "base/probe.h"

#define NAME             "haproxy"
#define ANSWER_MAX_BYTES ((size_t)1 << 20)
#define INT_MAX_JSON     ((int64_t)9007199254740991)

static const char *const verb_names[] = {
    [SERVICE_START] = "start",
    [SERVICE_STOP] = "stop",
    [SERVICE_RESTART] = "restart",
};

static err_t
refused(const json_t *answer, struct error *e)
{
    const char *message = "no reason given";
    err_t code = json_opt_str(answer, "message", &message, e);

    return code != ERR_OK ? code : error_set(e, ERR_UNAVAILABLE, "lockstep-run: %s", message);
}

/* Takes the request. *ret: an answer whose "ok" is true. */
static err_t
call(
    const char *socket_path, json_t *request, int64_t deadline_ms, json_t **ret,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf line;
    CLEANUP(buf_fini) struct buf text;
    json_auto_t *sent = request;
    json_auto_t *answer = NULL;
    bool ok = false;
    err_t code;

    ASSERT(sent != NULL);
    buf_init(&line, ANSWER_MAX_BYTES);
    buf_init(&text, ANSWER_MAX_BYTES);
    json_canonical(sent, &line);
    buf_putc(&line, '\n');
    code = probe_unix(socket_path, line.data, line.len, deadline_ms, &text, e);
    if (code == ERR_OK) {
        code = json_parse(buf_str(&text), text.len, &answer, e);
    }
    if (code == ERR_OK) {
        code = json_get_bool(answer, "ok", &ok, e);
    }
    if (code == ERR_OK && !ok) {
        code = refused(answer, e);
    }
    if (code == ERR_OK) {
        *ret = TAKE(answer);
    }
    return code;
}

err_t
service_call(
    const char *socket_path, enum service_verb verb, int64_t deadline_ms, struct error *e)
{
    json_auto_t *answer = NULL;

    return call(
        socket_path, json_pack("{s:s, s:s}", "verb", verb_names[verb], "service", NAME),
        deadline_ms, &answer, e);
}

static err_t
read_state(const json_t *answer, enum service_state *ret, struct error *e)
{
    const char *name = NULL;
    err_t code = json_get_str(answer, "state", &name, e);

    if (code == ERR_OK && !service_state_parse(name, ret)) {
        code = error_set(e, ERR_INVALID, "unknown state of the service");
    }
    return code;
}

static err_t
read_status(const json_t *answer, struct service_status *st, struct error *e)
{
    int64_t pid = 0;
    err_t code = read_state(answer, &st->state, e);

    if (code == ERR_OK) {
        code = json_get_int(answer, "pid", 0, INT32_MAX, &pid, e);
    }
    if (code == ERR_OK) {
        code = json_get_bool(answer, "on_good", &st->on_good, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(answer, "generation", 0, INT_MAX_JSON, &st->generation, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(answer, "failures", 0, INT_MAX_JSON, &st->failures, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(answer, "output_end", 0, INT_MAX_JSON, &st->output_end, e);
    }
    st->pid = (pid_t)pid;
    return code;
}

err_t
service_status(
    const char *socket_path, int64_t output_from, int64_t deadline_ms,
    struct service_status *ret, struct buf *output, struct error *e)
{
    json_auto_t *answer = NULL;
    struct service_status st = {.pid = 0};
    const char *text = "";
    err_t code = call(
        socket_path,
        json_pack(
            "{s:s, s:s, s:I}", "verb", "status", "service", NAME, "output_from",
            (json_int_t)output_from),
        deadline_ms, &answer, e);

    if (code == ERR_OK) {
        code = read_status(answer, &st, e);
    }
    if (code == ERR_OK) {
        code = json_get_str(answer, "output", &text, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (output != NULL) {
        buf_puts(output, text);
    }
    *ret = st;
    return ERR_OK;
}

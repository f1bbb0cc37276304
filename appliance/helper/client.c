/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/client.h"

#include <poll.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/probe.h"
#include "helper/protocol.h"

#define LOOK_INTERVAL_MS 20

static err_t
code_of_name(const char *name)
{
#define CODE(code, name, status) ERR_##code,
    static const err_t codes[] = {ERR_LIST(CODE)};
#undef CODE

    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i] != ERR_OK && strcmp(error_name(codes[i]), name) == 0) {
            return codes[i];
        }
    }
    return ERR_INTERNAL;
}

static err_t
refused(const json_t *answer, struct error *e)
{
    const char *name = "";
    const char *message = "";
    err_t code = json_get_str(answer, "code", &name, e);

    if (code == ERR_OK) {
        code = json_get_str(answer, "message", &message, e);
    }
    return code != ERR_OK ? code : error_set(e, code_of_name(name), "%s", message);
}

/* What is wrong with an answer is not the caller's fault. */
static err_t
bad_answer(struct error *e)
{
    if (e == NULL) {
        return ERR_INTERNAL;
    }
    e->code = ERR_INTERNAL;
    return error_wrap(e, "answer of lockstep-helper");
}

/* As long as it is unavailable it has not read the request, so that may be sent again. */
static err_t
converse(const struct helper *h, const struct buf *line, struct buf *ret, struct error *e)
{
    int64_t end_ms = clock_mono_ms(&clock_system) + h->wait_ms;
    err_t code = probe_unix(h->socket_path, line->data, line->len, h->deadline_ms, ret, e);

    while (code == ERR_UNAVAILABLE && clock_mono_ms(&clock_system) < end_ms) {
        (void)poll(NULL, 0, LOOK_INTERVAL_MS);
        code = probe_unix(h->socket_path, line->data, line->len, h->deadline_ms, ret, e);
    }
    if (code == ERR_OK && ret->len == 0) {
        return error_set(e, ERR_UNAVAILABLE, "lockstep-helper ended during the call");
    }
    return code;
}

/* Takes the request. */
static err_t
call(const struct helper *h, json_t *request, json_t **ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf line;
    CLEANUP(buf_fini) struct buf text;
    json_auto_t *sent = request;
    json_auto_t *answer = NULL;
    bool ok = false;
    err_t code;

    ASSERT(sent != NULL);
    buf_init(&line, HELPER_REQUEST_MAX_BYTES);
    buf_init(&text, HELPER_ANSWER_MAX_BYTES);
    json_canonical(sent, &line);
    buf_putc(&line, '\n');
    code = buf_status(&line, e);
    if (code == ERR_OK) {
        code = converse(h, &line, &text, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    code = json_parse(buf_str(&text), text.len, &answer, e);
    if (code == ERR_OK) {
        code = json_get_bool(answer, "ok", &ok, e);
    }
    if (code != ERR_OK) {
        return bad_answer(e);
    }
    if (!ok) {
        return refused(answer, e);
    }
    *ret = TAKE(answer);
    return ERR_OK;
}

static err_t
call_generation(
    const struct helper *h, const char *verb, int64_t generation, json_t **ret, struct error *e)
{
    return call(
        h, json_pack("{s:s, s:I}", "verb", verb, "generation", (json_int_t)generation), ret, e);
}

/* A copy in the arena. */
static err_t
get_text(const json_t *v, const char *key, struct arena *a, const char **ret, struct error *e)
{
    const char *text = NULL;
    char *copy;
    err_t code = json_get_str(v, key, &text, e);

    if (code != ERR_OK) {
        return code;
    }
    copy = arena_try_alloc(a, strlen(text) + 1);
    if (copy == NULL) {
        return error_set(e, ERR_LIMIT, "\"%s\" is too long", key);
    }
    memcpy(copy, text, strlen(text) + 1);
    *ret = copy;
    return ERR_OK;
}

static err_t
get_pid(const json_t *v, const char *key, pid_t *ret, struct error *e)
{
    int64_t pid = 0;
    err_t code = json_get_int(v, key, 0, INT32_MAX, &pid, e);

    if (code == ERR_OK) {
        *ret = (pid_t)pid;
    }
    return code;
}

err_t
helper_stage(
    const struct helper *h, int64_t generation, struct arena *a, struct helper_check *ret,
    struct error *e)
{
    json_auto_t *answer = NULL;
    struct helper_check check = {.exit_status = 0};
    int64_t exit_status = 0;
    err_t code = call_generation(h, "stage", generation, &answer, e);

    if (code != ERR_OK) {
        return code;
    }
    code = json_get_int(answer, "exit_status", 0, 255, &exit_status, e);
    if (code == ERR_OK) {
        code = get_text(answer, "output", a, &check.output, e);
    }
    if (code == ERR_OK) {
        code = json_get_bool(answer, "only_weights", &check.only_weights, e);
    }
    if (code != ERR_OK) {
        return bad_answer(e);
    }
    check.exit_status = (int)exit_status;
    *ret = check;
    return ERR_OK;
}

static err_t
read_failure(const json_t *v, struct arena *a, struct helper_bind_failure *ret, struct error *e)
{
    int64_t port = 0;
    err_t code = get_text(v, "address", a, &ret->address, e);

    if (code == ERR_OK) {
        code = json_get_int(v, "port", 1, 65535, &port, e);
    }
    if (code == ERR_OK) {
        code = get_text(v, "reason", a, &ret->reason, e);
    }
    if (code == ERR_OK) {
        code = get_text(v, "holder", a, &ret->holder, e);
    }
    ret->port = (int)port;
    return code;
}

/* Adds them to *ret, whose failures are copied into a longer array. */
static err_t
read_failures(
    const json_t *answer, struct arena *a, struct helper_bind_result *ret, struct error *e)
{
    const json_t *list = json_object_get(answer, "failures");
    size_t count = json_array_size(list);
    struct helper_bind_failure *items;

    if (!json_is_array(list)) {
        return error_set(e, ERR_SYNTAX, "\"failures\" is not an array");
    }
    if (count == 0) {
        return ERR_OK;
    }
    items = arena_try_alloc(a, (ret->count + count) * sizeof *items);
    if (items == NULL) {
        return error_set(e, ERR_LIMIT, "too many failures");
    }
    if (ret->count > 0) {
        memcpy(items, ret->failures, ret->count * sizeof *items);
    }
    for (size_t i = 0; i < count; i++) {
        err_t code = read_failure(json_array_get(list, i), a, &items[ret->count + i], e);

        if (code != ERR_OK) {
            return code;
        }
    }
    ret->failures = items;
    ret->count += count;
    return ERR_OK;
}

/* One request; at most HELPER_BINDS_MAX. */
static err_t
test_some(
    const struct helper *h, const struct helper_bind *binds, size_t count, struct arena *a,
    struct helper_bind_result *ret, struct error *e)
{
    json_auto_t *answer = NULL;
    json_t *list = json_array();
    json_t *request;
    err_t code;

    for (size_t i = 0; i < count; i++) {
        json_t *bind = json_pack(
            "{s:s, s:i, s:b}", "address", binds[i].address, "port", binds[i].port, "vip",
            binds[i].vip);

        if (json_array_append_new(list, bind) != 0) {
            json_decref(list);
            return error_set(e, ERR_INVALID, "the address of a bind is not text");
        }
    }
    request = json_pack("{s:s, s:o}", "verb", "bind-test", "binds", list);
    code = call(h, request, &answer, e);
    if (code != ERR_OK) {
        return code;
    }
    code = read_failures(answer, a, ret, e);
    return code == ERR_OK ? ERR_OK : bad_answer(e);
}

err_t
helper_bind_test(
    const struct helper *h, const struct helper_bind *binds, size_t count, struct arena *a,
    struct helper_bind_result *ret, struct error *e)
{
    struct helper_bind_result all = {NULL, 0};

    for (size_t done = 0; done < count; done += HELPER_BINDS_MAX) {
        size_t rest = count - done;
        err_t code = test_some(
            h, binds + done, rest < HELPER_BINDS_MAX ? rest : HELPER_BINDS_MAX, a, &all, e);

        if (code != ERR_OK) {
            return code;
        }
    }
    *ret = all;
    return ERR_OK;
}

err_t
helper_install(const struct helper *h, int64_t generation, struct error *e)
{
    json_auto_t *answer = NULL;

    return call_generation(h, "install", generation, &answer, e);
}

err_t
helper_settle(const struct helper *h, int64_t generation, int64_t keep, struct error *e)
{
    json_auto_t *answer = NULL;

    return call(
        h,
        json_pack(
            "{s:s, s:I, s:I}", "verb", "settle", "generation", (json_int_t)generation, "keep",
            (json_int_t)keep),
        &answer, e);
}

/* Takes the request. */
static err_t
call_load(
    const struct helper *h, json_t *request, struct arena *a, struct helper_load *ret,
    struct error *e)
{
    json_auto_t *answer = NULL;
    struct helper_load load = {.loaded = false};
    err_t code = call(h, request, &answer, e);

    if (code != ERR_OK) {
        return code;
    }
    code = json_get_bool(answer, "loaded", &load.loaded, e);
    if (code == ERR_OK) {
        code = get_text(answer, "output", a, &load.output, e);
    }
    if (code == ERR_OK) {
        code = get_pid(answer, "worker", &load.worker, e);
    }
    if (code == ERR_OK) {
        code = get_text(answer, "no_states", a, &load.no_states, e);
    }
    if (code != ERR_OK) {
        return bad_answer(e);
    }
    *ret = load;
    return ERR_OK;
}

static json_t *
renames_json(const struct helper_rename *items, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        ASSERT(
            json_array_append_new(
                list, json_pack("{s:s, s:s}", "from", items[i].from, "to", items[i].to)) == 0);
    }
    return list;
}

err_t
helper_reload(
    const struct helper *h, const struct helper_renames *renames, struct arena *a,
    struct helper_load *ret, struct error *e)
{
    json_t *request = json_pack(
        "{s:s, s:o, s:o, s:b}", "verb", "reload", "backends",
        renames_json(renames->backends, renames->backend_count), "servers",
        renames_json(renames->servers, renames->server_count), "states",
        renames->too_many ? 0 : 1);

    return call_load(h, request, a, ret, e);
}

err_t
helper_restart(
    const struct helper *h, struct arena *a, struct helper_load *ret, struct error *e)
{
    return call_load(h, json_pack("{s:s}", "verb", "restart"), a, ret, e);
}

static err_t
read_status(const json_t *v, struct arena *a, struct helper_status *st, struct error *e)
{
    static const int64_t max = (int64_t)9007199254740991;
    const json_t *old = json_object_get(v, "old_workers");
    err_t code = get_text(v, "state", a, &st->state, e);

    if (code == ERR_OK) {
        code = get_pid(v, "master", &st->master, e);
    }
    if (code == ERR_OK) {
        code = get_pid(v, "worker", &st->worker, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(v, "reloads", 0, max, &st->reloads, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(v, "failed_reloads", 0, max, &st->failed_reloads, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(v, "current", 0, max, &st->current, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(v, "good", 0, max, &st->good, e);
    }
    if (code == ERR_OK && !json_is_array(old)) {
        code = error_set(e, ERR_SYNTAX, "\"old_workers\" is not an array");
    }
    st->old_worker_count = json_array_size(old);
    return code;
}

err_t
helper_get_status(
    const struct helper *h, struct arena *a, struct helper_status *ret, struct error *e)
{
    json_auto_t *answer = NULL;
    struct helper_status st = {.state = ""};
    err_t code = call(h, json_pack("{s:s}", "verb", "status"), &answer, e);

    if (code != ERR_OK) {
        return code;
    }
    if (read_status(answer, a, &st, e) != ERR_OK) {
        return bad_answer(e);
    }
    *ret = st;
    return ERR_OK;
}

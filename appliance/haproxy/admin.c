/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/admin.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/probe.h"
#include "haproxy/output.h"
#include "haproxy/span.h"

#define INFO_MAX_BYTES ((size_t)64 << 10) /* 2.6 and 3.0 answer with less than 3 KiB */
#define DONE_MAX_BYTES ((size_t)4 << 10)  /* an empty line, or a message */
#define COMMAND_BYTES  1024
#define WORD_BYTES     128

/* Whatever is not printable ASCII in a text that goes into messages and JSON. */
static void
copy_text(struct span s, char *out, size_t out_bytes)
{
    span_copy(s, out, out_bytes);
    for (char *p = out; *p != '\0'; p++) {
        if (*p < ' ' || *p > '~') {
            *p = '?';
        }
    }
}

static void
read_number(struct span value, int64_t *ret)
{
    int64_t v;

    if (span_number(value, INT64_MAX, &v)) {
        *ret = v;
    }
}

static bool
value_of(struct span line, const char *key, struct span *ret)
{
    size_t n = strlen(key);

    if (!span_starts(line, key)) {
        return false;
    }
    *ret = (struct span){line.p + n, line.n - n};
    return true;
}

/* "0x55c94ac32130 digest 0123456789abcdef" */
static void
read_running(struct span line, struct haproxy_info *info)
{
    struct span entry;
    struct span key;
    struct span word;

    if (!span_word(&line, &entry) || !span_word(&line, &key) || !span_is(key, RUNNING_KEY) ||
        !span_word(&line, &word) || word.n != RUNNING_HEX) {
        return;
    }
    for (size_t i = 0; i < word.n; i++) {
        if (strchr("0123456789abcdef", word.p[i]) == NULL) {
            return;
        }
    }
    span_copy(word, info->running, sizeof info->running);
}

static err_t
parse_info(struct span text, struct haproxy_info *ret, struct error *e)
{
    struct haproxy_info info = {.pid = 0};
    bool described = false;
    struct span line;
    struct span value;
    int64_t pid = 0;

    while (span_line(&text, &line)) {
        if (value_of(line, "Pid: ", &value)) {
            (void)span_number(value, INT32_MAX, &pid);
        } else if (value_of(line, "description: ", &value)) {
            copy_text(value, info.description, sizeof info.description);
            described = true;
        } else if (value_of(line, "Version: ", &value)) {
            copy_text(value, info.version, sizeof info.version);
        } else if (value_of(line, "Uptime_sec: ", &value)) {
            read_number(value, &info.uptime_s);
        } else if (value_of(line, "Maxconn: ", &value)) {
            read_number(value, &info.max_connections);
        } else if (value_of(line, "CurrConns: ", &value)) {
            read_number(value, &info.connections);
        } else if (value_of(line, "CumReq: ", &value)) {
            read_number(value, &info.requests);
        } else if (span_starts(line, "0x")) {
            read_running(line, &info);
        }
    }
    if (pid == 0 || !described) {
        return error_set(
            e, ERR_INVALID, "the answer to \"show info\" has no %s",
            pid == 0 ? "Pid" : "description");
    }
    info.pid = (pid_t)pid;
    *ret = info;
    return ERR_OK;
}

err_t
admin_info(
    const char *socket_path, int64_t deadline_ms, struct haproxy_info *ret, struct error *e)
{
    static const char command[] = "show info;show map " RUNNING_MAP "\n";
    CLEANUP(buf_fini) struct buf out;
    err_t code;

    buf_init(&out, INFO_MAX_BYTES);
    code = probe_unix(socket_path, command, sizeof command - 1, deadline_ms, &out, e);
    if (code == ERR_LIMIT) {
        return error_set(
            e, ERR_INVALID, "the answer to \"show info\" is longer than %zu bytes",
            INFO_MAX_BYTES);
    }
    if (code != ERR_OK) {
        return code;
    }
    return parse_info((struct span){buf_str(&out), out.len}, ret, e);
}

/* ---- commands ---- */

/* Every answer ends in an empty line, the one of a command without output is nothing else. */
static bool
is_whole(const struct buf *out)
{
    const char *text = buf_str(out);

    return (out->len == 1 && text[0] == '\n') ||
           (out->len >= 2 && memcmp(text + out->len - 2, "\n\n", 2) == 0);
}

/* What messages call a command: its first line. The payload may be a private key. */
static struct span
name_of(const char *command)
{
    return (struct span){command, strcspn(command, "\n")};
}

err_t
admin_ask(
    const char *socket_path, const char *command, int64_t deadline_ms, struct buf *out,
    struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf line;
    struct span name = name_of(command);
    size_t bytes = strlen(command);
    err_t code;

    buf_init(&line, ADMIN_COMMAND_MAX_BYTES);
    if (!buf_reserve(&line, bytes + 1)) {
        return error_set(
            e, ERR_LIMIT, "\"%.*s\" is longer than HAProxy takes", (int)name.n, name.p);
    }
    buf_put(&line, command, bytes);
    buf_putc(&line, '\n');
    code = probe_unix(socket_path, buf_str(&line), line.len, deadline_ms, out, e);
    if (code == ERR_LIMIT) {
        return error_set(
            e, ERR_INVALID, "the answer to \"%.*s\" is longer than %zu bytes", (int)name.n,
            name.p, out->max);
    }
    if (code == ERR_OK && !is_whole(out)) {
        code = error_set(e, ERR_INVALID, "the answer to \"%.*s\" was cut", (int)name.n, name.p);
    }
    return code;
}

err_t
admin_refused(const char *command, struct buf *answer, struct error *e)
{
    struct span name = name_of(command);

    while (answer->len > 0 && answer->data[answer->len - 1] == '\n') {
        answer->data[--answer->len] = '\0';
    }
    if (answer->len > 0) {
        output_clean(answer->data, answer->len);
    }
    return error_set(
        e, ERR_CONFLICT, "HAProxy answers to \"%.*s\": %s", (int)name.n, name.p,
        answer->len > 0 ? answer->data : "nothing");
}

err_t
admin_do(const char *socket_path, const char *command, int64_t deadline_ms, struct error *e)
{
    CLEANUP(buf_fini) struct buf out;
    err_t code;

    buf_init(&out, DONE_MAX_BYTES);
    code = admin_ask(socket_path, command, deadline_ms, &out, e);
    return code != ERR_OK || out.len == 1 ? code : admin_refused(command, &out, e);
}

err_t
admin_check_name(const char *name, struct error *e)
{
    for (const char *p = name; *p != '\0'; p++) {
        bool plain = (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= 'a' && *p <= 'z') || strchr("_.:-/", *p) != NULL;

        if (!plain) {
            return error_set(e, ERR_INVALID, "a name that cannot stand in a command");
        }
    }
    return name[0] != '\0' ? ERR_OK : error_set(e, ERR_INVALID, "an empty name");
}

/* ---- servers ---- */

/* "BEFORE backend/server AFTER" */
static err_t
put_command(
    const struct admin_server *at, const char *before, const char *after,
    char out[COMMAND_BYTES], struct error *e)
{
    err_t code = admin_check_name(at->backend, e);
    int n;

    if (code == ERR_OK) {
        code = admin_check_name(at->server, e);
    }
    if (code == ERR_OK &&
        (strchr(at->backend, '/') != NULL || strchr(at->server, '/') != NULL)) {
        code = error_set(e, ERR_INVALID, "a server's name cannot hold a slash");
    }
    if (code != ERR_OK) {
        return code;
    }
    n = snprintf(out, COMMAND_BYTES, "%s %s/%s %s", before, at->backend, at->server, after);
    return n > 0 && n < COMMAND_BYTES
               ? ERR_OK
               : error_set(e, ERR_INVALID, "a server's name is too long for a command");
}

static err_t
change_server(
    const char *socket_path, const struct admin_server *at, const char *before,
    const char *after, int64_t deadline_ms, struct error *e)
{
    char command[COMMAND_BYTES];
    err_t code = put_command(at, before, after, command, e);

    return code == ERR_OK ? admin_do(socket_path, command, deadline_ms, e) : code;
}

err_t
admin_set_state(
    const char *socket_path, const struct admin_server *at, const char *state,
    int64_t deadline_ms, struct error *e)
{
    char after[WORD_BYTES];

    (void)snprintf(after, sizeof after, "state %s", state);
    return change_server(socket_path, at, "set server", after, deadline_ms, e);
}

err_t
admin_set_weight(
    const char *socket_path, const struct admin_server *at, int64_t weight, int64_t deadline_ms,
    struct error *e)
{
    char after[WORD_BYTES];

    (void)snprintf(after, sizeof after, "weight %" PRId64, weight);
    return change_server(socket_path, at, "set server", after, deadline_ms, e);
}

err_t
admin_set_maxconn(
    const char *socket_path, const struct admin_server *at, int64_t maxconn,
    int64_t deadline_ms, struct error *e)
{
    char after[WORD_BYTES];

    (void)snprintf(after, sizeof after, "%" PRId64, maxconn);
    return change_server(socket_path, at, "set maxconn server", after, deadline_ms, e);
}

err_t
admin_set_address(
    const char *socket_path, const struct admin_server *at, const struct admin_target *target,
    int64_t deadline_ms, struct error *e)
{
    CLEANUP(buf_fini) struct buf out;
    char command[COMMAND_BYTES];
    char after[WORD_BYTES];
    err_t code = admin_check_name(target->address, e);
    int n =
        snprintf(after, sizeof after, "addr %s port %" PRId64, target->address, target->port);

    buf_init(&out, DONE_MAX_BYTES);
    if (code == ERR_OK && (n < 0 || n >= (int)sizeof after)) {
        code = error_set(e, ERR_INVALID, "an address is too long for a command");
    }
    if (code == ERR_OK) {
        code = put_command(at, "set server", after, command, e);
    }
    if (code == ERR_OK) {
        code = admin_ask(socket_path, command, deadline_ms, &out, e);
    }
    if (code != ERR_OK || strncmp(buf_str(&out), "IP changed from ", 16) == 0 ||
        strncmp(buf_str(&out), "no need to change the addr", 26) == 0) {
        return code;
    }
    return admin_refused(command, &out, e);
}

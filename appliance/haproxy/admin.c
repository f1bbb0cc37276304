/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/admin.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/probe.h"
#include "haproxy/span.h"

#define INFO_MAX_BYTES ((size_t)64 << 10) /* 2.6 and 3.0 answer with less than 3 KiB */

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
    struct span word;

    if (!span_word(&line, &word) || !span_word(&line, &word) || !span_is(word, RUNNING_KEY) ||
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

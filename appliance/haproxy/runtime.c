/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/runtime.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/probe.h"
#include "haproxy/admin.h"
#include "haproxy/span.h"

/* HAProxy drops a command that with its payload exceeds its buffer (tune.bufsize, 16,384). */
#define COMMAND_MAX_BYTES ((size_t)16000)
#define HEAD_MAX_BYTES    ((size_t)1000) /* of it, before the payload */
#define ANSWER_MAX_BYTES  ((size_t)64 << 10)
#define MAP_MAX_BYTES     ((size_t)256 << 20)
#define SAID_BYTES        120

/* ---- one command ---- */

/* Not a word of a name may end the command or begin another. */
static err_t
check_name(const char *name, struct error *e)
{
    for (const char *p = name; *p != '\0'; p++) {
        bool plain = (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= 'a' && *p <= 'z') || strchr("_.:-/", *p) != NULL;

        if (!plain) {
            return error_set(e, ERR_INVALID, "a name that the admin socket cannot take");
        }
    }
    return ERR_OK;
}

static err_t
ask(const struct runtime *r, const struct buf *command, struct buf *answer, struct error *e)
{
    int64_t left_ms = r->end_ms - clock_mono_ms(&clock_system);
    err_t code = buf_status(command, e);

    if (code == ERR_OK && left_ms <= 0) {
        code = error_set(e, ERR_TIMEOUT, "the changes took too long");
    }
    if (code != ERR_OK) {
        return code;
    }
    return probe_unix(
        r->socket_path, command->data, command->len,
        left_ms < r->socket_ms ? left_ms : r->socket_ms, answer, e);
}

/* What HAProxy said instead of what was awaited: its first line. */
static err_t
refused(const char *what, const struct buf *answer, struct error *e)
{
    struct span rest = {buf_str(answer), answer->len};
    struct span line = {"", 0};
    char said[SAID_BYTES];

    while (span_line(&rest, &line) && line.n == 0) {
    }
    span_copy(line, said, sizeof said);
    for (char *p = said; *p != '\0'; p++) {
        *p = *p < ' ' || *p > '~' ? '?' : *p;
    }
    return error_set(
        e, ERR_INVALID, "%s: HAProxy says \"%s\"", what,
        said[0] != '\0' ? said : "nothing that is a success");
}

/* A success of most commands is an empty line, and a connection that breaks says nothing. */
static bool
is_silent(const struct buf *answer)
{
    return answer->len == 1 && answer->data[0] == '\n';
}

/* A text as an answer: an empty line ends it, unless it was cut. */
static bool
begins(const struct buf *answer, const char *prefix)
{
    return span_starts((struct span){buf_str(answer), answer->len}, prefix) &&
           answer->len > 2 && memcmp(answer->data + answer->len - 2, "\n\n", 2) == 0;
}

static err_t
ask_silent(
    const struct runtime *r, const struct buf *command, const char *what, struct error *e)
{
    CLEANUP(buf_fini) struct buf answer;
    err_t code;

    buf_init(&answer, ANSWER_MAX_BYTES);
    code = ask(r, command, &answer, e);
    if (code != ERR_OK) {
        return error_wrap(e, "%s", what);
    }
    return is_silent(&answer) ? ERR_OK : refused(what, &answer, e);
}

/* ---- which files ---- */

static err_t
set_running(const struct runtime *r, const char *value, struct error *e)
{
    CLEANUP(buf_fini) struct buf command;

    buf_init(&command, COMMAND_MAX_BYTES);
    buf_printf(&command, "set map " RUNNING_MAP " " RUNNING_KEY " %s\n", value);
    return ask_silent(r, &command, "revision", e);
}

err_t
runtime_begin(const struct runtime *r, const char *digest, struct error *e)
{
    struct haproxy_info info;
    err_t code = admin_info(r->socket_path, r->socket_ms, &info, e);

    if (code != ERR_OK) {
        return code;
    }
    if (strcmp(info.running, digest) != 0) {
        return error_set(e, ERR_CONFLICT, "HAProxy runs other files than before");
    }
    return set_running(r, RUNNING_CHANGING, e);
}

err_t
runtime_end(const struct runtime *r, const char *digest, struct error *e)
{
    return set_running(r, digest, e);
}

/* ---- servers ---- */

static err_t
check_server(const char *backend, const char *server, struct error *e)
{
    err_t code = check_name(backend, e);

    return code != ERR_OK ? code : check_name(server, e);
}

err_t
runtime_weight(
    const struct runtime *r, const char *backend, const char *server, int64_t weight,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf command;
    err_t code = check_server(backend, server, e);

    buf_init(&command, COMMAND_MAX_BYTES);
    buf_printf(&command, "set server %s/%s weight %" PRId64 "\n", backend, server, weight);
    return code != ERR_OK ? code : ask_silent(r, &command, "weight", e);
}

err_t
runtime_maxconn(
    const struct runtime *r, const char *backend, const char *server, int64_t maxconn,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf command;
    err_t code = check_server(backend, server, e);

    buf_init(&command, COMMAND_MAX_BYTES);
    buf_printf(&command, "set maxconn server %s/%s %" PRId64 "\n", backend, server, maxconn);
    return code != ERR_OK ? code : ask_silent(r, &command, "maxconn", e);
}

err_t
runtime_address(
    const struct runtime *r, const char *backend, const char *server,
    const struct runtime_target *target, struct error *e)
{
    CLEANUP(buf_fini) struct buf command;
    CLEANUP(buf_fini) struct buf answer;
    err_t code = check_server(backend, server, e);

    buf_init(&command, COMMAND_MAX_BYTES);
    buf_init(&answer, ANSWER_MAX_BYTES);
    if (code == ERR_OK) {
        code = check_name(target->address, e);
    }
    buf_printf(
        &command, "set server %s/%s addr %s port %" PRId64 "\n", backend, server,
        target->address, target->port);
    if (code == ERR_OK) {
        code = ask(r, &command, &answer, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    return begins(&answer, "IP changed from ") || begins(&answer, "no need to change the addr")
               ? ERR_OK
               : refused("address", &answer, e);
}

/* ---- maps ---- */

/* Takes the next line that holds an entry. */
static bool
next_entry(struct span *text, struct span *ret)
{
    while (span_line(text, ret)) {
        if (ret->n > 0 && ret->p[0] != '#') {
            return true;
        }
    }
    return false;
}

static err_t
prepare(const struct runtime *r, const char *name, int64_t *ret_version, struct error *e)
{
    static const char prefix[] = "New version created: ";
    CLEANUP(buf_fini) struct buf command;
    CLEANUP(buf_fini) struct buf answer;
    struct span rest;
    struct span line;
    err_t code;

    buf_init(&command, COMMAND_MAX_BYTES);
    buf_init(&answer, ANSWER_MAX_BYTES);
    buf_printf(&command, "prepare map %s\n", name);
    code = ask(r, &command, &answer, e);
    if (code != ERR_OK) {
        return code;
    }
    rest = (struct span){buf_str(&answer), answer.len};
    if (!begins(&answer, prefix) || !span_line(&rest, &line) ||
        !span_number(
            (struct span){line.p + sizeof prefix - 1, line.n - (sizeof prefix - 1)}, UINT32_MAX,
            ret_version)) {
        return refused("map", &answer, e);
    }
    return ERR_OK;
}

static err_t
add_entries(
    const struct runtime *r, const char *name, int64_t version, struct span text,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf command;
    struct span line;
    bool more = next_entry(&text, &line);
    err_t code = ERR_OK;

    buf_init(&command, COMMAND_MAX_BYTES);
    while (more && code == ERR_OK) {
        buf_reset(&command);
        buf_printf(&command, "add map @%" PRId64 " %s <<\n", version, name);
        do {
            buf_put(&command, line.p, line.n);
            buf_putc(&command, '\n');
            more = next_entry(&text, &line);
        } while (more && command.len + line.n + HEAD_MAX_BYTES < COMMAND_MAX_BYTES);
        buf_putc(&command, '\n');
        code = ask_silent(r, &command, "map", e);
    }
    return code;
}

/* "0x55c94ac32130 KEY VALUE" is the entry that the file has there. */
static bool
is_entry(struct span shown, struct span wanted)
{
    struct span address;

    return span_word(&shown, &address) && shown.n == wanted.n + 1 &&
           memcmp(shown.p + 1, wanted.p, wanted.n) == 0;
}

static err_t
verify_entries(
    const struct runtime *r, const char *name, int64_t version, struct span text,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf command;
    CLEANUP(buf_fini) struct buf answer;
    struct span shown;
    struct span wanted;
    struct span line;
    err_t code;

    buf_init(&command, COMMAND_MAX_BYTES);
    buf_init(&answer, MAP_MAX_BYTES);
    buf_printf(&command, "show map @%" PRId64 " %s\n", version, name);
    code = ask(r, &command, &answer, e);
    if (code != ERR_OK) {
        return code;
    }
    shown = (struct span){buf_str(&answer), answer.len};
    while (next_entry(&text, &wanted)) {
        if (!span_line(&shown, &line) || !is_entry(line, wanted)) {
            return error_set(e, ERR_INVALID, "map: HAProxy did not take all entries");
        }
    }
    return span_line(&shown, &line) && line.n == 0
               ? ERR_OK
               : error_set(e, ERR_INVALID, "map: HAProxy has other entries too");
}

err_t
runtime_map(
    const struct runtime *r, const char *name, const char *text, size_t bytes, struct error *e)
{
    CLEANUP(buf_fini) struct buf command;
    struct span entries = {text, bytes};
    int64_t version = 0;
    err_t code = check_name(name, e);

    if (code == ERR_OK) {
        code = prepare(r, name, &version, e);
    }
    if (code == ERR_OK) {
        code = add_entries(r, name, version, entries, e);
    }
    if (code == ERR_OK) {
        code = verify_entries(r, name, version, entries, e);
    }
    buf_init(&command, COMMAND_MAX_BYTES);
    buf_printf(&command, "commit map @%" PRId64 " %s\n", version, name);
    return code == ERR_OK ? ask_silent(r, &command, "map", e) : code;
}

/* ---- certificates ---- */

static err_t
commit_certificate(const struct runtime *r, const char *name, struct error *e)
{
    CLEANUP(buf_fini) struct buf command;
    CLEANUP(buf_fini) struct buf answer;
    err_t code;

    buf_init(&command, COMMAND_MAX_BYTES);
    buf_init(&answer, ANSWER_MAX_BYTES);
    buf_printf(&command, "commit ssl cert %s\n", name);
    code = ask(r, &command, &answer, e);
    if (code != ERR_OK) {
        return code;
    }
    return begins(&answer, "Committing ") && strstr(answer.data, "\nSuccess!\n") != NULL
               ? ERR_OK
               : refused("certificate", &answer, e);
}

/* An empty line would end the payload. */
static void
put_pem(const char *pem, size_t bytes, struct buf *out)
{
    struct span rest = {pem, bytes};
    struct span line;

    while (span_line(&rest, &line)) {
        line.n -= line.n > 0 && line.p[line.n - 1] == '\r' ? 1 : 0;
        if (line.n > 0) {
            buf_put(out, line.p, line.n);
            buf_putc(out, '\n');
        }
    }
}

err_t
runtime_certificate(
    const struct runtime *r, const char *name, const char *pem, size_t bytes, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf command;
    CLEANUP(buf_fini) struct buf answer;
    err_t code = check_name(name, e);

    buf_init(&command, COMMAND_MAX_BYTES);
    buf_init(&answer, ANSWER_MAX_BYTES);
    if (code == ERR_OK && !buf_reserve(&command, bytes + HEAD_MAX_BYTES)) {
        code = error_set(e, ERR_LIMIT, "a certificate that is too long for the admin socket");
    }
    if (code != ERR_OK) {
        return code;
    }
    buf_printf(&command, "set ssl cert %s <<\n", name);
    put_pem(pem, bytes, &command);
    buf_putc(&command, '\n');
    code = ask(r, &command, &answer, e);
    if (code != ERR_OK) {
        return code;
    }
    return begins(&answer, "Transaction created for certificate ") ||
                   begins(&answer, "Transaction updated for certificate ")
               ? commit_certificate(r, name, e)
               : refused("certificate", &answer, e);
}

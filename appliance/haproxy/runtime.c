/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/runtime.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "haproxy/admin.h"
#include "haproxy/span.h"

#define HEAD_MAX_BYTES   ((size_t)1000) /* of a command, before the payload */
#define ANSWER_MAX_BYTES ((size_t)64 << 10)
#define MAP_MAX_BYTES    ((size_t)256 << 20)

/* ---- one command ---- */

err_t
runtime_left(const struct runtime *r, int64_t *ret_ms, struct error *e)
{
    int64_t left_ms = r->end_ms - clock_mono_ms(&clock_system);

    if (left_ms <= 0) {
        return error_set(e, ERR_TIMEOUT, "the changes took too long");
    }
    *ret_ms = left_ms < r->socket_ms ? left_ms : r->socket_ms;
    return ERR_OK;
}

static err_t
ask(const struct runtime *r, const struct buf *command, struct buf *answer, struct error *e)
{
    int64_t left_ms = 0;
    err_t code = buf_status(command, e);

    if (code == ERR_OK) {
        code = runtime_left(r, &left_ms, e);
    }
    return code == ERR_OK ? admin_ask(r->socket_path, buf_str(command), left_ms, answer, e)
                          : code;
}

static err_t
do_it(const struct runtime *r, const struct buf *command, struct error *e)
{
    int64_t left_ms = 0;
    err_t code = buf_status(command, e);

    if (code == ERR_OK) {
        code = runtime_left(r, &left_ms, e);
    }
    return code == ERR_OK ? admin_do(r->socket_path, buf_str(command), left_ms, e) : code;
}

static bool
begins(const struct buf *answer, const char *prefix)
{
    return span_starts((struct span){buf_str(answer), answer->len}, prefix);
}

/* ---- which files ---- */

static err_t
set_running(const struct runtime *r, const char *value, struct error *e)
{
    CLEANUP(buf_fini) struct buf command;

    buf_init(&command, ADMIN_COMMAND_MAX_BYTES);
    buf_printf(&command, "set map " RUNNING_MAP " " RUNNING_KEY " %s", value);
    return do_it(r, &command, e);
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

    buf_init(&command, ADMIN_COMMAND_MAX_BYTES);
    buf_init(&answer, ANSWER_MAX_BYTES);
    buf_printf(&command, "prepare map %s", name);
    code = ask(r, &command, &answer, e);
    if (code != ERR_OK) {
        return code;
    }
    rest = (struct span){buf_str(&answer), answer.len};
    if (!begins(&answer, prefix) || !span_line(&rest, &line) ||
        !span_number(
            (struct span){line.p + sizeof prefix - 1, line.n - (sizeof prefix - 1)}, UINT32_MAX,
            ret_version)) {
        return admin_refused(buf_str(&command), &answer, e);
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

    buf_init(&command, ADMIN_COMMAND_MAX_BYTES);
    while (more && code == ERR_OK) {
        buf_reset(&command);
        buf_printf(&command, "add map @%" PRId64 " %s <<\n", version, name);
        do {
            buf_put(&command, line.p, line.n);
            buf_putc(&command, '\n');
            more = next_entry(&text, &line);
        } while (more && command.len + line.n + HEAD_MAX_BYTES < ADMIN_COMMAND_MAX_BYTES);
        code = do_it(r, &command, e);
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

    buf_init(&command, ADMIN_COMMAND_MAX_BYTES);
    buf_init(&answer, MAP_MAX_BYTES);
    buf_printf(&command, "show map @%" PRId64 " %s", version, name);
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
    err_t code = admin_check_name(name, e);

    if (code == ERR_OK) {
        code = prepare(r, name, &version, e);
    }
    if (code == ERR_OK) {
        code = add_entries(r, name, version, entries, e);
    }
    if (code == ERR_OK) {
        code = verify_entries(r, name, version, entries, e);
    }
    buf_init(&command, ADMIN_COMMAND_MAX_BYTES);
    buf_printf(&command, "commit map @%" PRId64 " %s", version, name);
    return code == ERR_OK ? do_it(r, &command, e) : code;
}

/* ---- certificates ---- */

static err_t
commit_certificate(const struct runtime *r, const char *name, struct error *e)
{
    CLEANUP(buf_fini) struct buf command;
    CLEANUP(buf_fini) struct buf answer;
    err_t code;

    buf_init(&command, ADMIN_COMMAND_MAX_BYTES);
    buf_init(&answer, ANSWER_MAX_BYTES);
    buf_printf(&command, "commit ssl cert %s", name);
    code = ask(r, &command, &answer, e);
    if (code != ERR_OK) {
        return code;
    }
    return begins(&answer, "Committing ") && strstr(answer.data, "\nSuccess!\n") != NULL
               ? ERR_OK
               : admin_refused(buf_str(&command), &answer, e);
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
    err_t code = admin_check_name(name, e);

    buf_init(&command, ADMIN_COMMAND_MAX_BYTES);
    buf_init(&answer, ANSWER_MAX_BYTES);
    if (code == ERR_OK && !buf_reserve(&command, bytes + HEAD_MAX_BYTES)) {
        code = error_set(e, ERR_LIMIT, "a certificate that is too long for the admin socket");
    }
    if (code != ERR_OK) {
        return code;
    }
    buf_printf(&command, "set ssl cert %s <<\n", name);
    put_pem(pem, bytes, &command);
    code = ask(r, &command, &answer, e);
    if (code != ERR_OK) {
        return code;
    }
    return begins(&answer, "Transaction created for certificate ") ||
                   begins(&answer, "Transaction updated for certificate ")
               ? commit_certificate(r, name, e)
               : admin_refused(buf_str(&command), &answer, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "run/record.h"

#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"

#define RECORD_MAX_BYTES ((size_t)64 << 10)
#define BOOT_ID_BYTES    64
#define MAX_JSON         ((int64_t)9007199254740991)

/* Pids and start times begin anew with the machine. */
static err_t
read_boot_id(struct buf *out, struct error *e)
{
    err_t code = file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", out, e);

    if (code == ERR_OK && out->len > 0 && out->data[out->len - 1] == '\n') {
        out->data[--out->len] = '\0';
    }
    return code;
}

static json_t *
process_json(const struct record_process *p)
{
    return json_pack("{s:i, s:I}", "pid", p->pid, "ticks", (json_int_t)p->ticks);
}

err_t
record_write(int run_fd, const struct record *r, struct error *e)
{
    CLEANUP(buf_fini) struct buf boot;
    CLEANUP(buf_fini) struct buf text;
    json_auto_t *v = NULL;
    err_t code;

    buf_init(&boot, BOOT_ID_BYTES);
    buf_init(&text, RECORD_MAX_BYTES);
    code = read_boot_id(&boot, e);
    if (code != ERR_OK) {
        return code;
    }
    v = json_pack(
        "{s:s, s:o, s:o, s:o, s:b, s:I}", "boot", buf_str(&boot), "haproxy",
        process_json(&r->haproxy), "helper", process_json(&r->helper), "lockstepd",
        process_json(&r->daemon), "on_good", r->on_good ? 1 : 0, "generation",
        (json_int_t)r->generation);
    ASSERT(v != NULL);
    json_canonical(v, &text);
    return file_write_at(run_fd, RECORD_NAME, buf_str(&text), text.len, 0600, e);
}

static err_t
read_process(const json_t *v, const char *name, struct record_process *ret, struct error *e)
{
    const json_t *p = json_object_get(v, name);
    int64_t pid = 0;
    err_t code = json_is_object(p) ? json_get_int(p, "pid", 0, INT32_MAX, &pid, e)
                                   : error_set(e, ERR_SYNTAX, "\"%s\" is not an object", name);

    if (code == ERR_OK) {
        code = json_get_int(p, "ticks", 0, MAX_JSON, &ret->ticks, e);
    }
    ret->pid = (pid_t)pid;
    return code;
}

static err_t
read_record(const json_t *v, const char *boot_id, struct record *r, struct error *e)
{
    const char *boot = "";
    err_t code = json_is_object(v) ? json_get_str(v, "boot", &boot, e)
                                   : error_set(e, ERR_SYNTAX, "not a JSON object");

    if (code != ERR_OK || strcmp(boot, boot_id) != 0) {
        return code;
    }
    code = read_process(v, "haproxy", &r->haproxy, e);
    if (code == ERR_OK) {
        code = read_process(v, "helper", &r->helper, e);
    }
    if (code == ERR_OK) {
        code = read_process(v, "lockstepd", &r->daemon, e);
    }
    if (code == ERR_OK) {
        code = json_get_bool(v, "on_good", &r->on_good, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(v, "generation", 0, MAX_JSON, &r->generation, e);
    }
    return code;
}

err_t
record_read(int run_fd, struct record *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf boot;
    CLEANUP(buf_fini) struct buf text;
    json_auto_t *v = NULL;
    struct record r = {.generation = 0};
    err_t code;

    buf_init(&boot, BOOT_ID_BYTES);
    buf_init(&text, RECORD_MAX_BYTES);
    code = file_read_at(run_fd, RECORD_NAME, &text, e);
    if (code == ERR_NOT_FOUND) {
        *ret = r;
        return ERR_OK;
    }
    if (code == ERR_OK) {
        code = read_boot_id(&boot, e);
    }
    if (code == ERR_OK) {
        code = json_parse(buf_str(&text), text.len, &v, e);
    }
    if (code == ERR_OK) {
        code = read_record(v, buf_str(&boot), &r, e);
    }
    if (code == ERR_OK) {
        *ret = r;
    }
    return code;
}

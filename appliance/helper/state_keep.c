/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/state_keep.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/probe.h"
#include "haproxy/admin.h"
#include "haproxy/state_file.h"
#include "helper/state_filter.h"

/* Whether no file was changed by the admin socket since the worker was started. */
static bool
is_as_started(const struct helper_context *c)
{
    struct haproxy_info info;
    const char *digest;

    if (admin_info(c->admin_path, c->tunables.socket_ms, &info, NULL) != ERR_OK) {
        return false;
    }
    digest = strrchr(info.description, ' ');
    return digest != NULL && strcmp(digest + 1, info.running) == 0;
}

static err_t
read_state(
    const struct helper_context *c, struct span config, const struct renames *renames,
    struct buf *out, struct error *e)
{
    static const char command[] = "show servers state\n";
    CLEANUP(buf_fini) struct buf shown;
    err_t code;

    buf_init(&shown, STATE_MAX_BYTES);
    code = probe_unix(
        c->admin_path, command, sizeof command - 1, c->tunables.socket_ms, &shown, e);
    if (code != ERR_OK) {
        return code;
    }
    return state_filter(
        (struct span){buf_str(&shown), shown.len}, config, renames, is_as_started(c), out, e);
}

err_t
state_keep(
    const struct helper_context *c, struct span config, const struct renames *renames,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf text = {0};
    err_t code;

    if (renames->stateless) {
        state_file_clear(c->run_fd);
        return ERR_OK;
    }
    buf_init(&text, STATE_MAX_BYTES);
    code = read_state(c, config, renames, &text, e);
    if (code == ERR_OK) {
        code = file_write_at(c->run_fd, SERVER_STATE_FILE, text.data, text.len, 0600, e);
    }
    if (code != ERR_OK) {
        log_warning("servers start without their state: %s", e->msg);
        state_file_clear(c->run_fd);
    }
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/master.h"
#include "haproxy/state_file.h"
#include "helper/generation.h"
#include "helper/service.h"
#include "helper/verbs.h"

static const char *
state_name(const struct helper_context *c, bool answers)
{
    struct service_status st;

    if (answers) {
        return "running";
    }
    if (service_status(c->service_path, OUTPUT_NONE, c->tunables.socket_ms, &st, NULL, NULL) !=
        ERR_OK) {
        return "stopped";
    }
    switch (st.state) {
    case SERVICE_RUNNING: return "running"; /* busy with a reload */
    case SERVICE_WAITING: return "failed";
    case SERVICE_STARTING:
    case SERVICE_STOPPED: break;
    }
    return "stopped";
}

static json_t *
old_workers(const struct master_state *st)
{
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < st->old_count && i < MASTER_OLD_WORKERS_MAX; i++) {
        const struct master_worker *w = &st->old[i];

        if (json_array_append_new(
                list,
                json_pack("{s:i, s:I}", "pid", w->pid, "age_s", (json_int_t)w->uptime_s)) !=
            0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

err_t
verb_status(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    struct master_state st = {.master = 0};
    int64_t current = 0;
    int64_t good = 0;
    json_auto_t *v = NULL;
    err_t code = generation_link(c->generation_fd, "current", &current, e);
    bool answers;

    (void)request;
    if (code == ERR_OK) {
        code = generation_link(c->generation_fd, "good", &good, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    answers = master_show(c->master_path, c->tunables.socket_ms, &st, NULL) == ERR_OK &&
              st.worker.pid != 0;
    if (answers) {
        /* No reload goes on that would read what an earlier one left. */
        state_file_clear(c->run_fd);
    }
    v = json_pack(
        "{s:s, s:i, s:i, s:I, s:I, s:o, s:I, s:I}", "state", state_name(c, answers), "master",
        st.master, "worker", st.worker.pid, "reloads", (json_int_t)st.reloads, "failed_reloads",
        (json_int_t)st.failed_reloads, "old_workers", old_workers(&st), "current",
        (json_int_t)current, "good", (json_int_t)good);
    return json_object_update(answer, v) == 0
               ? ERR_OK
               : error_set(e, ERR_INTERNAL, "cannot tell the status");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* An administrator of this node becomes one of another. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "engine/account.h"
#include "sync/inner.h"

#define BODY_BYTES  ((size_t)16 << 10)
#define AUDIT_BYTES 256

static const char *
state_of(const json_t *answer)
{
    static const char *const states[] = {"created", "replaced", "same"};
    const char *said = json_string_value(json_object_get(answer, "state"));

    for (size_t i = 0; said != NULL && i < ARRAY_LEN(states); i++) {
        if (strcmp(said, states[i]) == 0) {
            return states[i];
        }
    }
    return NULL;
}

/* What concerns the two nodes must not look as if it concerned whoever asks. */
static err_t
explain(const struct member *m, err_t code, struct error *e)
{
    struct error why = *e;

    if (code == ERR_NOT_FOUND) {
        return error_set(
            e, ERR_CONFLICT,
            "%s has release %s, which takes no administrators of other nodes: update it first",
            m->name, m->release);
    }
    if (code != ERR_CONFLICT && code != ERR_INVALID && code != ERR_TIMEOUT) {
        code = ERR_UNAVAILABLE;
    }
    return error_set(e, code, "%s: %.200s", m->name, why.msg);
}

static err_t
hand_over(
    struct cluster *c, const struct member *m, const struct cluster_admin *q, json_t *admin,
    const char **ret_state, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf body;
    json_auto_t *own = json_pack(
        "{s:O, s:b, s:s}", "admin", admin, "overwrite", q->overwrite ? 1 : 0, "who", q->who);
    json_auto_t *answer = NULL;
    struct member self;
    struct call call;
    err_t code;

    members_self(c->en, &self);
    buf_init(&body, BODY_BYTES);
    json_canonical(own, &body);
    call = cluster_call_of(c, m, &self);
    call.method = "POST";
    call.path = "/peer/v1/account";
    call.body = buf_str(&body);
    call.body_len = body.len;
    call.timeout_ms = c->tunables->sync_read_ms;
    code = cluster_ask(c, &call, &answer, NULL, e);
    crypt_wipe(&self, sizeof self);
    if (code != ERR_OK) {
        return explain(m, code, e);
    }
    *ret_state = state_of(answer);
    return *ret_state != NULL
               ? ERR_OK
               : error_set(e, ERR_UNAVAILABLE, "%s does not say what it did", m->name);
}

err_t
cluster_copy_admin(
    struct cluster *c, const struct cluster_admin *q, json_t **ret, struct error *e)
{
    json_auto_t *admin = NULL;
    const char *state = NULL;
    char text[AUDIT_BYTES];
    struct member m;
    err_t code = members_find(c->en, q->node, &m, e);

    if (code != ERR_OK) {
        return code;
    }
    code = account_read(c->en, q->admin, &admin, e);
    if (code == ERR_OK && !cluster_may_ask(&m)) {
        code = error_set(e, ERR_UNAVAILABLE, "%s: its address or key is not known", m.name);
    }
    if (code == ERR_OK) {
        code = cluster_check_answers(c, &m, e);
    }
    if (code == ERR_OK) {
        code = hand_over(c, &m, q, admin, &state, e);
    }
    if (code == ERR_OK) {
        (void)snprintf(
            text, sizeof text, "administrator %s to %s: %s", q->admin, m.name, state);
        members_audit(c->en, q->who, "admin_copy", text);
        *ret = json_pack("{s:s, s:s, s:s}", "node", m.name, "admin", q->admin, "state", state);
    }
    crypt_wipe(&m, sizeof m);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes know of the members, handed on. */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "sync/inner.h"

/* Before the members are exchanged: for a key that its node refuses another one is taken. */
static void
note_keys(struct cluster *c, const struct member_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct member *m = &list->items[i];
        const struct peer *p;
        bool answered, refused;

        lock_take(&c->lock);
        p = cluster_peer(c, m->id);
        answered = p != NULL && p->answered;
        refused = p != NULL && !p->answered && p->silence == KEY_REJECTED;
        lock_give(&c->lock);
        if (cluster_is_asked(list, i) && (answered || refused) && m->key_refused != refused) {
            members_note_key(c->en, m->id, m->key, refused);
        }
    }
}

static err_t
exchange(struct cluster *c, const struct member *m, struct error *e)
{
    /* All of one moment: who has left since tells nobody that it is there. */
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    CLEANUP(buf_wipe_fini) struct buf body;
    struct call call;
    json_t *own = json_pack("{s:o}", "members", cluster_members_json(&list));
    json_t *j = NULL;
    struct members_taken taken;
    err_t code = ERR_OK;

    buf_init(&body, MEMBERS_BYTES);
    json_canonical(own, &body);
    json_decref(own);
    call = cluster_call_of(c, m, &list.items[list.self]);
    call.method = "POST";
    call.path = "/peer/v1/members";
    call.body = buf_str(&body);
    call.body_len = body.len;
    call.answer_max = MEMBERS_BYTES;
    if (member_list_has(&list, m->id)) {
        code = cluster_ask(c, &call, &j, NULL, e);
    }
    if (j != NULL && code == ERR_OK) {
        code = cluster_members_take(
            c->en, json_object_get(j, "members"), m->id, MEMBERS_ASKED, &taken, e);
    }
    json_decref(j);
    return code;
}

void
cluster_exchange(struct cluster *c, const struct member_list *list)
{
    note_keys(c, list);
    for (size_t i = 0; i < list->count; i++) {
        struct hash own = members_digest(c->en);
        const struct peer *p;
        struct error error;
        bool differs;

        lock_take(&c->lock);
        p = cluster_peer(c, list->items[i].id);
        differs = p != NULL && p->answered && !hash_equal(&p->members, &own);
        lock_give(&c->lock);
        if (differs && cluster_is_asked(list, i) &&
            exchange(c, &list->items[i], &error) != ERR_OK) {
            log_info("members were not exchanged with %s: %s", list->items[i].name, error.msg);
        }
    }
}

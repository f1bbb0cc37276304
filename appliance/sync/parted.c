/* SPDX-License-Identifier: Apache-2.0 */
/* What this node and one that diverged shared last. */
#include "base/arena.h"
#include "base/json.h"
#include "engine/sync_parted.h"
#include "sync/inner.h"

#define PATH_PARTED    "/peer/v1/config/parted"
#define QUESTION_BYTES ((size_t)128 << 10)

static err_t
ask_other(
    struct cluster *c, const struct call *from, const struct hash *head,
    const struct sync_page *among, struct commit *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf body;
    json_t *question = sync_parted_ask(head, among);
    struct call call = *from;
    json_t *answer = NULL;
    err_t code;

    buf_init(&body, QUESTION_BYTES);
    json_canonical(question, &body);
    json_decref(question);
    call.method = "POST";
    call.path = PATH_PARTED;
    call.body = buf_str(&body);
    call.body_len = body.len;
    code = cluster_ask(c, &call, &answer, NULL, e);
    if (code == ERR_OK) {
        code = sync_parted_read(c->en, answer, among, ret, e);
    }
    json_decref(answer);
    return code;
}

/* Of the page of ancestors that is next. A head that this node has been given, as by an
 * overwrite that was cut short, needs no question. */
static err_t
look_at_page(
    struct cluster *c, const struct call *call, struct last_shared *at, struct error *e)
{
    CLEANUP(xfree_cleanup) struct sync_page *page = xcalloc(1, sizeof *page);
    struct commit found = {.rev = 0};
    struct sync_view seen = {.have = false};
    err_t code = sync_ancestors(c->en, &at->own, at->passed, page, e);

    if (code == ERR_OK) {
        code = sync_look(c->en, &at->other, &seen, e);
    }
    if (code == ERR_OK && page->count > 0) {
        code = seen.have ? sync_newest_ancestor(c->en, &at->other, page, &found, e)
                         : ask_other(c, call, &at->other, page, &found, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    at->passed += page->count;
    if (found.rev > 0) {
        at->state = SHARED_FOUND;
        at->commit = (struct sync_head){found.id, found.fp, found.rev, found.schema_version};
    } else if (page->count < STORE_ANCESTORS) {
        at->state = SHARED_NONE;
    }
    return ERR_OK;
}

/* Whether something is left to be found out, of these two heads. */
static bool
is_sought(
    struct cluster *c, const struct member *m, const struct hash *own, struct last_shared *ret)
{
    const struct peer *p;
    bool sought;

    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    sought = p != NULL && p->answered && p->relation == REL_DIVERGED;
    if (sought) {
        *ret = p->shared;
        if (!hash_equal(&ret->own, own) || !hash_equal(&ret->other, &p->head.id)) {
            *ret = (struct last_shared){.own = *own, .other = p->head.id};
        }
        sought = ret->state == SHARED_SOUGHT;
    }
    lock_give(&c->lock);
    return sought;
}

void
cluster_look_for_shared(
    struct cluster *c, const struct member_list *list, const struct commit *head)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct member *m = &list->items[i];
        struct last_shared at;
        struct call call;
        struct error unused;
        struct peer *p;
        err_t code;

        if (!cluster_is_asked(list, i) || !is_sought(c, m, &head->id, &at)) {
            continue;
        }
        call = cluster_call_of(c, m, &list->items[list->self]);
        code = look_at_page(c, &call, &at, &unused);
        if (code == ERR_NOT_FOUND) {
            at.state = SHARED_UNKNOWN; /* a release that cannot say */
        }
        lock_take(&c->lock);
        p = cluster_peer(c, m->id);
        if (p != NULL) {
            p->shared = at;
        }
        lock_give(&c->lock);
    }
}

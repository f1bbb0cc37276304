/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/probe.h"
#include "engine/apply_job.h"
#include "engine/own_traffic.h"
#include "engine/problems_json.h"
#include "model/validate.h"
#include "model/webui.h"

#define HEAD_BYTES ((size_t)32 << 10)
#define NODE_BYTES 65

/* ---- what is kept ---- */

void
engine_get_pages(struct engine *en, struct engine_pages *ret)
{
    lock_take(&en->lock);
    *ret = en->pages.seen;
    lock_give(&en->lock);
}

struct rest {
    char digest[RENDER_DIGEST_HEX + 1]; /* of the files that run */
    pid_t pid;
};

/* HAProxy runs the files of the head, and nothing is about to change that. */
static bool
is_at_rest(struct engine *en, struct rest *ret)
{
    bool rests;

    if (atomic_load(&en->applies) > 0 || standby_holds(en)) {
        return false;
    }
    lock_take(&en->lock);
    rests = en->follow.ok && en->status.up == FACT_YES &&
            strcmp(en->status.running_digest, en->follow.digest) == 0;
    memcpy(ret->digest, en->follow.digest, sizeof ret->digest);
    ret->pid = (pid_t)en->status.haproxy_pid;
    lock_give(&en->lock);
    return rests;
}

/* True when it is to be repaired now. digest: of what runs, where that should reach them. */
static bool
note(struct engine *en, const struct engine_pages *seen, const char *digest)
{
    struct pages_state *p = &en->pages;
    int64_t now_ms = clock_mono_ms(&clock_system);
    bool news, due;

    lock_take(&en->lock);
    news = seen->reached == FACT_NO && p->seen.reached != FACT_NO;
    p->seen = *seen;
    if (seen->reached == FACT_YES && digest != NULL) {
        memcpy(p->digest, digest, sizeof p->digest);
        p->repaired = false;
    }
    /* What was never seen with these files but with others was taken away by a change. */
    due = seen->reached == FACT_NO && digest != NULL && !p->repaired &&
          (p->digest[0] == '\0' || strcmp(p->digest, digest) == 0) &&
          (p->repaired_ms == 0 ||
           now_ms - p->repaired_ms >= en->config->tunables->webui_again_ms);
    if (due) {
        p->repaired = true;
        p->repaired_ms = now_ms;
    }
    lock_give(&en->lock);
    if (news) {
        log_warning("this node's own pages are not reached: %s", seen->detail);
    }
    return due;
}

static void
set_detail(struct engine_pages *p, enum fact reached, const char *host, const char *why)
{
    char text[PAGES_TEXT_BYTES];

    (void)snprintf(text, sizeof text, "%.80s: %.150s", host, why);
    p->reached = reached;
    foreign_text_copy(p->detail, sizeof p->detail, text);
}

/* ---- one request ---- */

struct asking {
    struct engine *en;
    const struct object *listener;
    const struct bind *bind;
    const char *node; /* its name */
    pid_t pid;        /* of HAProxy's worker */
    bool closed;      /* the listener may not let this node itself in */
};

/* The field of the API's answers that says which node answers. */
static void
read_node(const char *head, char ret[NODE_BYTES])
{
    static const char field[] = "\nLockstep-Node: ";
    const char *at = strcasestr(head, field);

    (void)snprintf(
        ret, NODE_BYTES, "%.*s", at != NULL ? (int)strcspn(at + sizeof field - 1, "\r\n") : 0,
        at != NULL ? at + sizeof field - 1 : "");
}

/* *ret_node "": it answers, but is no node's API. */
static err_t
request(
    struct engine *en, const struct probe *probe, int *ret_status, char ret_node[NODE_BYTES],
    struct error *e)
{
    CLEANUP(buf_fini) struct buf head;
    struct probe with_head = *probe;
    err_t code;

    buf_init(&head, HEAD_BYTES);
    with_head.head = &head;
    code = probe_http(&with_head, en->config->tunables->socket_ms, ret_status, e);
    read_node(code == ERR_OK ? buf_str(&head) : "", ret_node);
    return code;
}

/* As a visitor, but from this machine: the pages' backend answers that whatever networks are
 * allowed, and does not log it. */
static bool
is_reached(const struct asking *q, const char *host, char why[ERROR_MSG_BYTES])
{
    bool six = strchr(q->bind->address, ':') != NULL;
    struct probe probe = {
        .address = serving_target(q->bind->address),
        .port = q->bind->port,
        .tls = object_bool(q->listener, F_LISTENER_TLS),
        .host = host,
        .path = RENDER_WEBUI_PATH,
        .source = q->closed ? NULL
                  : six     ? "::1"
                            : "127.0.0.1",
        .proxied = object_bool(q->listener, F_LISTENER_ACCEPT_PROXY) && !q->closed,
    };
    char node[NODE_BYTES];
    struct error error;
    int status = 0;

    if (request(q->en, &probe, &status, node, &error) != ERR_OK) {
        (void)snprintf(why, ERROR_MSG_BYTES, "%s", error.msg);
        return false;
    }
    if (status / 100 == 2) {
        own_traffic_add(q->en->own_traffic, q->pid, q->listener->name.s);
    }
    (void)snprintf(
        why, ERROR_MSG_BYTES, "the listener %s answers with status %d, and not this node's API",
        q->listener->name.s, status);
    return strcmp(node, q->node) == 0;
}

static bool
api_answers(const struct asking *q, const char *host)
{
    struct probe probe = {
        .address = serving_target(q->en->config->api_address),
        .port = q->en->config->api_port,
        .tls = true,
        .host = host,
        .path = RENDER_WEBUI_PATH,
    };
    char node[NODE_BYTES];
    struct error unused;
    int status;

    return request(q->en, &probe, &status, node, &unused) == ERR_OK &&
           strcmp(node, q->node) == 0;
}

static void
look_at(const struct asking *q, const char *host, struct engine_pages *ret)
{
    char why[ERROR_MSG_BYTES];

    *ret = (struct engine_pages){.reached = FACT_YES};
    if (is_reached(q, host, why)) {
        return;
    }
    if (!api_answers(q, host)) {
        set_detail(ret, FACT_UNKNOWN, host, "this node's API itself does not answer");
    } else if (q->closed) {
        set_detail(ret, FACT_UNKNOWN, host, "the listener need not let this node itself in");
    } else if (!is_reached(q, host, why)) {
        set_detail(ret, FACT_NO, host, why);
    }
}

/* ---- all names ---- */

/* Where this node can ask the listener, or NULL. */
static const struct bind *
find_bind(const struct bind *binds, size_t count, const struct object *listener)
{
    for (size_t i = 0; i < count; i++) {
        if (binds[i].object == listener &&
            (!binds[i].vip || serving_is_here(binds[i].address))) {
            return &binds[i];
        }
    }
    return NULL;
}

static bool
is_closed(const struct object *listener)
{
    return object_value(listener, F_LISTENER_ALLOWED_NETWORKS)->count > 0 ||
           object_value(listener, F_LISTENER_ACCEPT_PROXY_NETWORKS)->count > 0;
}

/* The first name that is not reached decides. *ret_stored: the configuration has it so. */
static void
look_at_hosts(
    struct engine *en, const struct view *v, const struct object *listener, pid_t pid,
    struct engine_pages *ret, bool *ret_stored)
{
    const struct object *o = snapshot_singleton(v->now.local, K_WEBUI);
    const struct value *hosts = object_value(o, F_WEBUI_HOSTS);
    struct bind *binds = NULL;
    size_t count = validate_binds(&(struct snapshot_pair){v->now.shared, NULL}, NULL, &binds);
    struct asking q = {
        .en = en,
        .listener = listener,
        .bind = find_bind(binds, count, listener),
        .node = snapshot_singleton(v->now.local, K_NODE)->name.s,
        .pid = pid,
        .closed = is_closed(listener),
    };
    uint32_t unused;

    *ret = (struct engine_pages){.reached = FACT_YES};
    for (uint32_t i = 0; i < hosts->count && ret->reached == FACT_YES; i++) {
        struct text host = hosts->u.items[i].u.text;
        const struct object *service = webui_taken_by(&v->now, listener, host, &unused);

        *ret_stored = service == NULL;
        if (service != NULL) {
            set_detail(ret, FACT_NO, host.s, "a service has this name on the listener");
        } else if (q.bind == NULL) {
            set_detail(ret, FACT_UNKNOWN, host.s, "the listener has no address here");
        } else {
            look_at(&q, host.s, ret);
        }
    }
    free(binds);
}

static void
look_at_place(enum webui_place place, const char *name, struct engine_pages *ret)
{
    static const char *const why[] = {
        [WEBUI_UNPUBLISHED] = "",
        [WEBUI_NO_LISTENER] = "the listener does not exist",
        [WEBUI_LISTENER_OFF] = "the listener is off",
        [WEBUI_LISTENER_TCP] = "the listener has mode tcp",
    };

    *ret = (struct engine_pages){.reached = FACT_UNKNOWN};
    if (place != WEBUI_UNPUBLISHED) {
        set_detail(ret, FACT_NO, name, why[place]);
    }
}

static void
repair(struct engine *en, const struct engine_pages *seen)
{
    members_audit(en, "lockstepd", "webui_repair", seen->detail);
    reconcile_repair(en, "Publish this node's own pages again");
}

void
pages_follow(struct engine *en)
{
    struct rest now, later;
    const struct object *listener;
    struct engine_pages seen;
    bool stored = true;
    struct view *v;
    enum webui_place place;

    if (en->config->api_port == 0 || !is_at_rest(en, &now)) {
        return;
    }
    v = engine_view(en);
    place = webui_place(&v->now, &listener);
    if (place == WEBUI_PUBLISHED) {
        look_at_hosts(en, v, listener, now.pid, &seen, &stored);
    } else {
        const struct object *o = snapshot_singleton(v->now.local, K_WEBUI);

        stored = false;
        look_at_place(place, object_text(o, F_WEBUI_LISTENER).s, &seen);
    }
    view_unref(v);
    if (!is_at_rest(en, &later) || strcmp(now.digest, later.digest) != 0) {
        return; /* it was changed meanwhile */
    }
    if (note(en, &seen, stored ? now.digest : NULL)) {
        repair(en, &seen);
    }
}

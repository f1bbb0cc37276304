/* SPDX-License-Identifier: Apache-2.0 */
/* This node's own pages on a shared listener. What other nodes decided about that listener and
 * its services is taken over, whatever becomes of the pages, so that most here are warnings; a
 * change that is yet to be decided is refused where it would take the pages away. */
#include <stdio.h>
#include <string.h>

#include "base/x509.h"
#include "model/validate_checks.h"
#include "model/webui.h"

#define NAMES_BYTES ((size_t)1 << 20) /* of a certificate */

static const struct object *
webui_of(const struct snapshot_pair *pair)
{
    return pair->local != NULL ? snapshot_singleton(pair->local, K_WEBUI) : NULL;
}

/* That the pages cannot be published at this place. */
static void
report_place(
    const struct object *o, enum webui_place place, enum severity severity, struct problems *p)
{
    static const char *const why[] = {
        [WEBUI_NO_LISTENER] = "does not exist",
        [WEBUI_LISTENER_OFF] = "is off",
        [WEBUI_LISTENER_TCP] = "has mode tcp and sees no host names",
    };
    const struct problem where = checks_at(o, "/listener");

    if (place == WEBUI_UNPUBLISHED || place == WEBUI_PUBLISHED) {
        return;
    }
    problems_add(
        p, severity, "webui_listener", &where,
        "The listener \"%s\" %s, so this node's own pages are not published at %s: choose "
        "another one of mode http, or go on with the node's own address.",
        object_text(o, F_WEBUI_LISTENER).s, why[place],
        object_value(o, F_WEBUI_HOSTS)->u.items[0].u.text.s);
}

/* A service that has one of the names, too. */
static void
report_meeting(
    const struct object *o, const struct object *service, uint32_t index,
    enum severity severity, struct problems *p)
{
    bool first = object_int(o, F_WEBUI_POSITION) == V_WEBUI_POSITION_FIRST;
    bool whole = strcmp(object_text(service, F_SERVICE_PATH).s, "/") == 0;
    const char *host = object_value(service, F_SERVICE_HOSTS)->u.items[index].u.text.s;
    const struct problem where = checks_at(o, "/hosts");

    if (first) {
        problems_add(
            p, SEVERITY_WARNING, "webui_host", &where,
            "On this node %s leads to its own pages and not to the service \"%s\": choose "
            "another name, or the position last.",
            host, service->name.s);
    } else if (whole) {
        problems_add(
            p, severity, "webui_host", &where,
            "The service \"%s\" has %s on this listener already, so this node's own pages are "
            "not found there: choose another name, or the position first.",
            service->name.s, host);
    }
}

static void
check_meetings(
    const struct snapshot_pair *pair, const struct object *listener, enum severity severity,
    struct problems *p)
{
    const struct object *o = webui_of(pair);
    const struct object *const *services;
    size_t count = snapshot_kind(pair->shared, K_SERVICE, &services);
    uint32_t index;

    for (size_t i = 0; i < count; i++) {
        if (webui_meets(o, services[i], listener, &index)) {
            report_meeting(o, services[i], index, severity, p);
        }
    }
}

static void
check_clear(const struct object *o, const struct object *listener, struct problems *p)
{
    const struct problem where = checks_at(o, "/listener");

    if (!object_bool(listener, F_LISTENER_TLS)) {
        problems_add(
            p, SEVERITY_WARNING, "webui_clear", &where,
            "The listener \"%s\" has no TLS: passwords and keys pass in clear, and browsers "
            "do not stay signed in. Choose one with TLS.",
            listener->name.s);
    }
}

/* Severity of what makes the names lead nowhere. */
static void
check_published(const struct snapshot_pair *pair, enum severity severity, struct problems *p)
{
    const struct object *listener;
    enum webui_place place = webui_place(pair, &listener);
    const struct object *o = webui_of(pair);

    report_place(o, place, place == WEBUI_LISTENER_TCP ? severity : SEVERITY_WARNING, p);
    if (place == WEBUI_PUBLISHED) {
        check_clear(o, listener, p);
        check_meetings(pair, listener, severity, p);
    }
}

/* Whether the certificate of the pages is for a host. */
static bool
is_named(const char *names, struct text host)
{
    CLEANUP(buf_fini) struct buf wanted;

    buf_init(&wanted, NAMES_BYTES);
    buf_put(&wanted, host.s, host.len);
    return x509_names_cover(names, buf_str(&wanted));
}

static void
check_names(const struct object *o, struct text chain, struct problems *p)
{
    const struct value *hosts = object_value(o, F_WEBUI_HOSTS);
    CLEANUP(buf_fini) struct buf names;

    buf_init(&names, NAMES_BYTES);
    (void)x509_server_names(chain.s, chain.len, &names);

    for (uint32_t i = 0; i < hosts->count; i++) {
        struct text host = hosts->u.items[i].u.text;
        char pointer[32];

        if (is_named(buf_str(&names), host)) {
            continue;
        }
        (void)snprintf(pointer, sizeof(pointer), "/hosts/%u", i);
        const struct problem where = checks_at(o, pointer);
        problems_add(
            p, SEVERITY_WARNING, "certificate_names", &where,
            "The certificate of this node's own pages is not for %s, where the listener shows "
            "one of its own: give one that names it.",
            host.s);
        return;
    }
}

void
check_webui(const struct checks *c)
{
    const struct object *o = webui_of(c->pair);
    struct text chain;
    struct x509_info info;

    if (o == NULL || c->pair->shared == NULL) {
        return;
    }
    check_published(c->pair, SEVERITY_WARNING, c->p);
    chain = object_text(o, F_WEBUI_CHAIN);
    if (chain.len > 0 && x509_read(chain.s, chain.len, &info, NULL) == ERR_OK) {
        check_certificate_dates(o, &info, c->now_s, c->p);
        check_names(o, chain, c->p);
    }
}

void
check_webui_certificate(const struct object *o, int64_t now_s, struct problems *p)
{
    struct text chain = object_text(o, F_WEBUI_CHAIN);
    struct text key = object_text(o, F_WEBUI_KEY);

    if (chain.len > 0 && key.len > 0) {
        check_pair(o, chain, key, now_s, p);
    } else if (chain.len > 0 || key.len > 0) {
        const struct problem where = checks_at(o, chain.len > 0 ? "/key" : "/chain");
        problems_add(
            p, SEVERITY_ERROR, "certificate_key", &where,
            "A certificate chain and its private key are given together, or neither.");
    }
}

static bool
is_changed(const struct snapshot_pair *before, const struct snapshot_pair *after)
{
    const struct object *was = webui_of(before);
    const struct object *is = webui_of(after);

    return is != NULL && (was == NULL || !hash_equal(&was->objhash, &is->objhash));
}

/* At the listener on which they were, what keeps them off it now. No host name of the pages:
 * another node may be told of this, which is not to know any. */
static void
report_dropped(const struct object *was_on, const struct snapshot *shared, struct problems *p)
{
    const struct object *is = snapshot_by_id(shared, K_LISTENER, was_on->id);
    const char *pointer = "/mode";

    if (is == NULL) {
        pointer = "";
    } else if (strcmp(is->name.s, was_on->name.s) != 0) {
        pointer = "/name";
    } else if (!object_bool(is, F_LISTENER_ENABLED)) {
        pointer = "/enabled";
    }
    const struct problem where = checks_at(was_on, pointer);
    problems_add(
        p, SEVERITY_ERROR, "webui_listener", &where,
        "A node's own pages are reached on the listener \"%s\": give that node's webui another "
        "listener before, or no hosts.",
        was_on->name.s);
}

/* At the service that gets a name which led to the pages. */
static void
report_taken(const struct object *service, uint32_t index, struct problems *p)
{
    const char *host = object_value(service, F_SERVICE_HOSTS)->u.items[index].u.text.s;
    char pointer[32];

    (void)snprintf(pointer, sizeof(pointer), "/hosts/%u", index);
    const struct problem where = checks_at(service, pointer);
    problems_add(
        p, SEVERITY_ERROR, "webui_host", &where,
        "A node's own pages are reached at %s on this listener: choose another name, or give "
        "that node's webui other hosts before, or the position first.",
        host);
}

/* Names of the pages that led to them on one listener and are a service's on another, or the
 * same. */
static void
check_taken(
    const struct snapshot_pair *before, const struct object *was_on,
    const struct snapshot_pair *after, const struct object *is_on, struct problems *p)
{
    const struct object *o = webui_of(after);
    const struct value *hosts = object_value(o, F_WEBUI_HOSTS);
    bool changed = is_changed(before, after);
    uint32_t index, unused;

    for (uint32_t i = 0; i < hosts->count; i++) {
        struct text host = hosts->u.items[i].u.text;
        const struct object *service = webui_taken_by(after, is_on, host, &index);

        if (service == NULL || !webui_has_host(webui_of(before), host) ||
            webui_taken_by(before, was_on, host, &unused) != NULL) {
            continue;
        }
        if (changed) {
            report_meeting(o, service, index, SEVERITY_ERROR, p);
        } else {
            report_taken(service, index, p);
        }
    }
}

void
validate_webui_kept(
    const struct snapshot_pair *before, const struct snapshot_pair *after, struct problems *p)
{
    const struct object *was_on, *is_on;
    enum webui_place place;

    if (webui_place(before, &was_on) != WEBUI_PUBLISHED) {
        return;
    }
    place = webui_place(after, &is_on);
    if (place == WEBUI_PUBLISHED) {
        check_taken(before, was_on, after, is_on, p);
    } else if (is_changed(before, after)) {
        report_place(webui_of(after), place, SEVERITY_ERROR, p);
    } else {
        report_dropped(was_on, after->shared, p);
    }
}

void
validate_webui(
    const struct snapshot_pair *before, const struct snapshot_pair *after, struct problems *p)
{
    size_t errors = p->errors;

    validate_webui_kept(before, after, p);
    if (p->errors == errors && is_changed(before, after)) {
        check_published(after, SEVERITY_ERROR, p);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates: validity, keys, and whether they name what they are shown for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/x509.h"
#include "model/validate_checks.h"

#define WARN_BEFORE_S ((int64_t)14 * 86400)
#define DAY_S         86400
#define NAME_BYTES    254

/* validate_all and validate_object look at the same dates: said once is enough. */
static bool
is_told(const struct problems *p, const char *code, const struct object *o)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct problem *it = &p->items[i];
        if (strcmp(it->code, code) == 0 && it->name != NULL &&
            strcmp(it->name, o->name.s) == 0) {
            return true;
        }
    }
    return false;
}

void
check_certificate_dates(
    const struct object *o, const struct x509_info *info, int64_t now_s, struct problems *p)
{
    const struct problem where = checks_at(o, "/chain");
    if (info->not_after_s <= now_s) {
        if (!is_told(p, "certificate_expired", o)) {
            problems_add(
                p, SEVERITY_WARNING, "certificate_expired", &where,
                "This certificate has expired, so visitors are warned off: replace it.");
        }
    } else if (info->not_after_s - now_s <= WARN_BEFORE_S) {
        if (!is_told(p, "certificate_expires", o)) {
            problems_add(
                p, SEVERITY_WARNING, "certificate_expires", &where,
                "This certificate expires in %lld day%s: replace it before.",
                (long long)((info->not_after_s - now_s) / DAY_S),
                PLURAL((info->not_after_s - now_s) / DAY_S));
        }
    } else if (info->not_before_s > now_s && !is_told(p, "certificate_not_yet", o)) {
        problems_add(
            p, SEVERITY_WARNING, "certificate_not_yet", &where,
            "This certificate is not valid yet: check the clock of this node, or use another "
            "certificate until then.");
    }
}

void
check_pair(
    const struct object *o, struct text chain, struct text key, int64_t now_s,
    struct problems *p)
{
    struct x509_info info;
    struct error e = {0};
    if (x509_read(chain.s, chain.len, &info, &e) != ERR_OK) {
        const struct problem where = checks_at(o, "/chain");
        problems_add(
            p, SEVERITY_ERROR, "certificate_chain", &where,
            "The certificate chain cannot be read (%s): paste it again.", e.msg);
        return;
    }
    check_certificate_dates(o, &info, now_s, p);
    if (x509_check_key(chain.s, chain.len, key.s, key.len, &e) != ERR_OK) {
        const struct problem where = checks_at(o, "/key");
        problems_add(
            p, SEVERITY_ERROR, "certificate_key", &where,
            "The private key does not belong to the certificate (%s): give the key with which "
            "the certificate was requested.",
            e.msg);
        return;
    }
    if (x509_check_served(chain.s, chain.len, key.s, key.len, &e) != ERR_OK) {
        const struct problem where = checks_at(o, "/chain");
        problems_add(
            p, SEVERITY_ERROR, "certificate_refused", &where,
            "HAProxy on this machine would not serve with this certificate (%s): give one with a "
            "key and a signature that it accepts.",
            e.msg);
    }
}

void
check_certificate(const struct object *o, int64_t now_s, struct problems *p)
{
    check_pair(
        o, object_text(o, F_CERTIFICATE_CHAIN), object_text(o, F_CERTIFICATE_KEY), now_s, p);
}

/* A name that a listener can show. */
struct shown_name {
    uint32_t hash;
    uint32_t listener;
    const char *name; /* NULL: free */
    uint32_t len;
};

struct name_check {
    const struct checks *c;
    char **names;  /* by position of the certificate: lower case, space separated */
    bool *shown;   /* [listener * certificates + certificate] */
    bool *unknown; /* by position of a listener: has a certificate with more names than fit */
    struct shown_name *slots;
    size_t slot_mask;
};

static bool
has_tls(const struct object *listener)
{
    return object_bool(listener, F_LISTENER_TLS) && object_bool(listener, F_LISTENER_ENABLED);
}

static void
read_certificates(struct name_check *nc)
{
    const struct kind_list *list = &nc->c->kinds[K_CERTIFICATE];
    nc->names = xcalloc(list->count + 1, sizeof(nc->names[0]));
    for (size_t i = 0; i < list->count; i++) {
        struct text chain = object_text(list->items[i], F_CERTIFICATE_CHAIN);
        struct x509_info info;
        if (x509_read(chain.s, chain.len, &info, NULL) != ERR_OK) {
            continue;
        }
        check_certificate_dates(list->items[i], &info, nc->c->now_s, nc->c->p);
        for (char *s = info.names; *s != '\0'; s++) {
            *s = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
        }
        nc->names[i] = xstrdup(info.names);
    }
}

static void
mark_shown(struct name_check *nc, uint32_t listener, uint32_t certificate)
{
    if (listener != CHECKS_NONE && certificate != CHECKS_NONE) {
        nc->shown[listener * nc->c->kinds[K_CERTIFICATE].count + certificate] = true;
    }
}

/* HAProxy chooses by the name that the visitor asks for among all certificates of a listener:
 * its own and those of its services. */
static void
find_shown(struct name_check *nc)
{
    const struct checks *c = nc->c;
    const struct kind_list *listeners = &c->kinds[K_LISTENER];
    const struct kind_list *services = &c->kinds[K_SERVICE];
    nc->shown =
        xcalloc(listeners->count * c->kinds[K_CERTIFICATE].count + 1, sizeof(nc->shown[0]));
    for (size_t i = 0; i < listeners->count; i++) {
        const uint32_t *targets = checks_targets(c, K_LISTENER, i, F_LISTENER_CERTIFICATES);
        uint32_t count = object_value(listeners->items[i], F_LISTENER_CERTIFICATES)->count;
        for (uint32_t j = 0; j < count; j++) {
            mark_shown(nc, (uint32_t)i, targets[j]);
        }
    }
    for (size_t i = 0; i < services->count; i++) {
        const struct object *o = services->items[i];
        const uint32_t *on = checks_targets(c, K_SERVICE, i, F_SERVICE_LISTENERS);
        const uint32_t *shown = checks_targets(c, K_SERVICE, i, F_SERVICE_CERTIFICATE);
        uint32_t count = object_value(o, F_SERVICE_LISTENERS)->count;
        for (uint32_t j = 0; object_bool(o, F_SERVICE_ENABLED) && j < count; j++) {
            mark_shown(nc, on[j], *shown);
        }
    }
}

static size_t
count_names(const char *names)
{
    size_t count = names[0] != '\0';
    for (; *names != '\0'; names++) {
        count += *names == ' ';
    }
    return count;
}

static bool
find_name(const struct name_check *nc, uint32_t listener, const char *name, uint32_t len)
{
    uint32_t hash = value_hash(listener, name, len);
    size_t at = hash & nc->slot_mask;
    for (; nc->slots[at].name != NULL; at = (at + 1) & nc->slot_mask) {
        const struct shown_name *slot = &nc->slots[at];
        if (slot->hash == hash && slot->listener == listener && slot->len == len &&
            memcmp(slot->name, name, len) == 0) {
            return true;
        }
    }
    return false;
}

static void
add_names(struct name_check *nc, uint32_t listener, const char *names)
{
    while (*names != '\0') {
        uint32_t len = (uint32_t)strcspn(names, " ");
        if (!find_name(nc, listener, names, len)) {
            uint32_t hash = value_hash(listener, names, len);
            size_t at = hash & nc->slot_mask;
            while (nc->slots[at].name != NULL) {
                at = (at + 1) & nc->slot_mask;
            }
            nc->slots[at] = (struct shown_name){hash, listener, names, len};
        }
        names += len + (names[len] == ' ');
    }
}

static void
collect_names(struct name_check *nc)
{
    size_t listeners = nc->c->kinds[K_LISTENER].count;
    size_t certificates = nc->c->kinds[K_CERTIFICATE].count;
    size_t total = 0;
    for (size_t i = 0; i < listeners * certificates; i++) {
        const char *names = nc->shown[i] ? nc->names[i % certificates] : NULL;
        total += names != NULL ? count_names(names) : 0;
    }
    nc->slot_mask = checks_slots(total) - 1;
    nc->slots = xcalloc(nc->slot_mask + 1, sizeof(nc->slots[0]));
    nc->unknown = xcalloc(listeners + 1, sizeof(nc->unknown[0]));
    for (size_t i = 0; i < listeners * certificates; i++) {
        const char *names = nc->shown[i] ? nc->names[i % certificates] : NULL;
        if (names == NULL) {
            continue;
        }
        uint32_t listener = (uint32_t)(i / certificates);
        add_names(nc, listener, names);
        nc->unknown[listener] |=
            strlen(names) + NAME_BYTES >= sizeof((struct x509_info *)0)->names;
    }
}

static bool
is_covered(const struct name_check *nc, uint32_t listener, struct text host)
{
    if (nc->unknown[listener] || find_name(nc, listener, host.s, host.len)) {
        return true;
    }
    char wildcard[X509_WILDCARD_BYTES];
    size_t len = x509_wildcard(host.s, host.len, wildcard);
    return len > 0 && find_name(nc, listener, wildcard, (uint32_t)len);
}

static void
check_service_names(const struct name_check *nc, size_t service)
{
    const struct checks *c = nc->c;
    const struct object *o = c->kinds[K_SERVICE].items[service];
    const uint32_t *on = checks_targets(c, K_SERVICE, service, F_SERVICE_LISTENERS);
    uint32_t listeners = object_value(o, F_SERVICE_LISTENERS)->count;
    const struct value *hosts = object_value(o, F_SERVICE_HOSTS);
    for (uint32_t i = 0; i < listeners; i++) {
        const struct object *l = checks_object(c, K_LISTENER, on[i]);
        for (uint32_t j = 0; l != NULL && has_tls(l) && j < hosts->count; j++) {
            struct text host = hosts->u.items[j].u.text;
            if (is_covered(nc, on[i], host)) {
                continue;
            }
            char pointer[32];
            (void)snprintf(pointer, sizeof(pointer), "/hosts/%u", j);
            const struct problem where = checks_at(o, pointer);
            problems_add(
                c->p, SEVERITY_WARNING, "certificate_names", &where,
                "No certificate on the listener \"%s\" is for %s, so visitors are warned off: "
                "give the service or the listener one that names it.",
                l->name.s, host.s);
            return;
        }
    }
}

void
check_certificates(const struct checks *c)
{
    size_t certificates = c->kinds[K_CERTIFICATE].count;
    if (certificates > VALIDATE_MAX_READ_CERTIFICATES) {
        return;
    }
    struct name_check nc = {.c = c};
    read_certificates(&nc);
    find_shown(&nc);
    collect_names(&nc);
    for (size_t i = 0; i < c->kinds[K_SERVICE].count; i++) {
        if (object_bool(c->kinds[K_SERVICE].items[i], F_SERVICE_ENABLED)) {
            check_service_names(&nc, i);
        }
    }
    for (size_t i = 0; i < certificates; i++) {
        free(nc.names[i]);
    }
    free(nc.names);
    free(nc.shown);
    free(nc.unknown);
    free(nc.slots);
}

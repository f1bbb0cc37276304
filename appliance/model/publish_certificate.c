/* SPDX-License-Identifier: Apache-2.0 */
/* Which certificate a published service shows. An uploaded one is never changed here. */
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/crypt.h"
#include "base/x509.h"
#include "model/publish_plan.h"

#define RENEW_BEFORE_S ((int64_t)14 * 86400)
#define NAME_BYTES     254
#define PEM_MAX        131072

/* True when the list of names may have been cut. */
static bool
may_be_cut(const struct x509_info *info)
{
    return strlen(info->names) + NAME_BYTES >= sizeof(info->names);
}

static bool
names_have(const char *names, const char *host, size_t len)
{
    while (*names != '\0') {
        size_t n = strcspn(names, " ");
        if (n == len && strncasecmp(names, host, len) == 0) {
            return true;
        }
        names += n + (names[n] == ' ');
    }
    return false;
}

/* A wildcard stands for exactly one label. */
static bool
covers(const struct x509_info *info, const char *host)
{
    char wildcard[NAME_BYTES + 1] = "*";
    const char *dot = strchr(host, '.');
    if (names_have(info->names, host, strlen(host))) {
        return true;
    }
    if (dot == NULL || strlen(dot) >= sizeof(wildcard) - 1) {
        return false;
    }
    memcpy(wildcard + 1, dot, strlen(dot) + 1);
    return names_have(info->names, wildcard, strlen(wildcard));
}

static size_t
count_covered(const struct publish_request *r, const struct x509_info *info)
{
    size_t count = 0;
    for (size_t i = 0; i < r->host_count; i++) {
        count += covers(info, r->hosts[i]);
    }
    return count;
}

static bool
is_upload(const struct object *o)
{
    return object_int(o, F_CERTIFICATE_SOURCE) == V_CERTIFICATE_SOURCE_UPLOAD;
}

static bool
read_info(const struct object *o, struct x509_info *ret)
{
    struct text chain = object_text(o, F_CERTIFICATE_CHAIN);
    return x509_read(chain.s, chain.len, ret, NULL) == ERR_OK;
}

static bool
is_good_upload(const struct plan *pl, const struct object *o, int64_t *ret_until_s)
{
    struct x509_info info;
    if (!is_upload(o) || !read_info(o, &info)) {
        return false;
    }
    *ret_until_s = info.not_after_s;
    return info.not_after_s > pl->in->now_s && count_covered(&pl->r, &info) == pl->r.host_count;
}

/* The uploaded certificate that covers every host: the present one, else the one that is valid
 * longest. */
static const struct object *
find_upload(const struct plan *pl, const struct object *present)
{
    int64_t until_s = 0;
    if (present != NULL && is_good_upload(pl, present, &until_s)) {
        return present;
    }
    const struct object *const *items;
    size_t count = snapshot_kind(pl->shared, K_CERTIFICATE, &items);
    const struct object *best = NULL;
    int64_t best_until_s = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_good_upload(pl, items[i], &until_s) && until_s > best_until_s) {
            best = items[i];
            best_until_s = until_s;
        }
    }
    return best;
}

static bool
same_hosts(const struct plan *pl)
{
    if (pl->owned.service == NULL) {
        return false;
    }
    const struct value *hosts = object_value(pl->owned.service, F_SERVICE_HOSTS);
    size_t found = 0;
    for (uint32_t i = 0; i < hosts->count; i++) {
        for (size_t j = 0; j < pl->r.host_count; j++) {
            found += strcmp(hosts->u.items[i].u.text.s, pl->r.hosts[j]) == 0;
        }
    }
    return found == pl->r.host_count && found == hosts->count;
}

/* Whether a placeholder can stay as it is. */
static bool
placeholder_fits(const struct plan *pl, const struct object *o)
{
    struct x509_info info;
    if (!read_info(o, &info) || info.not_after_s - pl->in->now_s <= RENEW_BEFORE_S) {
        return false;
    }
    return count_covered(&pl->r, &info) == pl->r.host_count ||
           (may_be_cut(&info) && same_hosts(pl));
}

static void
make_placeholder(struct plan *pl)
{
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_wipe_fini) struct buf key;
    struct error e = {0};
    buf_init(&chain, PEM_MAX);
    buf_init(&key, PEM_MAX);
    const struct publish_tools *tools = &pl->in->tools;
    err_t err = tools->placeholder(tools->ctx, pl->r.hosts, &chain, &key, &e);
    if (err == ERR_OK) {
        err = buf_status(&chain, &e);
    }
    if (err == ERR_OK) {
        err = buf_status(&key, &e);
    }
    if (err != ERR_OK) {
        plan_problem(
            pl, "placeholder", pl->r.url_pointer,
            "No certificate could be made for these names (%s): upload one first.", e.msg);
        return;
    }
    plan_put(
        pl, K_CERTIFICATE, pl->name,
        json_pack(
            "{s:s, s:s, s:s}", "source", "placeholder", "chain", buf_str(&chain), "key",
            buf_str(&key)));
}

/* Keeps, remakes or makes the service's placeholder. */
static void
use_placeholder(struct plan *pl)
{
    const struct owned *own = owned_find(&pl->owned, K_CERTIFICATE, pl->name);
    json_decref(pl->certificate);
    pl->certificate = json_string(pl->name);
    if (own == NULL || (!is_upload(own->o) && !placeholder_fits(pl, own->o))) {
        if (own != NULL && own->other != NULL) {
            plan_shared(pl, own);
        } else {
            make_placeholder(pl);
        }
    } else if (is_upload(own->o)) {
        plan_problem(
            pl, "certificate_names", pl->r.url_pointer,
            "The certificate \"%s\" was uploaded, so it is not replaced, but it has expired or is "
            "not for these names: upload a valid one, or publish under another name.",
            pl->name);
    }
}

static void
delete_placeholder(struct plan *pl)
{
    const struct owned *own = owned_find(&pl->owned, K_CERTIFICATE, pl->name);
    if (own != NULL && !is_upload(own->o) && own->other == NULL) {
        plan_delete(pl, own->o);
    }
}

static void
use(struct plan *pl, const struct object *certificate)
{
    json_decref(pl->certificate);
    pl->certificate = json_string(certificate->name.s);
    delete_placeholder(pl);
}

/* An uploaded certificate that the service has and that covers some of its names is worth
 * more to visitors than a placeholder that covers all. */
static bool
keep_partial(struct plan *pl, const struct object *present)
{
    struct x509_info info;
    if (present == NULL || !is_upload(present) || !read_info(present, &info) ||
        count_covered(&pl->r, &info) == 0) {
        return false;
    }
    const char *missing = NULL;
    for (size_t i = 0; i < pl->r.host_count && missing == NULL; i++) {
        missing = covers(&info, pl->r.hosts[i]) ? NULL : pl->r.hosts[i];
    }
    if (missing != NULL) {
        const struct problem where = {.pointer = pl->r.url_pointer};
        problems_add(
            pl->p, SEVERITY_WARNING, "certificate_names", &where,
            "The certificate \"%s\" is not for %s: upload one that covers every name.",
            present->name.s, missing);
    }
    use(pl, present);
    return true;
}

void
plan_certificate(struct plan *pl)
{
    pl->certificate = json_null();
    if (pl->r.scheme != PUBLISH_HTTPS) {
        delete_placeholder(pl);
        return;
    }
    const struct object *present = NULL;
    if (pl->owned.service != NULL) {
        const struct value *v = object_value(pl->owned.service, F_SERVICE_CERTIFICATE);
        present = v->is_null ? NULL : snapshot_by_id(pl->shared, K_CERTIFICATE, v->u.text.s);
    }
    const struct object *upload = find_upload(pl, present);
    if (upload != NULL) {
        use(pl, upload);
    } else if (!keep_partial(pl, present)) {
        use_placeholder(pl);
    }
}

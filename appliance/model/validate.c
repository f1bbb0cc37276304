/* SPDX-License-Identifier: Apache-2.0 */
#include "model/validate.h"

#include <string.h>

#include "model/validate_checks.h"

void
checks_run(struct checks *c, const struct kind_list kinds[KIND_COUNT])
{
    memcpy(c->kinds, kinds, sizeof(c->kinds));
    checks_init(c);
    check_listeners(c);
    check_vip_groups(c);
    check_services(c);
    check_conditions(c);
    check_paths(c);
    check_rules(c);
    check_pools(c);
    check_monitors(c);
    if (!c->p->errors_only) {
        check_certificates(c); /* reads them all, for warnings */
        check_webui(c);
    }
    checks_fini(c);
}

void
validate_all(const struct snapshot_pair *candidate, int64_t now_s, struct problems *p)
{
    validate_beside(candidate, NULL, now_s, p);
}

void
validate_beside(
    const struct snapshot_pair *candidate, const struct snapshot_pair *other, int64_t now_s,
    struct problems *p)
{
    struct checks c = {.pair = candidate, .other = other, .now_s = now_s, .p = p};
    struct kind_list kinds[KIND_COUNT] = {{NULL, 0}};
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct snapshot *s = snapshot_of(candidate, (enum kind)k);
        if (s != NULL) {
            kinds[k].count = snapshot_kind(s, (enum kind)k, &kinds[k].items);
        }
    }
    checks_run(&c, kinds);
}

struct use {
    enum kind kind;
    const char *id;
    const char *name; /* of the object in question; NULL when it is not there */
    const struct object *user;
    bool found; /* a user counts once, however often it refers */
    size_t count;
    struct problems *p;
};

static void
note_use(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct use *u = ctx;
    if (u->found || kind != u->kind || strcmp(id, u->id) != 0) {
        return;
    }
    u->found = true;
    u->count++;
    const struct problem where = checks_at(u->user, pointer);
    problems_in_use(u->p, &where, schema_kind(kind)->name, u->name != NULL ? u->name : id);
}

size_t
validate_in_use(
    const struct snapshot_pair *pair, enum kind kind, const char *id, struct problems *p)
{
    struct use u = {.kind = kind, .id = id, .p = p};
    const struct snapshot *home = snapshot_of(pair, kind);
    const struct object *o = home != NULL ? snapshot_by_id(home, kind, id) : NULL;
    u.name = o != NULL ? o->name.s : NULL;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct snapshot *s = snapshot_of(pair, (enum kind)k);
        if (s == NULL || (schema_kind((enum kind)k)->refs >> kind & 1u) == 0 ||
            schema_kind((enum kind)k)->belongs >= 0) {
            continue; /* what belongs to it is no user */
        }
        const struct object *const *items;
        size_t count = snapshot_kind(s, (enum kind)k, &items);
        for (size_t i = 0; i < count; i++) {
            u.user = items[i];
            u.found = false;
            object_each_ref(items[i], note_use, &u);
        }
    }
    return u.count;
}

void
validate_object(const struct object *o, int64_t now_s, struct problems *p)
{
    if (o->kind == K_CERTIFICATE) {
        check_certificate(o, now_s, p);
    } else if (o->kind == K_WEBUI) {
        check_webui_certificate(o, now_s, p);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/belong.h"

#include <string.h>

static void
rename_object(struct snapshot_edit *x, const struct object *o, const char *name)
{
    json_auto_t *patch = json_pack("{s:s}", "name", name);
    struct object *renamed = NULL;
    err_t code = object_with(o, patch, &renamed, NULL);

    /* A name of any kind is a name of every kind. */
    ASSERT(code == ERR_OK);
    snapshot_edit_put(x, renamed);
}

/* What the object is part of. */
static const struct object *
whole_of(const struct snapshot *s, const struct object *o)
{
    unsigned field = (unsigned)schema_kind(o->kind)->belongs;

    return snapshot_by_id(
        s, schema_kind(o->kind)->fields[field].ref_kind, object_text(o, field).s);
}

/* *x is made when something is to be changed. */
static void
settle_kind(const struct snapshot *s, enum kind kind, struct snapshot_edit **x)
{
    const struct object *const *items;
    size_t count = snapshot_kind(s, kind, &items);

    for (size_t i = 0; i < count; i++) {
        const struct object *other = whole_of(s, items[i]);

        if (other != NULL && strcmp(other->name.s, items[i]->name.s) == 0) {
            continue;
        }
        *x = *x != NULL ? *x : snapshot_edit_new(s);
        if (other == NULL) {
            snapshot_edit_remove(*x, kind, items[i]->id);
        } else {
            rename_object(*x, items[i], other->name.s);
        }
    }
}

/* *ret: a new reference, NULL when nothing changes. */
static err_t
settle(const struct snapshot *s, enum scope scope, const struct snapshot **ret, struct error *e)
{
    struct snapshot_edit *x = NULL;
    struct snapshot *made = NULL;
    err_t code;

    *ret = NULL;
    for (unsigned k = 0; k < KIND_COUNT && s != NULL; k++) {
        if (schema_kind((enum kind)k)->belongs >= 0 &&
            schema_kind((enum kind)k)->scope == scope) {
            settle_kind(s, (enum kind)k, &x);
        }
    }
    if (x == NULL) {
        return ERR_OK;
    }
    code = snapshot_seal(x, &made, e);
    *ret = made;
    return code;
}

static void
take_over(const struct snapshot **to, const struct snapshot *made)
{
    if (made != NULL) {
        snapshot_unref(*to);
        *to = made;
    }
}

err_t
belong_settle(struct snapshot_pair *pair, struct error *e)
{
    const struct snapshot *shared = NULL;
    const struct snapshot *local = NULL;
    err_t code = settle(pair->shared, SCOPE_SHARED, &shared, e);

    if (code == ERR_OK) {
        code = settle(pair->local, SCOPE_LOCAL, &local, e);
    }
    if (code != ERR_OK) {
        snapshot_unref(shared);
        return code;
    }
    take_over(&pair->shared, shared);
    take_over(&pair->local, local);
    return ERR_OK;
}

static void
return_kind(
    const struct snapshot *present, const struct snapshot *from, const struct snapshot *to,
    enum kind kind, struct snapshot_edit **x)
{
    const struct object *const *items;
    size_t count = snapshot_kind(from, kind, &items);

    for (size_t i = 0; i < count; i++) {
        if (whole_of(present, items[i]) == NULL && whole_of(to, items[i]) != NULL) {
            *x = *x != NULL ? *x : snapshot_edit_new(to);
            snapshot_edit_put(*x, object_ref(items[i]));
        }
    }
}

err_t
belong_return(
    const struct snapshot *present, const struct snapshot *from, const struct snapshot **io,
    struct error *e)
{
    struct snapshot_edit *x = NULL;
    struct snapshot *made = NULL;
    err_t code;

    for (unsigned k = 0; k < KIND_COUNT; k++) {
        if (schema_kind((enum kind)k)->belongs >= 0) {
            return_kind(present, from, *io, (enum kind)k, &x);
        }
    }
    if (x == NULL) {
        return ERR_OK;
    }
    code = snapshot_seal(x, &made, e);
    if (code == ERR_OK) {
        take_over(io, made);
    }
    return code;
}

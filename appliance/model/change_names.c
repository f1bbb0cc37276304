/* SPDX-License-Identifier: Apache-2.0 */
/* The operations are sorted by the name that they mean, so that nothing is quadratic: a set
 * may create a hundred thousand objects. */
#include <stdlib.h>
#include <string.h>

#include "model/change_parts.h"

/* An operation and the name by which it means its object. */
struct meaning {
    const char *name; /* "" when there is none */
    size_t op;
    enum kind kind;
};

static const char *
json_name(const json_t *body)
{
    return json_string_value(json_object_get(body, "name"));
}

static const struct object *
present(const struct apply *a, enum kind k, const char *name)
{
    const struct snapshot *s = snapshot_of(a->now, k);

    if (s == NULL) {
        return NULL;
    }
    return schema_kind(k)->singleton ? snapshot_singleton(s, k) : snapshot_by_name(s, k, name);
}

/* ---- faults ---- */

static const char *
op_name(const struct change *op)
{
    const char *name = op->name != NULL ? op->name : json_name(op->body);

    return name != NULL ? name : "";
}

void
change_fault(struct apply *a, size_t op, err_t code, const char *reason)
{
    const struct change *c = &a->set->items[op];

    if (a->code != ERR_OK && a->fault_op <= op) {
        return;
    }
    a->fault_op = op;
    a->code = error_set(
        a->e, code, "%s \"%.*s\" %s", schema_kind(c->kind)->name, problems_cut(op_name(c), 64),
        op_name(c), reason);
}

static void
fault_exists(struct apply *a, size_t op, enum kind k, const char *name)
{
    const char *kind = schema_kind(k)->name;
    struct problem where = {.kind = kind, .name = name, .pointer = "/name"};

    problems_add(
        a->p, SEVERITY_ERROR, "exists", &where,
        "There is already a %s \"%s\": choose another name.", kind, name);
    change_fault(a, op, ERR_CONFLICT, "cannot be: another object has that name");
}

static void
fault_other_name(struct apply *a, size_t op)
{
    const struct change *c = &a->set->items[op];
    struct problem where = {
        .kind = schema_kind(c->kind)->name, .name = c->name, .pointer = "/name"};

    problems_add(
        a->p, SEVERITY_ERROR, "format", &where,
        "The body has another name than the operation, \"%.*s\": give one of them.",
        problems_cut(c->name, 64), c->name);
    change_fault(a, op, ERR_INVALID, "has another name in its body");
}

/* ---- which object an operation means ---- */

static int
compare_meanings(const void *a, const void *b)
{
    const struct meaning *x = a;
    const struct meaning *y = b;
    int order;

    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    order = strcmp(x->name, y->name);
    if (order != 0) {
        return order;
    }
    return x->op < y->op ? -1 : 1;
}

static struct target *
add_target(struct apply *a, enum kind k, const struct object *base)
{
    struct target *t = &a->targets[a->target_count++];

    t->kind = k;
    t->base = base;
    if (base != NULL) {
        memcpy(t->id, base->id, sizeof t->id);
        t->name = base->name.s;
    } else {
        object_new_id(t->id);
    }
    return t;
}

/* The operations on one name. */
struct group {
    const struct object *present;
    struct target *old;     /* target of present, once there is one */
    struct target *created; /* object that the set creates */
};

static bool
is_live(const struct target *t)
{
    return t != NULL && !t->deleted;
}

static void
take_create(struct apply *a, struct group *g, size_t i)
{
    const struct change *op = &a->set->items[i];
    const char *name = json_name(op->body);

    if (schema_kind(op->kind)->singleton) {
        change_fault(a, i, ERR_CONFLICT, "is always there and cannot be created");
    } else if (op->if_match != NULL) {
        change_fault(a, i, ERR_STALE, "is to be created, so there is nothing to match");
    } else if (name != NULL && strcmp(name, op_name(op)) != 0) {
        fault_other_name(a, i);
    } else if (is_live(g->created)) {
        fault_exists(a, i, op->kind, op_name(op));
    } else {
        g->created = add_target(a, op->kind, NULL);
        a->owner[i] = g->created;
    }
}

static void
take_other(struct apply *a, struct group *g, size_t i)
{
    const struct change *op = &a->set->items[i];
    const struct hash *hash = NULL;
    struct target *t = NULL;

    if (g->present != NULL && (g->old == NULL || !g->old->deleted)) {
        hash = &g->present->objhash;
        if (g->old == NULL) {
            g->old = add_target(a, op->kind, g->present);
        }
        t = g->old;
    } else if (is_live(g->created)) {
        t = g->created;
    } else {
        change_fault(a, i, ERR_NOT_FOUND, "does not exist");
        return;
    }
    if (op->if_match != NULL && (hash == NULL || !hash_equal(op->if_match, hash))) {
        change_fault(a, i, ERR_STALE, "was changed meanwhile");
        return;
    }
    if (op->op == CHANGE_DELETE && schema_kind(op->kind)->singleton) {
        change_fault(a, i, ERR_CONFLICT, "is always there and cannot be deleted");
        return;
    }
    t->deleted = op->op == CHANGE_DELETE;
    a->owner[i] = t;
}

static void
take(struct apply *a, struct group *g, size_t i)
{
    const struct change *op = &a->set->items[i];
    const char *name = json_name(op->body);
    struct target *t;

    if (op->op == CHANGE_CREATE) {
        take_create(a, g, i);
    } else {
        take_other(a, g, i);
    }
    t = a->owner[i];
    if (t == NULL) {
        return;
    }
    t->op = i;
    if (name != NULL) {
        t->name = name;
    } else if (t->name == NULL) {
        t->name = op->name;
    }
}

/* A singleton goes by its kind, by its present name, or by none. */
static const char *
meant_name(const struct apply *a, const struct change *op)
{
    const struct schema_kind *k = schema_kind(op->kind);
    const struct object *o;

    if (!k->singleton) {
        return op_name(op);
    }
    o = present(a, op->kind, "");
    if (op->name == NULL || strcmp(op->name, k->name) == 0 ||
        (o != NULL && strcmp(op->name, o->name.s) == 0)) {
        return k->name;
    }
    return op->name;
}

static void
find_meanings(struct apply *a)
{
    size_t n = a->set->count;
    struct meaning *m = xcalloc(n, sizeof *m);
    struct group g = {.present = NULL};

    for (size_t i = 0; i < n; i++) {
        const struct change *op = &a->set->items[i];

        m[i] = (struct meaning){meant_name(a, op), i, op->kind};
    }
    qsort(m, n, sizeof *m, compare_meanings);
    for (size_t i = 0; i < n; i++) {
        const struct schema_kind *k = schema_kind(m[i].kind);

        if (i == 0 || m[i].kind != m[i - 1].kind || strcmp(m[i].name, m[i - 1].name) != 0) {
            g = (struct group){.present = NULL};
            if (!k->singleton || strcmp(m[i].name, k->name) == 0) {
                g.present = present(a, m[i].kind, m[i].name);
            }
        }
        take(a, &g, m[i].op);
    }
    free(m);
}

/* ---- names afterwards ---- */

static int
compare_target_names(const void *a, const void *b)
{
    const struct target *const *x = a;
    const struct target *const *y = b;
    int order;

    if ((*x)->kind != (*y)->kind) {
        return (*x)->kind < (*y)->kind ? -1 : 1;
    }
    order = strcmp((*x)->name, (*y)->name);
    if (order != 0) {
        return order;
    }
    return (*x)->op < (*y)->op ? -1 : (*x)->op > (*y)->op;
}

static int
compare_target_ids(const void *a, const void *b)
{
    const struct target *const *x = a;
    const struct target *const *y = b;

    if ((*x)->kind != (*y)->kind) {
        return (*x)->kind < (*y)->kind ? -1 : 1;
    }
    return strcmp((*x)->id, (*y)->id);
}

static void
index_targets(struct apply *a)
{
    for (size_t i = 0; i < a->target_count; i++) {
        struct target *t = &a->targets[i];

        if (t->base != NULL) {
            a->by_id[a->by_id_count++] = t;
        }
        if (!t->deleted && t->name != NULL) {
            a->by_name[a->by_name_count++] = t;
        }
    }
    qsort(a->by_id, a->by_id_count, sizeof *a->by_id, compare_target_ids);
    qsort(a->by_name, a->by_name_count, sizeof *a->by_name, compare_target_names);
}

/* Position of the first one that is not before wanted. */
static size_t
bound(
    struct target *const *sorted, size_t count, const struct target *wanted,
    int (*compare)(const void *, const void *))
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(&sorted[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct target *
change_target_of_id(const struct apply *a, enum kind k, const char *id)
{
    struct target wanted = {.kind = k};
    size_t at;

    memcpy(wanted.id, id, strlen(id) + 1);
    at = bound(a->by_id, a->by_id_count, &wanted, compare_target_ids);
    if (at == a->by_id_count ||
        compare_target_ids(&a->by_id[at], &(const struct target *){&wanted}) != 0) {
        return NULL;
    }
    return a->by_id[at];
}

static const struct target *
target_of_name(const struct apply *a, enum kind k, const char *name)
{
    struct target wanted = {.kind = k, .name = name};
    size_t at = bound(a->by_name, a->by_name_count, &wanted, compare_target_names);

    if (at == a->by_name_count || a->by_name[at]->kind != k ||
        strcmp(a->by_name[at]->name, name) != 0) {
        return NULL;
    }
    return a->by_name[at];
}

static void
check_names(struct apply *a)
{
    for (size_t i = 0; i < a->by_name_count; i++) {
        const struct target *t = a->by_name[i];
        const struct target *before = i > 0 ? a->by_name[i - 1] : NULL;
        const struct object *o;

        if (schema_kind(t->kind)->singleton) {
            continue;
        }
        o = present(a, t->kind, t->name);
        if ((o != NULL && change_target_of_id(a, t->kind, o->id) == NULL) ||
            (before != NULL && before->kind == t->kind && strcmp(before->name, t->name) == 0)) {
            fault_exists(a, t->op, t->kind, t->name);
        }
    }
}

static const char *
after_id_of_name(void *ctx, enum kind kind, const char *name)
{
    const struct apply *a = ctx;
    const struct target *t = target_of_name(a, kind, name);
    const struct object *o;

    if (t != NULL) {
        return t->id;
    }
    o = present(a, kind, name);
    return o != NULL && change_target_of_id(a, kind, o->id) == NULL ? o->id : NULL;
}

static const char *
after_name_of_id(void *ctx, enum kind kind, const char *id)
{
    const struct apply *a = ctx;
    const struct target *t = change_target_of_id(a, kind, id);
    struct object_refs now;

    if (t != NULL) {
        return t->name;
    }
    now = snapshot_refs(a->now);
    return now.name_of_id(now.ctx, kind, id);
}

struct object_refs
change_refs_after(struct apply *a)
{
    return (struct object_refs){
        .id_of_name = after_id_of_name,
        .name_of_id = after_name_of_id,
        .ctx = a,
    };
}

void
change_find_targets(struct apply *a)
{
    find_meanings(a);
    if (a->code == ERR_OK) {
        index_targets(a);
        check_names(a);
    }
}

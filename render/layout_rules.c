/* SPDX-License-Identifier: Apache-2.0 */
/* Which rules stand where, and in which order. */
#include <stdlib.h>

#include "render/fields.h"
#include "render/layout.h"

/* A rule that is on, with what it is sorted by. */
struct owned {
    const struct object *rule;
    enum kind kind; /* of its owner */
    uint32_t owner; /* place among its kind */
    int64_t order;
    uint32_t place; /* by name */
};

static int
by_owner_and_order(const void *a, const void *b)
{
    const struct owned *x = a;
    const struct owned *y = b;

    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->owner != y->owner) {
        return x->owner < y->owner ? -1 : 1;
    }
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    return x->place < y->place ? -1 : x->place > y->place;
}

/* An object of a kind to which few refer: none is kept in tables. */
static const struct object *
find(struct layout *p, const struct object *o, unsigned field, enum kind kind, struct text id)
{
    const struct object *to = snapshot_by_id(p->in->objects.shared, kind, id.s);

    if (to == NULL) {
        layout_dangling(p, o, field);
    }
    return to;
}

static bool
own(struct layout *p, const struct object *rule, struct owned *ret)
{
    const struct object *owner;

    ret->rule = rule;
    ret->order = fields_int(rule, F_RULE_ORDER);
    if (!object_field(rule, F_RULE_SERVICE)->is_null) {
        ret->kind = K_SERVICE;
        owner = find(p, rule, F_RULE_SERVICE, K_SERVICE, fields_text(rule, F_RULE_SERVICE));
    } else if (!object_field(rule, F_RULE_LISTENER)->is_null) {
        ret->kind = K_LISTENER;
        owner = layout_follow(
            p, rule, F_RULE_LISTENER, K_LISTENER, fields_text(rule, F_RULE_LISTENER));
    } else {
        layout_problem(p, rule, F_RULE_SERVICE, "It belongs to no service or listener.");
        return false;
    }
    if (owner == NULL) {
        return false;
    }
    ret->owner = (uint32_t)refs_place(&p->refs, owner);
    return true;
}

static size_t
collect(struct layout *p, struct owned *all)
{
    size_t count = 0;

    for (size_t i = 0; i < p->refs.count[K_RULE]; i++) {
        const struct object *rule = p->refs.objects[K_RULE][i];

        all[count].place = (uint32_t)i;
        if (fields_int(rule, F_RULE_ENABLED) != 0 && own(p, rule, &all[count])) {
            count++;
        }
    }
    return count;
}

static struct layout_rules *
rules_of(struct layout *p, const struct owned *o)
{
    if (o->kind == K_LISTENER) {
        return &p->listeners[o->owner].rules;
    }
    p->services[o->owner].guarded = true;
    return &p->services[o->owner].rules;
}

void
layout_rules_make(struct layout *p)
{
    size_t count = p->refs.count[K_RULE];
    size_t conditions = p->refs.count[K_CONDITION];
    struct owned *all;

    if (conditions > p->condition_cap) {
        p->condition_cap = conditions * 2;
        p->condition_used =
            xrealloc(p->condition_used, p->condition_cap * sizeof *p->condition_used);
    }
    for (size_t i = 0; i < conditions; i++) {
        p->condition_used[i] = 0;
    }
    p->rule_count = 0;
    if (count == 0) {
        return;
    }
    all = xcalloc(count, sizeof *all);
    if (count > p->rule_cap) {
        p->rule_cap = count * 2;
        p->rules = xrealloc(p->rules, p->rule_cap * sizeof *p->rules);
    }
    p->rule_count = collect(p, all);
    qsort(all, p->rule_count, sizeof *all, by_owner_and_order);
    for (uint32_t i = 0; i < p->rule_count; i++) {
        struct layout_rules *rules = rules_of(p, &all[i]);

        if (rules->count++ == 0) {
            rules->first = i;
        }
        p->rules[i] = all[i].rule;
    }
    free(all);
}

const struct object *
layout_condition(struct layout *p, const struct object *rule, uint32_t i)
{
    const struct value *use = &object_field(rule, F_RULE_CONDITIONS)->u.items[i];

    return find(
        p, rule, F_RULE_CONDITIONS, K_CONDITION,
        use->u.items[F_RULE_CONDITIONS_CONDITION].u.text);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/inner.h"
#include "model/validate.h"

#define CHECK_BYTES ((size_t)4 << 20)

void
pair_cleanup(struct snapshot_pair *pair)
{
    snapshot_unref(pair->shared);
    snapshot_unref(pair->local);
    *pair = (struct snapshot_pair){NULL, NULL};
}

struct snapshot_pair
pair_ref(const struct snapshot_pair *pair)
{
    return (struct snapshot_pair){snapshot_ref(pair->shared), snapshot_ref(pair->local)};
}

/* ---- objects by themselves ---- */

struct checking {
    int64_t now_s;
    struct problems *p;
};

static void
check_object(void *ctx, const struct object *before, const struct object *after)
{
    static const char prefix[] = "scrypt$";
    const struct checking *c = ctx;

    if (after == NULL) {
        return;
    }
    validate_object(after, c->now_s, c->p);
    validate_directives(before, after, c->p);
    validate_paths(before, after, c->p);
    /* Whoever writes administrators hashes first: account_hash_password. */
    if (after->kind == K_ADMIN &&
        strncmp(object_text(after, F_ADMIN_PASSWORD).s, prefix, sizeof prefix - 1) != 0) {
        problems_add(
            c->p, SEVERITY_ERROR, "not_allowed",
            &(struct problem){.kind = "admin", .name = after->name.s, .pointer = "/password"},
            "A password is set by a change of the administrator alone.");
    }
}

/* ---- objects together ---- */

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Messages may hold numbers that any edit changes. */
static bool
same_place(const struct problem *a, const struct problem *b)
{
    return same_text(a->code, b->code) && same_text(a->kind, b->kind) &&
           same_text(a->name, b->name) && same_text(a->pointer, b->pointer);
}

static bool
has_problem(const struct problems *p, const struct problem *wanted)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].severity == SEVERITY_ERROR && same_place(&p->items[i], wanted)) {
            return true;
        }
    }
    return false;
}

size_t
edit_new_errors(
    const struct snapshot_pair *before, const struct snapshot_pair *after, int64_t now_s,
    struct problems *p)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(CHECK_BYTES);
    struct problems *sides;
    struct problems *old;
    struct problems *new;
    size_t found = 0;

    if (validate_reached(before, after)) {
        return 0;
    }
    sides = arena_alloc(arena, 2 * sizeof *sides);
    old = &sides[0];
    new = &sides[1];
    problems_init(old, arena);
    problems_init(new, arena);
    old->errors_only = new->errors_only = true;
    validate_beside(after, before, now_s, new);
    if (new->errors == 0) {
        return 0;
    }
    validate_beside(before, after, now_s, old);
    for (size_t i = 0; i < new->count; i++) {
        const struct problem *item = &new->items[i];

        if (item->severity == SEVERITY_ERROR && !has_problem(old, item)) {
            problems_add(p, SEVERITY_ERROR, item->code, item, "%s", item->message);
            found++;
        }
    }
    if (found == 0 && new->errors > old->errors) {
        problems_add(
            p, SEVERITY_ERROR, "invalid", NULL,
            "This adds to the %zu error%s that the draft has already: solve what is there first.",
            old->errors, PLURAL(old->errors));
        found++;
    }
    return found;
}

const char *
edit_first_error(const struct problems *p)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].severity == SEVERITY_ERROR) {
            return p->items[i].message;
        }
    }
    return "not valid";
}

err_t
edit_keeps_pages(
    const struct snapshot_pair *before, const struct snapshot_pair *after, struct problems *p,
    struct error *e)
{
    size_t errors = p->errors;

    validate_webui_kept(before, after, p);
    return p->errors > errors ? error_set(e, ERR_INVALID, "%s", edit_first_error(p)) : ERR_OK;
}

err_t
edit_check(
    const struct change_set *set, const struct snapshot_pair *before, int64_t now_s,
    struct snapshot_pair *ret, struct problems *p, struct error *e)
{
    CLEANUP(pair_cleanup) struct snapshot_pair after = {NULL, NULL};
    struct checking checking = {now_s, p};
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    size_t errors = p->errors;
    err_t code = change_apply(set, before, &shared, &local, p, e);

    if (code != ERR_OK) {
        return code;
    }
    after = (struct snapshot_pair){shared, local};
    snapshot_diff(before->shared, after.shared, check_object, &checking);
    snapshot_diff(before->local, after.local, check_object, &checking);
    validate_webui(before, &after, p);
    if (p->errors == errors) {
        (void)edit_new_errors(before, &after, now_s, p);
    }
    if (p->errors > errors) {
        return error_set(e, ERR_INVALID, "%s", edit_first_error(p));
    }
    *ret = after;
    after = (struct snapshot_pair){NULL, NULL};
    return ERR_OK;
}

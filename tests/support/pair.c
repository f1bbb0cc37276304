/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/objects_file.h"

#define ARENA_BYTES ((size_t)256 << 20)

static void
must(err_t err, const struct error *e)
{
    if (err != ERR_OK) {
        (void)fprintf(stderr, "pair: %s\n", e->msg);
        abort();
    }
}

json_t *
pair_json(const char *text)
{
    char *copy = xstrdup(text);
    json_t *v = NULL;
    struct error e = {0};
    for (char *s = copy; *s != '\0'; s++) {
        *s = *s == '\'' ? '"' : *s;
    }
    must(json_parse(copy, strlen(copy), &v, &e), &e);
    free(copy);
    return v;
}

static void
set_shared(struct pair *x, struct snapshot *shared)
{
    snapshot_unref(x->shared);
    x->shared = shared;
    x->objects = (struct snapshot_pair){x->shared, x->local};
}

void
pair_init_json(struct pair *x, const json_t *objects)
{
    json_t *root = json_pack("{s:o}", "shared", json_deep_copy(objects));
    struct snapshot *shared = NULL;
    struct error e = {0};
    *x = (struct pair){.arena = arena_new(ARENA_BYTES)};
    problems_init(&x->problems, x->arena);
    must(objects_file_parse(root, &shared, &x->local, &e), &e);
    set_shared(x, shared);
    json_decref(root);
}

void
pair_init(struct pair *x, const char *objects)
{
    json_t *list = pair_json(objects != NULL ? objects : "[]");
    pair_init_json(x, list);
    json_decref(list);
}

void
pair_fini(struct pair *x)
{
    snapshot_unref(x->shared);
    snapshot_unref(x->local);
    arena_free(x->arena);
}

struct problems *
pair_clear(struct pair *x)
{
    problems_init(&x->problems, x->arena);
    return &x->problems;
}

const struct object *
pair_find(const struct pair *x, enum kind kind, const char *name)
{
    return snapshot_by_name(snapshot_of(&x->objects, kind), kind, name);
}

static void
reseal(struct pair *x, enum scope scope, struct snapshot_edit *edit)
{
    struct snapshot *sealed = NULL;
    struct error e = {0};
    must(snapshot_seal(edit, &sealed, &e), &e);
    if (scope == SCOPE_LOCAL) {
        snapshot_unref(x->local);
        x->local = sealed;
        sealed = snapshot_ref(x->shared);
    }
    set_shared(x, sealed);
}

void
pair_remove(struct pair *x, enum kind kind, const char *name)
{
    struct snapshot_edit *edit = snapshot_edit_new(x->shared);
    snapshot_edit_remove(edit, kind, pair_find(x, kind, name)->id);
    reseal(x, SCOPE_SHARED, edit);
}

void
pair_set(struct pair *x, enum kind kind, const char *name, const char *patch)
{
    json_t *json = pair_json(patch);
    struct object *o = NULL;
    struct error e = {0};
    must(object_with(pair_find(x, kind, name), json, &o, &e), &e);
    json_decref(json);
    struct snapshot_edit *edit = snapshot_edit_new(snapshot_of(&x->objects, kind));
    snapshot_edit_put(edit, o);
    reseal(x, schema_kind(kind)->scope, edit);
}

void
pair_apply(struct pair *x, const struct change_set *set)
{
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    struct error e = {0};
    err_t err = change_apply(set, &x->objects, &shared, &local, pair_clear(x), &e);
    for (size_t i = 0; i < x->problems.count; i++) {
        const struct problem *it = &x->problems.items[i];
        (void)fprintf(stderr, "pair: %s %s: %s\n", it->code, it->pointer, it->message);
    }
    must(err, &e);
    snapshot_unref(x->local);
    x->local = local;
    set_shared(x, shared);
}

const struct problem *
pair_problem(const struct pair *x, const char *code)
{
    for (size_t i = 0; i < x->problems.count; i++) {
        if (strcmp(x->problems.items[i].code, code) == 0) {
            return &x->problems.items[i];
        }
    }
    return NULL;
}

const char *
pair_codes(const struct pair *x)
{
    const char *codes = "";
    for (size_t i = 0; i < x->problems.count; i++) {
        const char *space = i == 0 ? "" : " ";
        codes = arena_printf(x->arena, "%s%s%s", codes, space, x->problems.items[i].code);
    }
    return codes;
}

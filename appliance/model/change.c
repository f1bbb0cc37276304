/* SPDX-License-Identifier: Apache-2.0 */
#include "model/change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/object_build.h"

#define POINTER_BYTES 96

void
change_set_init(struct change_set *c)
{
    *c = (struct change_set){.items = NULL};
}

void
change_set_fini(struct change_set *c)
{
    for (size_t i = 0; i < c->count; i++) {
        json_decref(c->items[i].body);
    }
    free(c->items);
    change_set_init(c);
}

err_t
change_set_add(struct change_set *c, struct change op, struct error *e)
{
    ASSERT((op.body == NULL) == (op.op == CHANGE_DELETE));
    if (c->count == CHANGE_MAX_OPS) {
        json_decref(op.body);
        return error_set(e, ERR_LIMIT, "more than %d operations in one change", CHANGE_MAX_OPS);
    }
    if (c->count == c->cap) {
        c->cap = c->cap == 0 ? 8 : 2 * c->cap;
        c->items = xrealloc(c->items, c->cap * sizeof *c->items);
    }
    c->items[c->count++] = op;
    return ERR_OK;
}

/* ---- from the API ---- */

struct reader {
    struct problems *p;
    struct arena *arena;
    size_t op;
    bool good;
};

static void
refuse(struct reader *r, const char *key, const char *code, const char *message)
{
    char pointer[POINTER_BYTES];
    struct problem where = {.pointer = pointer};

    (void)snprintf(
        pointer, sizeof pointer, "/ops/%zu%s%s", r->op, key[0] != '\0' ? "/" : "", key);
    problems_add(r->p, SEVERITY_ERROR, code, &where, "%s", message);
    r->good = false;
}

static void
read_op(struct reader *r, const json_t *given, struct change *ret)
{
    static const char *const words[] = {
        [CHANGE_CREATE] = "create",
        [CHANGE_REPLACE] = "replace",
        [CHANGE_MERGE] = "merge",
        [CHANGE_DELETE] = "delete",
    };
    const char *word = json_string_value(json_object_get(given, "op"));

    for (size_t i = 0; word != NULL && i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i], word) == 0) {
            ret->op = (enum change_op)i;
            return;
        }
    }
    refuse(
        r, "op", "enum",
        "The operation must be one of \"create\", \"replace\", \"merge\", \"delete\".");
}

static void
read_kind(struct reader *r, const json_t *given, struct change *ret)
{
    const char *word = json_string_value(json_object_get(given, "kind"));

    if (word == NULL) {
        refuse(r, "kind", "enum", "An operation has the kind of its object.");
    } else if (!schema_kind_by_name(word, &ret->kind)) {
        refuse(r, "kind", "enum", problems_no_kind(r->p->arena, word));
    }
}

static void
read_name(struct reader *r, const json_t *given, struct change *ret)
{
    const json_t *name = json_object_get(given, "name");

    if (name == NULL || json_is_null(name)) {
        return;
    }
    if (!json_is_string(name)) {
        refuse(r, "name", "type", "The name must be a text.");
        return;
    }
    ret->name = arena_strdup(r->arena, json_string_value(name));
}

/* Of the operations only a delete has no body, and only a merge's need not hold a name. */
static void
read_body(struct reader *r, const json_t *given, struct change *ret)
{
    json_t *body = json_object_get(given, "body");
    bool named = ret->name != NULL || schema_kind(ret->kind)->singleton;

    if (ret->op == CHANGE_DELETE) {
        if (body != NULL && !json_is_null(body)) {
            refuse(r, "body", "type", "A delete has no body.");
        }
    } else if (!json_is_object(body)) {
        refuse(r, "body", "type", "The body must be a JSON object.");
    } else if (ret->op != CHANGE_MERGE && json_is_string(json_object_get(body, "name"))) {
        named = true;
    }
    if (!named) {
        refuse(r, "name", "required", "The name of the object is missing.");
    }
    ret->body = json_is_object(body) ? body : NULL;
}

static void
read_if_match(struct reader *r, const json_t *given, struct change *ret)
{
    const json_t *text = json_object_get(given, "if_match");
    struct hash *hash;

    if (text == NULL || json_is_null(text)) {
        return;
    }
    hash = arena_alloc(r->arena, sizeof *hash);
    if (!json_is_string(text) || !hash_from_hex(json_string_value(text), hash)) {
        refuse(r, "if_match", "format", "\"if_match\" must be the hash of the object.");
        return;
    }
    ret->if_match = hash;
}

static void
read_keys(struct reader *r, const json_t *given)
{
    static const char *const known[] = {"op", "kind", "name", "body", "if_match"};
    const char *key;
    json_t *value;

    json_object_foreach(object_iterable(given), key, value)
    {
        bool found = false;

        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
            found = found || strcmp(key, known[i]) == 0;
        }
        if (!found) {
            refuse(
                r, "", "unknown_field",
                "An operation has only \"op\", \"kind\", \"name\", \"body\" and "
                "\"if_match\".");
        }
    }
}

void
change_set_parse(
    struct change_set *c, const json_t *ops, struct arena *arena, struct problems *p)
{
    struct reader r = {.p = p, .arena = arena};
    struct problem where = {.pointer = "/ops"};

    if (!json_is_array(ops)) {
        problems_add(p, SEVERITY_ERROR, "type", &where, "\"ops\" must be a list.");
        return;
    }
    if (json_array_size(ops) > CHANGE_MAX_OPS - c->count) {
        problems_add(
            p, SEVERITY_ERROR, "items", &where, "There are more than %d operations.",
            CHANGE_MAX_OPS);
        return;
    }
    for (r.op = 0; r.op < json_array_size(ops); r.op++) {
        const json_t *given = json_array_get(ops, r.op);
        struct change op = {.op = CHANGE_DELETE};
        err_t code;

        r.good = true;
        if (!json_is_object(given)) {
            refuse(&r, "", "type", "An operation must be a JSON object.");
            continue;
        }
        read_keys(&r, given);
        read_op(&r, given, &op);
        read_kind(&r, given, &op);
        if (!r.good) {
            continue;
        }
        read_name(&r, given, &op);
        read_body(&r, given, &op);
        read_if_match(&r, given, &op);
        if (r.good) {
            (void)json_incref(op.body);
            code = change_set_add(c, op, NULL);
            ASSERT(code == ERR_OK);
        }
    }
}

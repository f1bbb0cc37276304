/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/hash_json.h"
#include "base/json.h"
#include "base/utf8.h"
#include "engine/draft_rows.h"
#include "engine/members.h"
#include "engine/problems_json.h"
#include "http/api.h"
#include "http/reply.h"

#define FP_HEX    8
#define NOTE_MAX  200
#define HASH_TEXT "64 lower-case hexadecimal digits"

const char *
api_node_name(const struct view *v)
{
    return object_text(snapshot_singleton(v->now.local, K_NODE), F_NODE_NAME).s;
}

json_t *
api_commit_name(const struct commit *c)
{
    char hex[SHA256_HEX + 1];
    char text[64];

    hash_hex(&c->fp, hex);
    (void)snprintf(text, sizeof text, "%lld@%.*s", (long long)c->rev, FP_HEX, hex);
    return json_string(text);
}

json_t *
api_draft(const struct view *v)
{
    return json_pack(
        "{s:o, s:I, s:I, s:o}", "base", hash_json(&v->head.id), "base_rev",
        (json_int_t)v->head.rev, "count", (json_int_t)v->entry_count, "changes",
        draft_changes_json(v, false));
}

static bool
has_word(const json_t *list, const char *word)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), word) == 0) {
            return true;
        }
    }
    return false;
}

json_t *
api_effects(const json_t *objects)
{
    json_t *all = json_array();

    for (size_t i = 0; i < json_array_size(objects); i++) {
        const json_t *effect = json_object_get(json_array_get(objects, i), "effect");

        for (size_t k = 0; k < json_array_size(effect); k++) {
            json_t *word = json_array_get(effect, k);

            if (!has_word(all, json_string_value(word))) {
                (void)json_array_append(all, word);
            }
        }
    }
    return all;
}

bool
api_has_effect(const json_t *diff, const char *word)
{
    return has_word(json_object_get(diff, "effect"), word);
}

void
api_refuse(struct request *r, const char *pointer, const char *code, const char *message)
{
    struct problem where = {.pointer = pointer};

    problems_add(request_problems(r), SEVERITY_ERROR, code, &where, "%s", message);
    reply_problems(r, r->problems);
}

bool
api_read_nodes(struct request *r, const char *key, struct api_nodes *ret)
{
    const json_t *list = json_object_get(r->json, key);
    size_t count = json_array_size(list);

    *ret = (struct api_nodes){.count = 0};
    if (list == NULL || json_is_null(list)) {
        return true;
    }
    if (!json_is_array(list) || count > MEMBERS_MAX) {
        api_refuse(
            r, arena_printf(r->arena, "/%s", key), "type",
            arena_printf(
                r->arena, "This is a list of at most %d ids or names of nodes.", MEMBERS_MAX));
        return false;
    }
    ret->names = arena_alloc(r->arena, (count + 1) * sizeof *ret->names);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name == NULL) {
            api_refuse(
                r, arena_printf(r->arena, "/%s/%zu", key, i), "type",
                "A node is given by its name or its id.");
            return false;
        }
        ret->names[ret->count++] = name;
    }
    return true;
}

bool
api_read_hash(struct request *r, const char *key, struct hash *ret, bool *ret_given)
{
    const char *text = NULL;
    struct error e;

    if (json_opt_str(r->json, key, &text, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    if (text != NULL && !hash_from_hex(text, ret)) {
        api_refuse(
            r, arena_printf(r->arena, "/%s", key), "pattern",
            "The id of a commit is " HASH_TEXT ".");
        return false;
    }
    *ret_given = text != NULL;
    return true;
}

bool
api_read_note(struct request *r, const char **ret)
{
    const char *text = NULL;
    struct error e;

    if (json_opt_str(r->json, "note", &text, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    if (text != NULL && (strlen(text) > NOTE_MAX || utf8_has_control(text, strlen(text), ""))) {
        api_refuse(r, "/note", "length", "A note is one line of at most 200 bytes.");
        return false;
    }
    *ret = text != NULL && text[0] != '\0' ? text : NULL;
    return true;
}

bool
api_read_confirm(struct request *r, int64_t *ret_s)
{
    struct error e;

    *ret_s = 0;
    if (json_is_null(json_object_get(r->json, "confirm")) ||
        json_opt_int(r->json, "confirm", APPLY_CONFIRM_MIN_S, APPLY_CONFIRM_MAX_S, ret_s, &e) ==
            ERR_OK) {
        return true;
    }
    api_refuse(r, "/confirm", "range", "confirm is a number of seconds from 10 to 86400.");
    return false;
}

bool
api_read_apply(struct request *r, struct api_apply_choice *ret)
{
    struct error e;

    *ret = (struct api_apply_choice){.apply = false};
    if (!request_flag(r, "wait", &ret->wait) || !api_read_note(r, &ret->note) ||
        !api_read_confirm(r, &ret->confirm_s)) {
        return false;
    }
    if (json_opt_bool(r->json, "apply", &ret->apply, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    if (!ret->apply && ret->confirm_s > 0) {
        api_refuse(
            r, "/confirm", "needs_apply",
            "Only an apply goes back unless it is confirmed: give apply too, or no confirm.");
        return false;
    }
    if (!ret->apply && ret->note != NULL) {
        api_refuse(
            r, "/note", "needs_apply",
            "A note goes with the commit of an apply: give apply too, or no note.");
        return false;
    }
    return true;
}

const struct snapshot_pair *
api_pair(const struct view *v, enum kind kind)
{
    return schema_kind(kind)->direct ? &v->now : &v->draft;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/refusal.h"

#include <string.h>

#include "base/arena.h"
#include "engine/problems_json.h"

#define WORD_MAX 40

/* A word of ours, or nothing: it is from outside. */
static const char *
word_of(struct arena *arena, const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    size_t len = text != NULL ? strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789") : 0;

    return len > 0 && len <= WORD_MAX && text[len] == '\0' ? arena_strdup(arena, text) : NULL;
}

static void
take_problem(const char *node, const json_t *item, struct problems *p)
{
    const char *message = json_string_value(json_object_get(item, "message"));
    const char *severity = json_string_value(json_object_get(item, "severity"));
    const char *code = word_of(p->arena, item, "code");
    enum kind kind;
    struct problem where = {
        .kind = word_of(p->arena, item, "kind"),
        .name = json_string_value(json_object_get(item, "name")),
        .pointer = json_string_value(json_object_get(item, "pointer")),
        .node = node,
    };

    if (where.kind != NULL && !schema_kind_by_name(where.kind, &kind)) {
        where.kind = where.name = NULL;
    }
    problems_add(
        p,
        severity != NULL && strcmp(severity, "warning") == 0 ? SEVERITY_WARNING
                                                             : SEVERITY_ERROR,
        code != NULL ? code : "refused", &where, "%.*s",
        problems_cut(message != NULL ? message : "refused", (size_t)2 * ERROR_MSG_BYTES),
        message != NULL ? message : "refused");
}

void
refusal_problems(
    const struct member *m, const json_t *answer, const char *why, struct problems *p)
{
    const json_t *list = json_object_get(answer, "errors");
    size_t errors = p->errors;
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (i < PROBLEMS_MAX) {
            take_problem(m->name, item, p);
        }
    }
    if (p->errors == errors) {
        problems_add(
            p, SEVERITY_ERROR, "refused", &(struct problem){.node = m->name}, "%s", why);
    }
}

json_t *
refusal_errors(const struct member *m, const json_t *answer)
{
    CLEANUP(arena_cleanup) struct arena *arena = NULL;
    struct problems p;
    json_t *list;

    if (json_array_size(json_object_get(answer, "errors")) == 0) {
        return NULL;
    }
    arena = arena_new(ARENA_DEFAULT_BYTES);
    problems_init(&p, arena);
    refusal_problems(m, answer, "refused", &p);
    list = problems_json(&p);
    for (size_t i = json_array_size(list); i > 0; i--) {
        const json_t *item = json_array_get(list, i - 1);

        if (strcmp(json_string_value(json_object_get(item, "severity")), "error") != 0) {
            (void)json_array_remove(list, i - 1);
        }
    }
    return list;
}

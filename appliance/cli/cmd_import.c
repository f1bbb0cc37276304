/* SPDX-License-Identifier: Apache-2.0 */
/* A document of services and objects into the draft, and the objects out as one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/show.h"

#define DOCUMENT_MAX_BYTES ((size_t)256 << 20)

/* ---- import ---- */

static size_t
count(const json_t *objects, const char *change)
{
    const json_t *object;
    size_t i, n = 0;

    json_array_foreach(objects, i, object)
    {
        n += strcmp(cli_str(object, "change"), change) == 0;
    }
    return n;
}

static void
show_imported(struct cli *c, const json_t *answer, bool planned)
{
    const json_t *objects = json_object_get(answer, "objects");

    if (planned) {
        show_diff(c, json_object_get(answer, "diff"));
    } else {
        show_objects(c, objects);
        (void)fflush(stdout);
        show_problems(json_object_get(answer, "problems"));
    }
    if (json_array_size(objects) == 0) {
        puts("Nothing to change: all of it is there like this.");
        return;
    }
    printf(
        "%s: %zu added, %zu changed, %zu removed.\n",
        planned ? "Nothing changed yet" : "Imported", count(objects, "added"),
        count(objects, "changed"), count(objects, "removed"));
    if (!planned) {
        show_drafted();
    }
}

int
cmd_import(struct cli *c, int argc, char **argv)
{
    json_t *document = NULL, *answer = NULL;
    bool planned = cli_flag(c, "--dry-run");
    int status = cli_read_json(argv[1], &document);

    (void)argc;
    if (status != 0) {
        return status;
    }
    const struct call q = {
        .method = "POST",
        .path = planned ? "/api/v1/import?plan=1" : "/api/v1/import",
        .body = document};
    status = cli_call(c, &q, &answer, NULL);
    json_decref(document);
    if (status == 0 && !cli_printed_json(c, answer)) {
        show_imported(c, answer, planned);
    } else if (status == EXIT_NO && !c->json) {
        cli_error("%s: nothing was imported", argv[1]);
    }
    json_decref(answer);
    return status;
}

/* ---- export ---- */

static bool
is_placeholder(const struct schema_kind *kind, const json_t *object)
{
    return strcmp(kind->name, "certificate") == 0 &&
           strcmp(cli_str(object, "source"), "placeholder") == 0;
}

static bool
names_one(const json_t *v, const json_t *objects)
{
    return json_is_string(v) && json_object_get(objects, json_string_value(v)) != NULL;
}

/* v: a name or a list of names. */
static bool
names_any(const json_t *v, const json_t *objects)
{
    bool any = names_one(v, objects);

    for (size_t i = 0; i < json_array_size(v); i++) {
        any = any || names_one(json_array_get(v, i), objects);
    }
    return any;
}

/* A field that refers to a placeholder is left out: a shorter list would be a change where it
 * is imported again. */
static void
drop_placeholders(const struct schema_kind *kind, json_t *object, const json_t *placeholders)
{
    for (uint32_t f = 0; f < kind->field_count; f++) {
        const struct schema_field *field = &kind->fields[f];
        json_t *v = json_object_get(object, field->name);

        if (field->type != FT_REF ||
            strcmp(schema_kind(field->ref_kind)->name, "certificate") != 0) {
            continue;
        }
        if (names_any(v, placeholders)) {
            json_object_del(object, field->name);
        }
    }
}

static int
by_text(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;

    return strcmp(json_string_value(*x), json_string_value(*y));
}

/* A list whose order has no meaning is the same on every node, however they number things. */
static json_t *
sorted(struct cli *c, const json_t *list)
{
    size_t n = json_array_size(list);
    json_t **items = arena_alloc(c->arena, (n + 1) * sizeof(*items));
    json_t *out = json_array();

    for (size_t i = 0; i < n; i++) {
        items[i] = json_array_get(list, i);
    }
    qsort(items, n, sizeof(*items), by_text);
    for (size_t i = 0; i < n; i++) {
        json_array_append(out, items[i]);
    }
    return out;
}

/* An object as import takes it: what only the product sets, and secrets, are left out. */
static void
strip(struct cli *c, const struct schema_kind *kind, json_t *object)
{
    (void)json_object_del(object, "id");
    (void)json_object_del(object, "kind");
    for (uint32_t f = 0; f < kind->field_count; f++) {
        const struct schema_field *field = &kind->fields[f];
        const json_t *v = json_object_get(object, field->name);

        if (field->secret || field->read_only) {
            (void)json_object_del(object, field->name);
        } else if (!field->ordered && json_is_string(json_array_get(v, 0))) {
            (void)json_object_set_new(object, field->name, sorted(c, v));
        }
    }
}

static void
add_objects(
    struct cli *c, const struct schema_kind *kind, json_t *items, json_t *placeholders,
    json_t *out)
{
    json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
    {
        if (is_placeholder(kind, item)) {
            (void)json_object_set_new(placeholders, cli_str(item, "name"), json_true());
            continue;
        }
        strip(c, kind, item);
        json_array_append_new(out, json_pack("{s:s, s:O}", "kind", kind->name, "body", item));
    }
}

static void
drop_all_placeholders(json_t *objects, const json_t *placeholders)
{
    json_t *item;
    size_t i;

    json_array_foreach(objects, i, item)
    {
        const struct schema_kind *kind = cli_kind(cli_str(item, "kind"));
        drop_placeholders(kind, json_object_get(item, "body"), placeholders);
    }
}

int
cmd_export(struct cli *c, int argc, char **argv)
{
    json_auto_t *document = json_pack("{s:[]}", "objects");
    json_auto_t *placeholders = json_object();
    json_t *objects = json_object_get(document, "objects");
    int status = 0;

    (void)argc;
    (void)argv;
    for (int k = 0; k < KIND_COUNT && status == 0; k++) {
        const struct schema_kind *kind = &schema_kinds[k];
        json_t *items = NULL;

        if (kind->direct || kind->scope != SCOPE_SHARED) {
            continue;
        }
        status = cli_fetch(c, kind, NULL, &items);
        if (status == 0) {
            add_objects(c, kind, items, placeholders, objects);
        }
        json_decref(items);
    }
    if (status != 0) {
        return status;
    }
    drop_all_placeholders(objects, placeholders);
    CLEANUP(buf_fini) struct buf text = {0};
    buf_init(&text, DOCUMENT_MAX_BYTES);
    json_pretty(document, &text);
    (void)fwrite(buf_str(&text), 1, text.len, stdout);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of any kind: list, get, create, set, replace, delete. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/show.h"

#define VALUE_MAX_BYTES ((size_t)128 << 20)
#define LIST_SHOWN      3 /* items of a list that is a cell */

/* "a, b, c, +2", of records their first fields. */
static const char *
list_text(struct cli *c, const struct schema_field *field, const json_t *list)
{
    CLEANUP(buf_fini) struct buf out;
    size_t count = json_array_size(list);

    buf_init(&out, VALUE_MAX_BYTES);
    for (size_t i = 0; i < count && i < LIST_SHOWN; i++) {
        const json_t *item = json_array_get(list, i);
        buf_puts(&out, i > 0 ? ", " : "");
        cli_put_value(
            &out,
            field->type == FT_RECORD ? json_object_get(item, field->fields[0].name) : item);
    }
    if (count > LIST_SHOWN) {
        buf_printf(&out, ", +%zu", count - LIST_SHOWN);
    }
    return arena_strdup(c->arena, buf_str(&out));
}

/* Whether the field means anything in this object. */
static bool
has_meaning(
    const struct schema_kind *kind, const struct schema_field *field, const json_t *object)
{
    if (field->when_field < 0) {
        return true;
    }
    const struct schema_field *other = &kind->fields[field->when_field];
    const json_t *v = json_object_get(object, other->name);
    uint32_t at = json_is_true(v) ? 1 : 0;

    if (other->type == FT_ENUM) {
        while (at < other->value_count &&
               strcmp(other->values[at], cli_str(object, other->name)) != 0) {
            at++;
        }
    }
    return (field->when_values >> at & 1) != 0;
}

static void
put_cell(
    struct cli *c, struct table *t, const struct schema_kind *kind,
    const struct schema_field *field, const json_t *object)
{
    const json_t *v = json_object_get(object, field->name);

    if (!has_meaning(kind, field, object)) {
        table_cell(t, NULL);
    } else if (field->list) {
        table_cell(t, list_text(c, field, v));
    } else {
        table_cell_value(t, v);
    }
}

static void
show_list(struct cli *c, const struct schema_kind *kind, const json_t *items)
{
    const char **heads = arena_alloc(c->arena, kind->column_count * sizeof(*heads));
    const json_t *item;
    size_t i;

    if (json_array_size(items) == 0) {
        const char *match = cli_option(c, "--match");
        printf(
            "There are no %s%s%s%s.\n", kind->plural, match != NULL ? " with \"" : "",
            match != NULL ? match : "", match != NULL ? "\" in their names" : "");
        return;
    }
    for (uint32_t k = 0; k < kind->column_count; k++) {
        heads[k] = kind->fields[kind->columns[k]].name;
    }
    struct table *t = table_new(c, heads, kind->column_count);
    json_array_foreach(items, i, item)
    {
        for (uint32_t k = 0; k < kind->column_count; k++) {
            put_cell(c, t, kind, &kind->fields[kind->columns[k]], item);
        }
    }
    table_print(t);
}

/* One a line, or with --json as an array. */
static void
show_names(struct cli *c, const struct schema_kind *kind, const json_t *items)
{
    json_auto_t *names = json_array();
    const json_t *item, *name;
    size_t i;

    json_array_foreach(items, i, item)
    {
        json_array_append_new(
            names, json_string(kind->singleton ? kind->name : cli_str(item, "name")));
    }
    if (cli_printed_json(c, names)) {
        return;
    }
    json_array_foreach(names, i, name)
    {
        puts(json_string_value(name));
    }
}

int
cmd_list(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind = cli_kind(argv[1]);
    json_t *items = NULL;

    (void)argc;
    if (kind == NULL) {
        return EXIT_USAGE;
    }
    if (kind->singleton && cli_flag(c, "--match")) {
        return cli_misused(c, "there is one %s only: --match has no meaning", kind->name);
    }
    int status = cli_fetch(c, kind, cli_option(c, "--match"), &items);
    if (status != 0) {
        return status;
    }
    if (cli_flag(c, "--names")) {
        show_names(c, kind, items);
    } else if (!cli_printed_json(c, items)) {
        show_list(c, kind, items);
    }
    json_decref(items);
    return 0;
}

/* Kind, and the name unless it is a singleton; *ret_rest: index of what follows. */
static int
take_object(
    const struct cli *c, int argc, char **argv, const struct schema_kind **ret,
    const char **ret_name, int *ret_rest)
{
    *ret = cli_kind(argv[1]);
    if (*ret == NULL) {
        return EXIT_USAGE;
    }
    if ((*ret)->singleton) {
        *ret_name = (*ret)->name;
        *ret_rest = argc > 2 && strcmp(argv[2], (*ret)->name) == 0 ? 3 : 2;
        return 0;
    }
    if (argc < 3) {
        return cli_misused(c, "the name of the %s is missing", (*ret)->name);
    }
    *ret_name = argv[2];
    *ret_rest = 3;
    return 0;
}

/* An item of a list of records: "server=web1 weight=100", in the schema's order. */
static void
put_record(const struct schema_field *field, struct buf *out, const json_t *record)
{
    for (uint32_t f = 0; f < field->field_count; f++) {
        buf_printf(out, "%s%s=", f > 0 ? " " : "", field->fields[f].name);
        cli_put_value(out, json_object_get(record, field->fields[f].name));
    }
}

/* A text of several lines, as a certificate, in its lines. */
static void
show_lines(const char *name, const char *text)
{
    while (*text != '\0') {
        CLEANUP(buf_fini) struct buf line;
        CLEANUP(buf_fini) struct buf clean;
        size_t len = strcspn(text, "\n");

        buf_init(&line, VALUE_MAX_BYTES);
        buf_init(&clean, VALUE_MAX_BYTES);
        buf_put(&line, text, len);
        cli_put_text(&clean, buf_str(&line));
        printf("%-26s %s\n", name, buf_str(&clean));
        name = "";
        text += len + (text[len] == '\n');
    }
}

/* One line, of a list one for each item. */
static void
show_field(const struct schema_field *field, const json_t *v)
{
    if (json_is_string(v) && strchr(json_string_value(v), '\n') != NULL) {
        show_lines(field->name, json_string_value(v));
        return;
    }
    size_t count = json_array_size(v);

    for (size_t i = 0; i < (count > 0 ? count : 1); i++) {
        CLEANUP(buf_fini) struct buf text;
        const json_t *item = count > 0 ? json_array_get(v, i) : v;

        buf_init(&text, VALUE_MAX_BYTES);
        if (field->secret) {
            buf_puts(&text, json_is_true(json_object_get(v, "set")) ? "(set)" : "(not set)");
        } else if (json_is_object(item)) {
            put_record(field, &text, item);
        } else if (!field->list || count > 0) {
            cli_put_value(&text, item);
        }
        printf("%-26s %s\n", i == 0 ? field->name : "", text.len > 0 ? buf_str(&text) : "-");
    }
}

static void
show_object(const struct schema_kind *kind, const json_t *object)
{
    for (uint32_t f = 0; f < kind->field_count; f++) {
        show_field(&kind->fields[f], json_object_get(object, kind->fields[f].name));
    }
}

int
cmd_get(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind = NULL;
    const char *name = NULL;
    json_t *object = NULL;
    int rest = 0;
    int status = take_object(c, argc, argv, &kind, &name, &rest);

    if (status == 0 && argc > rest) {
        status = cli_misused(c, "there is one %s only", kind->name);
    }
    if (status == 0) {
        status = cli_get(c, cli_object_path(c, kind, name), &object);
    }
    if (status == 0 && !cli_printed_json(c, object)) {
        show_object(kind, object);
    }
    json_decref(object);
    return status;
}

static json_t *
scalar_value(const struct schema_field *field, const char *text, size_t len)
{
    struct error e;
    json_t *v = NULL;

    /* Numbers, booleans and records are JSON; what is no JSON goes as text and the node
     * says what is wrong with it. */
    if (field->type != FT_TEXT && field->type != FT_REF && field->type != FT_ENUM &&
        json_parse(text, len, &v, &e) == ERR_OK) {
        return v;
    }
    if (len == 4 && memcmp(text, "null", 4) == 0) {
        return json_null();
    }
    v = json_stringn(text, len);
    return v != NULL ? v : json_null();
}

static json_t *
list_value(const struct schema_field *field, const char *text)
{
    struct error e;
    json_t *v = NULL;

    if ((text[0] == '[' || field->type == FT_RECORD) &&
        json_parse(text, strlen(text), &v, &e) == ERR_OK) {
        return v;
    }
    json_t *out = json_array();
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        json_array_append_new(out, scalar_value(field, text, len));
        text += len + (text[len] == ',');
    }
    return out;
}

/* "field=value" words into body; an unknown field is refused here, with the known ones. */
static int
take_fields(const struct schema_kind *kind, int argc, char **argv, json_t *body)
{
    for (int i = 0; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (equals == NULL) {
            cli_error("\"%s\" is not FIELD=VALUE", argv[i]);
            return EXIT_USAGE;
        }
        json_t *key = json_stringn(argv[i], (size_t)(equals - argv[i]));
        const char *name = key != NULL ? json_string_value(key) : "";
        int at = schema_field_index(kind->fields, kind->field_count, name);
        if (at < 0) {
            fprintf(stderr, "lockstep: %s has no field \"%s\"; it has:", kind->name, name);
            for (uint32_t f = 0; f < kind->field_count; f++) {
                fprintf(stderr, " %s", kind->fields[f].name);
            }
            (void)fputc('\n', stderr);
            json_decref(key);
            return EXIT_USAGE;
        }
        const struct schema_field *field = &kind->fields[at];
        json_object_set_new(
            body, name,
            field->list ? list_value(field, equals + 1)
                        : scalar_value(field, equals + 1, strlen(equals + 1)));
        json_decref(key);
    }
    return 0;
}

static int
body_of(
    const struct cli *c, const struct schema_kind *kind, int argc, char **argv, json_t **ret)
{
    const char *file = cli_option(c, "--file");
    json_t *body = NULL;
    int status = file != NULL ? cli_read_json(file, &body) : 0;

    if (status != 0) {
        return status;
    }
    if (body == NULL) {
        body = json_object();
    }
    status = take_fields(kind, argc, argv, body);
    if (status != 0) {
        json_decref(body);
    } else {
        *ret = body;
    }
    return status;
}

static void
show_end(const struct schema_kind *kind)
{
    if (kind->direct) {
        puts("Done, at once.");
    } else {
        show_drafted();
    }
}

static void
show_done(const struct schema_kind *kind, const char *name, char sign)
{
    CLEANUP(buf_fini) struct buf shown;

    buf_init(&shown, VALUE_MAX_BYTES);
    put_object(&shown, kind->name, name);
    printf("  %c %s\n", sign, buf_str(&shown));
    show_end(kind);
}

struct set_shown {
    const char *name;
    const json_t *before, *now; /* as the node shows the object */
    const json_t *body;         /* what was asked for */
};

/* NULL: it is as before. A secret that was given is another one. */
static json_t *
changed_field(const struct schema_field *field, const struct set_shown *x)
{
    json_t *was = json_object_get(x->before, field->name);
    json_t *is = json_object_get(x->now, field->name);

    if (field->secret && json_object_get(x->body, field->name) != NULL) {
        return json_pack(
            "{s:s, s:{s:O, s:b}, s:{s:O, s:b}}", "field", field->name, "before", "set",
            json_object_get(was, "set"), "changed", 1, "after", "set",
            json_object_get(is, "set"), "changed", 1);
    }
    if (json_equal(was, is) != 0) {
        return NULL;
    }
    return json_pack("{s:s, s:O?, s:O?}", "field", field->name, "before", was, "after", is);
}

static void
show_set(const struct cli *c, const struct schema_kind *kind, const struct set_shown *x)
{
    json_auto_t *objects = json_array();
    json_t *fields = json_array();

    for (uint32_t f = 0; f < kind->field_count; f++) {
        json_t *field = changed_field(&kind->fields[f], x);
        if (field != NULL) {
            json_array_append_new(fields, field);
        }
    }
    json_array_append_new(
        objects, json_pack(
                     "{s:s, s:s, s:s, s:o}", "kind", kind->name, "name", x->name, "change",
                     "changed", "fields", fields));
    show_objects(c, objects);
    show_end(kind);
}

int
cmd_create(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind = NULL;
    const char *name = NULL;
    json_t *body = NULL, *made = NULL;
    int rest = 0;
    int status = take_object(c, argc, argv, &kind, &name, &rest);

    if (status == 0 && kind->singleton) {
        status = cli_misused(c, "the %s is always there: set changes it", kind->name);
    }
    if (status == 0) {
        status = body_of(c, kind, argc - rest, argv + rest, &body);
    }
    if (status != 0) {
        return status;
    }
    json_object_set_new(body, "name", json_string(name));
    const struct call q = {
        .method = "POST", .path = cli_path(c, kind->plural, NULL), .body = body};
    status = cli_call(c, &q, &made, NULL);
    json_decref(body);
    if (status == 0 && !cli_printed_json(c, made)) {
        if (kind == schema_kind(K_AUTOMATION_KEY)) {
            puts(cli_str(made, "key")); /* this once */
        } else {
            show_done(kind, name, '+');
        }
    }
    json_decref(made);
    return status;
}

/* PATCH and PUT: what changes, on top of the object as it is now. */
static int
write_object(struct cli *c, int argc, char **argv, const char *method)
{
    const struct schema_kind *kind = NULL;
    const char *name = NULL, *etag = NULL;
    json_auto_t *body = NULL, *before = NULL, *now = NULL;
    struct rest_answer answer;
    int rest = 0;
    int status = take_object(c, argc, argv, &kind, &name, &rest);

    if (status == 0 && argc == rest && !cli_flag(c, "--file")) {
        status = cli_misused(c, "give FIELD=VALUE or --file");
    }
    if (status == 0) {
        status = body_of(c, kind, argc - rest, argv + rest, &body);
    }
    if (status != 0) {
        return status;
    }
    if (strcmp(method, "PUT") == 0 && json_object_get(body, "name") == NULL &&
        !kind->singleton) {
        json_object_set_new(body, "name", json_string(name));
    }
    const char *path = cli_object_path(c, kind, name);
    rest_answer_init(&answer);
    status = cli_etag(c, path, &etag, &before);
    if (status == 0) {
        const struct call q = {.method = method, .path = path, .body = body, .if_match = etag};
        status = cli_call(c, &q, &now, &answer);
    }
    if (status == 0 && !cli_printed_json(c, now)) {
        if (strcmp(etag, answer.etag) == 0) {
            puts("Nothing to change: it is like this.");
        } else {
            show_set(
                c, kind,
                &(struct set_shown){.name = name, .before = before, .now = now, .body = body});
        }
    }
    rest_answer_fini(&answer);
    return status;
}

int
cmd_set(struct cli *c, int argc, char **argv)
{
    return write_object(c, argc, argv, "PATCH");
}

int
cmd_replace(struct cli *c, int argc, char **argv)
{
    return write_object(c, argc, argv, "PUT");
}

int
cmd_delete(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind = NULL;
    const char *name = NULL, *etag = NULL;
    int rest = 0;
    int status = take_object(c, argc, argv, &kind, &name, &rest);

    if (status == 0 && kind->singleton) {
        status = cli_misused(c, "the %s cannot be deleted", kind->name);
    }
    if (status != 0) {
        return status;
    }
    const char *path = cli_object_path(c, kind, name);
    status = cli_etag(c, path, &etag, NULL);
    if (status == 0) {
        const struct call q = {.method = "DELETE", .path = path, .if_match = etag};
        status = cli_call(c, &q, NULL, NULL);
    }
    if (status == 0 && !c->json) {
        show_done(kind, name, '-');
    }
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of any kind: list, get, create, set, delete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "model/schema.h"

#define BODY_MAX_BYTES ((size_t)8 << 20)
#define CELL_BYTES     ((size_t)1 << 20)
#define LIST_COLUMNS   6

static const struct schema_kind *
kind_of(const char *word)
{
    enum kind k;

    if (schema_kind_by_name(word, &k) || schema_kind_by_plural(word, &k)) {
        return schema_kind(k);
    }
    fprintf(stderr, "lockstep: there is no kind \"%s\"; kinds are:", word);
    for (int i = 0; i < KIND_COUNT; i++) {
        fprintf(stderr, " %s", schema_kinds[i].name);
    }
    (void)fputc('\n', stderr);
    return NULL;
}

static const char *
object_path(struct cli *c, const struct schema_kind *kind, const char *name)
{
    return kind->singleton ? cli_path(c, kind->plural, NULL)
                           : cli_path(c, kind->plural, name, NULL);
}

static void
put_cell(struct cli *c, struct table *t, const json_t *v)
{
    CLEANUP(buf_fini) struct buf text;

    if (json_is_string(v)) {
        table_cell(t, json_string_value(v));
    } else if (json_is_array(v) && json_array_size(v) > 3) {
        table_cell(t, arena_printf(c->arena, "%zu items", json_array_size(v)));
    } else if (v == NULL || json_is_null(v)) {
        table_cell(t, "-");
    } else {
        buf_init(&text, CELL_BYTES);
        json_canonical(v, &text);
        table_cell(t, buf_str(&text));
    }
}

/* The first fields of the schema are the telling ones. */
static void
show_list(struct cli *c, const struct schema_kind *kind, const json_t *items)
{
    const char *heads[LIST_COLUMNS];
    size_t columns = 0;
    const json_t *item;
    size_t i;

    for (uint32_t f = 0; f < kind->field_count && columns < LIST_COLUMNS; f++) {
        if (!kind->fields[f].secret) {
            heads[columns++] = kind->fields[f].name;
        }
    }
    struct table *t = table_new(c, heads, columns);
    json_array_foreach(items, i, item)
    {
        for (size_t f = 0; f < columns; f++) {
            put_cell(c, t, json_object_get(item, heads[f]));
        }
    }
    table_print(t);
}

int
cmd_list(struct cli *c, int argc, char **argv)
{
    json_t *page = NULL;
    json_t *items = json_array();
    const char *after = "";
    int status = cli_no_more(argc, argv, 1, 1);
    const struct schema_kind *kind = status == 0 ? kind_of(argv[1]) : NULL;

    while (kind != NULL && status == 0) {
        CLEANUP(buf_fini) struct buf path;
        buf_init(&path, 8192);
        buf_puts(&path, object_path(c, kind, ""));
        if (!kind->singleton) {
            path.data[--path.len] = '\0';
            buf_puts(&path, "?limit=1000");
            if (after[0] != '\0') {
                buf_puts(&path, "&after=");
                rest_put_segment(&path, after);
            }
        }
        const struct call q = {.method = "GET", .path = buf_str(&path)};
        status = cli_call(c, &q, &page, NULL);
        if (status != 0) {
            break;
        }
        if (kind->singleton) {
            json_array_append(items, page);
        } else {
            json_array_extend(items, json_object_get(page, "items"));
        }
        after = arena_strdup(c->arena, cli_str(page, "next"));
        json_decref(page);
        if (after[0] == '\0') {
            break;
        }
    }
    if (kind == NULL && status == 0) {
        status = EXIT_USAGE;
    }
    if (status == 0 && !cli_printed_json(c, items)) {
        show_list(c, kind, items);
    }
    json_decref(items);
    return status;
}

/* Kind, and the name unless it is a singleton; *ret_rest: index of what follows. */
static int
take_object(
    int argc, char **argv, const struct schema_kind **ret, const char **ret_name, int *ret_rest)
{
    int status = cli_no_more(argc, argv, 1, 1000);

    if (status != 0) {
        return status;
    }
    *ret = kind_of(argv[1]);
    if (*ret == NULL) {
        return EXIT_USAGE;
    }
    if ((*ret)->singleton) {
        *ret_name = (*ret)->name;
        *ret_rest = argc > 2 && strcmp(argv[2], (*ret)->name) == 0 ? 3 : 2;
        return 0;
    }
    if (argc < 3) {
        cli_error("%s: the name of the %s is missing", argv[0], (*ret)->name);
        return EXIT_USAGE;
    }
    *ret_name = argv[2];
    *ret_rest = 3;
    return 0;
}

int
cmd_get(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind;
    const char *name;
    json_t *object = NULL;
    int rest;
    int status = take_object(argc, argv, &kind, &name, &rest);

    if (status != 0) {
        return status;
    }
    const struct call q = {.method = "GET", .path = object_path(c, kind, name)};
    status = cli_call(c, &q, &object, NULL);
    if (status != 0) {
        return status;
    }
    if (!cli_printed_json(c, object)) {
        for (uint32_t f = 0; f < kind->field_count; f++) {
            CLEANUP(buf_fini) struct buf text;
            CLEANUP(buf_fini) struct buf clean;
            const json_t *v = json_object_get(object, kind->fields[f].name);
            buf_init(&text, BODY_MAX_BYTES);
            buf_init(&clean, BODY_MAX_BYTES * 4);
            if (json_is_string(v)) {
                buf_puts(&text, json_string_value(v));
            } else if (v != NULL) {
                json_canonical(v, &text);
            }
            cli_put_text(&clean, buf_str(&text));
            printf("%-26s %s\n", kind->fields[f].name, buf_str(&clean));
        }
    }
    json_decref(object);
    return 0;
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
            fprintf(stderr, "lockstep: a %s has no field \"%s\"; it has:", kind->name, name);
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

static err_t
read_input(struct buf *out, struct error *e)
{
    char piece[8192];

    for (;;) {
        ssize_t got = read(STDIN_FILENO, piece, sizeof(piece));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_errno(e, ERR_IO, errno, "standard input");
        }
        if (got == 0) {
            return buf_status(out, e);
        }
        buf_put(out, piece, (size_t)got);
    }
}

static int
read_body(const char *path, json_t **ret)
{
    CLEANUP(buf_wipe_fini) struct buf text;
    struct error e;

    buf_init(&text, BODY_MAX_BYTES);
    err_t err = strcmp(path, "-") == 0 ? read_input(&text, &e)
                                       : file_read_at(AT_FDCWD, path, &text, &e);
    if (err == ERR_OK) {
        err = json_parse(buf_str(&text), text.len, ret, &e);
    }
    if (err == ERR_OK && json_is_object(*ret)) {
        return 0;
    }
    if (err == ERR_OK) {
        cli_error("%s: not a JSON object", path);
    } else {
        cli_error("%s: %s", path, e.msg);
    }
    return EXIT_USAGE;
}

static int
body_of(const struct schema_kind *kind, const char *file, int argc, char **argv, json_t **ret)
{
    json_t *body = NULL;
    int status = file != NULL ? read_body(file, &body) : 0;

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

int
cmd_create(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind;
    const char *name;
    const char *file = cli_option(&argc, argv, "--file");
    json_t *body = NULL, *made = NULL;
    int rest;
    int status = take_object(argc, argv, &kind, &name, &rest);

    if (status == 0) {
        status = body_of(kind, file, argc - rest, argv + rest, &body);
    }
    if (status != 0) {
        return status;
    }
    json_object_set_new(body, "name", json_string(name));
    const struct call q = {
        .method = "POST", .path = cli_path(c, kind->plural, NULL), .body = body};
    status = cli_call(c, &q, &made, NULL);
    json_decref(body);
    if (status == 0 && !cli_printed_json(c, made) && cli_str(made, "key")[0] != '\0') {
        printf("%s\n", cli_str(made, "key"));
    }
    json_decref(made);
    return status;
}

/* ETag of the object as it is now, so that a change made meanwhile is not lost. */
static int
etag_of(struct cli *c, const char *path, const char **ret)
{
    struct rest_answer answer;
    const struct call q = {.method = "GET", .path = path};

    rest_answer_init(&answer);
    int status = cli_call(c, &q, NULL, &answer);
    *ret = arena_strdup(c->arena, answer.etag);
    rest_answer_fini(&answer);
    return status;
}

int
cmd_set(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind;
    const char *name, *etag;
    const char *file = cli_option(&argc, argv, "--file");
    json_t *body = NULL, *now = NULL;
    int rest;
    int status = take_object(argc, argv, &kind, &name, &rest);

    if (status == 0) {
        status = body_of(kind, file, argc - rest, argv + rest, &body);
    }
    if (status != 0) {
        return status;
    }
    const char *path = object_path(c, kind, name);
    status = etag_of(c, path, &etag);
    if (status == 0) {
        const struct call q = {.method = "PATCH", .path = path, .body = body, .if_match = etag};
        status = cli_call(c, &q, &now, NULL);
    }
    json_decref(body);
    if (status == 0) {
        cli_printed_json(c, now);
    }
    json_decref(now);
    return status;
}

int
cmd_delete(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind;
    const char *name, *etag;
    int rest;
    int status = take_object(argc, argv, &kind, &name, &rest);

    if (status == 0) {
        status = cli_no_more(argc, argv, rest - 1, rest - 1);
    }
    if (status != 0) {
        return status;
    }
    const char *path = object_path(c, kind, name);
    status = etag_of(c, path, &etag);
    if (status != 0) {
        return status;
    }
    const struct call q = {.method = "DELETE", .path = path, .if_match = etag};
    return cli_call(c, &q, NULL, NULL);
}

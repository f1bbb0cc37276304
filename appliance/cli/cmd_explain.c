/* SPDX-License-Identifier: Apache-2.0 */
/* The schema that the program was made with, as people read it. */
#include <stdio.h>
#include <string.h>

#include "cli/show.h"

#define TEXT_BYTES ((size_t)65536)
#define STEP       4 /* columns of an indent */

static const char *
type_name(const struct schema_field *f)
{
    switch (f->type) {
    case FT_BOOL: return "true or false";
    case FT_INT: return "number";
    case FT_TEXT: return schema_text_type_names[f->text_type];
    case FT_ENUM: return "one of";
    case FT_REF: return "name of a";
    case FT_RECORD: return "record";
    }
    return "";
}

static void
put_type(const struct schema_field *f, struct buf *out)
{
    buf_puts(out, f->list ? "list: " : "");
    buf_puts(out, type_name(f));
    if (f->type == FT_INT) {
        buf_printf(
            out, " %lld to %lld%s%s", (long long)f->min, (long long)f->max,
            f->unit != NULL ? " " : "", f->unit != NULL ? f->unit : "");
    }
    if (f->type == FT_REF) {
        buf_printf(out, " %s", schema_kind(f->ref_kind)->name);
    }
    for (uint32_t i = 0; i < f->value_count; i++) {
        buf_printf(out, "%s %s", i > 0 ? "," : "", f->values[i]);
    }
}

static void
put_default(const struct schema_field *f, struct buf *out)
{
    if (f->read_only) {
        buf_puts(out, "set by the product");
    } else if (f->required) {
        buf_puts(out, "required");
    } else if (f->type == FT_BOOL && !f->list) {
        buf_puts(out, f->default_int != 0 ? "true" : "false");
    } else if (f->type == FT_INT && !f->list) {
        buf_i64(out, f->default_int);
    } else if (f->type == FT_ENUM && !f->list) {
        buf_puts(out, f->values[f->default_int]);
    } else if (
        f->default_text != NULL && f->default_text[0] != '\0' &&
        strcmp(f->default_text, "[]") != 0) {
        buf_puts(out, f->default_text);
    } else {
        buf_puts(out, f->nullable ? "null" : "empty");
    }
}

/* "Type: ...": what does not fit stands below its beginning. */
static void
show_named(const struct cli *c, int indent, const char *name, const char *text)
{
    CLEANUP(buf_fini) struct buf line;

    buf_init(&line, TEXT_BYTES);
    buf_printf(&line, "%s: %s", name, text);
    show_wrapped(c, indent, indent + STEP, buf_str(&line));
}

static void
show_field(const struct cli *c, const struct schema_field *f)
{
    CLEANUP(buf_fini) struct buf type;
    CLEANUP(buf_fini) struct buf given;

    buf_init(&type, TEXT_BYTES);
    buf_init(&given, TEXT_BYTES);
    put_type(f, &type);
    put_default(f, &given);
    show_named(c, 0, f->name, f->label);
    show_wrapped(c, STEP, STEP, f->help);
    show_named(c, STEP, "Type", buf_str(&type));
    show_named(c, STEP, "Default", buf_str(&given));
    if (f->haproxy != NULL) {
        show_named(c, STEP, "HAProxy", f->haproxy);
    }
    for (uint32_t i = 0; i < f->field_count; i++) {
        const struct schema_field *sub = &f->fields[i];
        CLEANUP(buf_fini) struct buf sub_type;
        buf_init(&sub_type, TEXT_BYTES);
        put_type(sub, &sub_type);
        show_named(c, STEP, sub->name, buf_str(&sub_type));
        show_wrapped(c, 2 * STEP, 2 * STEP, sub->help);
    }
}

static void
show_kind(struct cli *c, const struct schema_kind *kind)
{
    static const char *const heads[] = {"FIELD", "TYPE", "DEFAULT"};

    printf("%s (%s)\n", kind->name, kind->title);
    show_wrapped(c, 0, 0, kind->help);
    puts(kind->direct ? "A change takes effect at once.\n" : "A change goes into the draft.\n");
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    for (uint32_t i = 0; i < kind->field_count; i++) {
        CLEANUP(buf_fini) struct buf type;
        CLEANUP(buf_fini) struct buf given;
        buf_init(&type, TEXT_BYTES);
        buf_init(&given, TEXT_BYTES);
        put_type(&kind->fields[i], &type);
        put_default(&kind->fields[i], &given);
        table_cell(t, kind->fields[i].name);
        table_cell(t, buf_str(&type));
        table_cell(t, buf_str(&given));
    }
    table_print_wrapped(t);
    putchar('\n');
    show_wrapped(
        c, 0, 0,
        arena_printf(
            c->arena, "\"lockstep explain %s FIELD\" says what a field does.", kind->name));
}

static void
show_kinds(struct cli *c)
{
    static const char *const heads[] = {"KIND", "WHAT"};
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));

    for (int i = 0; i < KIND_COUNT; i++) {
        table_cell(t, schema_kinds[i].name);
        table_cell(t, schema_kinds[i].help);
    }
    table_print_wrapped(t);
}

static json_t *
kind_json(const struct schema_kind *kind)
{
    json_t *fields = json_array();

    for (uint32_t i = 0; i < kind->field_count; i++) {
        CLEANUP(buf_fini) struct buf type;
        CLEANUP(buf_fini) struct buf given;
        buf_init(&type, TEXT_BYTES);
        buf_init(&given, TEXT_BYTES);
        put_type(&kind->fields[i], &type);
        put_default(&kind->fields[i], &given);
        json_array_append_new(
            fields,
            json_pack(
                "{s:s, s:s, s:s, s:s}", "name", kind->fields[i].name, "type", buf_str(&type),
                "default", buf_str(&given), "help", kind->fields[i].help));
    }
    return json_pack(
        "{s:s, s:s, s:o}", "kind", kind->name, "help", kind->help, "fields", fields);
}

static void
show_json(struct cli *c, const struct schema_kind *kind)
{
    json_auto_t *kinds = json_array();

    for (int i = 0; i < KIND_COUNT; i++) {
        if (kind == NULL || kind == &schema_kinds[i]) {
            json_array_append_new(kinds, kind_json(&schema_kinds[i]));
        }
    }
    cli_printed_json(c, kinds);
}

int
cmd_explain(struct cli *c, int argc, char **argv)
{
    const struct schema_kind *kind = argc > 1 ? cli_kind(argv[1]) : NULL;

    if (argc > 1 && kind == NULL) {
        return EXIT_USAGE;
    }
    int at = argc > 2 ? schema_field_index(kind->fields, kind->field_count, argv[2]) : -1;
    if (argc > 2 && at < 0) {
        return cli_misused(c, "%s has no field \"%s\"", kind->name, argv[2]);
    }
    if (c->json) {
        show_json(c, kind);
    } else if (kind == NULL) {
        show_kinds(c);
    } else if (argc == 2) {
        show_kind(c, kind);
    } else {
        show_field(c, &kind->fields[at]);
    }
    return 0;
}

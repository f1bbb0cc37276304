/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "model/schema.h"

typedef void (*field_fn)(const struct schema_field *f, const struct schema_field *table);

static void
each_field(field_fn fn)
{
    size_t seen = 0;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);
        for (uint32_t i = 0; i < kind->field_count; i++) {
            const struct schema_field *f = &kind->fields[i];
            fn(f, kind->fields);
            for (uint32_t j = 0; j < f->field_count; j++) {
                fn(&f->fields[j], f->fields);
            }
            seen += 1 + f->field_count;
        }
    }
    assert_true(seen > KIND_COUNT);
}

static void
finds_every_kind_by_name_and_plural(void **state)
{
    (void)state;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);
        enum kind found = k == 0 ? K_POOL : (enum kind)0;
        assert_true(schema_kind_by_name(kind->name, &found));
        assert_int_equal(found, k);
        found = k == 0 ? K_POOL : (enum kind)0;
        assert_true(schema_kind_by_plural(kind->plural, &found));
        assert_int_equal(found, k);
        assert_int_equal(kind->singleton, strcmp(kind->name, kind->plural) == 0);
    }
}

static void
finds_no_unknown_kind(void **state)
{
    (void)state;
    enum kind found = K_SERVICE;
    assert_false(schema_kind_by_name("pools", &found));
    assert_false(schema_kind_by_plural("pool", &found));
    assert_false(schema_kind_by_name("", &found));
    assert_false(schema_kind_by_plural("Pools", &found));
    assert_int_equal(found, K_SERVICE);
}

static void
finds_fields_where_the_constants_say(void **state)
{
    (void)state;
    const struct schema_kind *pool = schema_kind(K_POOL);
    int members = schema_field_index(pool->fields, pool->field_count, "members");
    assert_int_equal(members, F_POOL_MEMBERS);
    const struct schema_field *f = &pool->fields[F_POOL_MEMBERS];
    assert_int_equal(
        schema_field_index(f->fields, f->field_count, "role"), F_POOL_MEMBERS_ROLE);
    const struct schema_field *role = &f->fields[F_POOL_MEMBERS_ROLE];
    assert_string_equal(role->values[V_POOL_MEMBERS_ROLE_BACKUP], "backup");
    assert_int_equal(schema_field_index(pool->fields, pool->field_count, "colour"), -1);
    assert_int_equal(schema_field_index(NULL, 0, "name"), -1);
}

static void
check_kind(const struct schema_kind *kind)
{
    const struct schema_field *name = &kind->fields[0];
    bool has_secret = false;
    for (uint32_t i = 0; i < kind->field_count; i++) {
        const char *field = kind->fields[i].name;
        assert_int_equal(schema_field_index(kind->fields, kind->field_count, field), i);
        has_secret = has_secret || kind->fields[i].secret;
        /* A singleton exists before anybody gave it a value. */
        assert_false(kind->singleton && kind->fields[i].required);
    }
    assert_int_equal(kind->has_secret, has_secret);
    assert_true(kind->help[0] != '\0' && kind->title[0] != '\0');
    assert_string_equal(name->name, "name");
    assert_int_equal(name->text_type, TT_NAME);
    if (kind->singleton) {
        assert_string_equal(name->default_text, kind->name);
    } else {
        assert_true(name->required);
    }
}

static void
every_kind_starts_with_its_name(void **state)
{
    (void)state;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        check_kind(schema_kind((enum kind)k));
    }
}

static void
check_texts(const struct schema_field *f, const struct schema_field *table)
{
    (void)table;
    assert_non_null(f->name);
    assert_true(f->label != NULL && f->label[0] != '\0');
    assert_true(f->help != NULL && f->help[0] != '\0');
    assert_true(f->help[strlen(f->help) - 1] == '.');
}

static void
every_field_has_label_and_help(void **state)
{
    (void)state;
    each_field(check_texts);
}

static void
check_list_default(const struct schema_field *f)
{
    assert_true(f->min_items <= f->max_items);
    if (f->required) {
        assert_null(f->default_text);
        return;
    }
    assert_non_null(f->default_text);
    json_auto_t *items = json_loads(f->default_text, 0, NULL);
    assert_true(json_is_array(items));
    assert_true(json_array_size(items) >= f->min_items);
    assert_true(json_array_size(items) <= f->max_items);
}

static void
check_text_default(const struct schema_field *f)
{
    assert_true(f->required == (f->default_text == NULL));
    if (f->default_text != NULL) {
        int64_t length = (int64_t)strlen(f->default_text);
        assert_true(length >= f->min && length <= f->max);
    }
}

static void
check_single_default(const struct schema_field *f)
{
    switch (f->type) {
    case FT_BOOL: assert_true(f->default_int == 0 || f->default_int == 1); break;
    case FT_INT:
        assert_true(f->required || (f->default_int >= f->min && f->default_int <= f->max));
        break;
    case FT_TEXT: check_text_default(f); break;
    case FT_ENUM: assert_true(f->default_int >= 0 && f->default_int < f->value_count); break;
    case FT_REF: assert_null(f->default_text); break;
    case FT_RECORD: fail_msg("%s: a record outside a list", f->name); break;
    }
}

static void
check_default(const struct schema_field *f, const struct schema_field *table)
{
    (void)table;
    if (f->list) {
        check_list_default(f);
    } else {
        assert_false(f->ordered);
        check_single_default(f);
    }
}

static void
every_default_is_within_its_limits(void **state)
{
    (void)state;
    each_field(check_default);
}

static void
check_type(const struct schema_field *f, const struct schema_field *table)
{
    (void)table;
    assert_true(f->min <= f->max);
    assert_int_equal(f->type == FT_ENUM, f->values != NULL);
    assert_int_equal(f->type == FT_ENUM, f->value_count > 0);
    assert_int_equal(f->type == FT_RECORD, f->fields != NULL);
    assert_int_equal(f->type == FT_RECORD, f->field_count > 0);
    if (f->type == FT_TEXT) {
        assert_true((unsigned)f->text_type < TEXT_TYPE_COUNT);
        assert_true(f->min >= 0 && f->max > 0);
    }
    if (f->type == FT_REF) {
        /* A reference is by name at the API: what it names must have one of its own. */
        assert_false(schema_kind(f->ref_kind)->singleton);
    }
    assert_false(f->secret && f->type != FT_TEXT);
    assert_int_equal(f->effect & ~(EFFECT_HAPROXY_RUNTIME | EFFECT_HAPROXY_RELOAD), 0);
}

static void
every_field_has_what_its_type_needs(void **state)
{
    (void)state;
    each_field(check_type);
}

static void
check_when(const struct schema_field *f, const struct schema_field *table)
{
    if (f->when_field < 0) {
        assert_int_equal(f->when_values, 0);
        return;
    }
    const struct schema_field *other = &table[f->when_field];
    assert_true(other < f);
    assert_true(other->type == FT_ENUM || other->type == FT_BOOL);
    uint32_t values = other->type == FT_BOOL ? 2 : other->value_count;
    assert_true(f->when_values != 0 && f->when_values < UINT64_C(1) << values);
}

static void
conditions_name_an_earlier_field(void **state)
{
    (void)state;
    each_field(check_when);
    const struct schema_field *f = &schema_kind(K_MONITOR)->fields[F_MONITOR_PATH];
    assert_int_equal(f->when_field, F_MONITOR_TYPE);
    assert_int_equal(f->when_values, 1 << V_MONITOR_TYPE_HTTP);
    f = &schema_kind(K_LISTENER)->fields[F_LISTENER_CERTIFICATES];
    assert_int_equal(f->when_field, F_LISTENER_TLS);
    assert_int_equal(f->when_values, 1 << 1);
}

static void
names_every_text_type(void **state)
{
    (void)state;
    for (unsigned t = 0; t < TEXT_TYPE_COUNT; t++) {
        assert_true(strlen(schema_text_type_names[t]) > 0);
    }
    assert_string_equal(schema_text_type_names[TT_HOST_PATTERN], "host_pattern");
}

static void
schema_document_holds_every_field(void **state)
{
    (void)state;
    json_auto_t *document = json_loads(schema_json, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(document);
    const json_t *version = json_object_get(document, "x-schema-version");
    assert_int_equal(json_integer_value(version), SCHEMA_VERSION);
    const json_t *kinds = json_object_get(document, "$defs");
    assert_int_equal(json_object_size(kinds), KIND_COUNT);
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);
        const json_t *object = json_object_get(kinds, kind->name);
        const json_t *properties = json_object_get(object, "properties");
        assert_int_equal(json_object_size(properties), kind->field_count);
        for (uint32_t i = 0; i < kind->field_count; i++) {
            const json_t *field = json_object_get(properties, kind->fields[i].name);
            const json_t *help = json_object_get(field, "description");
            assert_string_equal(json_string_value(help), kind->fields[i].help);
        }
    }
}

static void
api_document_has_a_path_for_every_kind(void **state)
{
    (void)state;
    json_auto_t *document = json_loads(schema_openapi_json, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(document);
    const json_t *paths = json_object_get(document, "paths");
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);
        json_auto_t *path = json_sprintf("/api/v1/%s", kind->plural);
        const json_t *item = json_object_get(paths, json_string_value(path));
        assert_non_null(json_object_get(item, "get"));
        assert_non_null(json_object_get(item, kind->singleton ? "patch" : "post"));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_kind_by_name_and_plural),
        cmocka_unit_test(finds_no_unknown_kind),
        cmocka_unit_test(finds_fields_where_the_constants_say),
        cmocka_unit_test(every_kind_starts_with_its_name),
        cmocka_unit_test(every_field_has_label_and_help),
        cmocka_unit_test(every_default_is_within_its_limits),
        cmocka_unit_test(every_field_has_what_its_type_needs),
        cmocka_unit_test(conditions_name_an_earlier_field),
        cmocka_unit_test(names_every_text_type),
        cmocka_unit_test(schema_document_holds_every_field),
        cmocka_unit_test(api_document_has_a_path_for_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/json.h"
#include "model/commit.h"

/* Computed with another program from the same fields. */
#define SAMPLE_ID         "878326747a9bbfcb0505e4ac02a5b222838dc04f720b56c1a3deb427a2d0e85d"
#define SAMPLE_CONFIRM_ID "438693a51d1ab69a4a8c04ed447c49a5ccbb1b286c12b8cdec919cfcab4acde7"

static struct commit
sample(void)
{
    struct commit c = {
        .rev = 7,
        .schema_version = 1,
        .parent_count = 2,
        .node = "node1",
        .author = "admin maria",
        .summary = "caf\303\251 \"x\"",
        .at_ms = 1782864000123,
    };

    memset(c.fp.b, 0x11, sizeof c.fp.b);
    memset(c.parents[0].b, 0x22, sizeof c.parents[0].b);
    memset(c.parents[1].b, 0x33, sizeof c.parents[1].b);
    c.id = commit_compute_id(&c);
    return c;
}

static void
assert_id(const struct commit *c, const char *wanted)
{
    struct hash id = commit_compute_id(c);
    char hex[SHA256_HEX + 1];

    hash_hex(&id, hex);
    assert_string_equal(hex, wanted);
}

static json_t *
canonical_json(const struct commit *c)
{
    CLEANUP(buf_fini) struct buf b = {.max = 65536};
    json_t *j = NULL;
    struct error e;

    commit_canonical(c, &b);
    assert_false(b.failed);
    assert_int_equal(json_parse(b.data, b.len, &j, &e), ERR_OK);
    return j;
}

static void
id_is_the_hash_of_the_canonical_form(void **state)
{
    struct commit c = sample();

    (void)state;
    assert_id(&c, SAMPLE_ID);
    c.confirm_until_ms = 1782864060000;
    assert_id(&c, SAMPLE_CONFIRM_ID);
}

static void
id_covers_every_field(void **state)
{
    const struct commit c = sample();
    struct commit others[10];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        others[i] = c;
    }
    others[0].rev++;
    others[1].schema_version++;
    others[2].fp.b[31] ^= 1;
    others[3].parents[1].b[0] ^= 1;
    others[4].parent_count = 1;
    others[5].node[0] = 'm';
    others[6].author[0] = 'b';
    others[7].summary[0] = 'd';
    others[8].at_ms++;
    others[9].confirm_until_ms = 1;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct hash id = commit_compute_id(&others[i]);

        assert_false(hash_equal(&id, &c.id));
    }
}

static void
order_of_parents_matters(void **state)
{
    struct commit c = sample();
    struct hash first = c.parents[0];
    struct hash id;

    (void)state;
    c.parents[0] = c.parents[1];
    c.parents[1] = first;
    id = commit_compute_id(&c);
    assert_false(hash_equal(&id, &c.id));
}

static void
canonical_form_leads_back(void **state)
{
    struct commit longest = {.rev = INT64_C(9007199254740991), .schema_version = INT_MAX};
    struct commit cases[4] = {sample(), sample(), {.rev = 1, .schema_version = 1}};

    (void)state;
    cases[1].confirm_until_ms = 5;
    longest.parent_count = COMMIT_MAX_PARENTS;
    for (size_t i = 0; i < COMMIT_MAX_PARENTS; i++) {
        longest.parents[i].b[0] = (uint8_t)i;
    }
    memset(longest.node, '"', sizeof longest.node - 1);
    memset(longest.author, '\\', sizeof longest.author - 1);
    memset(longest.summary, 's', sizeof longest.summary - 1);
    cases[3] = longest;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *j = canonical_json(&cases[i]);
        struct commit back;
        struct hash id = commit_compute_id(&cases[i]);
        struct error e;

        assert_int_equal(commit_from_json(j, &back, &e), ERR_OK);
        assert_true(hash_equal(&back.id, &id));
        assert_int_equal(back.rev, cases[i].rev);
        assert_int_equal(back.schema_version, cases[i].schema_version);
        assert_int_equal(back.parent_count, cases[i].parent_count);
        assert_memory_equal(back.parents, cases[i].parents, sizeof back.parents);
        assert_true(hash_equal(&back.fp, &cases[i].fp));
        assert_string_equal(back.node, cases[i].node);
        assert_string_equal(back.author, cases[i].author);
        assert_string_equal(back.summary, cases[i].summary);
        assert_int_equal(back.at_ms, cases[i].at_ms);
        assert_int_equal(back.confirm_until_ms, cases[i].confirm_until_ms);
    }
}

static void
given_id_must_follow_from_the_content(void **state)
{
    const struct commit c = sample();
    json_auto_t *j = canonical_json(&c);
    struct commit back;
    struct error e;

    (void)state;
    assert_int_equal(json_object_set_new(j, "id", json_string(SAMPLE_ID)), 0);
    assert_int_equal(commit_from_json(j, &back, &e), ERR_OK);
    assert_true(hash_equal(&back.id, &c.id));
    assert_int_equal(json_object_set_new(j, "id", json_string(SAMPLE_CONFIRM_ID)), 0);
    assert_int_equal(commit_from_json(j, &back, &e), ERR_INVALID);
    assert_non_null(strstr(e.msg, "id"));
    assert_int_equal(json_object_set_new(j, "id", json_string("12")), 0);
    assert_int_equal(commit_from_json(j, &back, &e), ERR_INVALID);
}

/* One key of a sound commit, and what it is replaced by; NULL: removed. */
struct bad {
    const char *key;
    const char *value; /* JSON */
    err_t code;
};

#define ID22 "\"2222222222222222222222222222222222222222222222222222222222222222\""

static const struct bad bads[] = {
    {"rev", NULL, ERR_SYNTAX},
    {"rev", "0", ERR_INVALID},
    {"rev", "\"7\"", ERR_SYNTAX},
    {"rev", "1", ERR_INVALID},
    {"schema_version", "0", ERR_INVALID},
    {"schema_version", NULL, ERR_SYNTAX},
    {"at", "-1", ERR_INVALID},
    {"at", NULL, ERR_SYNTAX},
    {"confirm_until", "0", ERR_INVALID},
    {"node", NULL, ERR_SYNTAX},
    {"author", NULL, ERR_SYNTAX},
    {"summary", NULL, ERR_SYNTAX},
    {"summary", "\"a\\nb\"", ERR_INVALID},
    {"node", "\"0123456789012345678901234567890123456789012345678901234567890123x\"",
     ERR_INVALID},
    {"fp", NULL, ERR_SYNTAX},
    {"fp", "\"11\"", ERR_INVALID},
    {"parents", NULL, ERR_INVALID},
    {"parents", "{}", ERR_INVALID},
    {"parents", "[]", ERR_INVALID},
    {"parents", "[7]", ERR_INVALID},
    {"parents", "[\"x\"]", ERR_INVALID},
    {"parents", "[" ID22 "," ID22 "]", ERR_INVALID},
    {"parents", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", ERR_INVALID},
    {"other", "1", ERR_SYNTAX},
};

static void
refuses_what_is_no_commit(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bads); i++) {
        const struct commit c = sample();
        json_auto_t *j = canonical_json(&c);
        struct commit back = {.rev = -5};
        struct error e;

        if (bads[i].value == NULL) {
            assert_int_equal(json_object_del(j, bads[i].key), 0);
        } else {
            json_t *v = json_loads(bads[i].value, JSON_DECODE_ANY, NULL);

            assert_non_null(v);
            assert_int_equal(json_object_set_new(j, bads[i].key, v), 0);
        }
        assert_int_equal(commit_from_json(j, &back, &e), bads[i].code);
        assert_int_equal(back.rev, -5);
    }
}

static void
first_revision_has_no_parents(void **state)
{
    const struct commit c = {.rev = 2, .schema_version = 1};
    json_auto_t *j = canonical_json(&c);
    struct commit back;
    struct error e;

    (void)state;
    assert_int_equal(commit_from_json(j, &back, &e), ERR_INVALID);
}

static void
shows_ids_and_times_to_people(void **state)
{
    struct commit c = sample();
    json_auto_t *j = commit_to_json(&c);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(j, "id")), SAMPLE_ID);
    assert_string_equal(json_string_value(json_object_get(j, "fp8")), "11111111");
    assert_string_equal(
        json_string_value(json_object_get(j, "at")), "2026-07-01T00:00:00.123Z");
    assert_null(json_object_get(j, "confirm_until"));
    assert_int_equal(json_integer_value(json_object_get(j, "rev")), 7);
    assert_int_equal(json_array_size(json_object_get(j, "parents")), 2);
}

static void
writes_times_of_all_years(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {-1, "1969-12-31T23:59:59.999Z"},
        {1, "1970-01-01T00:00:00.001Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {951868799999, "2000-02-29T23:59:59.999Z"},
        {951868800000, "2000-03-01T00:00:00.000Z"},
        {4107542399999, "2100-02-28T23:59:59.999Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
        {1798761599000, "2026-12-31T23:59:59.000Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct commit c = sample();
        json_auto_t *j = NULL;

        c.at_ms = cases[i].ms;
        c.confirm_until_ms = cases[i].ms;
        j = commit_to_json(&c);
        assert_string_equal(json_string_value(json_object_get(j, "at")), cases[i].text);
        assert_string_equal(
            json_string_value(json_object_get(j, "confirm_until")), cases[i].text);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_is_the_hash_of_the_canonical_form),
        cmocka_unit_test(id_covers_every_field),
        cmocka_unit_test(order_of_parents_matters),
        cmocka_unit_test(canonical_form_leads_back),
        cmocka_unit_test(given_id_must_follow_from_the_content),
        cmocka_unit_test(refuses_what_is_no_commit),
        cmocka_unit_test(first_revision_has_no_parents),
        cmocka_unit_test(shows_ids_and_times_to_people),
        cmocka_unit_test(writes_times_of_all_years),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

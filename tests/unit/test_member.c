/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "model/member.h"

#define PIN "sha256//AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJ+/0="

static struct member
sample(void)
{
    return (struct member){
        .id = "0123456789abcdef0123456789abcdef",
        .seq = 7,
        .name = "proxy1",
        .url = "https://192.0.2.1:8443",
        .pin = PIN,
        .release = "0.1.0",
        .schema_version = 2,
        .key = "secret-key",
    };
}

static void
assert_leads_back(const struct member *m)
{
    json_auto_t *j = member_to_json(m);
    struct member wanted = *m;
    struct member back;
    struct error e;

    if (member_from_json(j, &back, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    memset(wanted.key, 0, sizeof wanted.key);
    assert_string_equal(back.id, wanted.id);
    assert_int_equal(back.seq, wanted.seq);
    assert_int_equal(back.gone, wanted.gone);
    assert_int_equal(back.gone_at_ms, wanted.gone_at_ms);
    assert_string_equal(back.name, wanted.name);
    assert_string_equal(back.url, wanted.url);
    assert_string_equal(back.pin, wanted.pin);
    assert_string_equal(back.release, wanted.release);
    assert_int_equal(back.schema_version, wanted.schema_version);
    assert_string_equal(back.tables_address, wanted.tables_address);
    assert_int_equal(back.tables_port, wanted.tables_port);
    assert_string_equal(back.key, "");
}

static void
record_leads_back_without_its_key(void **state)
{
    struct member m = sample();
    CLEANUP(buf_fini) struct buf b = {.max = 4096};
    json_auto_t *j = member_to_json(&m);

    (void)state;
    json_canonical(j, &b);
    assert_string_equal(
        buf_str(&b), "{\"gone\":false,\"id\":\"0123456789abcdef0123456789abcdef\","
                     "\"name\":\"proxy1\",\"pin\":\"" PIN "\",\"release\":\"0.1.0\","
                     "\"schema_version\":2,\"seq\":7,\"url\":\"https://192.0.2.1:8443\"}");
    assert_leads_back(&m);
    m.gone = true;
    assert_leads_back(&m);
    m.gone_at_ms = INT64_C(253402300799999);
    m.seq = INT64_C(9007199254740991);
    m.schema_version = INT_MAX;
    memset(m.name, 'n', sizeof m.name - 1);
    memset(m.release, '9', sizeof m.release - 1);
    assert_leads_back(&m);
    m = sample();
    m.url[0] = '\0';
    assert_leads_back(&m);
    m.pin[0] = '\0';
    assert_leads_back(&m);
}

static void
record_says_where_stick_tables_are_taken(void **state)
{
    struct member m = sample();

    (void)state;
    m.tables_port = 65535;
    memcpy(m.tables_address, "192.0.2.1", sizeof "192.0.2.1");
    assert_leads_back(&m);
    memcpy(m.tables_address, "2001:db8::1", sizeof "2001:db8::1");
    m.tables_port = 1;
    assert_leads_back(&m);
}

static void
tables_are_taken_at_the_own_address_else_at_that_of_the_url(void **state)
{
    static const struct {
        const char *own, *url, *wanted;
    } cases[] = {
        {"", "https://192.0.2.1:8443", "192.0.2.1"},
        {"", "http://192.0.2.1", "192.0.2.1"},
        {"", "https://[2001:DB8::1]:8443", "2001:db8::1"},
        {"192.0.2.2", "https://192.0.2.1:8443", "192.0.2.2"},
        {"2001:db8::2", "https://proxy1.example.test", "2001:db8::2"},
        {"", "https://proxy1.example.test:8443", ""},
        {"", "https://127.0.0.1:8443", ""},
        {"", "https://[::1]:8443", ""},
        {"", "https://[fe80::1]:8443", ""},
        {"", "https://[2001:db8::1", "2001:db8::1"},
        {"", "https://a234567890123456789012345678901234567890123456789.test", ""},
        {"", "192.0.2.1", ""},
        {"", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char address[MEMBER_IP_BYTES] = "x";

        member_tables_address(cases[i].own, cases[i].url, address);
        assert_string_equal(address, cases[i].wanted);
    }
}

static void
url_has_an_address_and_a_port_only(void **state)
{
    static const char *const good[] = {
        "https://192.0.2.1", "https://192.0.2.1:1", "https://[2001:db8::1]:8443",
        "https://proxy1.example.test:65535"};
    struct member m = sample();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        memcpy(m.url, good[i], strlen(good[i]) + 1);
        assert_leads_back(&m);
    }
}

static void
newer_fields_are_passed_over(void **state)
{
    struct member m = sample();
    json_auto_t *j = member_to_json(&m);
    struct member back;
    struct error e;

    (void)state;
    assert_int_equal(json_object_set_new(j, "priority", json_integer(100)), 0);
    assert_int_equal(json_object_set_new(j, "key", json_string("x")), 0);
    assert_int_equal(member_from_json(j, &back, &e), ERR_OK);
    assert_string_equal(back.key, "");
}

/* A field and a value in JSON that is refused; NULL: the field is missing. */
struct bad {
    const char *field, *value;
};

static const struct bad bad[] = {
    {"id", "\"0123456789ABCDEF0123456789abcdef\""},
    {"id", "\"0123456789abcdef0123456789abcde\""},
    {"id", "\"0123456789abcdef0123456789abcdef0\""},
    {"id", "\"g123456789abcdef0123456789abcdef\""},
    {"id", "1"},
    {"seq", "0"},
    {"seq", "-1"},
    {"seq", "\"7\""},
    {"seq", "null"},
    {"gone", "0"},
    {"gone", "null"},
    {"gone_at_ms", "0"},
    {"gone_at_ms", "253402300800000"},
    {"gone_at_ms", "\"1\""},
    {"name", "\"\""},
    {"name", "\"two words\""},
    {"name", "\"lockstep1\""},
    {"name", "\"n234567890123456789012345678901234567890123456789012345678901234567\""},
    {"url", "\"http://192.0.2.1\""},
    {"url", "\"https://\""},
    {"url", "\"https://192.0.2.1/\""},
    {"url", "\"https://192.0.2.1:8443/x\""},
    {"url", "\"https://192.0.2.1?x\""},
    {"url", "\"https://192.0.2.1#x\""},
    {"url", "\"https://user@192.0.2.1\""},
    {"url", "\"https://192.0.2.1:65536\""},
    {"url", "\"https://192.0.2.1:8443 x\""},
    {"url", "\"192.0.2.1\""},
    {"url", "null"},
    {"pin", "\"\""},
    {"pin", "\"sha256//\""},
    {"pin", "\"sha256//AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJ+/0\""},
    {"pin", "\"sha256//AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJ+/00\""},
    {"pin", "\"sha256//AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJ+;0=\""},
    {"pin", "\"sha512//AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJ+/0=\""},
    {"pin", "\"" PIN ";" PIN "\""},
    {"pin", "true"},
    {"release", "\"\""},
    {"release", "\"0.1.0 \""},
    {"release", "\"01234567890123456789012345678901\""},
    {"release", "\"0.1\\u0007\""},
    {"schema_version", "0"},
    {"schema_version", "2147483648"},
    {"schema_version", "\"2\""},
    {"tables_address", "\"\""},
    {"tables_address", "\"127.0.0.1\""},
    {"tables_address", "\"2001:DB8::1\""},
    {"tables_address", "\"192.0.2.1 unless\""},
    {"tables_address", "\"proxy1\""},
    {"tables_address", "1"},
    {"tables_port", "0"},
    {"tables_port", "65536"},
    {"tables_port", "\"8444\""},
    {"tables_port", NULL},
    {"id", NULL},
    {"seq", NULL},
    {"gone", NULL},
    {"name", NULL},
    {"url", NULL},
    {"pin", NULL},
    {"release", NULL},
    {"schema_version", NULL},
};

static void
whatever_is_wrong_is_refused_by_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct member m = sample();
        struct member back = {.seq = -1};
        json_auto_t *j = member_to_json(&m);
        json_t *value = NULL;
        struct error e = {0};

        json_object_set_new(j, "gone", json_true());
        json_object_set_new(j, "tables_address", json_string("192.0.2.1"));
        json_object_set_new(j, "tables_port", json_integer(8444));
        if (bad[i].value == NULL) {
            assert_int_equal(json_object_del(j, bad[i].field), 0);
        } else {
            value = json_loads(bad[i].value, JSON_DECODE_ANY, NULL);
            assert_non_null(value);
            assert_int_equal(json_object_set_new(j, bad[i].field, value), 0);
        }
        if (member_from_json(j, &back, &e) != ERR_INVALID) {
            fail_msg("accepted: %s %s", bad[i].field, bad[i].value);
        }
        assert_memory_equal(e.msg, bad[i].field, strlen(bad[i].field));
        assert_int_equal(back.seq, -1);
    }
}

static void
member_is_an_object(void **state)
{
    json_auto_t *list = json_array();
    struct member back;
    struct error e;

    (void)state;
    assert_int_equal(member_from_json(list, &back, &e), ERR_INVALID);
    assert_int_equal(member_from_json(NULL, &back, &e), ERR_INVALID);
}

static void
higher_seq_wins_and_of_equals_the_tombstone(void **state)
{
    /* seq and gone of the offered, then of the held one */
    static const struct {
        int64_t offered;
        bool offered_gone;
        int64_t held;
        bool held_gone, wins;
    } cases[] = {
        {2, false, 1, false, true}, {1, false, 2, false, false}, {1, false, 1, false, false},
        {1, true, 1, false, true},  {1, false, 1, true, false},  {1, true, 1, true, false},
        {2, false, 1, true, true},  {1, true, 2, false, false},  {2, true, 1, false, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct member offered = sample();
        struct member held = sample();

        offered.seq = cases[i].offered;
        offered.gone = cases[i].offered_gone;
        held.seq = cases[i].held;
        held.gone = cases[i].held_gone;
        assert_int_equal(member_replaces(&offered, &held), cases[i].wins);
    }
}

static void
no_record_is_newer_than_any_that_is_accepted(void **state)
{
    struct member m = sample();

    (void)state;
    m.seq = 7;
    member_raise(&m, 2);
    assert_int_equal(m.seq, 9);
    for (int i = 0; i < 3; i++) {
        json_auto_t *j = NULL;
        struct member back;
        struct error e;

        m.seq = i == 0 ? ((int64_t)1 << 53) - 2 : m.seq;
        member_raise(&m, 1000);
        j = member_to_json(&m);
        assert_int_equal(member_from_json(j, &back, &e), ERR_OK);
        assert_int_equal(back.seq, ((int64_t)1 << 53) - 1);
    }
}

static void
a_key_is_what_a_header_may_hold(void **state)
{
    static const char too_long[] =
        "01234567890123456789012345678901234567890123456789012345678901234";
    static const char *const wrong[] = {"",   "a b",   "a\r\nHost: x", "a\"", "k\xc3\xa4se",
                                        "a=", too_long};

    (void)state;
    assert_true(member_key_valid("aZ09_-"));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_false(member_key_valid(wrong[i]));
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_leads_back_without_its_key),
        cmocka_unit_test(record_says_where_stick_tables_are_taken),
        cmocka_unit_test(tables_are_taken_at_the_own_address_else_at_that_of_the_url),
        cmocka_unit_test(url_has_an_address_and_a_port_only),
        cmocka_unit_test(newer_fields_are_passed_over),
        cmocka_unit_test(whatever_is_wrong_is_refused_by_its_name),
        cmocka_unit_test(member_is_an_object),
        cmocka_unit_test(higher_seq_wins_and_of_equals_the_tombstone),
        cmocka_unit_test(no_record_is_newer_than_any_that_is_accepted),
        cmocka_unit_test(a_key_is_what_a_header_may_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

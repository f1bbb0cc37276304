/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/object_lab.h"

#define SERVER   "{'name':'server1','address':'10.0.0.1','port':80}"
#define PASSWORD "correct horse"

/* ---- hostile texts ---- */

static const struct text hostile[] = {
#define T(s)                                                                                   \
    {                                                                                          \
        s, sizeof s - 1                                                                        \
    }
    T("a b"),
    T("\""),
    T("'"),
    T("\\"),
    T("a\\"),
    T("#"),
    T("a #b"),
    T("$HOME"),
    T("${X}"),
    T("%[src]"),
    T("%"),
    T("{}"),
    T(";"),
    T("-i"),
    T("\xc3\xbc"),
    T(""),
    T("\r"),
    T("\n"),
    T("\t"),
    T("\0"),
    T("a\0b"),
    T("x\n    http-request deny"),
    T("a\r\nb"),
    T("`id`"),
    T("$(id)"),
    T("|"),
    T("<script>"),
    T("../../etc"),
    T("/../x"),
    T("*"),
    T("\xff"),
    T("\xe2\x80\xa8"),
    T("a,b"),
    T("acl"),
    T("\x1b[2J"),
    T("0123456789012"),
    T("0123456789 \"\\#$ ;"),
    T("000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
      "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
      "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
      "000000000000000000000000000000000000000"),
#undef T
};

/* A body in which only this text field can be wrong. */
static json_t *
body_with(enum kind kind, const struct schema_field *f, const struct text *t)
{
    static const char *const bodies[KIND_COUNT] = {
        [K_ADMIN] = "{'name':'a','password':'" PASSWORD "'}",
        [K_AUTOMATION_KEY] = "{'name':'a'}",
        [K_CERTIFICATE] = "{'name':'a'}",
        [K_CONDITION] = "{'name':'a','type':'path'}",
        [K_HAPROXY] = "{}",
        [K_LISTENER] = "{'name':'a','port':1}",
        [K_MONITOR] = "{'name':'a'}",
        [K_NODE] = "{}",
        [K_POOL] = "{'name':'a'}",
        [K_RULE] = "{'name':'a','action':'deny'}",
        [K_SERVER] = SERVER,
        [K_SERVER_STATE] = "{'name':'a','server':'server1'}",
        [K_SERVICE] = "{'name':'a','listeners':['listener1'],'pool':'pool1'}",
        [K_VIP_GROUP] = "{'name':'a','addresses':['192.0.2.1/24']}",
        [K_WEBUI] = "{}",
    };
    json_t *body = lab_json(bodies[kind]);
    json_t *value = json_stringn_nocheck(t->s, t->len);

    json_object_set_new(body, f->name, f->list ? json_pack("[o]", value) : value);
    return body;
}

/* Refused at its field, or stored byte for byte. */
static bool
try_hostile(struct object_lab *w, enum kind kind, uint32_t i, const struct text *t)
{
    const struct schema_kind *k = schema_kind(kind);
    const struct schema_field *f = &k->fields[i];
    json_auto_t *body = body_with(kind, f, t);
    const char *id = k->singleton ? k->name : LAB_ID;
    char pointer[100];
    struct object *o;
    const struct value *v;
    bool refused_here = false;

    problems_init(&w->p, w->p.arena);
    o = object_parse(kind, id, body, NULL, &lab_refs, &w->p);
    (void)snprintf(pointer, sizeof pointer, "/%s%s", f->name, f->list ? "/0" : "");
    for (size_t j = 0; j < w->p.count; j++) {
        refused_here = refused_here || strcmp(w->p.items[j].pointer, pointer) == 0;
    }
    if (refused_here) {
        assert_null(o);
        return false;
    }
    /* A certificate lacks its other half, which is another field's problem. */
    assert_true(o != NULL || kind == K_CERTIFICATE);
    if (o == NULL) {
        return true;
    }
    v = object_value(o, i);
    v = f->list ? &v->u.items[0] : v;
    assert_int_equal(v->u.text.len, t->len);
    assert_memory_equal(v->u.text.s, t->s, t->len);
    object_unref(o);
    return true;
}

static void
hostile_texts_are_refused_or_stored_byte_for_byte(void **state)
{
    size_t taken = 0;
    size_t fields = 0;

    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = &schema_kinds[k];

        for (uint32_t i = 0; i < kind->field_count; i++) {
            if (kind->fields[i].type != FT_TEXT) {
                continue;
            }
            fields++;
            for (size_t j = 0; j < ARRAY_LEN(hostile); j++) {
                const struct text *t = &hostile[j];
                /* A body stands in a file of its own. */
                bool lines = kind->fields[i].text_type == TT_BODY;
                bool breaks = (memchr(t->s, '\n', t->len) && !lines) ||
                              memchr(t->s, '\r', t->len) || memchr(t->s, '\0', t->len);
                bool stored = try_hostile(*state, (enum kind)k, i, t);

                assert_false(stored && breaks);
                taken += stored ? 1 : 0;
            }
        }
    }
    assert_true(fields > KIND_COUNT);
    assert_true(taken > 3 * fields);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OBJECT_LAB_TEST(hostile_texts_are_refused_or_stored_byte_for_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

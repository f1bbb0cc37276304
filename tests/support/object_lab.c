/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/object_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

#define ARENA_BYTES ((size_t)16 << 20)
#define TEXT_BYTES  ((size_t)1 << 20)

static const char *
id_of_name(void *ctx, enum kind kind, const char *name)
{
    static const char *const ids[] = {
        "0000000000000000", "0000000000000001", "0000000000000002", "0000000000000003"};
    size_t len = strlen(schema_kind(kind)->name);

    (void)ctx;
    if (strncmp(name, schema_kind(kind)->name, len) != 0 || name[len] < '0' ||
        name[len] > '3' || name[len + 1] != '\0') {
        return NULL;
    }
    return ids[name[len] - '0'];
}

static const char *
name_of_id(void *ctx, enum kind kind, const char *id)
{
    static char name[64];

    (void)ctx;
    if (strcmp(id, "0000000000000003") > 0) {
        return NULL;
    }
    (void)snprintf(name, sizeof name, "%s%c", schema_kind(kind)->name, id[15]);
    return name;
}

const struct object_refs lab_refs = {id_of_name, name_of_id, NULL};

int
object_lab_setup(void **state)
{
    struct object_lab *w = xcalloc(1, sizeof *w);

    problems_init(&w->p, arena_new(ARENA_BYTES));
    *state = w;
    return 0;
}

int
object_lab_teardown(void **state)
{
    struct object_lab *w = *state;

    arena_free(w->p.arena);
    free(w);
    return 0;
}

json_t *
lab_json(const char *text)
{
    char *copy = xstrdup(text);
    json_t *v = NULL;
    struct error e;

    for (char *s = copy; *s != '\0'; s++) {
        *s = *s == '\'' ? '"' : *s;
    }
    if (json_parse(copy, strlen(copy), &v, &e) != ERR_OK) {
        print_error("%s: %s\n", text, e.msg);
        fail();
    }
    free(copy);
    return v;
}

struct object *
lab_parse_over(
    struct object_lab *w, enum kind kind, const char *body, const struct object *base)
{
    json_auto_t *b = lab_json(body);

    problems_init(&w->p, w->p.arena);
    return object_parse(kind, LAB_ID, b, base, &lab_refs, &w->p);
}

struct object *
lab_parse(struct object_lab *w, enum kind kind, const char *body)
{
    struct object *o = lab_parse_over(w, kind, body, NULL);

    if (o == NULL) {
        print_error("%s: %s\n", w->p.items[0].pointer, w->p.items[0].message);
    }
    assert_non_null(o);
    assert_int_equal(w->p.count, 0);
    return o;
}

void
lab_refused_over(
    struct object_lab *w, enum kind kind, const char *body, const struct object *base,
    const char *problems)
{
    struct object *o = lab_parse_over(w, kind, body, base);
    struct buf got;

    buf_init(&got, TEXT_BYTES);
    for (size_t i = 0; i < w->p.count; i++) {
        const struct problem *x = &w->p.items[i];

        buf_printf(&got, "%s%s %s", i > 0 ? "\n" : "", x->code, x->pointer);
        assert_int_equal(x->severity, SEVERITY_ERROR);
        assert_string_equal(x->kind, schema_kind(kind)->name);
        assert_true(strlen(x->message) > 10);
        assert_int_equal(x->message[strlen(x->message) - 1], '.');
    }
    assert_string_equal(buf_str(&got), problems);
    buf_fini(&got);
    assert_null(o);
}

void
lab_refused(struct object_lab *w, enum kind kind, const char *body, const char *problems)
{
    lab_refused_over(w, kind, body, NULL, problems);
}

void
lab_says(const struct object_lab *w, const char *words)
{
    if (strstr(w->p.items[0].message, words) == NULL) {
        print_error("%s\n", w->p.items[0].message);
    }
    assert_non_null(strstr(w->p.items[0].message, words));
}

void
lab_canonical(const struct object *o, const char *want)
{
    char *text = xstrdup(want);

    for (char *s = text; *s != '\0'; s++) {
        *s = *s == '\'' ? '"' : *s;
    }
    assert_string_equal(o->canonical, text);
    free(text);
}

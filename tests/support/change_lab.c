/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/change_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/gen.h"
#include "tests/support/object_lab.h"

#define ARENA_BYTES ((size_t)16 << 20)
#define TEXT_BYTES  ((size_t)1 << 20)

void
lab_op(
    struct change_lab *w, enum change_op op, enum kind kind, const char *name, const char *body)
{
    struct change c = {.op = op, .kind = kind, .name = name};

    c.body = body != NULL ? lab_json(body) : NULL;
    assert_int_equal(change_set_add(&w->set, c, &w->e), ERR_OK);
}

static void
go_on(struct change_lab *w, struct snapshot *shared, struct snapshot *local)
{
    snapshot_unref(w->shared);
    snapshot_unref(w->local);
    w->shared = shared;
    w->local = local;
    w->pair = (struct snapshot_pair){shared, local};
}

static err_t
apply(struct change_lab *w, struct snapshot **shared, struct snapshot **local)
{
    err_t code;

    problems_init(&w->p, w->p.arena);
    code = change_apply(&w->set, &w->pair, shared, local, &w->p, &w->e);
    change_set_fini(&w->set);
    return code;
}

void
lab_works(struct change_lab *w)
{
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    err_t code = apply(w, &shared, &local);

    if (code != ERR_OK) {
        print_error("%s\n", w->e.msg);
        gen_print_problems(&w->p);
    }
    assert_int_equal(code, ERR_OK);
    assert_int_equal(w->p.count, 0);
    go_on(w, shared, local);
}

void
lab_fails(struct change_lab *w, err_t code, const char *words, const char *problems)
{
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    struct buf got;

    assert_int_equal(apply(w, &shared, &local), code);
    assert_int_equal(w->e.code, code);
    assert_null(shared);
    assert_null(local);
    if (strstr(w->e.msg, words) == NULL) {
        print_error("%s\n", w->e.msg);
    }
    assert_non_null(strstr(w->e.msg, words));
    buf_init(&got, TEXT_BYTES);
    for (size_t i = 0; i < w->p.count; i++) {
        const struct problem *x = &w->p.items[i];

        buf_printf(
            &got, "%s%s %s %s %s", i > 0 ? "\n" : "", x->code, x->kind,
            x->name != NULL ? x->name : "-", x->pointer);
    }
    assert_string_equal(buf_str(&got), problems);
    buf_fini(&got);
}

const struct object *
lab_find(const struct change_lab *w, enum kind kind, const char *name)
{
    return snapshot_by_name(snapshot_of(&w->pair, kind), kind, name);
}

struct change_lab *
change_lab_new(void)
{
    struct change_lab *w = xcalloc(1, sizeof *w);

    problems_init(&w->p, arena_new(ARENA_BYTES));
    change_set_init(&w->set);
    go_on(w, snapshot_initial(SCOPE_SHARED), snapshot_initial(SCOPE_LOCAL));
    lab_op(w, CHANGE_CREATE, K_SERVICE, NULL, "{'name':'s','listeners':['l'],'pool':'p'}");
    lab_op(
        w, CHANGE_CREATE, K_POOL, NULL,
        "{'name':'p','members':[{'server':'a','weight':5}],'monitor':'m'}");
    lab_op(w, CHANGE_CREATE, K_SERVER, NULL, "{'name':'b','address':'10.0.0.2','port':80}");
    lab_op(w, CHANGE_CREATE, K_SERVER, "a", "{'address':'10.0.0.1','port':80}");
    lab_op(w, CHANGE_CREATE, K_LISTENER, "l", "{'name':'l','port':80}");
    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{'name':'m'}");
    lab_works(w);
    return w;
}

void
change_lab_free(struct change_lab *w)
{
    change_set_fini(&w->set);
    arena_free(w->p.arena);
    go_on(w, NULL, NULL);
    free(w);
}

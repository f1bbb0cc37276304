/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/fuzz_lab.h"

#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

static const char objects[] =
    "[{'kind':'server','name':'a','address':'10.0.0.1','port':80},"
    "{'kind':'server','name':'b','address':'10.0.0.2','port':80},"
    "{'kind':'monitor','name':'m'},"
    "{'kind':'pool','name':'p','members':[{'server':'a','weight':5},{'server':'b'}],"
    "'monitor':'m'},"
    "{'kind':'listener','name':'l','port':80},"
    "{'kind':'service','name':'s','listeners':['l'],'pool':'p','hosts':['a.test']}]";

json_t *
fuzz_json(const uint8_t *data, size_t size)
{
    json_t *v = NULL;
    struct error e = {.code = ERR_OK};

    return json_parse((const char *)data, size, &v, &e) == ERR_OK ? v : NULL;
}

void
fuzz_pair_init(struct pair *x)
{
    static struct pair first;

    if (first.shared == NULL) {
        pair_init(&first, objects);
    }
    *x = (struct pair){
        .objects = first.objects,
        .shared = snapshot_ref(first.shared),
        .local = snapshot_ref(first.local),
        .arena = arena_new(ARENA_DEFAULT_BYTES),
    };
    problems_init(&x->problems, x->arena);
}

static void
check_ref(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    const struct snapshot_pair *pair = ctx;

    ASSERT(pointer[0] == '/');
    ASSERT(snapshot_by_id(snapshot_of(pair, kind), kind, id) != NULL);
}

static void
check_snapshot(const struct snapshot *s, struct snapshot_pair *pair)
{
    for (size_t i = 0; i < snapshot_count(s); i++) {
        const struct object *o = snapshot_at(s, i);
        struct object *again = NULL;
        struct error e = {.code = ERR_OK};
        err_t code =
            object_from_canonical(o->kind, o->id, o->canonical, o->canonical_len, &again, &e);

        ASSERT(code == ERR_OK);
        ASSERT(memcmp(&again->objhash, &o->objhash, sizeof o->objhash) == 0);
        object_unref(again);
        ASSERT(snapshot_of(pair, o->kind) == s);
        ASSERT(snapshot_by_id(s, o->kind, o->id) == o);
        ASSERT(snapshot_by_name(s, o->kind, o->name.s) == o);
        object_each_ref(o, check_ref, pair);
    }
}

void
fuzz_check_pair(const struct snapshot_pair *pair)
{
    struct snapshot_pair both = *pair;

    check_snapshot(both.shared, &both);
    check_snapshot(both.local, &both);
}

void
fuzz_check_problems(const struct problems *p)
{
    ASSERT(p->count <= PROBLEMS_MAX);
    ASSERT(p->errors <= p->count + p->dropped);
    for (size_t i = 0; i < p->count; i++) {
        const struct problem *x = &p->items[i];

        ASSERT(x->code[0] != '\0');
        ASSERT(x->pointer[0] == '\0' || x->pointer[0] == '/');
        ASSERT(utf8_valid(x->message, strlen(x->message)));
        ASSERT(utf8_valid(x->pointer, strlen(x->pointer)));
        ASSERT(x->name == NULL || utf8_valid(x->name, strlen(x->name)));
    }
}

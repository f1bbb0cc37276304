/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/publishing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/x509.h"

#define PEM_BYTES 65536
#define DAYS      365
#define DAY_S     86400

static err_t
make_placeholder(
    void *ctx, const char *const *names, struct buf *chain, struct buf *key, struct error *e)
{
    (void)ctx;
    return x509_selfsigned(names, PUBLISH_NOW_S, DAYS, chain, key, e);
}

const char *
publish_to(struct pair *x, const json_t *request, size_t *ret_ops)
{
    struct publish_input in = {
        .now = &x->objects, .now_s = PUBLISH_NOW_S, .tools = {make_placeholder, NULL}};
    struct change_set set;
    const char *service = NULL;
    change_set_init(&set);
    publish_plan(request, &in, x->arena, &set, &service, pair_clear(x));
    if (ret_ops != NULL) {
        *ret_ops = set.count;
    }
    if (x->problems.errors == 0) {
        struct problems planned = x->problems;
        pair_apply(x, &set);
        x->problems = planned;
    }
    change_set_fini(&set);
    return service;
}

const char *
publish_text(struct pair *x, const char *request, size_t *ret_ops)
{
    json_t *json = pair_json(request);
    const char *service = publish_to(x, json, ret_ops);
    json_decref(json);
    if (service == NULL) {
        (void)fprintf(stderr, "publish: %s\n", x->problems.items[0].message);
        abort();
    }
    return service;
}

void
publish_remove(struct pair *x, const char *service)
{
    struct change_set set;
    struct error e = {0};
    change_set_init(&set);
    if (publish_remove_plan(service, &x->objects, x->arena, &set, &e) != ERR_OK) {
        (void)fprintf(stderr, "publish: %s\n", e.msg);
        abort();
    }
    pair_apply(x, &set);
    change_set_fini(&set);
}

json_t *
publish_certificate(const char *name, const char *const *names, int days)
{
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;
    struct error e;
    buf_init(&chain, PEM_BYTES);
    buf_init(&key, PEM_BYTES);
    int64_t from_s = PUBLISH_NOW_S - (int64_t)100 * DAY_S;
    if (x509_selfsigned(names, from_s, days, &chain, &key, &e) != ERR_OK) {
        (void)fprintf(stderr, "certificate: %s\n", e.msg);
        abort();
    }
    return json_pack(
        "{s:s, s:s, s:s, s:s}", "kind", "certificate", "name", name, "chain", buf_str(&chain),
        "key", buf_str(&key));
}

const char *
publish_inventory(const struct pair *x)
{
    const char *all = "";
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);
        const struct object *const *items;
        if (kind->scope != SCOPE_SHARED || kind->singleton) {
            continue;
        }
        size_t count = snapshot_kind(x->shared, (enum kind)k, &items);
        for (size_t i = 0; i < count; i++) {
            const char *space = all[0] != '\0' ? " " : "";
            all = arena_printf(x->arena, "%s%s%s:%s", all, space, kind->name, items[i]->name.s);
        }
    }
    return all;
}

const char *
publish_shown(const struct pair *x, enum kind kind, const char *name, const char *field)
{
    struct object_refs refs = snapshot_refs(&x->objects);
    json_t *o = object_to_json(pair_find(x, kind, name), &refs);
    char *text =
        json_dumps(json_object_get(o, field), JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    const char *kept = arena_strdup(x->arena, text);
    free(text);
    json_decref(o);
    return kept;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/renames.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "helper/name.h"
#include "helper/protocol.h"

#define NAME_MAX_BYTES 64

static bool
is_name(const char *name)
{
    return strlen(name) <= NAME_MAX_BYTES && name_is(name);
}

static int
by_text(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;

    return strcmp(*x, *y);
}

static int
by_from(const void *a, const void *b)
{
    const struct rename *x = a;
    const struct rename *y = b;

    return strcmp(x->from, y->from);
}

static err_t
read_item(const json_t *v, struct rename *ret, struct error *e)
{
    static const char *const keys[] = {"from", "to", NULL};
    err_t code = json_is_object(v) ? json_only_keys(v, keys, e)
                                   : error_set(e, ERR_SYNTAX, "a rename is not an object");

    if (code == ERR_OK) {
        code = json_get_str(v, "from", &ret->from, e);
    }
    if (code == ERR_OK) {
        code = json_get_str(v, "to", &ret->to, e);
    }
    if (code == ERR_OK && (!is_name(ret->from) || !is_name(ret->to))) {
        code = error_set(e, ERR_INVALID, "a rename holds what is no name");
    }
    return code;
}

static err_t
sort(struct rename_list *l, struct error *e)
{
    bool twice = false;

    if (l->count < 2) {
        return ERR_OK;
    }
    qsort(l->items, l->count, sizeof *l->items, by_from);
    qsort(l->taken, l->count, sizeof *l->taken, by_text);
    for (size_t i = 1; i < l->count; i++) {
        twice = twice || strcmp(l->items[i - 1].from, l->items[i].from) == 0 ||
                strcmp(l->taken[i - 1], l->taken[i]) == 0;
    }
    return twice ? error_set(e, ERR_INVALID, "a name is there twice in the renames") : ERR_OK;
}

static err_t
read_list(const json_t *list, struct rename_list *l, struct error *e)
{
    size_t count = json_array_size(list);

    if (list != NULL && !json_is_array(list)) {
        return error_set(e, ERR_SYNTAX, "renames are not an array");
    }
    if (count > HELPER_RENAMES_MAX) {
        return error_set(e, ERR_LIMIT, "more than %d renames", HELPER_RENAMES_MAX);
    }
    l->items = xcalloc(count + 1, sizeof *l->items);
    l->taken = xcalloc(count + 1, sizeof *l->taken);
    for (size_t i = 0; i < count; i++) {
        err_t code = read_item(json_array_get(list, i), &l->items[i], e);

        if (code != ERR_OK) {
            return code;
        }
        l->taken[i] = l->items[i].to;
        l->count++;
    }
    return sort(l, e);
}

err_t
renames_read(const json_t *request, struct renames *ret, struct error *e)
{
    bool states = true;
    err_t code = ERR_OK;

    *ret = (struct renames){.backends = {NULL, NULL, 0}};
    if (json_object_get(request, "states") != NULL) {
        code = json_get_bool(request, "states", &states, e);
    }
    ret->stateless = !states;
    if (code == ERR_OK) {
        code = read_list(json_object_get(request, "backends"), &ret->backends, e);
    }
    return code == ERR_OK ? read_list(json_object_get(request, "servers"), &ret->servers, e)
                          : code;
}

static void
list_fini(struct rename_list *l)
{
    free(l->items);
    free(l->taken);
}

void
renames_fini(struct renames *r)
{
    list_fini(&r->backends);
    list_fini(&r->servers);
}

bool
rename_list_apply(const struct rename_list *l, struct span *name)
{
    char text[NAME_MAX_BYTES + 1];
    const char *p = text;
    const struct rename key = {text, NULL};
    const struct rename *found;

    if (l->count == 0 || name->n >= sizeof text) {
        return true; /* too long for a name of ours */
    }
    span_copy(*name, text, sizeof text);
    found = bsearch(&key, l->items, l->count, sizeof *l->items, by_from);
    if (found != NULL) {
        *name = span_of(found->to);
        return true;
    }
    return bsearch(&p, l->taken, l->count, sizeof *l->taken, by_text) == NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static int
compare_content(const void *a, const void *b)
{
    const struct lineage_entry *x = a;
    const struct lineage_entry *y = b;
    int order = memcmp(&x->objhash, &y->objhash, sizeof x->objhash);

    order = order != 0 ? order : strcmp(x->id, y->id);
    return order != 0 || x->kind == y->kind ? order : (x->kind < y->kind ? -1 : 1);
}

void
sync_names_add(struct sync_names *n, const struct lineage_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].has_object) {
            n->items[n->count++] = entries[i];
        }
    }
}

void
sync_names_make(struct sync_names *n, const struct sync_doc *d)
{
    size_t most = d->index_count;

    for (size_t i = 0; i < d->commits.count; i++) {
        most += d->commits.items[i].entry_count;
    }
    *n = (struct sync_names){xcalloc(most + 1, sizeof *n->items), 0};
    sync_names_add(n, d->index, d->index_count);
    for (size_t i = 0; i < d->commits.count; i++) {
        sync_names_add(n, d->commits.items[i].entries, d->commits.items[i].entry_count);
    }
    qsort(n->items, n->count, sizeof *n->items, compare_content);
}

void
sync_names_sort(struct sync_names *n)
{
    size_t distinct = 0;

    qsort(n->items, n->count, sizeof *n->items, compare_content);
    for (size_t i = 0; i < n->count; i++) {
        if (distinct == 0 || compare_content(&n->items[distinct - 1], &n->items[i]) != 0) {
            n->items[distinct++] = n->items[i];
        }
    }
    n->count = distinct;
}

bool
sync_names_have(const struct sync_names *n, const struct lineage_entry *x)
{
    return bsearch(x, n->items, n->count, sizeof *n->items, compare_content) != NULL;
}

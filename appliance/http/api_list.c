/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a kind, a page at a time. */
#include <string.h>

#include "base/json.h"
#include "http/api.h"
#include "http/filter.h"
#include "http/reply.h"
#include "routes_gen.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX     1000
/* A page ends early when it is large: objects may have up to 1 MiB. */
#define PAGE_BYTES ((size_t)4 << 20)
#define PAGE_MAX   ((size_t)64 << 20)

/* Index of the first object whose name is behind after. */
static size_t
first_after(const struct object *const *items, size_t count, const char *after)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(items[middle]->name.s, after) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Name of the last object that was written when there are more, or NULL. */
static const char *
put_page(struct request *r, const struct filter *filter, int64_t limit, struct buf *out)
{
    const struct view *v = request_view(r);
    struct object_refs refs = snapshot_refs(api_pair(v, r->hit.kind));
    const char *after = request_param(r, "after");
    const struct object *const *items = NULL;
    size_t count =
        snapshot_kind(snapshot_of(api_pair(v, r->hit.kind), r->hit.kind), r->hit.kind, &items);
    const char *last = NULL;

    for (size_t i = after != NULL ? first_after(items, count, after) : 0; i < count; i++) {
        if (!filter_fits(filter, items[i])) {
            continue;
        }
        if (limit == 0 || out->len > PAGE_BYTES) {
            return last;
        }
        buf_puts(out, last != NULL ? "," : "");
        object_put_json(items[i], &refs, out);
        last = items[i]->name.s;
        limit--;
    }
    return NULL;
}

void
http_object_list(struct request *r)
{
    struct object_refs refs = snapshot_refs(api_pair(request_view(r), r->hit.kind));
    int64_t limit = LIMIT_DEFAULT;
    struct filter filter;
    const char *next;
    struct buf out;
    struct error e;

    if (!request_number(r, "limit", 1, LIMIT_MAX, &limit) || !filter_read(r, &refs, &filter)) {
        return;
    }
    buf_init(&out, PAGE_MAX);
    buf_puts(&out, "{\"items\":[");
    next = put_page(r, &filter, limit, &out);
    buf_puts(&out, "],\"next\":");
    if (next != NULL) {
        json_auto_t *name = json_string(next);

        json_canonical(name, &out);
    } else {
        buf_puts(&out, "null");
    }
    buf_puts(&out, "}");
    if (buf_status(&out, &e) == ERR_OK) {
        reply_text(r, 200, "application/json", &out);
    } else {
        reply_busy(r, &e);
    }
    buf_fini(&out);
}

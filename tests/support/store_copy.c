/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/store_copy.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

#define STORE_COPY_PIECE 1000

static void
must(err_t code, const struct error *e)
{
    if (code != ERR_OK) {
        (void)fprintf(stderr, "%s: %s\n", error_name(code), e->msg);
        abort();
    }
}

struct commit
store_copy_head(struct store_lab *l)
{
    struct store_state st;
    struct error e;

    must(store_load(l->store, &st, &e), &e);
    snapshot_unref(st.shared);
    snapshot_unref(st.local);
    draft_list_free(&st.draft);
    return st.head;
}

static void
take_bodies(struct store_copy *c, struct store_lab *from, const struct lineage_commit *x)
{
    struct object **found = NULL;
    struct error e;

    must(store_objects(from->store, x->entries, x->entry_count, &found, &e), &e);
    c->bodies =
        xrealloc(c->bodies, (c->body_count + x->entry_count + 1) * sizeof(struct object *));
    for (size_t i = 0; i < x->entry_count; i++) {
        if (found[i] != NULL) {
            c->bodies[c->body_count++] = found[i];
        }
    }
    free(found);
}

void
store_copy_take(struct store_copy *c, struct store_lab *from, struct store_lab *to)
{
    struct commit have = store_copy_head(to);
    struct lineage_request q;
    struct error e;
    bool more;

    *c = (struct store_copy){.head = store_copy_head(from), .shared = store_lab_shared(from)};
    q = (struct lineage_request){
        .heads = &c->head.id,
        .head_count = 1,
        .have = &have.id,
        .have_count = 1,
        .piece = STORE_COPY_PIECE,
        .piece_entries = SIZE_MAX,
    };
    must(store_lineage(from->store, &q, &c->commits, &more, &e), &e);
    if (more) {
        (void)fprintf(stderr, "more than %d commits\n", 2 * STORE_COPY_PIECE);
        abort();
    }
    for (size_t i = 0; i < c->commits.count; i++) {
        take_bodies(c, from, &c->commits.items[i]);
    }
}

void
store_copy_fini(struct store_copy *c)
{
    for (size_t i = 0; i < c->body_count; i++) {
        object_unref(c->bodies[i]);
    }
    free(c->bodies);
    lineage_free(&c->commits);
    snapshot_unref(c->shared);
}

struct adopt_request
store_copy_request(const struct store_copy *c)
{
    return (struct adopt_request){
        .commits = &c->commits,
        .bodies = c->bodies,
        .body_count = c->body_count,
        .move_head = true,
        .head = c->head.id,
        .shared_to = c->shared,
        .author = "node proxy2",
    };
}

struct commit
store_copy_pull(struct store_lab *to, struct store_lab *from, bool move_head)
{
    CLEANUP(store_copy_fini) struct store_copy c = {0};
    struct adopt_request q;
    struct commit head;
    struct error e;

    store_copy_take(&c, from, to);
    q = store_copy_request(&c);
    q.move_head = move_head;
    must(store_adopt(to->store, &q, &head, &e), &e);
    return head;
}

void
store_pair_open(struct store_pair *p)
{
    store_lab_init(&p->a);
    store_lab_init(&p->b);
    p->b.now_ms += 1000;
    store_lab_open(&p->a);
    store_lab_open(&p->b);
}

void
store_pair_fini(struct store_pair *p)
{
    store_lab_fini(&p->a);
    store_lab_fini(&p->b);
}

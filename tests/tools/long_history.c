/* SPDX-License-Identifier: Apache-2.0 */
/* long_history DATA_DIR COUNT
 * Puts COUNT commits on top of the head of a node that does not run, as a script makes them
 * that changes one key over and over: thousands a second instead of as many applies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "haproxy/span.h"
#include "store/lineage.h"
#include "tests/support/store_lab.h"

#define KEY_NUMBER 77
#define AT_ONCE    2000
#define MOST       10000000
#define EVERY_MS   30000 /* as they would have been made */

struct making {
    struct store *store;
    struct snapshot *contents[2]; /* by turns */
    struct object *keys[2];
    struct commit head;
};

static void
must(err_t code, const struct error *e)
{
    if (code != ERR_OK) {
        (void)fprintf(stderr, "long_history: %s: %s\n", error_name(code), e->msg);
        abort();
    }
}

static void
prepare(struct making *m, const char *dir)
{
    struct store_state st;
    struct error e;

    must(store_open(dir, "unused", &clock_system, &m->store, &e), &e);
    must(store_load(m->store, &st, &e), &e);
    for (size_t i = 0; i < 2; i++) {
        char hash[SHA256_HEX + 1];

        memset(hash, i == 0 ? 'a' : 'b', SHA256_HEX);
        hash[SHA256_HEX] = '\0';
        m->keys[i] = store_lab_key(KEY_NUMBER, hash);
        m->contents[i] = store_lab_with(st.shared, object_ref(m->keys[i]));
    }
    m->head = st.head;
    snapshot_unref(st.shared);
    snapshot_unref(st.local);
    draft_list_free(&st.draft);
}

static void
make_one(const struct making *m, struct lineage_commit *c, const struct commit *parent)
{
    size_t turn = (size_t)(parent->rev % 2);

    c->commit = (struct commit){
        .rev = parent->rev + 1,
        .schema_version = parent->schema_version,
        .fp = snapshot_fp(m->contents[turn], parent->schema_version),
        .parents = {parent->id},
        .parent_count = 1,
        .at_ms = parent->at_ms + EVERY_MS,
    };
    (void)snprintf(c->commit.node, sizeof c->commit.node, "%s", parent->node);
    (void)snprintf(c->commit.author, sizeof c->commit.author, "key robot");
    (void)snprintf(c->commit.summary, sizeof c->commit.summary, "changes automation_key robot");
    c->commit.id = commit_compute_id(&c->commit);
    c->entries = xcalloc(1, sizeof *c->entries);
    c->entry_count = 1;
    c->entries[0] = (struct lineage_entry){
        .kind = K_AUTOMATION_KEY, .has_object = true, .objhash = m->keys[turn]->objhash};
    store_lab_id(KEY_NUMBER, c->entries[0].id);
}

static void
make_some(struct making *m, size_t count)
{
    struct lineage l = {xcalloc(count, sizeof *l.items), count};
    struct error e;

    for (size_t i = 0; i < count; i++) {
        make_one(m, &l.items[i], i == 0 ? &m->head : &l.items[i - 1].commit);
    }
    m->head = l.items[count - 1].commit;
    must(
        store_adopt(
            m->store,
            &(struct adopt_request){
                .commits = &l,
                .bodies = m->keys,
                .body_count = 2,
                .move_head = true,
                .head = m->head.id,
                .shared_to = m->contents[(m->head.rev - 1) % 2],
                .author = "long_history",
            },
            &m->head, &e),
        &e);
    lineage_free(&l);
}

int
main(int argc, char **argv)
{
    struct making m = {.store = NULL};
    int64_t left;

    if (argc != 3 || !span_number(span_of(argv[2]), MOST, &left) || left == 0) {
        (void)fprintf(stderr, "usage: long_history DATA_DIR COUNT\n");
        return 2;
    }
    prepare(&m, argv[1]);
    for (; left > 0; left -= AT_ONCE) {
        make_some(&m, left < AT_ONCE ? (size_t)left : AT_ONCE);
    }
    (void)printf("%lld\n", (long long)m.head.rev);
    for (size_t i = 0; i < 2; i++) {
        snapshot_unref(m.contents[i]);
        object_unref(m.keys[i]);
    }
    store_close(m.store);
    return 0;
}

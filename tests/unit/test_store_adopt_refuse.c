/* SPDX-License-Identifier: Apache-2.0 */
/* What does not fit together is refused, and leaves no trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/store_copy.h"

struct behind {
    struct store_pair nodes;
    struct store_copy c; /* what b lacks: two servers, a pool with both, a change of one */
};

static int
set_up(void **state)
{
    static const char *const members[] = {"web1", "web2"};
    static struct behind p;
    struct snapshot *now;

    store_pair_open(&p.nodes);
    (void)store_copy_pull(&p.nodes.b, &p.nodes.a, true);
    now = store_lab_shared(&p.nodes.a);
    for (unsigned i = 1; i <= 4; i++) {
        struct snapshot *from = now;

        now = i == 3 ? store_lab_with(from, store_lab_pool(7, from, members, 2))
                     : store_lab_with(from, store_lab_server(i > 2 ? 2 : i, NULL, (int)i));
        (void)store_lab_commit(&p.nodes.a, now, NULL);
        snapshot_unref(from);
    }
    snapshot_unref(now);
    store_copy_take(&p.c, &p.nodes.a, &p.nodes.b);
    *state = &p;
    return 0;
}

static int
tear_down(void **state)
{
    struct behind *p = *state;

    store_copy_fini(&p->c);
    store_pair_fini(&p->nodes);
    return 0;
}

/* Rows of every table that an adoption writes, and the head, as one number. */
static int64_t
rows_of(struct store_lab *l)
{
    return store_lab_number(
        l,
        "SELECT (SELECT count(*) FROM commit_log) + 100 * (SELECT count(*) FROM commit_entry)"
        " + 10000 * (SELECT count(*) FROM commit_full) + 1000000 * (SELECT count(*) FROM body)"
        " + 100000000 * (SELECT count(*) FROM audit) + 10000000000 * (SELECT head_seq FROM meta)"
        " + 1000000000000 * (SELECT count(*) FROM discarded)"
        " + 100000000000000 * (SELECT count(*) FROM shared_object)");
}

static void
assert_refused(struct behind *p, const struct adopt_request *q, err_t wanted, const char *word)
{
    CLEANUP(snapshot_cleanup) struct snapshot *before = store_lab_shared(&p->nodes.b);
    CLEANUP(snapshot_cleanup) struct snapshot *after = NULL;
    int64_t rows = rows_of(&p->nodes.b);
    struct commit head = {.rev = -1};
    struct error e = {0};
    struct adopt_request check = *q;
    /* References are looked at when the transaction ends. */
    bool seen = strstr(word, "FOREIGN KEY") == NULL;
    int64_t checked;

    check.only_check = true;
    assert_int_equal(store_adopt(p->nodes.b.store, &check, &head, &e), seen ? wanted : ERR_OK);
    head.rev = -1;
    assert_int_equal(store_adopt(p->nodes.b.store, q, &head, &e), wanted);
    if (strstr(e.msg, word) == NULL) {
        fail_msg("no \"%s\": %s", word, e.msg);
    }
    assert_int_equal(head.rev, -1);
    assert_int_equal(rows_of(&p->nodes.b), rows);
    assert_int_equal(store_verify(p->nodes.b.store, &checked, &e), ERR_OK);
    after = store_lab_shared(&p->nodes.b);
    assert_true(store_lab_equal(after, before));
}

/* What was refused is no hindrance to what is right. */
static void
assert_adopted(struct behind *p)
{
    struct adopt_request q = store_copy_request(&p->c);
    struct commit head;
    struct error e;
    int64_t rows = rows_of(&p->nodes.b);
    int64_t checked;

    q.only_check = true;
    assert_int_equal(store_adopt(p->nodes.b.store, &q, &head, &e), ERR_OK);
    assert_false(hash_equal(&head.id, &p->c.head.id));
    assert_int_equal(rows_of(&p->nodes.b), rows);
    q.only_check = false;
    assert_int_equal(store_adopt(p->nodes.b.store, &q, &head, &e), ERR_OK);
    assert_true(hash_equal(&head.id, &p->c.head.id));
    store_lab_reopen(&p->nodes.b);
    assert_int_equal(store_verify(p->nodes.b.store, &checked, &e), ERR_OK);
}

/* The id follows from the fields, as the caller checks. */
static void
rename_commit(struct commit *c)
{
    c->id = commit_compute_id(c);
}

static void
missing_parent(void **state)
{
    struct behind *p = *state;
    const struct lineage rest = {&p->c.commits.items[1], p->c.commits.count - 1};
    struct adopt_request q = store_copy_request(&p->c);

    q.commits = &rest;
    assert_refused(p, &q, ERR_INVALID, "a parent of revision 3 is missing");
    q.move_head = false;
    assert_refused(p, &q, ERR_INVALID, "a parent of revision 3 is missing");
    assert_adopted(p);
}

static void
parents_after_their_children(void **state)
{
    struct behind *p = *state;
    struct lineage_commit swapped[2] = {p->c.commits.items[1], p->c.commits.items[0]};
    const struct lineage both = {swapped, 2};
    struct adopt_request q = store_copy_request(&p->c);

    q.commits = &both;
    assert_refused(p, &q, ERR_INVALID, "a parent of revision 3 is missing");
    assert_adopted(p);
}

static void
revision_that_does_not_follow(void **state)
{
    static const int64_t wrong[] = {1, 4, 6, 1000};
    struct behind *p = *state;
    struct commit *last = &p->c.commits.items[p->c.commits.count - 1].commit;
    const struct commit right = *last;
    struct adopt_request q = store_copy_request(&p->c);

    assert_int_equal(right.rev, 5);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        last->rev = wrong[i];
        rename_commit(last);
        q.head = last->id;
        assert_refused(p, &q, ERR_INVALID, "does not follow from its parents");
    }
    *last = right;
    assert_adopted(p);
}

static void
first_revision_above_one_or_without_content(void **state)
{
    struct behind *p = *state;
    struct lineage_entry entry = {.kind = K_SERVER, .has_object = true};
    struct lineage_commit root = {
        {.rev = 2, .schema_version = SCHEMA_VERSION, .at_ms = 1}, &entry, 1};
    const struct lineage one = {&root, 1};
    const struct adopt_request q = {.commits = &one, .author = "node proxy2"};

    store_lab_id(1, entry.id);
    assert_refused(p, &q, ERR_INVALID, "does not follow from its parents");
    root.commit.rev = 1;
    root.entry_count = 0;
    assert_refused(p, &q, ERR_INVALID, "holds nothing");
    assert_adopted(p);
}

static void
content_that_is_not_of_the_head(void **state)
{
    struct behind *p = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *now = store_lab_shared(&p->nodes.b);
    struct adopt_request q = store_copy_request(&p->c);

    q.shared_to = now;
    assert_refused(p, &q, ERR_INVALID, "fingerprint of revision 5");
    assert_adopted(p);
}

static void
changes_that_do_not_lead_to_the_content(void **state)
{
    struct behind *p = *state;
    struct lineage_commit *first = &p->c.commits.items[0];
    struct lineage_commit *last = &p->c.commits.items[p->c.commits.count - 1];
    const struct hash right = last->entries[0].objhash;
    struct adopt_request q = store_copy_request(&p->c);

    last->entry_count = 0;
    assert_refused(p, &q, ERR_INVALID, "changes of revision 5");
    /* Also as the end of a branch that only lies aside. */
    q.move_head = false;
    assert_refused(p, &q, ERR_INVALID, "changes of revision 5");
    last->entry_count = 1;
    /* One that is in between is seen at the end, too. */
    first->entry_count = 0;
    assert_refused(p, &q, ERR_INVALID, "changes of revision 5");
    q.move_head = true;
    assert_refused(p, &q, ERR_INVALID, "changes of revision 5");
    first->entry_count = 1;
    /* The right object, with the hash of another. */
    last->entries[0].objhash = first->entries[0].objhash;
    assert_refused(p, &q, ERR_INVALID, "changes of revision 5");
    last->entries[0].objhash = right;
    assert_adopted(p);
}

/* It comes with all bodies of what it claims to hold. */
static void
first_revision_with_another_fingerprint(void **state)
{
    struct behind *p = *state;
    struct lineage_entry *entries = NULL;
    size_t count = 0;
    struct lineage_commit root = {{.rev = 1, .schema_version = SCHEMA_VERSION}, NULL, 0};
    const struct lineage one = {&root, 1};
    const struct adopt_request q = {.commits = &one, .author = "node proxy2"};
    struct commit head = store_copy_head(&p->nodes.b);
    struct error e;

    assert_int_equal(store_index(p->nodes.b.store, &head.id, &entries, &count, &e), ERR_OK);
    root.entries = entries;
    root.entry_count = count;
    rename_commit(&root.commit);
    assert_refused(p, &q, ERR_INVALID, "changes of revision 1");
    root.commit.fp = head.fp;
    rename_commit(&root.commit);
    assert_int_equal(store_adopt(p->nodes.b.store, &q, &head, &e), ERR_OK);
    free(entries);
    assert_adopted(p);
}

static void
entries_that_are_no_shared_objects_or_come_twice(void **state)
{
    struct behind *p = *state;
    struct lineage_commit *first = &p->c.commits.items[0];
    const struct lineage_commit right = *first;
    struct lineage_entry twice[2] = {right.entries[0], right.entries[0]};
    struct adopt_request q = store_copy_request(&p->c);

    first->entries = twice;
    first->entry_count = 2;
    assert_refused(p, &q, ERR_INVALID, "twice");
    first->entry_count = 1;
    twice[0].kind = K_ADMIN;
    assert_refused(p, &q, ERR_INVALID, "admin");
    twice[0] = right.entries[0];
    twice[0].id[0] = '\n';
    assert_refused(p, &q, ERR_INVALID, "no shared object");
    *first = right;
    assert_adopted(p);
}

static void
reference_that_leads_nowhere(void **state)
{
    struct behind *p = *state;
    CLEANUP(snapshot_cleanup)
    struct snapshot *earlier = store_lab_with(p->c.shared, store_lab_server(2, NULL, 2));
    CLEANUP(snapshot_cleanup)
    struct snapshot *dangling = store_lab_without(earlier, K_SERVER, "web1");
    struct lineage_commit *last = &p->c.commits.items[p->c.commits.count - 1];
    const struct lineage_commit right = *last;
    struct lineage_entry removed = {.kind = K_SERVER};
    struct adopt_request q = store_copy_request(&p->c);

    /* A commit that removes a server which its pool has; all else is right. */
    store_lab_id(1, removed.id);
    *last = (struct lineage_commit){right.commit, &removed, 1};
    last->commit.fp = snapshot_fp(dangling, SCHEMA_VERSION);
    rename_commit(&last->commit);
    q.head = last->commit.id;
    q.shared_to = dangling;
    assert_refused(p, &q, ERR_CONFLICT, "FOREIGN KEY");
    *last = right;
    assert_adopted(p);
}

static void
head_that_is_not_there(void **state)
{
    struct behind *p = *state;
    struct adopt_request q = store_copy_request(&p->c);

    q.head = (struct hash){{7}};
    assert_refused(p, &q, ERR_NOT_FOUND, "there is no commit");
    assert_adopted(p);
}

static void
database_that_another_program_changed(void **state)
{
    struct behind *p = *state;
    struct adopt_request q = store_copy_request(&p->c);

    store_lab_script(&p->nodes.b, "UPDATE meta SET head_seq = 1");
    assert_refused(p, &q, ERR_CONFLICT, "another program");
    store_lab_script(&p->nodes.b, "UPDATE meta SET head_seq = 2");
    assert_adopted(p);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(missing_parent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parents_after_their_children, set_up, tear_down),
        cmocka_unit_test_setup_teardown(revision_that_does_not_follow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            first_revision_above_one_or_without_content, set_up, tear_down),
        cmocka_unit_test_setup_teardown(content_that_is_not_of_the_head, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            changes_that_do_not_lead_to_the_content, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            first_revision_with_another_fingerprint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            entries_that_are_no_shared_objects_or_come_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reference_that_leads_nowhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(head_that_is_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            database_that_another_program_changed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/sync_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct commit
sync_lab_head(const struct engine_lab *l)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);

    return v->head;
}

void
sync_lab_title(struct engine_lab *l, int title)
{
    char ops[160];

    (void)snprintf(
        ops, sizeof ops,
        "[{'op': 'merge', 'kind': 'haproxy', 'name': 'haproxy', 'body': {'error_title': 't%d'}}]",
        title);
    engine_lab_apply_ok(l, ops);
}

struct sync_doc
sync_lab_doc(const struct engine_lab *from, const struct sync_wanted *wanted)
{
    struct sync_doc made, read;
    struct error e;
    json_t *j;

    assert_int_equal(sync_doc_make(from->en, wanted, &made, &e), ERR_OK);
    j = sync_doc_json(&made);
    sync_doc_free(&made);
    if (sync_doc_read(j, &read, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    json_decref(j);
    return read;
}

void
sync_lab_take(struct engine_lab *to, struct sync_doc *d, enum sync_how how)
{
    struct sync_result result;
    struct error e;
    json_t *task;

    if (sync_take(to->en, d, &(struct sync_origin){.how = how, .from = "other"}, &result, &e) !=
        ERR_OK) {
        fail_msg("%s", e.msg);
    }
    if (how != SYNC_STORED) {
        task = engine_lab_task(to, result.task);
        assert_string_equal(json_string_value(json_object_get(task, "state")), "ok");
        json_decref(task);
    }
}

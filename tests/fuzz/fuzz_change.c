/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary operations on a small configuration: all or nothing, and what results holds
 * together. */
#include <stdint.h>

#include "model/change.h"
#include "model/validate.h"
#include "tests/support/fuzz_lab.h"

#define NOW_S ((int64_t)1800000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The very snapshot stays exactly when nothing in it changed. */
static void
check_kept(const struct snapshot *before, const struct snapshot *after)
{
    struct hash a = snapshot_fp(before, SCHEMA_VERSION);
    struct hash b = snapshot_fp(after, SCHEMA_VERSION);

    ASSERT((before == after) == (memcmp(&a, &b, sizeof a) == 0));
}

static void
check_object(void *ctx, const struct object *before, const struct object *after)
{
    ASSERT(before != NULL || after != NULL);
    if (after != NULL) {
        validate_object(after, NOW_S, ctx);
    }
}

static void
apply(struct pair *x, const struct change_set *set)
{
    struct snapshot CLEANUP(snapshot_cleanup) *shared = NULL;
    struct snapshot CLEANUP(snapshot_cleanup) *local = NULL;
    struct error e = {.code = ERR_OK};
    struct problems *p = pair_clear(x);
    err_t code = change_apply(set, &x->objects, &shared, &local, p, &e);
    struct snapshot_pair after = {shared, local};

    fuzz_check_problems(p);
    if (code != ERR_OK) {
        ASSERT(shared == NULL && local == NULL);
        ASSERT(e.code == code && e.msg[0] != '\0');
        ASSERT(code != ERR_INVALID || p->errors > 0);
        ASSERT(code != ERR_INTERNAL && code != ERR_CORRUPT);
        return;
    }
    ASSERT(shared != NULL && local != NULL && p->errors == 0);
    check_kept(x->shared, shared);
    check_kept(x->local, local);
    fuzz_check_pair(&after);
    snapshot_diff(x->shared, shared, check_object, pair_clear(x));
    validate_all(&after, NOW_S, pair_clear(x));
    fuzz_check_problems(&x->problems);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_auto_t *ops = fuzz_json(data, size);
    struct pair CLEANUP(pair_fini) x;
    struct change_set CLEANUP(change_set_fini) set;

    fuzz_pair_init(&x);
    change_set_init(&set);
    if (ops == NULL) {
        return 0;
    }
    change_set_parse(&set, ops, x.arena, &x.problems);
    fuzz_check_problems(&x.problems);
    if (x.problems.errors == 0) {
        ASSERT(set.count == json_array_size(ops));
        apply(&x, &set);
    }
    return 0;
}

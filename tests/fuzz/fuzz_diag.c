/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary output of HAProxy's checker about a rendered configuration. */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "render/diag.h"
#include "tests/support/fuzz_lab.h"
#include "tests/support/golden.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Problems lead to objects and fields that are there. */
static void
check_place(const struct golden *g, const struct problem *x)
{
    struct snapshot_pair pair = {g->shared, g->local};
    enum kind kind = K_ADMIN;
    const struct schema_kind *k;

    ASSERT(strcmp(x->code, "haproxy") == 0);
    ASSERT(!utf8_has_control(x->message, strlen(x->message), ""));
    ASSERT((x->kind == NULL) == (x->name == NULL));
    if (x->kind == NULL) {
        ASSERT(x->pointer[0] == '\0');
        return;
    }
    ASSERT(schema_kind_by_name(x->kind, &kind));
    ASSERT(snapshot_by_name(snapshot_of(&pair, kind), kind, x->name) != NULL);
    k = schema_kind(kind);
    ASSERT(
        x->pointer[0] == '\0' ||
        schema_field_index(k->fields, k->field_count, x->pointer + 1) >= 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct golden g;
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(ARENA_DEFAULT_BYTES);
    char *output = arena_memdup0(arena, data, size);
    struct problems p;

    if (g.shared == NULL) {
        golden_open(&g, "full");
    }
    problems_init(&p, arena);
    diag_haproxy(output, &g.rendered, &p);
    fuzz_check_problems(&p);
    for (size_t i = 0; i < p.count; i++) {
        check_place(&g, &p.items[i]);
    }
    return 0;
}

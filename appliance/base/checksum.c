/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checksum.h"

#include <stdlib.h>
#include <xxhash.h>

#include "base/arena.h"

struct checksum {
    XXH3_state_t *state;
};

struct checksum *
checksum_new(void)
{
    struct checksum *c = xcalloc(1, sizeof *c);

    c->state = XXH3_createState();
    ASSERT(c->state != NULL && XXH3_64bits_reset(c->state) == XXH_OK);
    return c;
}

void
checksum_add(struct checksum *c, const void *p, size_t bytes)
{
    ASSERT(XXH3_64bits_update(c->state, p, bytes) == XXH_OK);
}

uint64_t
checksum_end(struct checksum *c)
{
    uint64_t sum = XXH3_64bits_digest(c->state);

    (void)XXH3_freeState(c->state);
    free(c);
    return sum;
}

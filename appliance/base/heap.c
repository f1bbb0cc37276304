/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include <malloc.h>

#define WORTH_BYTES ((size_t)8 << 20)

void
heap_round(struct heap_watch *h)
{
    /* Of all arenas. What was given back counts as free still, so only growth tells. */
    size_t now = mallinfo2().fordblks;

    if (now > h->kept + WORTH_BYTES) {
        (void)malloc_trim(0);
        h->kept = now;
    } else if (now < h->kept) {
        h->kept = now;
    }
}

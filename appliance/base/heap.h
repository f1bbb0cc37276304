/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that was freed and that the allocator keeps: after a change of many objects, more than
 * all that is in use. */
#ifndef LOCKSTEP_BASE_HEAP_H
#define LOCKSTEP_BASE_HEAP_H

#include <stddef.h>

/* Zero at first. One thread only. */
struct heap_watch {
    size_t kept; /* bytes: the least that was free since the last trim */
};

/* Gives what was freed back to the system when it is 8 MB more than before; to be called now
 * and then. 0.1 ms when there is nothing to do, some ms when there is. */
void heap_round(struct heap_watch *h);

#endif

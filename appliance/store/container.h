/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a container, and what they take from its objects. */
#ifndef LOCKSTEP_STORE_CONTAINER_H
#define LOCKSTEP_STORE_CONTAINER_H

#include "store/inner.h"

/* One object that differs; before or after may be NULL. Borrowed from the snapshots. */
struct delta {
    const struct object *before, *after;
};

struct delta_list {
    struct delta *items;
    size_t count, cap;
};

void delta_list_fini(struct delta_list *l);
void
delta_list_of(const struct snapshot *from, const struct snapshot *to, struct delta_list *ret);
/* Brings the rows of a container from before to after. */
MUST_USE err_t
container_write(struct store *s, enum scope scope, const struct delta_list *l, struct error *e);

/* References of an object that its container keeps as rows: those into the same scope. */
struct ref_row {
    enum kind kind;
    char id[OBJECT_ID_BYTES];
    char *pointer;
};

struct ref_list {
    struct ref_row *items;
    size_t count, cap;
};

void ref_list_of(const struct object *o, struct ref_list *ret); /* sorted by pointer */
void ref_list_fini(struct ref_list *l);

#endif

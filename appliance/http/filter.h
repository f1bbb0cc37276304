/* SPDX-License-Identifier: Apache-2.0 */
/* Which objects of a list are wanted: ?q= and ?<field>=. Pure, but for what it refuses. */
#ifndef LOCKSTEP_HTTP_FILTER_H
#define LOCKSTEP_HTTP_FILTER_H

#include "http/request.h"

struct filter_field {
    uint32_t index;
    int64_t number;   /* FT_BOOL, FT_INT, FT_ENUM */
    const char *text; /* FT_TEXT; FT_REF: the id, or NULL when no object has the name */
};

/* Borrows from the request. */
struct filter {
    enum kind kind;
    const char *q; /* NULL: not asked */
    struct filter_field *fields;
    size_t field_count;
};

/* From the parameters; refs translate names. False: refused. */
bool filter_read(struct request *r, const struct object_refs *refs, struct filter *ret);
bool filter_fits(const struct filter *filter, const struct object *o);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Random texts of every text type, for gen.c. */
#ifndef LOCKSTEP_SUPPORT_GEN_TEXT_H
#define LOCKSTEP_SUPPORT_GEN_TEXT_H

#include "base/buf.h"
#include "tests/support/gen.h"

#define GEN_PEMS 4

struct gen_pem {
    struct buf chain, key;
};

struct gen {
    uint64_t state;
    size_t object; /* number of the present object: its chain and key belong together */
    size_t names;
    struct gen_pem pems[GEN_PEMS];
    size_t pem_count;
};

/* A text that the field takes, often not in its normal form. New reference. */
json_t *gen_text(struct gen *g, const struct schema_field *f);
/* True when two items of a list of that field would be the same. */
bool gen_same_text(const struct schema_field *f, const json_t *a, const json_t *b);

#endif

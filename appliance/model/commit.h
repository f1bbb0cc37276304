/* SPDX-License-Identifier: Apache-2.0 */
/* A commit of the shared container: who, when, from what, to which content. Pure. */
#ifndef LOCKSTEP_MODEL_COMMIT_H
#define LOCKSTEP_MODEL_COMMIT_H

#include <stdint.h>

#include <jansson.h>

#include "base/crypt.h"
#include "base/error.h"

#define COMMIT_MAX_PARENTS 16
#define COMMIT_TEXT_BYTES  201 /* author, summary; with the NUL */
#define COMMIT_NODE_BYTES  65

struct commit {
    struct hash id;
    int64_t rev; /* highest parent's + 1; 1 for the first */
    int schema_version;
    struct hash fp;
    struct hash parents[COMMIT_MAX_PARENTS];
    size_t parent_count;
    char node[COMMIT_NODE_BYTES]; /* name of the node where it was made */
    char author[COMMIT_TEXT_BYTES];
    char summary[COMMIT_TEXT_BYTES];
    int64_t at_ms;            /* Unix time */
    int64_t confirm_until_ms; /* 0: none */
};

/* id = SHA-256 of the canonical JSON {at, author, confirm_until?, fp, node, parents, rev,
 * schema_version, summary}; hashes as hex, parents in their order. */
struct hash commit_compute_id(const struct commit *c);
/* For the API: adds "id" and "fp8"; "at" as RFC 3339. New reference. */
json_t *commit_to_json(const struct commit *c);
/* The canonical JSON as bytes, as it goes to peers, and back: ERR_INVALID when an "id" that
 * stands beside the fields does not follow from them, a text is too long or has control
 * characters, or only one of "rev is 1" and "has no parents" is true. */
struct buf;
void commit_canonical(const struct commit *c, struct buf *out);
MUST_USE err_t commit_from_json(const json_t *j, struct commit *ret, struct error *e);

#endif

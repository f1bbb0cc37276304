/* SPDX-License-Identifier: Apache-2.0 */
/* How a render fills struct rendered. Inside render/ only. */
#ifndef LOCKSTEP_RENDER_RENDERED_H
#define LOCKSTEP_RENDER_RENDERED_H

#include "render/haproxy.h"
#include "render/layout.h"

struct rendered_state {
    struct artefact *old; /* of the last render, sorted; their memory is taken over by name */
    size_t old_count, old_cap;
    struct arena *names;     /* of items */
    struct arena *old_names; /* of old */
    struct layout layout;
};

/* Makes everything of the last render old. */
void rendered_begin(struct rendered *r);
/* A new artefact, empty, named <folder><name><suffix>. Borrowed until the next call. */
struct artefact *
rendered_add(struct rendered *r, const char *folder, const char *name, const char *suffix);
/* Adds the map of base/running.h, sorts, computes the digest and writes it over the zeros there
 * and at digest_at in haproxy.cfg. ERR_LIMIT. */
MUST_USE err_t rendered_seal(struct rendered *r, size_t digest_at, struct error *e);
/* Drops every artefact; private keys are wiped. */
void rendered_clear(struct rendered *r);

#endif

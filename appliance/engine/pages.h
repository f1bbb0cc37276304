/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this node's own pages are reached at the names at which they are published, measured
 * by a request through HAProxy as anybody would make it. Where it is lost though the stored
 * configuration has it, HAProxy is given the files anew: once until it was seen again, and no
 * sooner than webui_again_ms after the last time. */
#ifndef LOCKSTEP_ENGINE_PAGES_H
#define LOCKSTEP_ENGINE_PAGES_H

#include "engine/engine.h"
#include "render/haproxy.h"

#define PAGES_TEXT_BYTES 240

struct engine_pages {
    enum fact reached;             /* FACT_UNKNOWN: not published, or it cannot be seen here */
    char detail[PAGES_TEXT_BYTES]; /* why not; "": it is */
};

/* Of struct engine, under its lock. */
struct pages_state {
    struct engine_pages seen;
    char digest[RENDER_DIGEST_HEX + 1]; /* of the files with which they were reached last */
    bool repaired;                      /* since then */
    int64_t repaired_ms;                /* monotonic; 0: never */
};

/* What was seen last. Any thread. */
void engine_get_pages(struct engine *en, struct engine_pages *ret);
/* Measures, and repairs what is to be. The watcher, once a round. */
void pages_follow(struct engine *en);

#endif

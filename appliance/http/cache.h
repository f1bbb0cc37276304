/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that many requests get. Most of the work of a small answer is making its JSON and a
 * dozen header fields; as long as the view is the same, so are the answers about its objects.
 */
#ifndef LOCKSTEP_HTTP_CACHE_H
#define LOCKSTEP_HTTP_CACHE_H

#include "http/request.h"

#define CACHE_MAX_BYTES 16384 /* larger answers are made each time */

void cache_init(struct cache *c);
void cache_fini(struct cache *c);
/* Answers r when the answer about that object of r's view is known. */
bool cache_answer(struct request *r, const struct object *about);
/* Keeps the answer that was just made for those to come. */
void cache_keep(struct request *r, const struct object *about);

#endif

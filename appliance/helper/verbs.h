/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of protocol.h. Each reads its checked arguments and fills the answer; "ok" is
 * added by the server. One at a time, never two. */
#ifndef LOCKSTEP_HELPER_VERBS_H
#define LOCKSTEP_HELPER_VERBS_H

#include "base/json.h"
#include "helper/context.h"

typedef err_t (*helper_verb_fn)(
    struct helper_context *c, const json_t *request, json_t *answer, struct error *e);

MUST_USE err_t
verb_stage(struct helper_context *c, const json_t *request, json_t *answer, struct error *e);
MUST_USE err_t verb_bind_test(
    struct helper_context *c, const json_t *request, json_t *answer, struct error *e);
MUST_USE err_t
verb_install(struct helper_context *c, const json_t *request, json_t *answer, struct error *e);
MUST_USE err_t
verb_settle(struct helper_context *c, const json_t *request, json_t *answer, struct error *e);
MUST_USE err_t
verb_reload(struct helper_context *c, const json_t *request, json_t *answer, struct error *e);
MUST_USE err_t
verb_restart(struct helper_context *c, const json_t *request, json_t *answer, struct error *e);
MUST_USE err_t
verb_status(struct helper_context *c, const json_t *request, json_t *answer, struct error *e);

#endif

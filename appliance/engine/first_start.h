/* SPDX-License-Identifier: Apache-2.0 */
/* Files of <state_dir>/data that are made once: the placeholder certificate, that of the API,
 * and the token for the first administrator. Engine thread; only for this folder. */
#ifndef LOCKSTEP_ENGINE_FIRST_START_H
#define LOCKSTEP_ENGINE_FIRST_START_H

#include "base/buf.h"
#include "base/error.h"

struct engine;

#define FIRST_START_TOKEN "setup-token"

/* en->placeholder_pem from placeholder.pem, which is made when it is not there. */
MUST_USE err_t first_start_placeholder(struct engine *en, struct error *e);
/* en->api_pem from api.crt, which is made with its key when it is not there. */
MUST_USE err_t first_start_api(struct engine *en, struct error *e);
/* Makes the token when there is no administrator, removes it when there is one. */
MUST_USE err_t first_start_token(struct engine *en, struct error *e);
/* Any thread. ERR_NOT_FOUND: none is waited for. */
MUST_USE err_t first_start_read_token(struct engine *en, struct buf *out, struct error *e);

#endif

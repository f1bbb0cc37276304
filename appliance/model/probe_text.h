/* SPDX-License-Identifier: Apache-2.0 */
/* What a check sends or expects, as people write it: \r \n \t \\ and \xHH stand for bytes, in
 * the hexadecimal form every two digits do. Pure. */
#ifndef LOCKSTEP_MODEL_PROBE_TEXT_H
#define LOCKSTEP_MODEL_PROBE_TEXT_H

#include "base/buf.h"
#include "model/value.h"

/* ERR_INVALID with a clause: an escape that is none, a byte 0. */
MUST_USE err_t probe_text_check(struct text t, struct error *e);
/* ERR_INVALID with a clause: not an even number of hexadecimal digits, or none. */
MUST_USE err_t probe_text_check_hex(struct text t, struct error *e);
/* Appends the bytes of a text that passed probe_text_check. */
void probe_text_put(struct buf *out, struct text t);

#endif

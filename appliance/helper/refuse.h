/* SPDX-License-Identifier: Apache-2.0 */
/* What a staged configuration must not hold, whoever wrote it: HAProxy's master reads it as
 * root. In each section only listed keywords are allowed, none of which runs a program, loads
 * code, leaves the process's confinement or evaluates what is in another file. What names a
 * file, be it by an expression, must name one of the same generation, behind "default-path
 * config", which makes it that; what names a socket must be an internet address, without
 * environment variables, or one of our own sockets. Users' texts (a header's value, a path to
 * match) may look like anything: they stand at known places of known lines, and are data there
 * as far as no "%" begins an expression. */
#ifndef LOCKSTEP_HELPER_REFUSE_H
#define LOCKSTEP_HELPER_REFUSE_H

#include <stddef.h>

#include "base/error.h"
#include "helper/staged.h"

struct refuse {
    const struct staged *files; /* of the generation */
    const char *run_dir;        /* haproxy.sock and probe.sock stand there */
};

/* ERR_DENIED "haproxy.cfg line N: "KEYWORD" ...". */
MUST_USE err_t
refuse_config(const struct refuse *r, const char *text, size_t bytes, struct error *e);
/* The same for the list of certificates of that name. */
MUST_USE err_t refuse_crt_list(
    const struct refuse *r, const char *name, const char *text, size_t bytes, struct error *e);

#endif

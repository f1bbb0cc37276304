/* SPDX-License-Identifier: Apache-2.0 */
/* What a staged configuration must not hold, whoever wrote it: HAProxy's master reads it as
 * root. In each section only listed keywords are allowed, none of which runs a program,
 * loads code or leaves the process's confinement; what names a file must name a file of the
 * same generation; what names a socket must be an internet address or one of our own
 * sockets. Text that is only data (a header value, a path to match) may hold anything. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that start lockstep-helper and lockstepd, with what each is allowed. */
#ifndef LOCKSTEP_RUN_COMMANDS_H
#define LOCKSTEP_RUN_COMMANDS_H

#include "run/options.h"

#define COMMANDS_ARGS_MAX   (RUN_DAEMON_ARGS_MAX + 24)
#define COMMANDS_TEXT_BYTES 512

struct commands_argv {
    const char *items[COMMANDS_ARGS_MAX + 1]; /* NULL at the end */
    size_t count;
    char text[COMMANDS_TEXT_BYTES]; /* of the items that were put together */
    size_t text_len;
};

/* Root with a few capabilities. */
void commands_helper(const struct run_options *o, struct commands_argv *ret);
/* The given user, without any capability and without a way to get one. */
void commands_daemon(const struct run_options *o, struct commands_argv *ret);

#endif

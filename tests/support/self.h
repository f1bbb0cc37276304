/* SPDX-License-Identifier: Apache-2.0 */
/* The test program runs itself again: for what must abort, and to be a child process. */
#ifndef LOCKSTEP_TESTS_SUPPORT_SELF_H
#define LOCKSTEP_TESTS_SUPPORT_SELF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define SELF_LONG_MS 20000 /* only ever reached by a failure */

/* Absolute path of the running program; a link in /proc would name valgrind under it. */
const char *self_path(void);
/* proc_run of this program with the arguments how and "second argument". */
MUST_USE err_t self_run(
    const char *how, int64_t deadline_ms, struct buf *out, int *ret_status, struct error *e);
/* Whether posix_spawn tells of a program that is not there. Not under valgrind, whose vfork is
 * a fork: there it ends with status 127. */
bool self_spawn_reports(void);
/* Fails the test unless the program, run as how, ends by an assertion that reads so. */
void self_aborts(const char *how, const char *assertion);

#endif

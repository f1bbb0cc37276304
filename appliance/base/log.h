/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines to standard error (systemd or lockstep-run collect them): one line a record,
 * control characters and invalid UTF-8 escaped, so that log text is data. */
#ifndef LOCKSTEP_BASE_LOG_H
#define LOCKSTEP_BASE_LOG_H

#include "base/attr.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* program: static text put at the start of each line. */
void log_open(const char *program, enum log_level level);
void log_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_warning(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_info(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif

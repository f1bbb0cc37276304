/* SPDX-License-Identifier: Apache-2.0 */
/* Places where a test build can be told to die (abort without any clean-up), so that crash
 * tests can hit each step. In product builds crashpoint() does nothing. */
#ifndef LOCKSTEP_BASE_CRASHPOINT_H
#define LOCKSTEP_BASE_CRASHPOINT_H

/* Dies when the program was told to die at this place. name: static, [a-z_]+. */
void crashpoint(const char *name);
/* Arms one place by its name, or "@PATH": the place that the file at PATH names when it is
 * passed, once (the file is removed first). NULL disarms. */
void crashpoint_arm(const char *spec);

#endif

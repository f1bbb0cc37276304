/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as people read them. */
#ifndef LOCKSTEP_CLI_SHOW_H
#define LOCKSTEP_CLI_SHOW_H

#include "cli/cli.h"

/* A table: cells are copied; columns are as wide as their content, and on a terminal the widest
 * are cut until a row fits. */
struct table;
struct table *table_new(struct cli *c, const char *const *heads, size_t count);
void table_cell(struct table *t, const char *text); /* "" and NULL: "-" */
void table_cell_int(struct table *t, json_int_t v);
void table_cell_value(struct table *t, const json_t *v);
void table_print(const struct table *t);

/* "name       text", escaped. */
void show_line(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* "2026-01-02 03:04:05 UTC" of "2026-01-02T03:04:05Z"; in the arena. */
const char *show_time(struct cli *c, const char *at);
/* The revision that waits for a confirm (its JSON, or null: nothing), and by when. */
void show_trial(struct cli *c, const json_t *trial);
void show_objects(const struct cli *c, const json_t *objects);
void show_problems(const json_t *problems);
void show_unified(const struct cli *c, const char *diff);
/* Objects, lines of haproxy.cfg and problems. */
void show_diff(struct cli *c, const json_t *diff);
/* Where the change is now. */
void show_drafted(void);
void show_task(struct cli *c, const json_t *task);
/* Prints each step when it has ended, then how the task ended: its exit status. */
int follow_task(struct cli *c, const json_t *task);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as people read them. */
#ifndef LOCKSTEP_CLI_SHOW_H
#define LOCKSTEP_CLI_SHOW_H

#include "cli/cli.h"

#define WIDTH_DEFAULT 80 /* of wrapped text where there is no terminal */
#define LABEL_COLUMNS 11 /* before the text of show_line */

/* A table: cells are copied; columns are as wide as their content, and on a terminal the widest
 * are cut until a row fits. A column with a number or a time is never cut. */
struct table;
struct table *table_new(struct cli *c, const char *const *heads, size_t count);
void table_cell(struct table *t, const char *text);       /* "" and NULL: "-" */
void table_cell_whole(struct table *t, const char *text); /* its column is not cut */
void table_cell_int(struct table *t, json_int_t v);
void table_cell_time(struct table *t, const char *at); /* as show_time, but without "UTC" */
void table_cell_value(struct table *t, const json_t *v);
bool table_is_empty(const struct table *t);
void table_print(const struct table *t);
/* As table_print, but what does not fit goes on in the next line. */
void table_print_wrapped(struct table *t);

/* Characters, taken as one column each. */
size_t text_width(const char *s);
size_t text_width_of(const char *s, size_t bytes); /* that begin within so many bytes */
size_t text_bytes(const char *s, size_t columns);  /* at most its own length */
/* Bytes of s that go on a line of so many columns, broken at a blank where there is one. */
size_t text_line(const char *s, size_t columns);
/* The text in lines behind an indent, from the second one on behind another one. */
void show_wrapped(const struct cli *c, int indent, int hanging, const char *text);

/* "name       text", escaped. */
void show_line(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Why what all nodes share is not edited here, and where it is; nothing where it is. */
void show_edit(const struct cli *c, const json_t *cluster);
/* Of a cluster of several nodes: how many there are, who holds the VIP, and what is not as it
 * should be; and as show_edit. */
void show_cluster_line(struct cli *c, const json_t *cluster);
/* "2026-01-02 03:04:05 UTC" of "2026-01-02T03:04:05Z"; in the arena. */
const char *show_time(struct cli *c, const char *at);
/* "3 changes", "1 change". */
const char *show_count(struct cli *c, long long n, const char *noun);
/* "pool app", or "haproxy", of which there is one. */
void put_object(struct buf *out, const char *kind, const char *name);
/* The revision that waits for a confirm (its JSON, or null: nothing), and by when. */
void show_waiting(struct cli *c, const json_t *waiting);
void show_objects(const struct cli *c, const json_t *objects);
void show_problems(const json_t *problems);
void show_unified(const struct cli *c, const char *diff);
/* Objects, lines of haproxy.cfg and problems. */
void show_diff(struct cli *c, const json_t *diff);
/* What HAProxy says of a server; a name without an address is no maintenance. */
const char *server_state(const json_t *server);
/* Where the change is now. */
void show_drafted(void);
/* Trials of checks. warn: those that not all servers pass go to standard error. True when all
 * servers that were tried pass. */
bool show_trials(const json_t *trials, bool warn);
void show_task(struct cli *c, const json_t *task);
/* Prints each step when it has ended, then how the task ended: its exit status. With --json
 * only the task as it ended, or result (NULL: none) with it as "task". */
int follow_task(struct cli *c, const json_t *task, json_t *result);
/* Both texts cut to at most room columns (16 at least) around the place where they differ. */
void show_cut(
    const char *before, const char *after, size_t room, struct buf *ret_before,
    struct buf *ret_after);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: every command is a call of the REST API and a way to show its answer. */
#ifndef LOCKSTEP_CLI_CLI_H
#define LOCKSTEP_CLI_CLI_H

#include <stdbool.h>

#include <jansson.h>

#include "base/arena.h"
#include "peer/rest.h"

/* Exit statuses, also in the help. */
#define EXIT_NO        1 /* the node refused, or what was asked for failed */
#define EXIT_USAGE     2 /* the command line is wrong */
#define EXIT_UNREACHED 3 /* no answer */

struct cli {
    struct arena *arena;
    const char *config_path; /* where url, key and pin were read, or will be saved */
    struct rest_config config;
    struct rest *rest; /* opened at the first call */
    bool json;         /* print answers as they came */
    bool color;        /* standard output is a terminal */
};

struct command {
    const char *name;
    const char *arguments;      /* for the usage line */
    const char *help;           /* one sentence */
    const char *const *options; /* "--note TEXT", ...; NULL-terminated, or NULL */
    const char *details;        /* further lines, or NULL */
    int (*run)(struct cli *c, int argc, char **argv); /* argv[0] is the command */
};

/* All commands, ended by one without a name. */
extern const struct command cli_commands[];

int cli_main(int argc, char **argv);

/* Options of a command: takes "--name VALUE" out of argv (also "--name=VALUE"), NULL when it
 * is not there. cli_flag takes "--name". After all options were taken, cli_no_more reports
 * what is left over beyond max positional arguments (argv[1] ...): 0 or EXIT_USAGE. */
const char *cli_option(int *argc, char **argv, const char *name);
bool cli_flag(int *argc, char **argv, const char *name);
int cli_no_more(int argc, char **argv, int min, int max);

/* One call. Answers >= 400 are explained on standard error. *ret (may be NULL): the parsed
 * answer, a new reference, or NULL when it has no body. Returns an exit status. */
struct call {
    const char *method;
    const char *path;
    json_t *body; /* borrowed; NULL: none */
    const char *if_match;
    const char *cookie, *csrf;
};

int cli_call(struct cli *c, const struct call *q, json_t **ret, struct rest_answer *answer);

/* Paths: "/api/v1/" and each part percent-encoded, up to a NULL; in the arena. */
const char *cli_path(struct cli *c, const char *first, ...) __attribute__((sentinel));

/* With --json prints the answer and returns true. */
bool cli_printed_json(const struct cli *c, const json_t *answer);
void cli_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Text from the node as one line: control characters escaped. NULL prints "-". */
void cli_put_text(struct buf *out, const char *s);
const char *cli_str(const json_t *obj, const char *key); /* "" when absent */

/* ~/.config/lockstep/cli.json (from the password database), else /etc/lockstep/cli.json. */
err_t config_load(struct cli *c, bool must_exist, struct error *e);
err_t config_save(const struct cli *c, struct error *e);

/* A table: cells are copied; columns are as wide as their content. */
struct table;
struct table *table_new(struct cli *c, const char *const *heads, size_t count);
void table_cell(struct table *t, const char *text);
void table_cell_int(struct table *t, json_int_t v);
void table_print(const struct table *t);

int cmd_setup(struct cli *c, int argc, char **argv);
int cmd_status(struct cli *c, int argc, char **argv);
int cmd_history(struct cli *c, int argc, char **argv);
int cmd_show(struct cli *c, int argc, char **argv);
int cmd_tasks(struct cli *c, int argc, char **argv);
int cmd_verify(struct cli *c, int argc, char **argv);
int cmd_config(struct cli *c, int argc, char **argv);
int cmd_publish(struct cli *c, int argc, char **argv);
int cmd_unpublish(struct cli *c, int argc, char **argv);
int cmd_diff(struct cli *c, int argc, char **argv);
int cmd_check(struct cli *c, int argc, char **argv);
int cmd_apply(struct cli *c, int argc, char **argv);
int cmd_discard(struct cli *c, int argc, char **argv);
int cmd_restore(struct cli *c, int argc, char **argv);
int cmd_list(struct cli *c, int argc, char **argv);
int cmd_get(struct cli *c, int argc, char **argv);
int cmd_create(struct cli *c, int argc, char **argv);
int cmd_set(struct cli *c, int argc, char **argv);
int cmd_delete(struct cli *c, int argc, char **argv);

/* Shared by the commands that show changes. */
void show_objects(const struct cli *c, const json_t *objects);
void show_problems(const json_t *problems);
void show_unified(const struct cli *c, const char *diff);
void show_task(struct cli *c, const json_t *task);
/* Prints each step when it has ended, then how the task ended: its exit status. */
int follow_task(struct cli *c, const json_t *task);

#endif

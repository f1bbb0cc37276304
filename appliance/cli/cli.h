/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: every command is a call of the REST API and a way to show its answer. */
#ifndef LOCKSTEP_CLI_CLI_H
#define LOCKSTEP_CLI_CLI_H

#include <stdbool.h>

#include <jansson.h>

#include "base/arena.h"
#include "commands_gen.h" /* cmd_... */
#include "model/schema.h"
#include "peer/rest.h"

/* Exit statuses; schema/commands.json says what they mean. */
#define EXIT_NO        1
#define EXIT_USAGE     2
#define EXIT_UNREACHED 3

#define OPTIONS_MAX 64 /* on one command line */

struct cli_given {
    const char *name, *value; /* value NULL: a flag */
};

struct cli {
    struct arena *arena;
    const char *config_path; /* where url, key and pin were read, or will be saved */
    struct rest_config config;
    struct rest *rest; /* opened at the first call */
    bool json;         /* print answers as they came */
    bool color;        /* standard output is a terminal, and colours are wanted */
    int width;         /* columns of the terminal; 0: no terminal, nothing is cut */
    const struct command *command;
    struct cli_given given[OPTIONS_MAX];
    size_t given_count;
};

/* The tables are generated from schema/commands.json (commands_gen.c). */
struct command_option {
    const char *name;  /* "--note" */
    const char *value; /* "TEXT"; NULL: a flag */
    bool number;       /* the value is a decimal number */
    bool required;
    bool repeat;      /* may stand more than once */
    const char *with; /* the option without which it has no meaning; NULL: none */
};

struct command {
    const char *name;
    const char *help; /* several lines, the usage first */
    const struct command_option *options;
    int least, most;                                  /* arguments */
    int (*run)(struct cli *c, int argc, char **argv); /* argv[0] is the command */
};

extern const struct command cli_commands[];       /* ended by one without a name */
extern const struct command_option cli_globals[]; /* as above */
extern const char cli_help[];

int cli_main(int argc, char **argv);

/* ---- arguments.c ---- */

const struct command *cli_find_command(const char *name); /* NULL: there is none */
/* Sorts a command line: options into given, the command and its arguments to the front of argv,
 * *argc of them. 0, or EXIT_USAGE after saying what is wrong. --help and --version are given
 * without a look at the rest. */
int cli_parse(struct cli *c, int *argc, char **argv);
/* The (last) value of an option, NULL when it was not given. */
const char *cli_option(const struct cli *c, const char *name);
bool cli_flag(const struct cli *c, const char *name);
/* The values of an option that may stand more than once, as an array. */
json_t *cli_option_list(const struct cli *c, const char *name);
/* A number that cli_parse let pass, or otherwise when the option was not given. */
int64_t cli_number(const struct cli *c, const char *name, int64_t otherwise);
/* Says what is wrong and how the command is used: EXIT_USAGE. */
int cli_misused(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- suggest.c ---- */

/* Says that there is no such command, and which one is nearest: EXIT_USAGE. */
int cli_no_command(const struct cli *c, const char *word);

/* ---- call.c ---- */

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
int cli_get(struct cli *c, const char *path, json_t **ret);
/* ETag of the object as it is now, so that a change made meanwhile is not lost; in the arena.
 * *ret_object (may be NULL): the object, a new reference. */
int cli_etag(struct cli *c, const char *path, const char **ret, json_t **ret_object);
/* rest_events; an exit status after saying what went wrong. */
int cli_events(struct cli *c, const char *path, rest_event_fn fn, void *ctx, bool may_time_out);
/* Paths: "/api/v1/" and each part percent-encoded, up to a NULL; in the arena. */
const char *cli_path(struct cli *c, const char *first, ...) __attribute__((sentinel));
/* path?key=value, or &key=value behind another one; path itself when value is NULL. */
const char *cli_query(struct cli *c, const char *path, const char *key, const char *value);

/* With --json prints the answer and returns true. */
bool cli_printed_json(const struct cli *c, const json_t *answer);
void cli_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Text from the node as one line: control characters escaped. NULL prints "-". */
void cli_put_text(struct buf *out, const char *s);
void cli_put_value(struct buf *out, const json_t *v);    /* a text as it is, else as JSON */
const char *cli_str(const json_t *obj, const char *key); /* "" when absent */
long long cli_int(const json_t *obj, const char *key);   /* 0 when absent */
void cli_set_text(json_t *body, const char *key, const char *value); /* not when NULL */

/* ---- cmd_try.c ---- */

/* Whether somebody sits there who can be asked. */
bool cli_may_ask(const struct cli *c);
/* Yes or no; no also when there is no answer. */
bool cli_ask(const char *question);

/* ---- kinds.c ---- */

/* By its name or plural; NULL after an error that lists the kinds. */
const struct schema_kind *cli_kind(const char *word);
const char *cli_object_path(struct cli *c, const struct schema_kind *kind, const char *name);
/* All objects of a kind whose name contains match (NULL: all), page after page; a singleton
 * too. *ret is a new array. */
int cli_fetch(struct cli *c, const struct schema_kind *kind, const char *match, json_t **ret);

/* ---- input.c ---- */

/* A JSON object from a file, or "-" for standard input. EXIT_USAGE after saying why not. */
int cli_read_json(const char *path, json_t **ret);
/* The first line of it, in the arena. */
int cli_read_line(struct cli *c, const char *path, const char **ret);

/* ~/.config/lockstep/cli.json (from the password database), else /etc/lockstep/cli.json. */
err_t config_load(struct cli *c, bool must_exist, struct error *e);
err_t config_save(const struct cli *c, struct error *e);

#endif

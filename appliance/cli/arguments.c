/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define NUMBER_DIGITS 9

const struct command *
cli_find_command(const char *name)
{
    for (const struct command *k = cli_commands; k->name != NULL; k++) {
        if (strcmp(k->name, name) == 0) {
            return k;
        }
    }
    return NULL;
}

const char *
cli_option(const struct cli *c, const char *name)
{
    for (size_t i = c->given_count; i > 0; i--) {
        if (strcmp(c->given[i - 1].name, name) == 0) {
            return c->given[i - 1].value;
        }
    }
    return NULL;
}

bool
cli_flag(const struct cli *c, const char *name)
{
    for (size_t i = 0; i < c->given_count; i++) {
        if (strcmp(c->given[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

json_t *
cli_option_list(const struct cli *c, const char *name)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->given_count; i++) {
        if (strcmp(c->given[i].name, name) == 0) {
            json_array_append_new(list, json_string(c->given[i].value));
        }
    }
    return list;
}

static bool
is_number(const char *s)
{
    size_t len = strspn(s, "0123456789");

    return len > 0 && len <= NUMBER_DIGITS && s[len] == '\0';
}

int64_t
cli_number(const struct cli *c, const char *name, int64_t otherwise)
{
    const char *s = cli_option(c, name);
    int64_t v = 0;

    if (s == NULL) {
        return otherwise;
    }
    for (; *s != '\0'; s++) {
        v = v * 10 + (*s - '0');
    }
    return v;
}

int
cli_misused(const struct cli *c, const char *fmt, ...)
{
    const struct command *k = c->command;
    va_list ap;

    fprintf(stderr, "lockstep%s%s: ", k != NULL ? " " : "", k != NULL ? k->name : "");
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    if (k != NULL) {
        const char *end = strstr(k->help, "\n\n");
        fprintf(stderr, "%.*s\n", (int)(end != NULL ? end - k->help : 0), k->help);
    } else {
        (void)fputs("lockstep --help lists commands and options.\n", stderr);
    }
    return EXIT_USAGE;
}

static const struct command_option *
find_option(const struct command_option *options, const char *word, size_t len)
{
    for (; options->name != NULL; options++) {
        if (strlen(options->name) == len && memcmp(options->name, word, len) == 0) {
            return options;
        }
    }
    return NULL;
}

/* Takes argv[*at], an option, and what belongs to it. */
static int
take_option(struct cli *c, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    size_t len = strcspn(word, "=");
    const char *value = word[len] == '=' ? word + len + 1 : NULL;
    const struct command_option *o = find_option(cli_globals, word, len);

    if (o == NULL && c->command != NULL) {
        o = find_option(c->command->options, word, len);
    }
    if (o == NULL) {
        return cli_misused(
            c, "there is no option \"%.*s\"%s", (int)len, word,
            c->command == NULL ? " before the command" : "");
    }
    if (o->value == NULL && value != NULL) {
        return cli_misused(c, "%s takes no value", o->name);
    }
    if (o->value != NULL && value == NULL && *at + 1 < argc) {
        value = argv[++*at];
    }
    if (o->value != NULL && value == NULL) {
        return cli_misused(c, "%s needs a value: %s", o->name, o->value);
    }
    if (o->number && value != NULL && !is_number(value)) {
        return cli_misused(c, "%s: \"%s\" is no number", o->name, value);
    }
    if (c->given_count == OPTIONS_MAX) {
        return cli_misused(c, "there are more than %d options", OPTIONS_MAX);
    }
    c->given[c->given_count++] = (struct cli_given){o->name, value};
    return 0;
}

static size_t
times_given(const struct cli *c, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < c->given_count; i++) {
        n += strcmp(c->given[i].name, name) == 0;
    }
    return n;
}

static int
check_line(const struct cli *c, int argc)
{
    const struct command *k = c->command;

    for (const struct command_option *o = k->options; o->name != NULL; o++) {
        size_t times = times_given(c, o->name);
        if (o->required && times == 0) {
            return cli_misused(c, "%s %s is missing", o->name, o->value);
        }
        if (times > 1 && !o->repeat) {
            return cli_misused(c, "%s stands more than once", o->name);
        }
        if (times > 0 && o->with != NULL && !cli_flag(c, o->with)) {
            return cli_misused(c, "%s has no meaning without %s", o->name, o->with);
        }
    }
    if (argc - 1 < k->least) {
        return cli_misused(c, "an argument is missing");
    }
    return argc - 1 > k->most ? cli_misused(c, "there are too many arguments") : 0;
}

static bool
asks_for_help(const struct cli *c, int argc, char **argv)
{
    return cli_flag(c, "--help") || cli_flag(c, "--version") || argc == 0 ||
           strcmp(argv[0], "help") == 0;
}

/* False: it is none. */
static bool
take_command(struct cli *c, const char *word)
{
    c->command = cli_find_command(word);
    return c->command != NULL || strcmp(word, "help") == 0;
}

int
cli_parse(struct cli *c, int *argc, char **argv)
{
    bool ended = false;
    int kept = 0;

    for (int i = 1; i < *argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (!ended && argv[i][0] == '-' && argv[i][1] != '\0') {
            int status = take_option(c, *argc, argv, &i);
            if (status != 0) {
                return status;
            }
        } else {
            argv[kept++] = argv[i];
            if (kept == 1 && !take_command(c, argv[0])) {
                return cli_no_command(c, argv[0]);
            }
        }
    }
    argv[kept] = NULL;
    *argc = kept;
    return asks_for_help(c, kept, argv) ? 0 : check_line(c, kept);
}

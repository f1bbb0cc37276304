/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "version_gen.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define DEFAULT_URL "https://127.0.0.1:8443"
#define TIMEOUT_MS  180000

static const char *const publish_options[] = {
    "--check tcp|http:/PATH", "--name NAME", "--plan", "--apply", "--note TEXT", NULL};
static const char *const setup_options[] = {
    "--state-dir DIR", "--name ADMIN", "--password-file FILE", NULL};
static const char *const note_options[] = {"--note TEXT", NULL};
static const char *const restore_options[] = {"--apply", "--note TEXT", NULL};
static const char *const file_options[] = {"--file FILE", NULL};
static const char *const history_options[] = {"--limit N", NULL};
static const char *const config_options[] = {"--draft", NULL};

const struct command cli_commands[] = {
    {"setup", "", "Make the first administrator of this node and save a key for this command.",
     setup_options,
     "Run it on the node, as root. Prints the administrator's password when it made one.",
     cmd_setup},
    {"status", "", "What is stored, running and serving on the node.", NULL, NULL, cmd_status},
    {"publish", "URL [URL ...] --to HOST:PORT,...",
     "Publish a URL to servers, as a change of the draft.", publish_options,
     "URL is https://HOST[/PATH], http://HOST[:PORT][/PATH] or tcp://:PORT.", cmd_publish},
    {"unpublish", "SERVICE", "Remove a service and what only it uses, in the draft.", NULL,
     NULL, cmd_unpublish},
    {"diff", "", "What an apply would change: objects and haproxy.cfg.", NULL, NULL, cmd_diff},
    {"check", "", "Check the draft fully, haproxy -c included; change nothing.", NULL, NULL,
     cmd_check},
    {"apply", "", "Apply the draft: check, activate, confirm, save.", note_options, NULL,
     cmd_apply},
    {"discard", "[KIND NAME]", "Discard one change of the draft, or all of them.", NULL, NULL,
     cmd_discard},
    {"history", "", "Commits, newest first.", history_options, NULL, cmd_history},
    {"show", "REV [REV]", "What a commit changed, or what lies between two.", NULL, NULL,
     cmd_show},
    {"restore", "REV", "Put the content of an older commit into the draft.", restore_options,
     "REV is a revision (3), a revision and fingerprint (3@1a2b3c4d) or a commit id.",
     cmd_restore},
    {"list", "KIND", "Objects of a kind, as the draft shows them.", NULL, NULL, cmd_list},
    {"get", "KIND [NAME]", "One object.", NULL, NULL, cmd_get},
    {"create", "KIND NAME [FIELD=VALUE ...]", "Create an object in the draft.", file_options,
     NULL, cmd_create},
    {"set", "KIND [NAME] FIELD=VALUE ...", "Change fields of an object in the draft.",
     file_options,
     "Lists are comma-separated; null clears; records are JSON. --file FILE reads a JSON "
     "object, --file - from standard input.",
     cmd_set},
    {"delete", "KIND NAME", "Delete an object in the draft.", NULL, NULL, cmd_delete},
    {"config", "", "The haproxy.cfg of the stored configuration.", config_options, NULL,
     cmd_config},
    {"tasks", "[ID]", "Applies and other long work, or one with its steps.", NULL, NULL,
     cmd_tasks},
    {"verify", "", "Recompute hashes, references and files; change nothing.", NULL, NULL,
     cmd_verify},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

void
cli_error(const char *fmt, ...)
{
    va_list ap;

    (void)fputs("lockstep: ", stderr);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
}

static void
usage(FILE *out)
{
    (void)fputs("usage: lockstep [--config FILE] [--url URL] [--json] COMMAND ...\n\n", out);
    for (const struct command *k = cli_commands; k->name != NULL; k++) {
        fprintf(out, "  %-10s %s\n", k->name, k->help);
    }
    (void)fputs(
        "\nlockstep help COMMAND says more. Exit status: 0 done, 1 refused or failed, "
        "2 wrong usage, 3 no answer.\n",
        out);
}

static void
usage_of(const struct command *k, FILE *out)
{
    fprintf(
        out, "usage: lockstep %s%s%s", k->name, k->arguments[0] != '\0' ? " " : "",
        k->arguments);
    for (const char *const *o = k->options; o != NULL && *o != NULL; o++) {
        fprintf(out, " [%s]", *o);
    }
    fprintf(out, "\n\n%s\n", k->help);
    if (k->details != NULL) {
        fprintf(out, "%s\n", k->details);
    }
}

static const struct command *
find(const char *name)
{
    for (const struct command *k = cli_commands; k->name != NULL; k++) {
        if (strcmp(k->name, name) == 0) {
            return k;
        }
    }
    return NULL;
}

static void
remove_arg(int *argc, char **argv, int at, int count)
{
    for (int i = at; i + count <= *argc; i++) {
        argv[i] = argv[i + count];
    }
    *argc -= count;
}

const char *
cli_option(int *argc, char **argv, const char *name)
{
    size_t len = strlen(name);

    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], name) == 0 && i + 1 < *argc) {
            const char *value = argv[i + 1];
            remove_arg(argc, argv, i, 2);
            return value;
        }
        if (strncmp(argv[i], name, len) == 0 && argv[i][len] == '=') {
            const char *value = argv[i] + len + 1;
            remove_arg(argc, argv, i, 1);
            return value;
        }
    }
    return NULL;
}

bool
cli_flag(int *argc, char **argv, const char *name)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            remove_arg(argc, argv, i, 1);
            return true;
        }
    }
    return false;
}

int
cli_no_more(int argc, char **argv, int min, int max)
{
    const struct command *k = find(argv[0]);

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            cli_error("%s: option \"%s\" is unknown or lacks its value", argv[0], argv[i]);
            return EXIT_USAGE;
        }
    }
    if (argc - 1 >= min && argc - 1 <= max) {
        return 0;
    }
    usage_of(k, stderr);
    return EXIT_USAGE;
}

static int
help(int argc, char **argv)
{
    if (argc < 2) {
        usage(stdout);
        return 0;
    }
    const struct command *k = find(argv[1]);
    if (k == NULL) {
        cli_error("there is no command \"%s\"", argv[1]);
        return EXIT_USAGE;
    }
    usage_of(k, stdout);
    return 0;
}

static bool
all_utf8(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!utf8_valid(argv[i], strlen(argv[i]))) {
            return false;
        }
    }
    return true;
}

/* Global options stand before the command; --json may stand anywhere. */
static int
run(struct cli *c, int argc, char **argv)
{
    struct error e;
    const char *url = NULL;
    int at = 1;

    c->json = cli_flag(&argc, argv, "--json");
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--config") == 0) {
            c->config_path = argv[at + 1];
        } else if (strcmp(argv[at], "--url") == 0) {
            url = argv[at + 1];
        } else {
            break;
        }
    }
    argc -= at;
    argv += at;
    if (argc < 1) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (!all_utf8(argc, argv)) {
        cli_error("an argument is not UTF-8");
        return EXIT_USAGE;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "help") == 0) {
        return help(argc, argv);
    }
    if (strcmp(argv[0], "--version") == 0) {
        puts("lockstep " LOCKSTEP_VERSION);
        return 0;
    }
    const struct command *k = find(argv[0]);
    if (k == NULL) {
        cli_error("there is no command \"%s\"; lockstep help lists them", argv[0]);
        return EXIT_USAGE;
    }
    if (config_load(c, k->run != cmd_setup, &e) != ERR_OK) {
        cli_error("%s", e.msg);
        return EXIT_USAGE;
    }
    if (url != NULL) {
        c->config.url = url;
    }
    if (c->config.url == NULL) {
        c->config.url = DEFAULT_URL;
    }
    return k->run(c, argc, argv);
}

int
cli_main(int argc, char **argv)
{
    struct cli c = {.config.timeout_ms = TIMEOUT_MS, .color = isatty(STDOUT_FILENO) == 1};

    c.arena = arena_new(ARENA_BYTES);
    int status = run(&c, argc, argv);
    rest_close(c.rest);
    arena_free(c.arena);
    if (fflush(stdout) != 0 && status == 0) {
        cli_error("standard output cannot be written");
        status = EXIT_NO;
    }
    return status;
}

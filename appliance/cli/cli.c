/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"
#include "version_gen.h"

#define ARENA_BYTES   ((size_t)256 << 20)
#define DEFAULT_URL   "https://127.0.0.1:8443"
#define TIMEOUT_S     180
#define TIMEOUT_MAX_S 3600

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

/* "help", "help COMMAND" and "COMMAND --help". */
static int
help(const struct cli *c, int argc, char **argv)
{
    const struct command *k = c->command;

    if (argc > 1 && k == NULL) {
        k = cli_find_command(argv[1]);
        if (k == NULL) {
            return cli_no_command(c, argv[1]);
        }
    }
    (void)fputs(k != NULL ? k->help : cli_help, stdout);
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

static int
settings(struct cli *c)
{
    struct error e;
    int64_t timeout_s = cli_number(c, "--timeout", TIMEOUT_S);
    const char *url = cli_option(c, "--url");

    c->json = cli_flag(c, "--json");
    c->config.unlock = cli_flag(c, "--unlock");
    c->color = c->color && !cli_flag(c, "--no-color");
    c->config_path = cli_option(c, "--config");
    if (timeout_s < 1 || timeout_s > TIMEOUT_MAX_S) {
        return cli_misused(c, "--timeout: it is 1 to %d seconds", TIMEOUT_MAX_S);
    }
    c->config.timeout_ms = timeout_s * 1000;
    /* setup makes the file; explain asks no node. */
    bool needed =
        strcmp(c->command->name, "setup") != 0 && strcmp(c->command->name, "explain") != 0;
    if (config_load(c, needed && url == NULL, &e) != ERR_OK) {
        cli_error("%s", e.msg);
        return EXIT_USAGE;
    }
    if (url != NULL) {
        c->config.url = url;
    }
    if (c->config.url == NULL) {
        c->config.url = DEFAULT_URL;
    }
    return 0;
}

static int
run(struct cli *c, int argc, char **argv)
{
    if (!all_utf8(argc, argv)) {
        cli_error("an argument is not UTF-8");
        return EXIT_USAGE;
    }
    int status = cli_parse(c, &argc, argv);
    if (status != 0) {
        return status;
    }
    if (cli_flag(c, "--version")) {
        puts("lockstep " LOCKSTEP_VERSION);
        return 0;
    }
    if (cli_flag(c, "--help") || (argc > 0 && strcmp(argv[0], "help") == 0)) {
        return help(c, argc, argv);
    }
    if (c->command == NULL) {
        (void)fputs(cli_help, stderr);
        return EXIT_USAGE;
    }
    status = settings(c);
    return status != 0 ? status : c->command->run(c, argc, argv);
}

static int
terminal_width(void)
{
    struct winsize size;

    if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
        return 0;
    }
    return size.ws_col;
}

int
cli_main(int argc, char **argv)
{
    struct cli c = {.color = isatty(STDOUT_FILENO) == 1, .width = terminal_width()};

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

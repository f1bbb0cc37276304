/* SPDX-License-Identifier: Apache-2.0 */
/* What the node finds when it tries a check, and whether to go on nevertheless. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/show.h"

#define LINE_BYTES   ((size_t)64 << 10)
#define ANSWER_BYTES 16
#define LISTED_MAX   10 /* servers that do not pass */

static void
put_server(FILE *to, const json_t *server)
{
    CLEANUP(buf_fini) struct buf line;
    const char *address = cli_str(server, "address");
    bool v6 = strchr(address, ':') != NULL;

    buf_init(&line, LINE_BYTES);
    cli_put_text(&line, cli_str(server, "server"));
    buf_puts(&line, v6 ? " [" : " ");
    cli_put_text(&line, address);
    buf_printf(&line, "%s:%lld: ", v6 ? "]" : "", cli_int(server, "port"));
    cli_put_text(&line, cli_str(server, "detail"));
    (void)fprintf(to, "  %s\n", buf_str(&line));
}

/* The first of the servers that would fail. */
static void
put_failed(FILE *to, const json_t *servers)
{
    const json_t *server;
    size_t i;
    size_t failed = 0;

    json_array_foreach(servers, i, server)
    {
        if (strcmp(cli_str(server, "result"), "fail") == 0 && failed++ < LISTED_MAX) {
            put_server(to, server);
        }
    }
    if (failed > LISTED_MAX) {
        (void)fprintf(to, "  and %zu more\n", failed - LISTED_MAX);
    }
}

/* How many were not tried, and why, when that has one reason. */
static void
put_untried(FILE *to, const json_t *servers)
{
    CLEANUP(buf_fini) struct buf why = {0};
    const char *reason = "";
    size_t untried = 0;

    for (size_t i = 0; i < json_array_size(servers); i++) {
        const json_t *server = json_array_get(servers, i);
        const char *detail = cli_str(server, "detail");

        if (strcmp(cli_str(server, "result"), "not_tried") == 0) {
            reason = untried == 0 || strcmp(reason, detail) == 0 ? detail : "";
            untried++;
        }
    }
    if (untried == 0) {
        return;
    }
    buf_init(&why, LINE_BYTES);
    cli_put_text(&why, reason);
    (void)fprintf(
        to, "  %zu server%s not tried%s%s\n", untried, untried == 1 ? " was" : "s were",
        why.len > 0 ? ": " : "", buf_str(&why));
}

static void
put_trial(FILE *to, const json_t *trial)
{
    const json_t *servers = json_object_get(trial, "servers");
    long long of = cli_int(trial, "of");

    if (of > 0) {
        (void)fprintf(
            to, "check: %lld of %lld server%s would pass\n", cli_int(trial, "would_pass"), of,
            PLURAL(of));
        put_failed(to, servers);
        put_untried(to, servers);
    } else if (json_array_size(servers) > 0) {
        CLEANUP(buf_fini) struct buf why;

        buf_init(&why, LINE_BYTES);
        cli_put_text(&why, cli_str(json_array_get(servers, 0), "detail"));
        (void)fprintf(to, "check: not tried: %s\n", buf_str(&why));
    } else {
        (void)fprintf(to, "check: not tried: the pool has no servers\n");
    }
}

bool
show_trials(const json_t *trials, bool warn)
{
    const json_t *trial;
    size_t i;
    bool all = true;

    json_array_foreach(trials, i, trial)
    {
        bool pass = cli_int(trial, "would_pass") == cli_int(trial, "of");
        FILE *to = warn && !pass ? stderr : stdout;

        (void)fflush(stdout);
        put_trial(to, trial);
        all = all && pass;
    }
    return all;
}

bool
cli_may_ask(const struct cli *c)
{
    return !c->json && isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

bool
cli_ask(const char *question)
{
    char answer[ANSWER_BYTES] = "";

    (void)fflush(stdout);
    (void)fprintf(stderr, "%s [y/N] ", question);
    (void)fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL) {
        (void)fputc('\n', stderr);
        return false;
    }
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

int
cmd_try(struct cli *c, int argc, char **argv)
{
    const struct call q = {
        .method = "POST", .path = cli_path(c, "pools", argv[1], "check", NULL)};
    json_auto_t *trial = NULL;
    int status = cli_call(c, &q, &trial, NULL);

    (void)argc;
    if (status != 0) {
        return status;
    }
    if (!cli_printed_json(c, trial)) {
        put_trial(stdout, trial);
    }
    return cli_int(trial, "of") > 0 && cli_int(trial, "would_pass") == cli_int(trial, "of")
               ? 0
               : EXIT_NO;
}

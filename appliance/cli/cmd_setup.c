/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/crypt.h"
#include "base/file.h"
#include "base/x509.h"
#include "cli/cli.h"

#define DEFAULT_STATE_DIR     "/var/lib/lockstep"
#define SMALL_FILE_BYTES      65536
#define PASSWORD_RANDOM_BYTES 15

struct setup {
    const char *state_dir, *name, *password;
    const char *token;
    bool made_password;
};

/* First line of a small file, in the arena. */
static err_t
read_line(struct cli *c, const char *path, const char **ret, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf text;

    buf_init(&text, SMALL_FILE_BYTES);
    err_t err = file_read_at(AT_FDCWD, path, &text, e);
    if (err != ERR_OK) {
        return err;
    }
    *ret = arena_memdup0(c->arena, buf_str(&text), strcspn(buf_str(&text), "\r\n"));
    return ERR_OK;
}

/* The node's own certificate, read from its files, is what the calls are pinned to. */
static err_t
read_node(struct cli *c, struct setup *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf pem = {0};
    struct x509_info info;
    const char *data = arena_printf(c->arena, "%s/data", s->state_dir);

    err_t err = read_line(c, arena_printf(c->arena, "%s/setup-token", data), &s->token, e);
    if (err == ERR_NOT_FOUND) {
        return error_set(
            e, err,
            "%s has no setup-token: the node has an administrator already, or was never "
            "started",
            data);
    }
    if (err != ERR_OK) {
        return err;
    }
    buf_init(&pem, SMALL_FILE_BYTES);
    err = file_read_at(AT_FDCWD, arena_printf(c->arena, "%s/api.crt", data), &pem, e);
    if (err == ERR_OK) {
        err = x509_read(buf_str(&pem), pem.len, &info, e);
    }
    if (err == ERR_OK) {
        c->config.pin = arena_strdup(c->arena, info.pin_b64);
    }
    return err;
}

static void
make_password(struct cli *c, struct setup *s)
{
    CLEANUP(buf_wipe_fini) struct buf text;

    buf_init(&text, 64);
    crypt_token(&text, PASSWORD_RANDOM_BYTES);
    s->password = arena_strdup(c->arena, buf_str(&text));
    s->made_password = true;
}

static int
sign_in(struct cli *c, const struct setup *s, struct rest_answer *answer, const char **ret_csrf)
{
    json_t *session = NULL;
    json_t *body = json_pack("{s:s, s:s}", "name", s->name, "password", s->password);
    const struct call q = {
        .method = "POST", .path = cli_path(c, "session", NULL), .body = body};
    int status = cli_call(c, &q, &session, answer);

    json_decref(body);
    if (status != 0) {
        return status;
    }
    *ret_csrf = arena_strdup(c->arena, cli_str(session, "csrf"));
    json_decref(session);
    return 0;
}

/* A key of its own for the command line, so that no password is stored. */
static int
make_key(struct cli *c, const char *cookie, const char *csrf)
{
    json_t *made = NULL;
    json_t *body = json_pack("{s:s, s:s}", "name", "cli", "note", "made by lockstep setup");
    const struct call q = {
        .method = "POST",
        .path = cli_path(c, "automation_keys", NULL),
        .body = body,
        .cookie = cookie,
        .csrf = csrf};
    int status = cli_call(c, &q, &made, NULL);

    json_decref(body);
    if (status != 0) {
        return status;
    }
    c->config.key = arena_strdup(c->arena, cli_str(made, "key"));
    json_decref(made);
    const struct call out = {
        .method = "DELETE",
        .path = cli_path(c, "session", NULL),
        .cookie = cookie,
        .csrf = csrf};
    return cli_call(c, &out, NULL, NULL);
}

static int
set_up(struct cli *c, const struct setup *s)
{
    struct rest_answer answer;
    const char *csrf = NULL;
    json_t *body = json_pack(
        "{s:s, s:s, s:s}", "token", s->token, "name", s->name, "password", s->password);
    const struct call q = {.method = "POST", .path = cli_path(c, "setup", NULL), .body = body};
    int status = cli_call(c, &q, NULL, NULL);

    json_decref(body);
    if (status != 0) {
        return status;
    }
    /* At once: whatever fails from here on, the administrator is there. */
    if (s->made_password) {
        json_auto_t *made = json_pack("{s:s, s:s}", "name", s->name, "password", s->password);
        if (!cli_printed_json(c, made)) {
            puts(s->password);
        }
        (void)fflush(stdout);
    }
    rest_answer_init(&answer);
    status = sign_in(c, s, &answer, &csrf);
    if (status == 0) {
        status = make_key(c, arena_strdup(c->arena, answer.cookie), csrf);
    }
    rest_answer_fini(&answer);
    return status;
}

int
cmd_setup(struct cli *c, int argc, char **argv)
{
    struct error e;
    struct setup s = {
        .state_dir = cli_option(c, "--state-dir"), .name = cli_option(c, "--name")};
    const char *password_file = cli_option(c, "--password-file");

    (void)argc;
    (void)argv;
    s.state_dir = s.state_dir != NULL ? s.state_dir : DEFAULT_STATE_DIR;
    s.name = s.name != NULL ? s.name : "admin";
    c->config.key = NULL;
    err_t err = ERR_OK;
    if (password_file != NULL) {
        err = read_line(c, password_file, &s.password, &e);
    } else {
        make_password(c, &s);
    }
    if (err == ERR_OK) {
        err = read_node(c, &s, &e);
    }
    if (err != ERR_OK) {
        cli_error("%s", e.msg);
        return EXIT_NO;
    }
    int status = set_up(c, &s);
    if (status != 0) {
        return status;
    }
    if (config_save(c, &e) != ERR_OK) {
        cli_error("%s", e.msg);
        return EXIT_NO;
    }
    return 0;
}

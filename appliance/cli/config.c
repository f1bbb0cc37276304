/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"

#define SYSTEM_CONFIG    "/etc/lockstep/cli.json"
#define CONFIG_MAX_BYTES 65536

static const char *
own_config(struct cli *c)
{
    struct passwd entry, *found = NULL;
    char text[4096];

    if (getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) != 0 || found == NULL) {
        return SYSTEM_CONFIG;
    }
    return arena_printf(c->arena, "%s/.config/lockstep/cli.json", found->pw_dir);
}

static const char *
choose(struct cli *c)
{
    const char *own = own_config(c);

    if (!file_exists_at(AT_FDCWD, own) && file_exists_at(AT_FDCWD, SYSTEM_CONFIG)) {
        return SYSTEM_CONFIG;
    }
    return own;
}

static err_t
read_values(struct cli *c, const json_t *j, struct error *e)
{
    static const char *const keys[] = {"url", "key", "pin", NULL};
    const char *url = NULL, *key = NULL, *pin = NULL;
    err_t err = json_only_keys(j, keys, e);

    if (err == ERR_OK) {
        err = json_opt_str(j, "url", &url, e);
    }
    if (err == ERR_OK) {
        err = json_opt_str(j, "key", &key, e);
    }
    if (err == ERR_OK) {
        err = json_opt_str(j, "pin", &pin, e);
    }
    if (err != ERR_OK) {
        return err;
    }
    c->config.url = url != NULL ? arena_strdup(c->arena, url) : NULL;
    c->config.key = key != NULL ? arena_strdup(c->arena, key) : NULL;
    c->config.pin = pin != NULL ? arena_strdup(c->arena, pin) : NULL;
    return ERR_OK;
}

err_t
config_load(struct cli *c, bool must_exist, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf text;
    json_t *j = NULL;

    if (c->config_path == NULL) {
        c->config_path = choose(c);
    }
    buf_init(&text, CONFIG_MAX_BYTES);
    err_t err = file_read_at(AT_FDCWD, c->config_path, &text, e);
    if (err == ERR_NOT_FOUND && !must_exist) {
        return ERR_OK;
    }
    if (err == ERR_NOT_FOUND) {
        return error_set(
            e, err, "there is no %s; \"lockstep setup\" makes it on a new node",
            c->config_path);
    }
    if (err == ERR_OK) {
        err = json_parse(buf_str(&text), text.len, &j, e);
    }
    if (err == ERR_OK) {
        err = read_values(c, j, e);
    }
    if (j != NULL) {
        json_decref(j);
    }
    return err == ERR_OK ? ERR_OK : error_wrap(e, "%s", c->config_path);
}

static err_t
make_folders(const char *path, struct error *e)
{
    CLEANUP(xfree_cleanup) char *part = xstrdup(path);

    for (char *at = strchr(part + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (!file_exists_at(AT_FDCWD, part)) {
            err_t err = file_mkdir_at(AT_FDCWD, part, 0700, e);
            if (err != ERR_OK) {
                return err;
            }
        }
        *at = '/';
    }
    return ERR_OK;
}

err_t
config_save(const struct cli *c, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf text;

    buf_init(&text, CONFIG_MAX_BYTES);
    err_t err = make_folders(c->config_path, e);
    if (err != ERR_OK) {
        return err;
    }
    json_t *j = json_pack(
        "{s:s, s:s, s:s?}", "url", c->config.url, "key", c->config.key, "pin", c->config.pin);
    json_pretty(j, &text);
    json_decref(j);
    err = file_write_at(AT_FDCWD, c->config_path, buf_str(&text), text.len, 0600, e);
    return err;
}

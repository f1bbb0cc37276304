/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/first_start.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/x509.h"
#include "engine/api_certificate.h"
#include "engine/dns_name.h"
#include "engine/inner.h"

#define PLACEHOLDER_NAME "placeholder.pem"
#define PLACEHOLDER_HOST "placeholder.invalid"
#define PLACEHOLDER_DAYS 3650
#define PEM_BYTES        ((size_t)64 << 10)
#define TOKEN_BYTES      32
#define TOKEN_FILE_BYTES ((size_t)256)

/* ---- certificates ---- */

static err_t
make_placeholder(const struct engine *en, struct buf *pem, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf key;
    const char *node = en->config->node_name;
    const char *names[] = {is_dns_name(node) ? node : PLACEHOLDER_HOST, NULL};
    err_t code;

    buf_init(&key, PEM_BYTES);
    code = x509_selfsigned(
        names, clock_wall_ms(en->config->clock) / 1000, PLACEHOLDER_DAYS, pem, &key, e);
    if (code != ERR_OK) {
        return code;
    }
    buf_put(pem, buf_str(&key), key.len);
    code = buf_status(pem, e);
    if (code != ERR_OK) {
        return code;
    }
    return file_write_at(en->data_fd, PLACEHOLDER_NAME, buf_str(pem), pem->len, 0600, e);
}

err_t
first_start_placeholder(struct engine *en, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf pem;
    err_t code;

    buf_init(&pem, PEM_BYTES);
    code = file_read_at(en->data_fd, PLACEHOLDER_NAME, &pem, e);
    if (code == ERR_NOT_FOUND) {
        code = make_placeholder(en, &pem, e);
    }
    if (code == ERR_OK) {
        en->placeholder_pem = xstrdup(buf_str(&pem));
    }
    return code;
}

err_t
first_start_api(struct engine *en, struct error *e)
{
    const struct engine_config *config = en->config;
    const struct api_certificate_names names = {config->node_name, config->api_address};
    CLEANUP(buf_fini) struct buf pem;
    CLEANUP(buf_wipe_fini) struct buf key;
    err_t code;

    buf_init(&pem, PEM_BYTES);
    buf_init(&key, PEM_BYTES);
    code = api_certificate_load(en->data_dir, &names, config->clock, &pem, &key, e);
    if (code == ERR_OK) {
        en->api_pem = xstrdup(buf_str(&pem));
    }
    return code;
}

/* ---- token ---- */

static bool
has_admin(const struct engine *en)
{
    const struct object *const *items;

    return snapshot_kind(en->live.local, K_ADMIN, &items) > 0;
}

err_t
first_start_token(struct engine *en, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf token;

    buf_init(&token, TOKEN_FILE_BYTES);
    if (has_admin(en)) {
        return file_remove_tree_at(en->data_fd, FIRST_START_TOKEN, e);
    }
    log_info(
        "no administrator yet: the setup token is in %s/%s", en->data_dir, FIRST_START_TOKEN);
    if (file_exists_at(en->data_fd, FIRST_START_TOKEN)) {
        return ERR_OK;
    }
    crypt_token(&token, TOKEN_BYTES);
    buf_putc(&token, '\n');
    return file_write_at(en->data_fd, FIRST_START_TOKEN, buf_str(&token), token.len, 0600, e);
}

err_t
first_start_read_token(struct engine *en, struct buf *out, struct error *e)
{
    return file_read_at(en->data_fd, FIRST_START_TOKEN, out, e);
}

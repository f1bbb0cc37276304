/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/api_certificate.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/x509.h"
#include "engine/dns_name.h"
#include "model/value.h"

#define CERT_NAME "api.crt"
#define KEY_NAME  "api.key"
#define DAYS      3650

static bool
is_wildcard(const char *address)
{
    return strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
}

/* The key first: a certificate is there only when it has its key. */
static err_t
make(
    int dir_fd, const struct api_certificate_names *names, int64_t now_s, struct buf *cert,
    struct buf *key, struct error *e)
{
    const char *list[5] = {"localhost", "127.0.0.1"};
    size_t count = 2;
    err_t code;

    if (is_dns_name(names->node) && strcmp(names->node, list[0]) != 0) {
        list[count++] = names->node;
    }
    if (value_is_ip(names->address) && !is_wildcard(names->address) &&
        strcmp(names->address, list[1]) != 0) {
        list[count++] = names->address;
    }
    code = x509_selfsigned(list, now_s, DAYS, cert, key, e);
    if (code == ERR_OK) {
        code = file_write_at(dir_fd, KEY_NAME, buf_str(key), key->len, 0600, e);
    }
    if (code == ERR_OK) {
        code = file_write_at(dir_fd, CERT_NAME, buf_str(cert), cert->len, 0600, e);
    }
    return code;
}

static err_t
read_both(int dir_fd, struct buf *cert, struct buf *key, struct error *e)
{
    err_t code = file_read_at(dir_fd, CERT_NAME, cert, e);

    if (code == ERR_OK) {
        code = file_read_at(dir_fd, KEY_NAME, key, e);
    }
    if (code == ERR_OK) {
        code = x509_check_key(buf_str(cert), cert->len, buf_str(key), key->len, e);
    }
    return code;
}

err_t
api_certificate_read(const char *data_dir, struct buf *cert, struct buf *key, struct error *e)
{
    CLEANUP(fd_cleanup) int dir = -1;
    err_t code = file_open_dir_at(AT_FDCWD, data_dir, &dir, e);

    if (code != ERR_OK) {
        return code;
    }
    /* A key alone is what a first start that was interrupted left. */
    if (!file_exists_at(dir, CERT_NAME)) {
        return error_set(e, ERR_NOT_FOUND, "%s holds no %s", data_dir, CERT_NAME);
    }
    code = read_both(dir, cert, key, e);
    if (code == ERR_NOT_FOUND || code == ERR_INVALID) {
        return error_set(
            e, ERR_CORRUPT, "%s/%s and %s do not belong together: remove both to get new ones",
            data_dir, CERT_NAME, KEY_NAME);
    }
    return code;
}

err_t
api_certificate_load(
    const char *data_dir, const struct api_certificate_names *names, const struct clock *clock,
    struct buf *cert, struct buf *key, struct error *e)
{
    CLEANUP(fd_cleanup) int dir = -1;
    err_t code = file_open_dir_at(AT_FDCWD, data_dir, &dir, e);

    if (code == ERR_OK) {
        code = api_certificate_read(data_dir, cert, key, e);
    }
    return code == ERR_NOT_FOUND && dir >= 0
               ? make(dir, names, clock_wall_ms(clock) / 1000, cert, key, e)
               : code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"

#define INPUT_MAX_BYTES ((size_t)32 << 20) /* of the largest body that the API takes */

static err_t
read_stdin(struct buf *out, struct error *e)
{
    char piece[8192];

    for (;;) {
        ssize_t got = read(STDIN_FILENO, piece, sizeof(piece));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_errno(e, ERR_IO, errno, "standard input");
        }
        if (got == 0) {
            return buf_status(out, e);
        }
        buf_put(out, piece, (size_t)got);
    }
}

static err_t
read_all(const char *path, struct buf *out, struct error *e)
{
    return strcmp(path, "-") == 0 ? read_stdin(out, e) : file_read_at(AT_FDCWD, path, out, e);
}

int
cli_read_json(const char *path, json_t **ret)
{
    CLEANUP(buf_wipe_fini) struct buf text;
    struct error e;
    json_t *j = NULL;

    buf_init(&text, INPUT_MAX_BYTES);
    err_t err = read_all(path, &text, &e);
    if (err == ERR_OK && json_parse(buf_str(&text), text.len, &j, &e) != ERR_OK) {
        err = error_wrap(&e, "this is not JSON");
    }
    if (err == ERR_OK && json_is_object(j)) {
        *ret = j;
        return 0;
    }
    cli_error("%s: %s", path, err == ERR_OK ? "not a JSON object" : e.msg);
    json_decref(j);
    return EXIT_USAGE;
}

int
cli_read_line(struct cli *c, const char *path, const char **ret)
{
    CLEANUP(buf_wipe_fini) struct buf text;
    struct error e;

    buf_init(&text, INPUT_MAX_BYTES);
    if (read_all(path, &text, &e) != ERR_OK) {
        cli_error("%s: %s", path, e.msg);
        return EXIT_USAGE;
    }
    *ret = arena_memdup0(c->arena, buf_str(&text), strcspn(buf_str(&text), "\r\n"));
    return 0;
}

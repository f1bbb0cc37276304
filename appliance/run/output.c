/* SPDX-License-Identifier: Apache-2.0 */
#include "run/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "haproxy/output.h"

#define LINE_MAX_BYTES ((size_t)4096)
/* A writer without a pause must not keep us from everything else. */
#define READS_AT_ONCE 64

/* Read and write: with the one the other end never closes, with both no open waits. */
static err_t
open_end(int run_fd, int *ret_fd, struct error *e)
{
    int fd = openat(run_fd, OUTPUT_NAME, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0) {
        return error_errno(e, ERR_IO, errno, "cannot open %s", OUTPUT_NAME);
    }
    if (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode)) {
        (void)close(fd);
        return error_set(e, ERR_DENIED, "%s is not a FIFO", OUTPUT_NAME);
    }
    *ret_fd = fd;
    return ERR_OK;
}

err_t
output_open(struct output *o, int run_fd, struct error *e)
{
    err_t code;

    *o = (struct output){.fd = -1, .writer_fd = -1, .kept = xmalloc(OUTPUT_KEPT_BYTES)};
    buf_init(&o->line, LINE_MAX_BYTES);
    if (mkfifoat(run_fd, OUTPUT_NAME, 0600) != 0 && errno != EEXIST) {
        return error_errno(e, ERR_IO, errno, "cannot make %s", OUTPUT_NAME);
    }
    code = open_end(run_fd, &o->fd, e);
    if (code == ERR_OK) {
        code = open_end(run_fd, &o->writer_fd, e);
    }
    if (code != ERR_OK) {
        output_close(o);
    }
    return code;
}

void
output_close(struct output *o)
{
    fd_cleanup(&o->fd);
    fd_cleanup(&o->writer_fd);
    buf_fini(&o->line);
    free(o->kept);
    o->kept = NULL;
}

static void
log_line(struct output *o)
{
    log_info("haproxy: %s", buf_str(&o->line));
    buf_reset(&o->line);
}

static void
take(struct output *o, const char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        o->kept[o->end % OUTPUT_KEPT_BYTES] = p[i];
        o->end++;
        if (p[i] == '\n' || o->line.len + 1 >= LINE_MAX_BYTES) {
            log_line(o);
        }
        if (p[i] != '\n') {
            buf_putc(&o->line, p[i]);
        }
    }
}

void
output_read(struct output *o)
{
    char chunk[4096];

    for (int i = 0; i < READS_AT_ONCE; i++) {
        ssize_t n = read(o->fd, chunk, sizeof chunk);

        if (n > 0) {
            take(o, chunk, (size_t)n);
        } else if (n == 0 || errno != EINTR) {
            return;
        }
    }
}

void
output_since(const struct output *o, int64_t from, struct buf *out)
{
    size_t before = out->len;
    int64_t oldest = o->end > OUTPUT_KEPT_BYTES ? o->end - OUTPUT_KEPT_BYTES : 0;

    for (int64_t i = from > oldest ? from : oldest; i < o->end; i++) {
        buf_putc(out, o->kept[i % OUTPUT_KEPT_BYTES]);
    }
    if (out->len > before) {
        output_clean(out->data + before, out->len - before);
    }
}

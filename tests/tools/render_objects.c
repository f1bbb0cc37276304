/* SPDX-License-Identifier: Apache-2.0 */
/* render_objects OBJECTS.json DIR RUN_DIR GROUP PLACEHOLDER.pem
 * Writes what HAProxy reads into DIR, which exists and is empty. Prints the digest. */
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "tests/support/objects_file.h"

#define PEM_MAX_BYTES   ((size_t)1 << 20)
#define TEXTS_MAX_BYTES ((size_t)8 << 20)

static void
print_problems(const struct problems *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct problem *x = &p->items[i];

        (void)fprintf(
            stderr, "%s %s%s: %s\n", x->kind != NULL ? x->kind : "-",
            x->name != NULL ? x->name : "-", x->pointer, x->message);
    }
}

static err_t
run(char **argv, struct error *e)
{
    struct snapshot CLEANUP(snapshot_cleanup) *shared = NULL;
    struct snapshot CLEANUP(snapshot_cleanup) *local = NULL;
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(TEXTS_MAX_BYTES);
    struct rendered CLEANUP(rendered_fini) r;
    struct buf CLEANUP(buf_fini) pem;
    struct problems p;
    struct render_input in = {.run_dir = argv[3], .socket_group = argv[4]};
    err_t err;

    problems_init(&p, arena);
    rendered_init(&r);
    buf_init(&pem, PEM_MAX_BYTES);
    err = file_read_at(AT_FDCWD, argv[5], &pem, e);
    if (err == ERR_OK) {
        err = objects_file_read(argv[1], &shared, &local, e);
    }
    if (err == ERR_OK) {
        in.objects = (struct snapshot_pair){shared, local};
        in.placeholder_pem = buf_str(&pem);
        err = render_haproxy(&in, &r, &p, e);
        print_problems(&p);
    }
    if (err == ERR_OK) {
        err = objects_file_write(&r, argv[2], e);
    }
    if (err == ERR_OK) {
        (void)printf("%s\n", r.digest);
    }
    return err;
}

int
main(int argc, char **argv)
{
    struct error e;

    if (argc != 6) {
        (void)fprintf(stderr, "usage: %s OBJECTS DIR RUN_DIR GROUP PLACEHOLDER\n", argv[0]);
        return 2;
    }
    if (run(argv, &e) != ERR_OK) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    return 0;
}

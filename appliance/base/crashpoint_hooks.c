/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "base/file.h"
#include "base/lock.h"

#define SPEC_MAX_BYTES 256

static pthread_mutex_t armed_lock = PTHREAD_MUTEX_INITIALIZER;
static char *armed_name; /* "@PATH": the name stands in that file, as long as it is there */

/* True when the file names this place; the file is removed then, so that it counts once. */
static bool
named_in(const char *path, const char *name)
{
    CLEANUP(buf_fini) struct buf text;
    struct error e;

    buf_init(&text, SPEC_MAX_BYTES);
    return file_read_at(AT_FDCWD, path, &text, &e) == ERR_OK &&
           strcmp(buf_str(&text), name) == 0 && unlink(path) == 0;
}

void
crashpoint(const char *name)
{
    lock_take(&armed_lock);
    if (armed_name != NULL && (armed_name[0] == '@' ? named_in(armed_name + 1, name)
                                                    : strcmp(armed_name, name) == 0)) {
        /* Not abort(): a core dump would take its time, as the power failure does not. */
        (void)kill(getpid(), SIGKILL);
    }
    lock_give(&armed_lock);
}

void
crashpoint_arm(const char *spec)
{
    lock_take(&armed_lock);
    free(armed_name);
    armed_name = spec != NULL ? xstrdup(spec) : NULL;
    lock_give(&armed_lock);
}

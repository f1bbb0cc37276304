/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/own_traffic.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"

struct asked {
    char *listener;
    int64_t requests;
};

struct own_traffic {
    pthread_mutex_t lock;
    pid_t pid;
    struct asked *rows; /* by name */
    size_t count;
};

struct own_traffic *
own_traffic_new(void)
{
    struct own_traffic *t = xcalloc(1, sizeof *t);

    lock_init(&t->lock);
    return t;
}

static void
forget(struct own_traffic *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->rows[i].listener);
    }
    free(t->rows);
    t->rows = NULL;
    t->count = 0;
}

void
own_traffic_free(struct own_traffic *t)
{
    forget(t);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

/* The place of the name, or where it belongs. */
static size_t
place_of(const struct own_traffic *t, const char *listener)
{
    size_t low = 0, high = t->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(t->rows[middle].listener, listener) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool
is_at(const struct own_traffic *t, size_t at, const char *listener)
{
    return at < t->count && strcmp(t->rows[at].listener, listener) == 0;
}

void
own_traffic_add(struct own_traffic *t, pid_t pid, const char *listener)
{
    size_t at;

    lock_take(&t->lock);
    if (t->pid != pid) {
        forget(t);
        t->pid = pid;
    }
    at = place_of(t, listener);
    if (!is_at(t, at, listener)) {
        t->rows = xrealloc(t->rows, (t->count + 1) * sizeof *t->rows);
        memmove(&t->rows[at + 1], &t->rows[at], (t->count - at) * sizeof *t->rows);
        t->rows[at] = (struct asked){.listener = xstrdup(listener)};
        t->count++;
    }
    t->rows[at].requests++;
    lock_give(&t->lock);
}

static void
take(int64_t *counter, int64_t n)
{
    if (*counter >= n) {
        *counter -= n;
    }
}

void
own_traffic_take_off(struct own_traffic *t, pid_t pid, struct stat_table *stat)
{
    lock_take(&t->lock);
    for (size_t i = 0; t->pid == pid && i < stat->count; i++) {
        struct stat_row *row = &stat->rows[i];
        size_t at = row->type == STAT_FRONTEND ? place_of(t, row->pxname) : t->count;

        if (is_at(t, at, row->pxname)) {
            take(&row->stot, t->rows[at].requests);
            take(&row->req_tot, t->rows[at].requests);
            take(&row->hrsp_2xx, t->rows[at].requests);
        }
    }
    lock_give(&t->lock);
}

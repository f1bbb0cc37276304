/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "store/sessions.h"

struct entry {
    struct session_row row;
    int64_t stored_ms;                     /* used_ms as the database has it */
    int64_t created_mono_ms, used_mono_ms; /* whatever the wall clock is set to */
    int64_t unlocked_until_ms;             /* monotonic */
};

struct sessions {
    pthread_mutex_t lock;
    const struct clock *clock;
    const struct tunables *tunables;
    struct entry *entries;
    size_t count;
};

struct sessions *
sessions_new(const struct clock *clock, const struct tunables *tunables)
{
    struct sessions *s = xcalloc(1, sizeof *s);

    lock_init(&s->lock);
    s->clock = clock;
    s->tunables = tunables;
    return s;
}

void
sessions_free(struct sessions *s)
{
    if (s == NULL) {
        return;
    }
    (void)pthread_mutex_destroy(&s->lock);
    free(s->entries);
    free(s);
}

static bool
is_expired(const struct sessions *s, const struct entry *entry)
{
    int64_t now_ms = clock_mono_ms(s->clock);

    return now_ms - entry->used_mono_ms > s->tunables->session_idle_ms ||
           now_ms - entry->created_mono_ms > s->tunables->session_max_ms;
}

static size_t
find(const struct sessions *s, const struct hash *token)
{
    size_t i = 0;

    while (i < s->count && !hash_equal(&s->entries[i].row.token, token)) {
        i++;
    }
    return i;
}

static void
remove_at(struct sessions *s, size_t i)
{
    s->entries[i] = s->entries[--s->count];
}

void
sessions_add(struct sessions *s, const struct session_row *row)
{
    int64_t wall_ms = clock_wall_ms(s->clock);
    int64_t mono_ms = clock_mono_ms(s->clock);
    struct entry entry = {
        .row = *row,
        .stored_ms = row->used_ms,
        .created_mono_ms = mono_ms - (wall_ms - row->created_ms),
        .used_mono_ms = mono_ms - (wall_ms - row->used_ms),
    };

    /* How old it is nobody knows. */
    if (row->created_ms > wall_ms || row->used_ms > wall_ms) {
        entry.created_mono_ms = mono_ms - s->tunables->session_max_ms - 1;
    }
    lock_take(&s->lock);
    s->entries = xrealloc(s->entries, (s->count + 1) * sizeof *s->entries);
    s->entries[s->count++] = entry;
    lock_give(&s->lock);
}

bool
sessions_drop(struct sessions *s, struct hash *ret_token)
{
    size_t oldest = 0;
    bool found = false;

    lock_take(&s->lock);
    for (size_t i = 0; i < s->count && !found; i++) {
        if (is_expired(s, &s->entries[i])) {
            oldest = i;
            found = true;
        } else if (s->entries[i].used_mono_ms < s->entries[oldest].used_mono_ms) {
            oldest = i;
        }
    }
    found = found || s->count > SESSIONS_MAX;
    if (found) {
        *ret_token = s->entries[oldest].row.token;
        remove_at(s, oldest);
    }
    lock_give(&s->lock);
    return found;
}

bool
sessions_use(
    struct sessions *s, const struct hash *token, struct session_row *ret, bool *ret_store)
{
    int64_t now_ms = clock_wall_ms(s->clock);
    bool found;
    size_t i;

    lock_take(&s->lock);
    i = find(s, token);
    found = i < s->count && !is_expired(s, &s->entries[i]);
    if (found) {
        struct entry *entry = &s->entries[i];

        entry->row.used_ms = now_ms;
        entry->used_mono_ms = clock_mono_ms(s->clock);
        *ret_store =
            now_ms < entry->stored_ms || now_ms - entry->stored_ms >= SESSIONS_STORE_USE_MS;
        if (*ret_store) {
            entry->stored_ms = now_ms;
        }
        *ret = entry->row;
    }
    lock_give(&s->lock);
    return found;
}

bool
sessions_alive(struct sessions *s, const struct hash *token)
{
    bool alive;
    size_t i;

    lock_take(&s->lock);
    i = find(s, token);
    alive = i < s->count && !is_expired(s, &s->entries[i]);
    lock_give(&s->lock);
    return alive;
}

bool
sessions_unlock(struct sessions *s, const struct hash *token, bool unlock)
{
    bool found;
    size_t i;

    lock_take(&s->lock);
    i = find(s, token);
    found = i < s->count && !is_expired(s, &s->entries[i]);
    if (found) {
        s->entries[i].unlocked_until_ms =
            unlock ? clock_mono_ms(s->clock) + s->tunables->unlock_idle_ms : 0;
    }
    lock_give(&s->lock);
    return found;
}

void
sessions_lock_all(struct sessions *s)
{
    lock_take(&s->lock);
    for (size_t i = 0; i < s->count; i++) {
        s->entries[i].unlocked_until_ms = 0;
    }
    lock_give(&s->lock);
}

bool
sessions_unlocked(struct sessions *s, const struct hash *token)
{
    int64_t now_ms = clock_mono_ms(s->clock);
    bool unlocked;
    size_t i;

    lock_take(&s->lock);
    i = find(s, token);
    unlocked = i < s->count && now_ms < s->entries[i].unlocked_until_ms;
    if (unlocked) {
        s->entries[i].unlocked_until_ms = now_ms + s->tunables->unlock_idle_ms;
    }
    lock_give(&s->lock);
    return unlocked;
}

void
sessions_remove(struct sessions *s, const struct hash *token)
{
    size_t i;

    lock_take(&s->lock);
    i = find(s, token);
    if (i < s->count) {
        remove_at(s, i);
    }
    lock_give(&s->lock);
}

void
sessions_remove_admin(struct sessions *s, const char *admin)
{
    lock_take(&s->lock);
    for (size_t i = s->count; i > 0; i--) {
        if (strcmp(s->entries[i - 1].row.admin, admin) == 0) {
            remove_at(s, i - 1);
        }
    }
    lock_give(&s->lock);
}

size_t
sessions_count(struct sessions *s)
{
    size_t count;

    lock_take(&s->lock);
    count = s->count;
    lock_give(&s->lock);
    return count;
}

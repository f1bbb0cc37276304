/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/apply_job.h"
#include "engine/problems_json.h"

/* title NULL: without a task. */
static void
start(struct engine *en, const char *title, bool anew)
{
    struct apply *a = xcalloc(1, sizeof *a);
    struct error error;

    a->en = en;
    a->mode = APPLY_FOLLOW;
    a->author = xstrdup("lockstepd");
    change_set_init(&a->ops);
    a->anew = anew;
    if (title != NULL) {
        a->task = task_begin(en->tasks, "reconcile", title, a->author);
    }
    if (apply_post(a, &error) != ERR_OK) {
        log_warning("reconcile: %s", error.msg);
    }
}

void
reconcile_start(struct engine *en, bool quiet)
{
    start(en, quiet ? NULL : "Follow the stored configuration", false);
}

void
reconcile_repair(struct engine *en, const char *title)
{
    start(en, title, true);
}

int64_t
reconcile_back_off_ms(const struct tunables *t, int64_t present_ms)
{
    if (present_ms == 0) {
        return t->follow_first_ms;
    }
    return present_ms * 2 < t->follow_max_ms ? present_ms * 2 : t->follow_max_ms;
}

void
reconcile_note(
    struct engine *en, enum follow_end end, const struct apply *made, const char *reason)
{
    struct follow *f = &en->follow;

    lock_take(&en->lock);
    f->ok = end == FOLLOW_OK;
    f->down_rounds = 0;
    if (made != NULL) {
        memcpy(f->digest, made->files->digest, sizeof f->digest);
        f->tables = made->tables;
    }
    en->status.started = en->status.started || end != FOLLOW_FAILED;
    if (f->ok) {
        f->back_off_ms = 0;
    } else {
        f->back_off_ms = reconcile_back_off_ms(en->config->tunables, f->back_off_ms);
    }
    f->next_ms = clock_mono_ms(&clock_system) + f->back_off_ms;
    foreign_text_copy(en->status.reason, sizeof en->status.reason, reason);
    lock_give(&en->lock);
}

bool
reconcile_is_head(struct engine *en, const char *digest)
{
    bool is;

    lock_take(&en->lock);
    is = strcmp(en->follow.digest, digest) == 0;
    lock_give(&en->lock);
    return is;
}

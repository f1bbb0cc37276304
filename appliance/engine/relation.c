/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/relation.h"

#include <stddef.h>

#include "base/attr.h"

#define RELATION_NAME(relation, name, text) [REL_##relation] = (name),
#define RELATION_TEXT(relation, name, text) [REL_##relation] = (text),
#define VERDICT_NAME(verdict, name)         [PUSH_##verdict] = (name),

static const char *const relation_names[] = {RELATIONS(RELATION_NAME)};
static const char *const relation_texts[] = {RELATIONS(RELATION_TEXT)};
static const char *const verdict_names[] = {PUSH_VERDICTS(VERDICT_NAME)};

static const enum sync_action actions[REL_COUNT] = {
    [REL_IN_STEP] = HEAL_NOTHING,
    [REL_PEER_BEHIND] = HEAL_NOTHING,
    [REL_SELF_BEHIND] = HEAL_PULL,
    [REL_EQUAL_PEER_GREATER] = HEAL_ADOPT_EQUAL,
    [REL_EQUAL_SELF_GREATER] = HEAL_NOTHING,
    [REL_DIVERGED] = HEAL_NOTHING,
    [REL_PEER_NEWER_RELEASE] = HEAL_NOTHING,
};

enum push_form {
    FORM_PLAIN, /* no Overwrite, or one that found what it expected */
    FORM_MOVED,
    FORM_OUTRANKED,
    FORM_COUNT,
};

/* An Overwrite that is delivered once more finds itself: that is no move. */
static const enum push_verdict verdicts[REL_COUNT][FORM_COUNT] = {
    [REL_IN_STEP] = {PUSH_SAME, PUSH_SAME, PUSH_SAME},
    [REL_PEER_BEHIND] = {PUSH_STALE, PUSH_MOVED, PUSH_OVERWRITE_IN_PROGRESS},
    [REL_SELF_BEHIND] = {PUSH_ADVANCE, PUSH_MOVED, PUSH_OVERWRITE_IN_PROGRESS},
    [REL_EQUAL_PEER_GREATER] = {PUSH_ADOPT_EQUAL, PUSH_MOVED, PUSH_OVERWRITE_IN_PROGRESS},
    [REL_EQUAL_SELF_GREATER] = {PUSH_STALE, PUSH_MOVED, PUSH_OVERWRITE_IN_PROGRESS},
    [REL_DIVERGED] = {PUSH_DIVERGED, PUSH_MOVED, PUSH_OVERWRITE_IN_PROGRESS},
    [REL_PEER_NEWER_RELEASE] = {PUSH_NEWER_RELEASE, PUSH_NEWER_RELEASE, PUSH_NEWER_RELEASE},
};

enum relation
relation_of(const struct relation_facts *f)
{
    if (f->same_head) {
        return REL_IN_STEP;
    }
    if (f->peer_is_ancestor) {
        return f->self_is_ancestor ? REL_DIVERGED : REL_PEER_BEHIND;
    }
    if (f->newer_schema) {
        return REL_PEER_NEWER_RELEASE;
    }
    if (f->self_is_ancestor) {
        return REL_SELF_BEHIND;
    }
    if (!f->same_fp || f->order == 0) {
        return REL_DIVERGED;
    }
    return f->order < 0 ? REL_EQUAL_PEER_GREATER : REL_EQUAL_SELF_GREATER;
}

const char *
relation_name(enum relation relation)
{
    ASSERT((size_t)relation < ARRAY_LEN(relation_names));
    return relation_names[relation];
}

const char *
relation_text(enum relation relation)
{
    ASSERT((size_t)relation < ARRAY_LEN(relation_texts));
    return relation_texts[relation];
}

enum sync_action
heal_action(const struct heal_facts *f)
{
    ASSERT((size_t)f->relation < ARRAY_LEN(actions));
    return f->keep_in_step && !f->backing_off ? actions[f->relation] : HEAL_NOTHING;
}

enum push_verdict
push_verdict(const struct push_facts *f)
{
    enum push_form form = FORM_PLAIN;

    ASSERT((size_t)f->relation < ARRAY_LEN(verdicts));
    if (f->overwrites && f->outranks) {
        form = FORM_OUTRANKED;
    } else if (f->overwrites && !f->expected) {
        form = FORM_MOVED;
    }
    return verdicts[f->relation][form];
}

const char *
push_verdict_name(enum push_verdict verdict)
{
    ASSERT((size_t)verdict < ARRAY_LEN(verdict_names));
    return verdict_names[verdict];
}

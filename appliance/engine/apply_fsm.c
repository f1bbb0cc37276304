/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/apply_fsm.h"

#include <stddef.h>

#include "base/attr.h"

#define OK(next, text)      [AE_OK] = {true, AS_##next, text}
#define FAIL(next, text)    [AE_FAIL] = {true, AS_##next, text}
#define SAME(next, text)    [AE_SAME] = {true, AS_##next, text}
#define NOTHING(next, text) [AE_NOTHING] = {true, AS_##next, text}
#define TRIED(next, text)   [AE_TRIED] = {true, AS_##next, text}

/* What fails before ACTIVATE changed nothing. From there on the way back is taken, and its end
 * is told by what the former revision is seen to do, not by what was asked of it: so BACK and
 * BACK_LOAD go on to BACK_VERIFY also when they fail. */
static const struct apply_edge edges[APPLY_STATE_COUNT][APPLY_EVENT_COUNT] = {
    [AS_PLAN] =
        {OK(RENDER, "the changes are sound"), FAIL(FAILED, "the changes are refused"),
         NOTHING(DONE, "nothing to apply")},
    [AS_RENDER] =
        {OK(CHECK, "the files are made"), FAIL(FAILED, "the files cannot be made"),
         SAME(PEERS, "HAProxy runs these files already"),
         NOTHING(COMMIT, "HAProxy runs these files already"),
         TRIED(DONE, "HAProxy runs these files already")},
    [AS_CHECK] = {OK(BIND, "the checker accepted it"), FAIL(FAILED, "the checker refused it")},
    [AS_BIND] =
        {OK(PEERS, "every address is free"), FAIL(FAILED, "an address cannot be used"),
         NOTHING(ACTIVATE, "every address is free")},
    [AS_PEERS] =
        {OK(TRIAL, "no other node refused it"), FAIL(FAILED, "another node refused it"),
         SAME(COMMIT, "no other node refused it"),
         NOTHING(ACTIVATE, "no other node refused it")},
    [AS_TRIAL] =
        {OK(ACTIVATE, "it serves there"), FAIL(FAILED, "it does not serve on a standby"),
         NOTHING(ACTIVATE, "there is no standby to try it on")},
    [AS_ACTIVATE] =
        {OK(LOAD, "the files are switched"), FAIL(BACK, "the files could not be switched")},
    [AS_LOAD] = {OK(VERIFY, "HAProxy loaded it"), FAIL(BACK, "HAProxy did not load it")},
    [AS_VERIFY] =
        {OK(COMMIT, "it serves"), FAIL(BACK, "it does not serve"),
         TRIED(DONE, "it serves until its time is over")},
    [AS_COMMIT] = {OK(SETTLE, "saved"), FAIL(BACK, "it could not be saved")},
    [AS_SETTLE] =
        {OK(PUSH, "marked as last good"), NOTHING(DONE, "marked as last good"),
         FAIL(PUSH, "it serves and is saved, but could not be marked as last good")},
    [AS_PUSH] =
        {OK(DONE, "the other nodes have it"), FAIL(DONE, "not every other node has it"),
         NOTHING(DONE, "there is no other node to hand it to")},
    [AS_BACK] =
        {OK(BACK_LOAD, "the former files are back"),
         FAIL(BACK_VERIFY, "the former files could not be put back")},
    [AS_BACK_LOAD] =
        {OK(BACK_VERIFY, "HAProxy loaded the former revision"),
         FAIL(BACK_VERIFY, "HAProxy did not load the former revision")},
    [AS_BACK_VERIFY] =
        {OK(BACKED, "the former revision serves"),
         FAIL(BROKEN, "the former revision does not serve")},
};

static const char *const texts[] = {
#define STATE_TEXT(state, text, action) [AS_##state] = (text),
    APPLY_STATES(STATE_TEXT)
#undef STATE_TEXT
};

static const char *const names[] = {
#define STATE_NAME(state, text, action) [AS_##state] = #action,
    APPLY_STATES(STATE_NAME)
#undef STATE_NAME
};

/* Those without an action. */
static const char *const final_names[] = {"done", "failed", "backed", "broken"};

const struct apply_edge *
apply_next(enum apply_state state, enum apply_event event)
{
    ASSERT((size_t)state < APPLY_STATE_COUNT && (size_t)event < APPLY_EVENT_COUNT);
    return &edges[state][event];
}

const char *
apply_state_text(enum apply_state state)
{
    ASSERT((size_t)state < ARRAY_LEN(texts));
    return texts[state];
}

const char *
apply_state_name(enum apply_state state)
{
    ASSERT((size_t)state < ARRAY_LEN(names));
    return apply_state_final(state) ? final_names[state - AS_DONE] : names[state];
}

bool
apply_state_final(enum apply_state state)
{
    return state >= AS_DONE;
}

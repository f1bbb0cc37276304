/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/right.h"

enum right
right_of(const struct right_facts *f)
{
    /* Two holders may both edit: lineage protects what they do. */
    if (!f->peers || (f->configured && f->self_holds)) {
        return RIGHT_EDIT;
    }
    if (f->configured && f->other_holds) {
        return RIGHT_ELSEWHERE;
    }
    return f->unlocked ? RIGHT_EDIT : RIGHT_LOCKED;
}

const char *
right_name(enum right right)
{
    static const char *const names[] = {
        [RIGHT_EDIT] = "here", [RIGHT_ELSEWHERE] = "elsewhere", [RIGHT_LOCKED] = "locked"};

    return names[right];
}

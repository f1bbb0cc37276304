/* SPDX-License-Identifier: Apache-2.0 */
/* Of two overwrites at once one wins, and the other leaves no trace. */
#include "tests/simulator/peers.h"

/* Two overwrites that nothing else interferes with. */
static struct {
    bool undisturbed;
    size_t won, lost;
    struct hash winners[2], losers[2];
} duel;

void
sim_duel_note(err_t code, const char *commit)
{
    struct hash id;

    if (code == ERR_OK && duel.won < ARRAY_LEN(duel.winners) && hash_from_hex(commit, &id)) {
        duel.winners[duel.won++] = id;
    } else if (duel.lost < ARRAY_LEN(duel.losers) && hash_from_hex(commit, &id)) {
        duel.losers[duel.lost++] = id;
    }
}

/* The one began when the other had ended, and replaced what that had made. */
static bool
in_turn(void)
{
    const struct hash *a = &duel.winners[0], *b = &duel.winners[1];
    bool is = false;

    for (size_t i = 0; i < sim.count; i++) {
        is = is || sim_leads(i, a, b) || sim_leads(i, b, a);
    }
    return is;
}

/* Who is told that it lost has handed nothing to anybody. */
static void
judge(void)
{
    if (duel.won > 1 && !in_turn()) {
        sim_fail("two overwrites at once both won");
    }
    for (size_t k = 0; k < duel.lost; k++) {
        for (size_t i = 0; i < sim.count; i++) {
            struct hash head = sim_head(i).id;

            if (sim_leads(i, &duel.losers[k], &head)) {
                sim_fail("%s has the overwrite that lost", sim.nodes[i].name);
            }
        }
    }
    sim.duels += duel.won > 0 && duel.lost > 0 ? 1 : 0;
}

static bool
is_undisturbed(void)
{
    bool is = sim.lost == 0;

    for (size_t i = 0; i < sim.count; i++) {
        is = is && sim_up(i) && sim.nodes[i].point == POINT_NONE;
        for (size_t k = 0; k < sim.count; k++) {
            is = is && !sim.cut[i][k];
        }
    }
    return is;
}

void
sim_duel_begin(void)
{
    duel.won = duel.lost = 0;
    duel.undisturbed = is_undisturbed();
}

void
sim_duel_end(void)
{
    if (duel.undisturbed && is_undisturbed()) {
        judge();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/confirm.h"

#include <stdio.h>
#include <string.h>

#include "engine/inner.h"
#include "store/store.h"

#define VIP         "192.0.2.200"
#define TITLE       "trial"
#define MOST_TRIALS 64
#define LONGEST_S   20

static const struct actor maria = {"admin maria"};

struct sim_trials sim_trials;

static bool vip;
static bool holds[SIM_NODES];
static size_t trials; /* of this seed, and which were confirmed */
static bool kept[MOST_TRIALS];
static bool by_hand;

void __wrap_confirm_run(void *ctx);
bool __wrap_holding_has(struct holding *h, const char *address);
enum holding_place
__wrap_holding_place_of(struct holding *h, const char *own, const char *other);

void
__wrap_confirm_run(void *ctx)
{
    (void)ctx;
}

/* All are in one network. */
enum holding_place
__wrap_holding_place_of(struct holding *h, const char *own, const char *other)
{
    (void)h;
    (void)own;
    (void)other;
    return HOLDING_TOGETHER;
}

bool
__wrap_holding_has(struct holding *h, const char *address)
{
    const struct sim_node *n = (const void *)h;

    return strncmp(address, VIP, strlen(VIP)) == 0 && holds[n - sim.nodes];
}

void
sim_hold(struct sim_node *n)
{
    n->cluster->holding = (void *)n;
}

/* ---- beginning ---- */

void
sim_trials_cluster(bool with_vip)
{
    vip = with_vip;
    memset(holds, 0, sizeof holds);
    holds[0] = true;
    if (vip) {
        sim_apply(
            0, "[{'op': 'create', 'kind': 'vip_group', 'body': {'name': 'public', "
               "'addresses': ['" VIP "/24']}}]");
    }
}

void
sim_trials_seed(void)
{
    trials = 0;
    by_hand = false;
    memset(kept, 0, sizeof kept);
}

void
sim_by_hand(void)
{
    by_hand = true;
}

/* ---- steps ---- */

static struct engine_waiting
look(size_t i)
{
    struct engine_waiting w;

    confirm_look(sim.nodes[i].lab->en, &w);
    return w;
}

/* The trial that node i has, or MOST_TRIALS. */
static size_t
trial_of(size_t i)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(sim.nodes[i].lab->en);
    const struct object *o = snapshot_singleton(v->now.shared, K_HAPROXY);
    const char *title = object_text(o, F_HAPROXY_ERROR_TITLE).s;
    char seen[SIM_TEXT_BYTES];

    for (size_t k = 0; k < trials; k++) {
        (void)snprintf(seen, sizeof seen, TITLE "%llu-%zu", (unsigned long long)sim.seed, k);
        if (strcmp(title, seen) == 0) {
            return k;
        }
    }
    return MOST_TRIALS;
}

static void
keep(size_t i)
{
    size_t trial = trial_of(i);
    struct commit c;
    struct error e;
    char hex[SHA256_HEX + 1];
    err_t code;

    sim_note("confirm on %s", sim.nodes[i].name);
    code = confirm_now(sim.nodes[i].lab->en, NULL, &maria, &c, &e);
    if (code != ERR_OK) {
        sim_note("    refused: %s", e.msg);
        return;
    }
    c = sim_head(i);
    hash_hex(&c.id, hex);
    sim_ack(i, hex);
    /* One that died has told nobody; it may have it all the same. */
    if (trial < MOST_TRIALS) {
        kept[trial] = true;
    }
    sim_trials.kept++;
}

static void
try_out(size_t i)
{
    struct engine_lab *l = sim_lab(i);
    int64_t confirm_s = 4 + (int64_t)sim_below(LONGEST_S - 3);
    char ops[SIM_TEXT_BYTES];
    int64_t task = 0;
    err_t code;
    json_t *j;

    (void)snprintf(
        ops, sizeof ops,
        "[{'op': 'merge', 'kind': 'haproxy', 'name': 'haproxy', 'body': {'error_title': '" TITLE
        "%llu-%zu'}}]",
        (unsigned long long)sim.seed, trials++);
    sim_note(
        "on %s, to be confirmed in %lld s: %s", sim.nodes[i].name, (long long)confirm_s, ops);
    code = edit_discard_all(l->en, &maria, &l->error);
    if (code == ERR_OK) {
        code = engine_lab_edit(l, ops);
    }
    if (code == ERR_OK) {
        code = apply_start(
            l->en, &(struct apply_request){.who = &maria, .confirm_s = confirm_s}, &task,
            &l->problems, &l->error);
    }
    if (code == ERR_OK) {
        j = engine_lab_task(l, task);
        sim_ack_task(i, j);
        json_decref(j);
    } else {
        sim_note("    refused: %s", l->error.msg);
    }
    /* Else the next apply of the draft has it. */
    by_hand = edit_discard_all(l->en, &maria, &l->error) != ERR_OK || by_hand;
}

void
step_confirm(size_t i)
{
    if (look(i).is) {
        keep(i);
    } else if (trials < MOST_TRIALS) {
        try_out(i);
    }
}

void
step_vip(size_t i)
{
    bool one_more = sim_chance(20);

    if (!one_more) {
        memset(holds, 0, sizeof holds);
    }
    holds[i] = one_more || sim_chance(80);
    sim_trials.moved++;
    sim_note(
        "the VIP is on %s%s", holds[i] ? sim.nodes[i].name : "no node",
        one_more ? ", too" : "");
}

void
sim_calm_vip(void)
{
    memset(holds, 0, sizeof holds);
    holds[sim_below(sim.count)] = true;
}

/* ---- going back ---- */

static bool
has_ended(struct engine_lab *l)
{
    return l->en->applies == 0;
}

void
sim_go_back(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        struct sim_node *n = &sim.nodes[i];
        struct hash before;

        if (!sim_up(i)) {
            continue;
        }
        before = sim_head(i).id;
        (void)confirm_go_back_when_due(n->lab->en);
        engine_lab_await(n->lab, has_ended);
        if (sim_up(i)) {
            struct hash now = sim_head(i).id;

            if (!hash_equal(&before, &now)) {
                sim_note("%s went back", n->name);
                sim_trials.back++;
            }
        }
    }
}

bool
sim_trial_waits(void)
{
    bool waits = false;

    for (size_t i = 0; i < sim.count; i++) {
        waits = waits || look(i).is;
    }
    return waits;
}

/* ---- what must hold then ---- */

void
sim_check_trials(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        struct engine_waiting w = look(i);
        size_t trial = trial_of(i);

        if (w.is) {
            sim_fail(
                "revision %lld waits on %s, long past its deadline", (long long)w.rev,
                sim.nodes[i].name);
        }
        if (trial < MOST_TRIALS && !kept[trial] && !by_hand) {
            sim_fail("%s has trial %zu, which nobody confirmed", sim.nodes[i].name, trial);
        }
    }
}

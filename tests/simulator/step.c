/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a schedule: what people, clocks, wires and disks do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "tests/simulator/confirm.h"
#include "tests/simulator/peers.h"
#include "tests/simulator/trace.h"

#define HOUR_MS  ((int64_t)3600000)
#define RECENT   20  /* commits among which a restore chooses */
#define CONTENTS 3   /* of an edit that several nodes make alike */
#define MISSED   250 /* commits */
#define MANY     100 /* percent of what is lost: nothing comes through */

static const struct actor maria = {SIM_WHO};

static size_t
another(size_t i)
{
    return (i + 1 + sim_below(sim.count - 1)) % sim.count;
}

struct engine_lab *
sim_lab(size_t i)
{
    struct engine_lab *l = sim.nodes[i].lab;

    arena_free(l->arena);
    l->arena = arena_new(ARENA_DEFAULT_BYTES);
    problems_init(&l->problems, l->arena);
    return l;
}

/* ---- edits ---- */

void
sim_ack(size_t i, const char *hex)
{
    struct hash id;

    if (hex != NULL && !sim.nodes[i].dead && hash_from_hex(hex, &id) &&
        sim.acked_count < SIM_ACKED) {
        sim.acked[sim.acked_count++] = id;
        if (!sim_leads(i, &id, &sim.nodes[i].head)) {
            sim.nodes[i].head = id;
            trace_head(i);
        }
    }
}

void
sim_ack_task(size_t i, const json_t *task)
{
    const json_t *result = json_object_get(task, "result");
    const char *hex = json_string_value(json_object_get(result, "commit"));
    bool ok = strcmp(json_string_value(json_object_get(task, "state")), "ok") == 0;

    sim_note("    %s", json_string_value(json_object_get(task, "message")));
    if (ok) {
        sim.applied++;
        sim_ack(i, hex);
    }
}

void
sim_apply(size_t i, const char *ops)
{
    struct engine_lab *l = sim_lab(i);
    int64_t task = 0;
    err_t code;
    json_t *j;

    if (ops != NULL) {
        code = engine_lab_apply_ops(l, ops, &task);
    } else {
        code = apply_start(
            l->en, &(struct apply_request){.who = &maria}, &task, &l->problems, &l->error);
    }
    if (code != ERR_OK) {
        sim_note("    refused: %s", l->error.msg);
        return;
    }
    j = engine_lab_task(l, task);
    sim_ack_task(i, j);
    json_decref(j);
}

/* What it changes is loaded (the error page) or is not (a server that no pool has). */
static void
make_ops(char ops[SIM_TEXT_BYTES])
{
    size_t value = sim_chance(30) ? sim_below(CONTENTS) : 1000 + sim_below(60000);

    if (sim_chance(8)) {
        (void)snprintf(
            ops, SIM_TEXT_BYTES,
            "[{'op': 'merge', 'kind': 'haproxy', 'name': 'haproxy', 'body': {'maxconn': %zu}}]",
            sim.refused_conn + sim_below(sim.count));
        return;
    }
    if (sim_chance(25)) {
        (void)snprintf(
            ops, SIM_TEXT_BYTES,
            "[{'op': 'merge', 'kind': 'haproxy', 'name': 'haproxy', 'body': "
            "{'error_title': 't%zu'}}]",
            value);
        return;
    }
    (void)snprintf(
        ops, SIM_TEXT_BYTES,
        "[{'op': 'merge', 'kind': 'server', 'name': 's%zu', 'body': {'port': %zu}}]",
        sim_below(SIM_SERVERS), value + 1);
}

static void
step_apply(size_t i)
{
    char ops[SIM_TEXT_BYTES];

    make_ops(ops);
    sim_note("apply on %s: %s", sim.nodes[i].name, ops);
    sim_apply(i, ops);
}

void
sim_edit_direct(size_t i)
{
    struct engine_lab *l = sim_lab(i);
    char ops[SIM_TEXT_BYTES], hex[SHA256_HEX + 1];
    err_t code;

    (void)snprintf(
        ops, sizeof ops,
        "[{'op': 'merge', 'kind': 'server_state', 'name': 's%zu', 'body': {'weight': %zu}}]",
        sim_below(SIM_SERVERS), sim_below(100));
    sim_note("at once on %s: %s", sim.nodes[i].name, ops);
    code = engine_lab_edit(l, ops);
    if (code == ERR_OK) {
        struct hash id = sim_head(i).id;

        hash_hex(&id, hex);
        sim_ack(i, hex);
    }
    sim_note("    %s", code == ERR_OK ? "ok" : l->error.msg);
}

static void
step_draft(size_t i)
{
    struct engine_lab *l = sim_lab(i);
    char ops[SIM_TEXT_BYTES];

    if (sim_chance(40)) {
        sim_note("apply the draft on %s", sim.nodes[i].name);
        sim_apply(i, NULL);
        return;
    }
    make_ops(ops);
    sim_note("draft on %s: %s", sim.nodes[i].name, ops);
    if (engine_lab_edit(l, ops) != ERR_OK) {
        sim_note("    refused: %s", l->error.msg);
    }
}

/* What the newest overwrite discarded comes back; any of the recent ones else. */
static const struct hash *
choose_restored(const struct commit *list, size_t count)
{
    for (size_t k = 0; k < count && sim_chance(60); k++) {
        if (list[k].parent_count > 1) {
            sim.undone++;
            return &list[k].parents[1 + sim_below(list[k].parent_count - 1)];
        }
    }
    return &list[sim_below(count)].id;
}

static void
step_restore(size_t i)
{
    struct engine_lab *l = sim_lab(i);
    struct commit *list = NULL;
    size_t count = 0;
    char hex[SHA256_HEX + 1];
    err_t code = edit_discard_all(l->en, &maria, &l->error);

    if (code == ERR_OK) {
        code = edit_commits(l->en, 0, RECENT, &list, &count, &l->error);
    }
    if (code == ERR_OK && count > 0) {
        hash_hex(choose_restored(list, count), hex);
        sim_note("restore %.8s on %s", hex, sim.nodes[i].name);
        sim_by_hand();
        code = edit_restore(l->en, hex, false, &maria, &l->problems, &l->error);
    }
    free(list);
    if (code == ERR_OK) {
        sim_apply(i, NULL);
    } else {
        sim_note("    refused: %s", l->error.msg);
    }
}

static void
step_local(size_t i)
{
    char ops[SIM_TEXT_BYTES];

    sim.nodes[i].held = true;
    (void)snprintf(ops, sizeof ops, SIM_KEEP_IN_STEP, sim.nodes[i].name, "false");
    sim_note("local on %s: %s", sim.nodes[i].name, ops);
    sim_apply(i, ops);
}

/* ---- links ---- */

static void
cut_both(size_t a, size_t b, bool cut)
{
    sim.cut[a][b] = sim.cut[b][a] = cut;
}

/* Each node sees only its neighbours. */
static void
make_line(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        for (size_t k = 0; k < i; k++) {
            cut_both(i, k, i - k > 1);
        }
    }
}

/* Two groups; each node sees those of its own. */
static void
make_groups(void)
{
    size_t left = 1 + sim_below(((size_t)1 << sim.count) - 2);

    for (size_t i = 0; i < sim.count; i++) {
        for (size_t k = 0; k < i; k++) {
            cut_both(i, k, (left >> i & 1) != (left >> k & 1));
        }
    }
}

static void
step_links(size_t i)
{
    size_t to = another(i);

    switch (sim_below(8)) {
    case 0:
        sim.cut[i][to] = true;
        sim_note("cut %s -> %s", sim.nodes[i].name, sim.nodes[to].name);
        return;
    case 1:
        cut_both(i, to, true);
        sim_note("cut %s - %s", sim.nodes[i].name, sim.nodes[to].name);
        return;
    case 2:
        for (size_t k = 0; k < sim.count; k++) {
            cut_both(i, k, k != i);
        }
        sim_note("cut off %s", sim.nodes[i].name);
        return;
    case 3:
        make_line();
        sim_note("a line");
        return;
    case 4:
        cut_both(i, to, false);
        sim_note("mend %s - %s", sim.nodes[i].name, sim.nodes[to].name);
        return;
    case 5:
        make_groups();
        sim_note("two groups");
        return;
    case 6:
        sim.lost = (unsigned)sim_below(MANY / 3);
        sim_note("%u %% is lost", sim.lost);
        return;
    default:
        memset(sim.cut, 0, sizeof sim.cut);
        sim.lost = 0;
        sim_note("mend all");
    }
}

/* Two nodes apart are made the same. */
static void
step_twins(size_t i)
{
    size_t to = another(i);
    char ops[SIM_TEXT_BYTES];

    cut_both(i, to, true);
    make_ops(ops);
    sim_note("on %s and %s: %s", sim.nodes[i].name, sim.nodes[to].name, ops);
    sim_apply(i, ops);
    if (sim_up(to)) {
        sim_apply(to, ops);
    }
}

/* ---- overwrite ---- */

/* Whether it failed is for the head to say, however it got there. */
static void
check_failed(size_t i, err_t code, const char *commit)
{
    struct hash id, head;

    if (code == ERR_OK || sim.nodes[i].dead || !hash_from_hex(commit, &id)) {
        return;
    }
    head = sim_head(i).id;
    if (sim_has(i, &id) && sim_leads(i, &id, &head)) {
        sim_fail("%s says that its overwrite failed, and has it", sim.nodes[i].name);
    }
}

bool
sim_overwrite(size_t i)
{
    struct cluster *c = sim.nodes[i].cluster;
    struct error e = {.code = ERR_OK};
    json_t *answer = NULL;
    const json_t *node;
    bool all = true;
    size_t k;
    err_t code =
        cluster_overwrite(c, &(struct cluster_overwrite){.who = maria.name}, &answer, &e);

    json_array_foreach(json_object_get(answer, "nodes"), k, node)
    {
        all = all && strcmp(json_string_value(json_object_get(node, "state")), "ok") == 0;
    }
    sim_by_hand();
    if (code == ERR_OK) {
        sim.overwritten++;
        sim_ack(i, json_string_value(json_object_get(answer, "commit")));
    }
    check_failed(i, code, json_string_value(json_object_get(answer, "commit")));
    sim_duel_note(code, json_string_value(json_object_get(answer, "commit")));
    sim_note(
        "    overwrite from %s: %s%s", sim.nodes[i].name, code == ERR_OK ? "ok" : e.msg,
        code == ERR_OK && !all ? ", not on all" : "");
    json_decref(answer);
    return code == ERR_OK && all;
}

static void
arm_hook(size_t on, enum sim_hook hook)
{
    sim.hook = hook;
    sim.hook_after = 1 + (int)sim_below(2 * sim.count);
    sim.hook_node = on;
}

void
sim_hook(void)
{
    enum sim_hook hook = sim.hook;
    size_t i = sim.hook_node;

    if (hook == HOOK_NONE || --sim.hook_after > 0) {
        return;
    }
    sim.hook = HOOK_NONE;
    if (!sim_up(i)) {
        return;
    }
    sim_note("  meanwhile:");
    switch (hook) {
    case HOOK_EDIT: sim_edit_direct(i); return;
    case HOOK_OVERWRITE: (void)sim_overwrite(i); return;
    case HOOK_CUT: step_links(i); return;
    case HOOK_APPLY: step_apply(i); return;
    case HOOK_ROUND: sim_round(i); return;
    case HOOK_NONE: return;
    }
}

/* Whoever presses it has looked at the table before. */
static void
step_overwrite(size_t i)
{
    static const enum sim_hook hooks[] = {HOOK_NONE,      HOOK_EDIT,  HOOK_EDIT,
                                          HOOK_CUT,       HOOK_APPLY, HOOK_OVERWRITE,
                                          HOOK_OVERWRITE, HOOK_ROUND, HOOK_ROUND};
    enum sim_hook hook = hooks[sim_below(ARRAY_LEN(hooks))];
    size_t to = another(i);

    sim_round(i);
    if (hook == HOOK_OVERWRITE && sim_up(to)) {
        sim_round(to);
    }
    sim_note("overwrite from %s", sim.nodes[i].name);
    /* Its own rounds go on meanwhile. */
    arm_hook(hook == HOOK_ROUND ? i : to, hook);
    (void)sim_overwrite(i);
    sim.hook = HOOK_NONE;
}

/* Two that diverged are overwritten by each other at once. */
static void
step_duel(size_t i)
{
    size_t to = another(i);

    if (!sim_up(to)) {
        return;
    }
    if (sim_chance(50)) {
        memset(sim.cut, 0, sizeof sim.cut);
        sim.lost = 0;
    }
    cut_both(i, to, true);
    step_apply(i);
    step_apply(to);
    cut_both(i, to, false);
    if (!sim_up(i) || !sim_up(to)) {
        return;
    }
    sim_round(i);
    sim_round(to);
    sim_note("overwrite from %s and %s", sim.nodes[i].name, sim.nodes[to].name);
    if (sim_chance(50)) {
        arm_hook(to, HOOK_OVERWRITE);
    } else {
        arm_hook(i, HOOK_ROUND); /* its own rounds go on meanwhile */
    }
    sim.hook_after = 1 + (int)sim_below(8);
    sim_duel_begin();
    (void)sim_overwrite(i);
    sim_duel_end();
    sim.hook = HOOK_NONE;
}

/* ---- members, clocks, faults ---- */

static void
step_members(size_t i)
{
    sim_regroup(i, another(i));
}

static void
step_clock(size_t i)
{
    int64_t by = (int64_t)sim_below(48) * HOUR_MS - 24 * HOUR_MS;

    sim.nodes[i].clock_off_ms = by;
    sim_note("the clock of %s is %lld h off", sim.nodes[i].name, (long long)(by / HOUR_MS));
}

static void
step_fault(size_t i)
{
    static const enum sim_point points[] = {POINT_DIE_BEFORE, POINT_DIE_AFTER, POINT_DISK_FULL};
    struct sim_node *n = &sim.nodes[i];
    enum fake_fault fault = sim_chance(50) ? FAKE_CHECK : FAKE_LOAD;

    if (sim_chance(30)) {
        sim_note("%s dies", n->name);
        sim_node_die(i);
    } else if (sim_chance(75)) {
        n->point = points[sim_below(ARRAY_LEN(points))];
        sim_note("%s: at its next transaction: %d", n->name, (int)n->point);
    } else {
        fake_fail(&n->lab->fake, fault, 1 + (int)sim_below(2));
        sim_note("%s refuses: %d", n->name, (int)fault);
    }
}

static void
step_wire(size_t i)
{
    bool damaged = sim_chance(50);
    size_t to = another(i);

    if (sim_chance(20) && sim_up(to)) {
        sim_note("%s gets a push of a newer release", sim.nodes[to].name);
        sim_push_newer(i, to);
        return;
    }
    sim_note(damaged ? "a damaged push comes" : "a call comes once more");
    sim_replay(damaged);
}

/* ---- all ---- */

static void
step_round(size_t i)
{
    sim_note("round of %s", sim.nodes[i].name);
    if (sim_chance(10)) {
        arm_hook(another(i), sim_chance(50) ? HOOK_EDIT : HOOK_CUT);
    }
    sim_round(i);
    sim.hook = HOOK_NONE;
}

struct choice {
    unsigned percent;
    void (*fn)(size_t i);
};

static const struct choice choices[] = {
    {17, step_apply}, {15, step_round},     {15, step_links},  {9, step_overwrite},
    {5, step_fault},  {5, sim_edit_direct}, {4, step_draft},   {4, step_restore},
    {4, step_twins},  {2, step_clock},      {4, step_members}, {1, step_local},
    {3, step_duel},   {6, step_confirm},    {2, step_vip},
};

static void
take_step(size_t i)
{
    size_t at = sim_below(100);

    for (size_t k = 0; k < ARRAY_LEN(choices); k++) {
        if (at < choices[k].percent) {
            choices[k].fn(i);
            return;
        }
        at -= choices[k].percent;
    }
    step_wire(i);
}

void
sim_step(void)
{
    size_t i = sim_below(sim.count);

    sim.mono_ms += SIM_ROUND_MS;
    sim.wall_ms += SIM_ROUND_MS;
    if (!sim_up(i)) {
        sim_note("%s starts", sim.nodes[i].name);
        sim_node_open(i);
    } else {
        take_step(i);
    }
    sim_go_back();
    for (size_t k = 0; k < sim.count; k++) {
        if (sim.nodes[k].dead) {
            sim_note("%s died", sim.nodes[k].name);
            sim_bury(k);
        }
    }
    sim_watch();
}

void
sim_fall_behind(void)
{
    size_t i = sim_below(sim.count), to = another(i);

    sim_note("%s falls behind", sim.nodes[i].name);
    for (size_t k = 0; k < sim.count; k++) {
        cut_both(i, k, k != i);
    }
    for (int n = 0; n < MISSED; n++) {
        sim_edit_direct(to);
    }
    sim_watch();
}

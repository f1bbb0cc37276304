/* SPDX-License-Identifier: Apache-2.0 */
/* What holds after every step: a node's head only ever goes forward, or to the same content.
 * And once all links work again: two rounds bring all nodes that are not diverged to one head;
 * those that are stay so without an overwrite, and one ends it; no commit that somebody was
 * told of is lost. A node whose check refuses the head stays behind, and says why, until the
 * check no longer does. link.c looks for traces of what was refused, and for local values on
 * the wire; dump.c for those on other nodes. */
#include <string.h>

#include "base/arena.h"
#include "engine/inner.h"
#include "store/lineage.h"
#include "tests/simulator/confirm.h"
#include "tests/simulator/trace.h"

#define ROUNDS       2 /* in which all nodes reach one head */
#define LONG_TIME_MS 60000
#define RECENT       400 /* commits among which an equal one is looked for */

/* ---- how heads stand to each other: from the store alone ---- */

struct ancestry {
    const struct hash *a, *b;
    bool is;
};

static err_t
ancestry_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct ancestry *x = ctx;
    err_t code = store_is_ancestor(en->store, x->a, x->b, &x->is, e);

    return code == ERR_NOT_FOUND ? ERR_OK : code;
}

bool
sim_leads(size_t i, const struct hash *a, const struct hash *b)
{
    struct ancestry x = {a, b, false};
    struct error e;

    if (engine_run(sim.nodes[i].lab->en, ancestry_on_engine, &x, &e) != ERR_OK) {
        sim_fail("%s: %s", sim.nodes[i].name, e.msg);
    }
    return x.is;
}

bool
sim_has(size_t i, const struct hash *commit)
{
    return sim_leads(i, commit, commit);
}

/* Whether a commit with the content of the one leads to the other: what was adopted in its
 * place. */
static bool
leads_by_equal(size_t i, const struct hash *from, const struct hash *to)
{
    struct engine *en = sim.nodes[i].lab->en;
    CLEANUP(xfree_cleanup) struct commit *list = NULL;
    struct commit former;
    size_t count = 0;
    bool leads = false;
    struct error e;

    if (sync_commit_get(en, from, &former, &e) != ERR_OK ||
        edit_commits(en, 0, RECENT, &list, &count, &e) != ERR_OK) {
        sim_fail("%s: %s", sim.nodes[i].name, e.msg);
    }
    for (size_t k = 0; k < count && !leads; k++) {
        leads = hash_equal(&list[k].fp, &former.fp) && list[k].rev >= former.rev &&
                sim_leads(i, &list[k].id, to);
    }
    return leads;
}

static void
watch_node(size_t i)
{
    struct sim_node *n = &sim.nodes[i];
    struct commit head = sim_head(i);
    char former[SHA256_HEX + 1], now[SHA256_HEX + 1];

    if (hash_equal(&head.id, &n->head)) {
        return;
    }
    hash_hex(&n->head, former);
    hash_hex(&head.id, now);
    if (fake_look(&n->lab->fake).ran_rejected > 0) {
        sim_fail("%s runs what its check has refused", n->name);
    }
    sim_note("    %s: %.8s -> %.8s", n->name, former, now);
    if (!sim_has(i, &n->head)) {
        sim_fail("%s has lost %.8s", n->name, former);
    }
    if (!sim_leads(i, &n->head, &head.id)) {
        sim.equal++;
        if (!leads_by_equal(i, &n->head, &head.id)) {
            sim_fail(
                "%s went from %.8s to %.8s, which does not follow from it", n->name, former,
                now);
        }
    }
    n->head = head.id;
    n->tried = false;
    trace_head(i);
}

void
sim_watch(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        if (sim_up(i)) {
            watch_node(i);
        }
    }
}

/* ---- calm ---- */

static void
calm_node(size_t i)
{
    struct sim_node *n = &sim.nodes[i];
    static const struct actor maria = {"admin maria"};
    struct error e;
    char ops[SIM_TEXT_BYTES];

    if (!sim_up(i)) {
        sim_node_open(i);
    }
    for (enum fake_fault f = FAKE_CHECK; f <= FAKE_SERVE; f++) {
        fake_fail(&n->lab->fake, f, 0);
    }
    if (edit_discard_all(n->lab->en, &maria, &e) != ERR_OK) {
        sim_fail("%s: %s", n->name, e.msg);
    }
    if (n->held) {
        (void)snprintf(ops, sizeof ops, SIM_KEEP_IN_STEP, n->name, "true");
        sim_apply(i, ops);
        n->held = false;
    }
}

static void
round_of_all(void)
{
    size_t first = sim_below(sim.count);

    for (size_t i = 0; i < sim.count; i++) {
        sim_round((first + i) % sim.count);
    }
    sim.mono_ms += SIM_ROUND_MS;
    sim.wall_ms += SIM_ROUND_MS;
    sim_watch();
}

static void
rounds(void)
{
    for (int r = 0; r < ROUNDS; r++) {
        round_of_all();
    }
}

/* Who joined by a node that had not yet heard that it was forgotten. */
static bool
find_lonely(void)
{
    bool found = false;

    for (size_t i = 0; i < sim.count; i++) {
        sim.nodes[i].away = sim.nodes[i].away || members_peers(sim.nodes[i].lab->en) == 0;
        found = found || sim.nodes[i].away;
    }
    return found;
}

static bool
is_locked_out(size_t i, size_t of)
{
    struct cluster *c = sim.nodes[i].cluster;
    struct member m;
    const struct peer *p;
    bool is;

    members_self(sim.nodes[of].lab->en, &m);
    lock_take(&c->lock);
    p = cluster_peer(c, m.id);
    is = p != NULL && !p->answered && p->silence == KEY_REJECTED;
    lock_give(&c->lock);
    return is;
}

static void
join_all(void)
{
    size_t home = 0;

    while (home + 1 < sim.count && sim.nodes[home].away) {
        home++;
    }
    for (size_t i = 0; i < sim.count; i++) {
        if (sim.nodes[i].away && i != home) {
            sim_join(i, home);
        }
    }
    sim.nodes[home].away = false;
    sim_watch();
}

/* Both changed their keys while nobody could tell the other: a person joins them again. */
static void
join_locked_out(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (is_locked_out(i, k) && is_locked_out(k, i)) {
                sim_note(
                    "%s and %s have each other's former key", sim.nodes[i].name,
                    sim.nodes[k].name);
                sim.locked_out++;
                sim_join(i, k);
            }
        }
    }
}

static void
pass_long_time(void)
{
    sim.mono_ms += LONG_TIME_MS;
    sim.wall_ms += LONG_TIME_MS;
}

static void
calm(void)
{
    sim_note("calm");
    sim.calm = true;
    memset(sim.cut, 0, sizeof sim.cut);
    sim.lost = 0;
    sim_calm_vip();
    for (size_t i = 0; i < sim.count; i++) {
        sim.nodes[i].point = POINT_NONE;
        sim.nodes[i].clock_off_ms = 0;
    }
    for (size_t i = 0; i < sim.count; i++) {
        calm_node(i);
    }
    sim_watch();
    pass_long_time();
    if (sim.regrouped) {
        rounds();
        (void)find_lonely();
    }
    join_all();
    if (sim.regrouped) {
        rounds();
        for (size_t i = 0; i < sim.count && find_lonely(); i++) {
            join_all();
            rounds();
        }
        join_locked_out();
        sim.regrouped = false;
    }
}

/* ---- one head, or diverged ---- */

/* Both stand where no rule leads on from. */
static bool
are_diverged(size_t i, size_t k)
{
    struct commit a = sim_head(i), b = sim_head(k);

    if (hash_equal(&a.id, &b.id)) {
        return false;
    }
    if (sim_leads(k, &a.id, &b.id) || sim_leads(i, &b.id, &a.id) || hash_equal(&a.fp, &b.fp)) {
        sim_fail(
            "after %d rounds %s and %s are neither in step nor diverged", ROUNDS,
            sim.nodes[i].name, sim.nodes[k].name);
    }
    return true;
}

static size_t
count_diverged(void)
{
    size_t count = 0;

    for (size_t i = 0; i < sim.count; i++) {
        for (size_t k = 0; k < i; k++) {
            count += are_diverged(i, k) ? 1 : 0;
        }
    }
    return count;
}

/* ---- content that a node refuses ---- */

void
sim_refuse(bool refuse)
{
    for (size_t i = 0; i < sim.count; i++) {
        struct fake_node *f = &sim.nodes[i].lab->fake;

        lock_take(&f->lock);
        f->forbidden[0] = '\0';
        if (refuse) {
            (void)snprintf(
                f->forbidden, sizeof f->forbidden, "maxconn %zu\n", sim.refused_conn + i);
        }
        lock_give(&f->lock);
    }
}

bool
sim_is_refused(size_t i, size_t by)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(sim.nodes[i].lab->en);
    const struct object *o = snapshot_singleton(v->now.shared, K_HAPROXY);

    return object_int(o, F_HAPROXY_MAXCONN) == (int64_t)(sim.refused_conn + by);
}

/* It would take over the head of k, if it could. */
static bool
is_held_up(size_t i, size_t k)
{
    struct commit own = sim_head(i), head = sim_head(k);

    return !hash_equal(&own.id, &head.id) && sim_is_refused(k, i) &&
           (hash_equal(&own.fp, &head.fp) || sim_leads(k, &own.id, &head.id));
}

static bool
is_held_up_by_any(size_t i)
{
    for (size_t k = 0; k < sim.count; k++) {
        if (is_held_up(i, k)) {
            return true;
        }
    }
    return false;
}

static bool
names_refusal(size_t i)
{
    json_t *j = cluster_json(sim.nodes[i].cluster);
    const json_t *each;
    bool named = false;
    size_t k;

    json_array_foreach(json_object_get(j, "conditions"), k, each)
    {
        const char *name = json_string_value(json_object_get(each, "name"));

        named = named || (name != NULL && strcmp(name, "refusing") == 0);
    }
    json_decref(j);
    return named;
}

/* Only who refuses it stays behind, and says so. */
static void
check_held_up(size_t i, size_t k)
{
    if (sim.nodes[i].away || sim.nodes[k].away) {
        return;
    }
    if (!is_held_up_by_any(i) && !is_held_up_by_any(k)) {
        (void)are_diverged(i, k);
        return;
    }
    sim.rejected++;
    if (is_held_up(i, k) && !names_refusal(i)) {
        sim_fail(
            "%s does not say that it refuses what %s has", sim.nodes[i].name,
            sim.nodes[k].name);
    }
}

static void
settle_refused(void)
{
    bool refused = false;

    for (size_t i = 0; i < sim.count; i++) {
        for (size_t k = 0; k < sim.count; k++) {
            refused = refused || sim_is_refused(i, k);
        }
    }
    if (refused) {
        rounds();
        for (size_t i = 0; i < sim.count; i++) {
            for (size_t k = 0; k < sim.count; k++) {
                check_held_up(i, k);
            }
        }
        sim_note("nothing is refused any more");
        pass_long_time();
    }
    sim_refuse(false);
    join_all();
}

static void
stays_diverged(void)
{
    struct hash before[SIM_NODES];

    for (size_t i = 0; i < sim.count; i++) {
        before[i] = sim_head(i).id;
    }
    round_of_all();
    for (size_t i = 0; i < sim.count; i++) {
        struct hash now = sim_head(i).id;

        if (!hash_equal(&now, &before[i])) {
            sim_fail("%s moved, though it was diverged", sim.nodes[i].name);
        }
    }
}

/* Of two that diverged, and what node i says that they shared last. */
static void
check_shared(size_t i, size_t k)
{
    struct engine *en = sim.nodes[i].lab->en;
    struct cluster *c = sim.nodes[i].cluster;
    CLEANUP(xfree_cleanup) struct commit *list = NULL;
    struct commit own = sim_head(i), other = sim_head(k);
    struct last_shared said = {.state = SHARED_SOUGHT};
    size_t count = 0;
    struct error e;

    for (size_t n = 0; n < c->peer_count; n++) {
        said = sim_node_of_id(c->peers[n].id) == k ? c->peers[n].shared : said;
    }
    if ((said.state != SHARED_FOUND && said.state != SHARED_NONE) ||
        !hash_equal(&said.own, &own.id) || !hash_equal(&said.other, &other.id)) {
        sim_fail("%s has not found what it last shared", sim.nodes[i].name);
    }
    if (said.state == SHARED_FOUND && (!sim_leads(i, &said.commit.id, &own.id) ||
                                       !sim_leads(k, &said.commit.id, &other.id))) {
        sim_fail("%s says that it shared what is not of both", sim.nodes[i].name);
    }
    if (edit_commits(en, 0, RECENT, &list, &count, &e) != ERR_OK) {
        sim_fail("%s: %s", sim.nodes[i].name, e.msg);
    }
    for (size_t n = 0; n < count; n++) {
        if (list[n].rev > said.commit.rev && sim_leads(i, &list[n].id, &own.id) &&
            sim_leads(k, &list[n].id, &other.id)) {
            sim_fail("%s shared a newer revision than it says", sim.nodes[i].name);
        }
    }
}

static void
check_all_shared(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        for (size_t k = 0; k < sim.count; k++) {
            if (k != i && are_diverged(i, k)) {
                check_shared(i, k);
            }
        }
    }
}

static void
overwrite_all(void)
{
    size_t i = sim_below(sim.count);

    sim_note("overwrite from %s", sim.nodes[i].name);
    if (!sim_overwrite(i)) {
        sim_fail("the overwrite from %s did not reach all", sim.nodes[i].name);
    }
    rounds();
    if (count_diverged() > 0) {
        sim_fail("still diverged after an overwrite from %s", sim.nodes[i].name);
    }
}

void
sim_nothing_is_lost(size_t first)
{
    for (size_t k = first; k < sim.acked_count; k++) {
        char hex[SHA256_HEX + 1];
        bool found = false;

        for (size_t i = 0; i < sim.count && !found; i++) {
            found = sim_has(i, &sim.acked[k]);
        }
        hash_hex(&sim.acked[k], hex);
        if (!found) {
            sim_fail("%.8s was answered well, and no node has it", hex);
        }
    }
}

static bool
has_no_trial(struct engine_lab *l)
{
    return !standby_runs(l->en);
}

void
sim_verify(size_t i)
{
    struct engine_lab *l = sim.nodes[i].lab;
    int64_t checked = 0;
    struct error e;

    /* A trial ends by its time; the watcher, which sees to that, has the real clock. */
    engine_wake(l->en);
    engine_lab_await(l, has_no_trial);
    if (edit_verify(l->en, &checked, &e) != ERR_OK) {
        sim_fail("%s: %s", sim.nodes[i].name, e.msg);
    }
}

void
sim_settle(void)
{
    calm();
    settle_refused();
    rounds();
    sim_go_back();
    sim_watch();
    rounds();
    /* Who heard of it late has the later deadline, before which it overwrites nobody. */
    if (sim_trial_waits()) {
        pass_long_time();
        sim_go_back();
        sim_watch();
        rounds();
    }
    if (count_diverged() > 0) {
        sim.diverged++;
        stays_diverged();
        check_all_shared();
        overwrite_all();
    }
    sim_check_trials();
    sim_nothing_is_lost(sim.acked_before);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: how they start, end, die, and cannot write. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/crashpoint.h"
#include "base/file.h"
#include "engine/apply_job.h"
#include "engine/inner.h"
#include "store/inner.h"
#include "sync/admit.h"
#include "tests/simulator/confirm.h"
#include "tests/simulator/peers.h"
#include "tests/simulator/trace.h"

#define FILE_BYTES ((size_t)64 << 20)
#define PATH_BYTES 256

static const char *const files[] = {"lockstep.db", "lockstep.db-wal"};

/* ---- clocks ---- */

static int64_t
mono(void *ctx)
{
    (void)ctx;
    return sim.mono_ms;
}

static int64_t
wall(void *ctx)
{
    const struct sim_node *n = ctx;

    return sim.wall_ms + n->clock_off_ms;
}

/* ---- files ---- */

static void
copy_file(const struct sim_node *n, const char *from, const char *to, const char *name)
{
    CLEANUP(buf_fini) struct buf bytes;
    char path[PATH_BYTES];
    struct error e;

    buf_init(&bytes, FILE_BYTES);
    (void)snprintf(path, sizeof path, "%s/%s/%s", n->lab->fake.dir, from, name);
    if (file_read_at(AT_FDCWD, path, &bytes, &e) != ERR_OK) {
        bytes.len = 0;
    }
    (void)snprintf(path, sizeof path, "%s/%s/%s", n->lab->fake.dir, to, name);
    (void)unlink(path);
    if (bytes.len > 0 &&
        file_write_at(AT_FDCWD, path, bytes.data, bytes.len, 0600, &e) != ERR_OK) {
        sim_fail("%s: %s", path, e.msg);
    }
}

/* As a process leaves them that is killed now. */
static void
set_files_aside(struct sim_node *n)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        copy_file(n, "state/data", "aside", files[i]);
    }
    n->dead = true;
}

static void
put_files_back(const struct sim_node *n)
{
    char path[PATH_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        copy_file(n, "aside", "state/data", files[i]);
    }
    (void)snprintf(path, sizeof path, "%s/state/data/lockstep.db-shm", n->lab->fake.dir);
    (void)unlink(path);
}

/* ---- points ---- */

static struct sim_node *
node_of_thread(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        const struct engine_lab *l = sim.nodes[i].lab;

        if (l != NULL && l->en != NULL && engine_on_own_thread(l->en)) {
            return &sim.nodes[i];
        }
    }
    return NULL;
}

/* Of the whole process: the other nodes write nothing meanwhile. */
static void
set_disk(bool full)
{
    struct rlimit limit;

    ASSERT(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = full ? 0 : limit.rlim_max;
    ASSERT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* In place of that of base: a node of many dies, not the process. */
void
crashpoint(const char *name)
{
    struct sim_node *n;
    bool before = strncmp(name, "store_before_", 13) == 0;
    bool after = strncmp(name, "store_after_", 12) == 0;

    if ((!before && !after) || (n = node_of_thread()) == NULL || n->point == POINT_NONE) {
        return;
    }
    if (n->point == POINT_DISK_FULL) {
        set_disk(before);
        sim.full += before ? 1 : 0;
        n->point = before ? n->point : POINT_NONE;
        return;
    }
    if (before == (n->point == POINT_DIE_BEFORE)) {
        n->point = POINT_NONE;
        set_files_aside(n);
    }
}

void
crashpoint_arm(const char *spec)
{
    (void)spec;
}

err_t __real_apply_commit(struct apply *a, struct error *e);
err_t __wrap_apply_commit(struct apply *a, struct error *e);

/* Whoever pushed waits for it. A reconcile ends here, too, on any node and at any time. */
err_t
__wrap_apply_commit(struct apply *a, struct error *e)
{
    size_t racing = sim.race;

    if (racing > 0 && a->mode == APPLY_ADOPT && a->en == sim.nodes[racing - 1].lab->en) {
        sim.race = 0;
        while (sem_wait(&sim.race_begins) != 0) {
        }
        sim_edit_direct(racing - 1);
    }
    return __real_apply_commit(a, e);
}

/* ---- life ---- */

static void
open_cluster(struct sim_node *n)
{
    struct error e;

    if (members_present(n->lab->en, n->url, n->pin, &e) != ERR_OK ||
        cluster_make(n->lab->en, &n->lab->tunables, &n->lab->clock, &n->cluster, &e) !=
            ERR_OK) {
        sim_fail("%s: %s", n->name, e.msg);
    }
    sim_hold(n);
}

static void
add_marker(struct sim_node *n)
{
    char ops[SIM_TEXT_BYTES];

    (void)snprintf(
        ops, sizeof ops,
        "[{'op': 'merge', 'kind': 'node', 'name': '%s', 'body': {'note': '" SIM_MARKER "%s'}}]",
        n->name, n->name);
    engine_lab_apply_ok(n->lab, ops);
}

void
sim_node_start(size_t i)
{
    struct sim_node *n = &sim.nodes[i];
    char path[PATH_BYTES];
    struct error e;

    *n = (struct sim_node){.lab = engine_lab_new()};
    (void)snprintf(n->name, sizeof n->name, "n%zu", i + 1);
    (void)snprintf(n->url, sizeof n->url, "https://192.0.2.%zu:8443", i + 1);
    (void)snprintf(n->pin, sizeof n->pin, "sha256//%043zu=", i + 1);
    n->lab->config.node_name = n->name;
    n->lab->clock = (struct clock){mono, wall, n};
    n->lab->tunables.status_round_ms = 60000;
    n->lab->tunables.sync_round_ms = SIM_ROUND_MS;
    n->lab->tunables.back_instead_ms = 10 * SIM_ROUND_MS;
    n->lab->tunables.sync_piece_commits = 1; /* every third revision that lacks makes one */
    (void)snprintf(path, sizeof path, "%s/aside", n->lab->fake.dir);
    if (file_mkdir_at(AT_FDCWD, path, 0700, &e) != ERR_OK) {
        sim_fail("%s", e.msg);
    }
    engine_lab_start(n->lab);
    open_cluster(n);
    add_marker(n);
    n->head = sim_head(i).id;
}

void
sim_node_open(size_t i)
{
    struct sim_node *n = &sim.nodes[i];

    for (enum fake_fault f = FAKE_CHECK; f <= FAKE_SERVE; f++) {
        fake_fail(&n->lab->fake, f, 0);
    }
    n->tried = false;
    engine_lab_start(n->lab);
    open_cluster(n);
}

static void
close_node(struct sim_node *n)
{
    sim_readers_close((size_t)(n - sim.nodes));
    n->cluster->holding = NULL;
    cluster_close(TAKE(n->cluster));
    engine_lab_close(n->lab);
    n->point = POINT_NONE;
}

void
sim_node_end(size_t i)
{
    struct sim_node *n = &sim.nodes[i];

    close_node(n);
    engine_lab_delete(TAKE(n->lab));
}

void
sim_node_die(size_t i)
{
    if (!sim.nodes[i].dead) {
        set_files_aside(&sim.nodes[i]);
    }
    sim_bury(i);
}

void
sim_bury(size_t i)
{
    struct sim_node *n = &sim.nodes[i];

    sim.died++;
    close_node(n);
    put_files_back(n);
    n->dead = false;
}

bool
sim_up(size_t i)
{
    const struct sim_node *n = &sim.nodes[i];

    return n->lab->en != NULL && !n->dead;
}

struct commit
sim_head(size_t i)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(sim.nodes[i].lab->en);

    return v->head;
}

void
sim_join(size_t i, size_t to)
{
    struct sim_node *n = &sim.nodes[i];
    struct member target;
    struct error e = {.code = ERR_OK};
    json_t *answer = NULL;
    err_t code;

    members_self(sim.nodes[to].lab->en, &target);
    code = cluster_join(
        n->cluster,
        &(struct cluster_join){.url = target.url, .key = target.key, .pin = target.pin},
        "admin maria", &answer, &e);
    json_decref(answer);
    if (code == ERR_OK && !n->dead) {
        n->away = false;
        n->head = sim_head(i).id;
        trace_head(i);
    }
    sim_note("    join: %s", code == ERR_OK ? "ok" : e.msg);
}

size_t
sim_node_of_id(const char *id)
{
    for (size_t i = 0; i < sim.count; i++) {
        struct member self;

        if (sim.nodes[i].lab->en == NULL) {
            continue;
        }
        members_self(sim.nodes[i].lab->en, &self);
        if (strcmp(self.id, id) == 0) {
            return i;
        }
    }
    return SIM_NODES;
}

json_t *
sim_admit(size_t i, const json_t *who)
{
    struct error e;
    json_t *j = NULL;

    if (cluster_admit(sim.nodes[i].cluster, who, &j, &e) != ERR_OK) {
        sim_fail("%s", e.msg);
    }
    return j;
}

void
sim_record_clear(void)
{
    for (size_t i = 0; i < SIM_RECORDED; i++) {
        free(sim.recorded[i].body);
        free(sim.recorded[i].from);
        sim.recorded[i] = (struct sim_message){.body = NULL};
    }
    sim.recorded_next = 0;
}

void
sim_make_newer(size_t from, struct commit *c)
{
    struct commit head = sim_head(from);

    *c = (struct commit){
        .rev = head.rev + 1,
        .schema_version = SCHEMA_VERSION + 1,
        .fp = head.fp,
        .parents = {head.id},
        .parent_count = 1,
        .at_ms = sim.wall_ms,
    };
    (void)snprintf(c->node, sizeof c->node, "%s", sim.nodes[from].name);
    (void)snprintf(c->author, sizeof c->author, "admin maria");
    (void)snprintf(c->summary, sizeof c->summary, "of a newer release");
    c->id = commit_compute_id(c);
}

bool
sim_outranks(size_t i, const struct sync_doc *d, const char *id, bool asks)
{
    return d->has_expected && cluster_outranks(sim.nodes[i].cluster, id, asks);
}

static bool
any_away(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        if (sim.nodes[i].away) {
            return true;
        }
    }
    return false;
}

void
sim_regroup(size_t i, size_t to)
{
    struct sim_node *n = &sim.nodes[i];
    struct error e;

    if (n->away && sim_up(to) && !sim.nodes[to].away) {
        sim_note("%s joins %s", n->name, sim.nodes[to].name);
        sim_join(i, to);
    } else if (sim_chance(60)) {
        sim_note("another key of %s", n->name);
        sim.regrouped = true;
        if (members_new_key(n->lab->en, &e) != ERR_OK) {
            sim_note("    %s", e.msg);
        }
    } else if (!n->away && sim_chance(50)) {
        sim_note("%s leaves", n->name);
        n->away = cluster_leave(n->cluster, SIM_WHO, &e) == ERR_OK || n->away;
    } else if (!n->away && !sim.nodes[to].away && !any_away()) {
        sim_note("%s forgets %s", n->name, sim.nodes[to].name);
        sim.nodes[to].away =
            cluster_forget(n->cluster, sim.nodes[to].name, SIM_WHO, &e) == ERR_OK;
        sim.regrouped = true;
        sim.forgotten += sim.nodes[to].away ? 1 : 0;
    }
}

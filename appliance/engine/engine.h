/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: the single writer of configuration. One thread owns the store; readers take
 * immutable views. Functions that change something are marshalled to that thread by
 * themselves (they run in place when the caller is on it already) and return when the change
 * is durable. */
#ifndef LOCKSTEP_ENGINE_ENGINE_H
#define LOCKSTEP_ENGINE_ENGINE_H

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/tunables.h"
#include "model/commit.h"
#include "model/snapshot.h"

struct engine;

struct engine_config {
    const char *state_dir; /* data/, stage/, generation/ below it: see helper/protocol.h */
    const char *run_dir;
    const char *socket_group; /* named in haproxy.cfg */
    const char *node_name;    /* used at first start only */
    const char *api_address;  /* where this program's own pages are */
    int api_port;             /* 0: they cannot be published through HAProxy */
    const struct tunables *tunables;
    const struct clock *clock;
};

/* Opens the store (its errors pass through), starts the engine, apply, watcher, confirm and
 * worker threads, and makes files and HAProxy follow the head (a task of its own). config and
 * what it points to must outlive the engine. ERR_DENIED: another daemon has the data. */
MUST_USE err_t
engine_open(const struct engine_config *config, struct engine **ret, struct error *e);
void engine_close(struct engine *en);

/* Runs fn(ctx) on the engine thread / on the worker pool (slow work: scrypt, previews,
 * checks). ERR_BUSY when the queue is full: fn will not be called. */
MUST_USE err_t engine_post(struct engine *en, mailbox_fn fn, void *ctx, struct error *e);
MUST_USE err_t engine_work(struct engine *en, mailbox_fn fn, void *ctx, struct error *e);

/* One row of the draft, as the view shows it. */
struct draft_entry {
    enum kind kind;
    const char *id;
    const char *name;
    const struct object *before; /* at head, or NULL: created */
    const struct object *after;  /* in the draft, or NULL: deleted */
    const char *author;
    int64_t at_ms;
    bool conflict; /* the head's object moved since the row was made */
};

/* Everything readers need, immutable. The draft snapshots are head with the draft's rows;
 * equal pointers when the draft has none of that scope. */
struct view {
    unsigned magic;
    _Atomic unsigned refs;
    int64_t version; /* raised by every change */
    struct commit head;
    int64_t local_rev;
    struct snapshot_pair now;
    struct snapshot_pair draft;
    bool whole_draft;            /* no row was left out of draft */
    struct draft_entry *entries; /* sorted by kind's name, then id */
    size_t entry_count;
};

/* The present view, a new reference. Any thread, no lock held beyond a pointer swap. */
struct view *engine_view(struct engine *en);
void view_unref(struct view *v); /* NULL is allowed */
void view_cleanup(struct view **v);
/* The entry of an object, or NULL: by its id, or by its name in the draft or else at head. */
const struct draft_entry *view_entry(const struct view *v, enum kind kind, const char *id);
const struct draft_entry *
view_entry_named(const struct view *v, enum kind kind, const char *name);
/* All of them, sorted by kind's name, then name; free the list. */
const struct draft_entry **view_entries_by_name(const struct view *v);

/* Who acts: for the audit, the draft and commits. */
struct actor {
    const char *name;   /* "admin maria", "key deploy" */
    const char *locked; /* why what all nodes share is not to be edited here; NULL: it may be */
};

/* Whether who may make that of what all nodes share. ERR_LOCKED; ERR_INVALID, with problems,
 * where a node of an older release would not understand it. */
MUST_USE err_t actor_may(
    struct engine *en, const struct actor *who, const struct snapshot *before,
    const struct snapshot *after, struct problems *p, struct error *e);

/* Measured facts about HAProxy on this node; each with the time it was seen. */
enum fact { FACT_UNKNOWN, FACT_YES, FACT_NO };

/* A revision that goes back by itself unless it is confirmed: see engine/confirm.h. */
struct engine_waiting {
    bool is;
    struct hash commit;
    char node[COMMIT_NODE_BYTES]; /* where it was applied */
    int64_t rev, back_rev;
    int64_t until_ms; /* Unix time */
    int64_t left_s;
    bool going_back;
    bool failed;         /* to go back: it may be confirmed until that is tried again */
    int64_t retry_at_ms; /* Unix time; 0: not failed, or no node that answers is to do it */
};

/* Servers of all pools, counted when statistics were read last. */
struct engine_servers {
    int64_t up, down;
    int64_t maint;      /* somebody's doing: drain, maintenance, 404 on purpose */
    int64_t no_address; /* in DNS */
    int64_t seen_at_ms; /* Unix time; 0 = never */
};

struct engine_status {
    bool started;        /* first reconcile ended well: head rendered and running */
    enum fact up;        /* admin socket answers */
    char up_detail[128]; /* why it does not */
    char haproxy_version[32];
    int64_t haproxy_pid, uptime_s, connections, max_connections;
    bool running_known;      /* the digest that the worker reports is one of ours */
    char running_digest[17]; /* as reported; "" when unknown */
    struct hash running_commit;
    int64_t running_rev, running_local_rev;
    char running_release[32]; /* whose program made those files; "" when unknown */
    enum fact serving;        /* a real request was answered, at serving_at_ms */
    char serving_detail[128]; /* what failed */
    int64_t serving_at_ms;    /* Unix time; 0 = never */
    int64_t seen_at_ms;       /* of up, running */
    int64_t measured_mono_ms; /* of all three; monotonic */
    int64_t looked_mono_ms;   /* when the first of them was asked for; 0 = never */
    int64_t answered_mono_ms; /* up was last seen FACT_YES; 0 = never */
    int64_t age_s;            /* since looked_mono_ms; -1 = never looked */
    int64_t silent_s;         /* since answered_mono_ms while up is FACT_NO; -1 else */
    char reason[200];         /* why not started, last failure of reconcile, or "" */
    int64_t old_workers;
    struct engine_waiting waiting;
    struct engine_servers servers;
};

/* {"commit", "node", "rev", "back_to", "until", "seconds_left", "going_back", "failed",
 * "retry_at"}, or null. */
json_t *engine_waiting_json(const struct engine_waiting *w);

/* Copies the status record out. Any thread. */
void engine_get_status(struct engine *en, struct engine_status *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* From snapshots to everything HAProxy reads. Pure and deterministic: the same input gives
 * the same bytes. */
#ifndef LOCKSTEP_RENDER_HAPROXY_H
#define LOCKSTEP_RENDER_HAPROXY_H

#include "base/buf.h"
#include "base/running.h"
#include "model/problems.h"
#include "model/snapshot.h"

#define RENDER_MAX_BYTES  ((size_t)256 << 20)
#define RENDER_DIGEST_HEX RUNNING_HEX

/* Another node, with which stick tables are shared. */
struct render_peer {
    const char *name;    /* of text type name */
    const char *address; /* literal */
    int port;
};

/* Facts of the node and the installation that the files name. */
struct render_input {
    struct snapshot_pair objects;
    const char *run_dir;             /* sockets: <run_dir>/haproxy.sock, <run_dir>/probe.sock */
    const char *socket_group;        /* group that may use them, a name */
    const char *placeholder_pem;     /* chain + key: first certificate where a TLS listener
                                        names none */
    const char *url;                 /* of this node where its settings have none, or NULL */
    const struct render_peer *peers; /* left out where this node has no address for them */
    size_t peer_count;
    /* Where lockstepd answers on this machine, and the certificate by which it is known; port
     * 0: its pages are not published. */
    const char *api_address;
    int api_port;
    const char *api_pem;
};

/* Origin of one line of haproxy.cfg; kind -1: no object (a comment, a fixed line). */
struct line_origin {
    int kind;
    int field;                   /* index in the kind's fields, -1: the object as a whole */
    const struct object *object; /* borrowed from the input's snapshots */
};

struct artefact {
    const char *name; /* "haproxy.cfg", "map/<listener>.map", "crt/<id>.pem",
                         "crt-list/<listener>.list", "ca/<pool>.pem", "error/503.http",
                         "acl/<...>.list", "body/<rule>.txt"; unique, relative */
    struct buf bytes;
    bool secret;                 /* holds a private key: mode 0640, never shown */
    const struct object *object; /* the one it comes from, borrowed, or NULL */
};

struct rendered {
    struct artefact *items; /* sorted by name */
    size_t count, cap;
    struct line_origin *lines; /* of haproxy.cfg; lines[0] is line 1 */
    size_t line_count, line_cap;
    char digest[RENDER_DIGEST_HEX + 1]; /* of all artefacts; stands in the map of
                                           base/running.h, and in haproxy.cfg as the global
                                           "description": what a worker was started with */
    struct rendered_state *state;       /* memory kept from one render to the next */
};

/* init once, render as often as wished (memory is reused), fini. */
void rendered_init(struct rendered *r);
void rendered_fini(struct rendered *r);
const struct artefact *rendered_find(const struct rendered *r, const char *name);

/* The candidate must have passed validate_all without an error. What cannot be rendered all
 * the same is a problem naming object and field; then ERR_INVALID. ERR_LIMIT over
 * RENDER_MAX_BYTES. On failure out holds no artefact. */
MUST_USE err_t render_haproxy(
    const struct render_input *in, struct rendered *out, struct problems *p, struct error *e);

/* Of the API: the node itself asks through HAProxy whether its own pages are reached. */
#define RENDER_WEBUI_PATH "/api/v1/health"
/* What <run_dir>/probe.sock answers with status 200 while HAProxy serves. */
#define RENDER_PROBE_PATH "/"
/* What every listener in http mode answers with 200 itself, without a line in the log: a name
 * that no service can have (RFC 6761). */
#define RENDER_PROBE_HOST "lockstep.invalid"

#endif

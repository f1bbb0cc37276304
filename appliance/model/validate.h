/* SPDX-License-Identifier: Apache-2.0 */
/* Checks across objects: references, use, port clashes, names published twice. Pure. What one
 * field alone can tell (ranges, reserved names) object_parse has refused before. */
#ifndef LOCKSTEP_MODEL_VALIDATE_H
#define LOCKSTEP_MODEL_VALIDATE_H

#include "model/snapshot.h"

#define PORT_API 8443 /* UI, API, peers */

/* The port of HAProxy's stick-table peers on this node; the schema's default where there are no
 * local objects. */
int validate_peers_port(const struct snapshot *local);

/* Reading a certificate costs some 100 us: with more of them than this, validate_all says
 * nothing about their dates and names. */
#define VALIDATE_MAX_READ_CERTIFICATES 200

/* Everything that must hold before a render. Adds every problem found. Warnings (a pool
 * without servers, a certificate that expires within 14 days of now_s or does not cover a
 * service's host) do not stop an apply. Does not compare certificates with their keys: that
 * is validate_object's part. */
void validate_all(const struct snapshot_pair *candidate, int64_t now_s, struct problems *p);
/* The same with a clash of two objects told at the one that other does not have, so that an
 * edit is told of its own object and not of the one that was there first. */
void validate_beside(
    const struct snapshot_pair *candidate, const struct snapshot_pair *other, int64_t now_s,
    struct problems *p);

/* Whether the checks of validate_all find no error at any object that the change from before
 * to after can reach: then after has no error that before has not. Much faster, since an edit
 * of one object reaches few. False says little: compare validate_beside of both sides. */
bool validate_reached(const struct snapshot_pair *before, const struct snapshot_pair *after);

/* What is costly and needs only one object: for each object that is new or changed, before
 * validate_all. A certificate whose key does not belong to it, or that HAProxy would not load,
 * is an error; its dates are warnings. Other kinds have nothing here. */
void validate_object(const struct object *o, int64_t now_s, struct problems *p);

/* What came with a later schema_version than level, which is all that the node behind knows:
 * the kind of the object (then nothing else is said of it), values in later fields, and later
 * values of enumerations. Errors. */
void validate_level(const struct object *o, int level, const char *behind, struct problems *p);

/* What stands behind the keywords of HAProxy in an object's lists of lines: type and range,
 * each in a list that before (NULL: nothing) has otherwise. Only for edits: what was stored by
 * a version that did not look is no error of whoever changes something else. */
void validate_directives(
    const struct object *before, const struct object *after, struct problems *p);

/* Why a path, otherwise right, is none for a service, or NULL. */
const char *validate_path_fault(const char *path);
/* Paths of services and conditions that no request has as it is compared, where before (NULL:
 * nothing) has others. Only for edits, as validate_directives; stored ones are warnings. */
void
validate_paths(const struct object *before, const struct object *after, struct problems *p);

/* Errors where a change makes names that lead to this node's own pages, and are to, lead
 * nowhere or elsewhere. For what is yet to be decided; of what other nodes decided, which is
 * taken over whatever becomes of the pages, validate_all only warns. */
void validate_webui_kept(
    const struct snapshot_pair *before, const struct snapshot_pair *after, struct problems *p);
/* The same of an edit, and where the pages themselves are edited, errors where their names can
 * lead nowhere. Only for edits, as validate_directives. */
void validate_webui(
    const struct snapshot_pair *before, const struct snapshot_pair *after, struct problems *p);

/* Objects that refer to (kind, id) in the pair, as problems "in_use" (severity error), each
 * naming the user. Returns how many. */
size_t validate_in_use(
    const struct snapshot_pair *pair, enum kind kind, const char *id, struct problems *p);

/* One address and port that HAProxy will bind. */
struct bind {
    char address[46]; /* literal; "0.0.0.0" and "::" are wildcards */
    int port;
    bool vip;                    /* a VIP group has it: this node need not */
    const struct object *object; /* the listener, or the node for the port of the tables */
};

/* All binds of the enabled listeners, sorted by port and address, then those of the stick
 * tables when a pool has one and there are local objects: on 127.0.0.1 and on peers_address
 * (may be NULL or ""), where other nodes come; the caller frees *ret with free(). */
size_t
validate_binds(const struct snapshot_pair *pair, const char *peers_address, struct bind **ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be known before the first line is written: which service stands on which
 * listener, what each leads to, and that every reference leads somewhere. Inside render/. */
#ifndef LOCKSTEP_RENDER_LAYOUT_H
#define LOCKSTEP_RENDER_LAYOUT_H

#include "render/haproxy.h"
#include "render/refs.h"

#define LAYOUT_BACKEND_UNKNOWN  "lockstep.unknown"
#define LAYOUT_BACKEND_DISABLED "lockstep.disabled"
#define LAYOUT_BACKEND_REFUSE   "lockstep.refuse"
#define LAYOUT_BACKEND_REDIRECT "lockstep.redirect." /* and a port */
#define LAYOUT_BACKEND_WEBUI    "lockstep.webui"     /* this node's own pages */
#define LAYOUT_BACKEND_RATE     "lockstep.rate."     /* and a service: its table of rates */
/* A service that has more than a pool stands in the maps under this and its name. */
#define LAYOUT_SERVICE     "lockstep.service."
#define LAYOUT_SERVICE_MAP "lockstep.service" /* from there to its pool */

/* A path as it is compared with rules and, where there are some, with paths of services:
 * without parameters of segments, encoded slashes and backslashes as slashes, slashes in a row
 * as one. A server may take these for the same, and what is asked of the one must be asked of
 * the other. */
#define LAYOUT_PATH                                                                            \
    "path,regsub(%3b,;,gi),regsub(;[^/]*,,g),regsub(%2f,/,gi),regsub(%5c,/,gi),regsub(//+,/,g)"

#define LAYOUT_SERVICE_BYTES 384 /* of a service, for refs_fetch */

struct layout_rules {
    uint32_t first, count; /* layout.rules[first .. first + count), in their order */
};

struct layout_service {
    const struct object *object;
    const struct object *pool;
    uint32_t https_port; /* where its plain requests are sent on to, 0: they are served */
    bool guarded;        /* it has rules that are on, allowed networks or a rate limit */
    bool served;         /* on some listener it is neither off nor sent on to https */
    struct layout_rules rules;
};

struct layout_listener {
    const struct object *object;
    const struct layout_service *tcp_service; /* in tcp mode the one that is on, or NULL */
    uint32_t first, count; /* its services, by name: layout.routes[first .. first + count) */
    bool guarded;          /* a guarded service is served here */
    struct layout_rules rules;
};

/* This node's own pages, where they are published. */
struct layout_webui {
    const struct object *object;            /* or NULL */
    const struct layout_listener *listener; /* the one that has their names */
    bool first;                             /* before services of the same names */
    bool certified; /* the listener has TLS, and they bring a certificate for it */
};

struct layout_pair {
    uint32_t listener, service; /* indexes */
};

struct layout {
    const struct render_input *in;
    struct problems *problems;
    const struct object *haproxy, *node;
    struct refs refs;
    struct layout_listener *listeners; /* of all, by name; disabled ones have count 0 */
    size_t listener_count, listener_cap;
    struct layout_webui webui;
    struct layout_service *services; /* by name */
    size_t service_count, service_cap;
    const struct object **pool_targets; /* of the pools written so far: monitor or NULL, then
                                           the members' servers; NULL also for a dangling one */
    size_t pool_target_count, pool_target_cap;
    uint32_t *routes; /* indexes of services, listener by listener */
    size_t route_count, route_cap;
    uint32_t *https_ports; /* sorted, each once */
    size_t https_port_count, https_port_cap;
    struct layout_pair *pairs; /* in the order of services */
    size_t pair_count, pair_cap;
    const struct object **rules; /* those that are on, owner by owner */
    size_t rule_count, rule_cap;
    uint32_t *condition_used; /* by the place of a condition by name, as certificate_listed */
    size_t condition_cap;
    /* By the place of a certificate by name: the last listener that listed it (its index
     * + 1), 0 where none did; and room for those that a listener's services bring. */
    uint32_t *certificate_listed;
    uint32_t *certificate_found;
    size_t listed_cap, found_cap;
    bool placeholder_used;
    bool names_resolved; /* a rendered server has a DNS name */
    bool tables_used;    /* a pool or a rate limit has a stick table */
    bool ca_used;        /* a rendered pool brings its own authorities */
    bool clients_used;   /* a rendered pool shows a certificate to its servers */
};

/* Has the file of a certificate written that no listener lists; its certificate_listed is then
 * LAYOUT_CLIENT until the lists are made. */
#define LAYOUT_CLIENT UINT32_MAX
void layout_use_certificate(struct layout *p, const struct object *certificate);
void layout_init(struct layout *p);
void layout_fini(struct layout *p);
/* Works the layout out. What cannot be rendered is added to problems. */
void layout_make(struct layout *p, const struct render_input *in, struct problems *problems);
/* The part of layout_make that gives listeners and services their rules. */
void layout_rules_make(struct layout *p);
/* The part of layout_make that finds the listener of this node's own pages. */
void layout_webui_make(struct layout *p);
/* Whether the pages take a host of a service on this listener. */
bool
layout_webui_takes(const struct layout *p, const struct object *listener, struct text host);
/* The condition that the i-th use of a rule names, or NULL after a problem. */
const struct object *layout_condition(struct layout *p, const struct object *rule, uint32_t i);
/* Whether a service is answered by its pool on this listener: then its rules hold there. */
bool layout_serves(const struct layout_service *s, const struct object *listener);
/* True when requests for the service on a listener are sent on to https. */
bool layout_redirects(const struct layout_service *s, const struct object *listener);
/* Adds an error at a field of o, code "render". */
void layout_problem(struct layout *p, const struct object *o, unsigned field, const char *text);
/* The problem of a reference that leads nowhere. */
void layout_dangling(struct layout *p, const struct object *o, unsigned field);
/* The object that a reference of o names, or NULL after a problem at the field. */
const struct object *layout_follow(
    struct layout *p, const struct object *o, unsigned field, enum kind kind, struct text id);

#endif

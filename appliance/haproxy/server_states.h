/* SPDX-License-Identifier: Apache-2.0 */
/* What state a server is in, and whose doing it is: from "show stat" (its column "status") and
 * "show servers state" (management guide, section 9.3). */
#ifndef LOCKSTEP_HAPROXY_SERVER_STATES_H
#define LOCKSTEP_HAPROXY_SERVER_STATES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

/* srv_admin_state, a set of bits. */
#define ADMIN_FORCED_MAINT     0x01u /* by "set server", or "disabled" in the configuration */
#define ADMIN_INHERITED_MAINT  0x02u /* from a tracked server */
#define ADMIN_CONFIGURED_MAINT 0x04u /* "disabled" in the configuration */
#define ADMIN_FORCED_DRAIN     0x08u
#define ADMIN_INHERITED_DRAIN  0x10u
#define ADMIN_NO_ADDRESS       0x20u /* its name has no address in DNS */
#define ADMIN_FQDN_SET         0x40u /* its name was changed by the socket: no state */

struct server_line {
    const char *backend, *server; /* the arena's */
    int64_t backend_id;           /* "iid" of show stat */
    unsigned admin;
    int64_t weight, configured_weight;
    bool agent; /* an agent is asked, which sets state and weight too */
};

struct server_table {
    struct server_line *lines; /* sorted by backend and server, by bytes */
    size_t count;
    size_t parse_errors; /* lines left out */
};

/* ERR_INVALID when there is no header with the columns that a line needs. *ret is the
 * caller's, to be ended by server_table_fini before the arena. */
MUST_USE err_t server_table_parse(
    const char *text, size_t bytes, struct arena *a, struct server_table *ret, struct error *e);
void server_table_fini(struct server_table *t); /* also for CLEANUP() */
const struct server_line *
server_table_find(const struct server_table *t, const char *backend, const char *server);

enum server_state {
    SERVER_UNKNOWN,
    SERVER_UP,       /* also "UP 1/3": checks fail, but not often enough yet */
    SERVER_DOWN,     /* also "DOWN 1/2": checks pass, but not often enough yet */
    SERVER_NO_CHECK, /* counts as up */
    SERVER_DRAIN,
    SERVER_MAINT,
    SERVER_NOLB, /* it answers checks with 404: no new visitors */
};

enum server_state server_state_of(const char *status);
const char *server_state_name(enum server_state s); /* "up", "no_check" ... */
/* Who took it out: "operator", "tracked", "dns", "operator+dns", "configured", "agent",
 * "weight" (weight 0), "check"; NULL when nobody did, or it is not known. line may be NULL. */
const char *server_taken_out_by(const char *status, const struct server_line *line);

#endif

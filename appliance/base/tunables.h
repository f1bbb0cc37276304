/* SPDX-License-Identifier: Apache-2.0 */
/* Every time constant of the product in one record, so that tests can shorten them
 * (--tunables FILE, a JSON object with these names). Milliseconds, where the name says so. */
#ifndef LOCKSTEP_BASE_TUNABLES_H
#define LOCKSTEP_BASE_TUNABLES_H

#include <stdint.h>

#include "base/error.h"

/* X(name, default, min, max) */
#define TUNABLES_LIST(X)                                                                       \
    X(check_ms, 60000, 100, 600000)        /* haproxy -c */                                    \
    X(reload_ms, 30000, 100, 600000)       /* until the new worker answers */                  \
    X(reload_window_ms, 10000, 100, 60000) /* longest window told to the prober */             \
    X(verify_ms, 5000, 100, 60000)         /* until every listener answers */                  \
    X(bind_test_ms, 5000, 100, 60000)                                                          \
    X(helper_ms, 90000, 100, 600000)    /* one call of the helper */                           \
    X(helper_wait_ms, 5000, 0, 60000)   /* for a helper that is being restarted */             \
    X(socket_ms, 2000, 50, 60000)       /* one command on the admin socket */                  \
    X(status_round_ms, 2000, 50, 60000) /* how often HAProxy is looked at */                   \
    X(follow_first_ms, 1000, 10, 60000) /* back-off of making HAProxy follow the head */       \
    X(follow_max_ms, 30000, 10, 600000)                                                        \
    X(tables_turn_ms, 5000, 0, 600000) /* between reloads of nodes for a change of members */  \
    X(webui_again_ms, 1800000, 100, 86400000) /* between two repairs of a node's own pages */  \
    X(try_ms, 3000, 0, 60000)               /* trying a check against its servers; 0: never */ \
    X(sync_round_ms, 2000, 20, 60000)       /* how often other nodes are asked */              \
    X(sync_health_ms, 1500, 20, 60000)      /* one such question */                            \
    X(sync_call_ms, 150000, 100, 3600000)   /* a push, until the other node serves */          \
    X(sync_read_ms, 30000, 100, 3600000)    /* what another node only reads or stores */       \
    X(sync_check_ms, 75000, 100, 600000)    /* a check or a trial on another node */           \
    X(sync_piece_commits, 5000, 1, 40000)   /* of a long history, in one message */            \
    X(trial_ms, 60000, 100, 600000)         /* a trial, until its push must have come */       \
    X(check_kept_ms, 60000, 0, 600000)      /* until its push must have come */                \
    X(back_instead_ms, 60000, 100, 3600000) /* until another node goes back in its place */    \
    X(sync_again_ms, 30000, 10, 600000)     /* longest pause after a refusal */                \
    X(twin_again_ms, 600000, 100, 86400000) /* until a node outbids one of its own id again */ \
    X(former_key_ms, 600000, 10, 86400000)  /* a former peer key is taken for so long */       \
    X(header_ms, 10000, 100, 600000)        /* request line and header complete */             \
    X(request_ms, 60000, 100, 3600000)      /* body complete */                                \
    X(answer_ms, 150000, 100, 3600000)      /* answer made and sent */                         \
    X(idle_ms, 30000, 100, 3600000)         /* kept-alive connection without a request */      \
    X(session_idle_ms, 28800000, 100, 86400000)                                                \
    X(session_max_ms, 86400000, 100, 604800000)                                                \
    X(unlock_idle_ms, 1800000, 100, 86400000) /* "edit here anyway" ends when unused */        \
    X(event_ping_ms, 15000, 50, 60000)                                                         \
    X(restart_first_ms, 100, 10, 60000) /* back-off of lockstep-run */                         \
    X(restart_max_ms, 5000, 10, 600000)                                                        \
    X(stop_ms, 10000, 100, 600000)            /* from SIGTERM to SIGKILL */                    \
    X(clock_ahead_ms, 0, -86400000, 86400000) /* for lockstepd it is later than it is */

struct tunables {
#define TUNABLES_FIELD(name, def, min, max) int64_t name;
    TUNABLES_LIST(TUNABLES_FIELD)
#undef TUNABLES_FIELD
};

void tunables_default(struct tunables *t);
/* Overrides defaults from a JSON file. ERR_INVALID names the value. */
MUST_USE err_t tunables_load(struct tunables *t, const char *path, struct error *e);

#endif

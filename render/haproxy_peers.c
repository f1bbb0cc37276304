/* SPDX-License-Identifier: Apache-2.0 */
/* Over the section "peers" a worker hands its stick tables to the one that replaces it. On a
 * unix socket HAProxy 2.6 loses them at every reload, on TCP it keeps them. */
#include "render/backend.h"

#define SELF "lockstep.self"

void
haproxy_localpeer_write(struct writer *w)
{
    writer_fixed(w, "    localpeer " SELF "\n");
}

void
haproxy_peers_write(struct writer *w)
{
    if (!w->layout->tables_used) {
        return;
    }
    writer_fixed(w, "\npeers " BACKEND_PEERS "\n");
    PUT(w->out, "    peer " SELF " 127.0.0.1:");
    writer_put_int(w->out, fields_int(w->layout->node, F_NODE_PEERS_PORT));
    writer_end_of(w, w->layout->node, F_NODE_PEERS_PORT);
}

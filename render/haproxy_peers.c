/* SPDX-License-Identifier: Apache-2.0 */
/* Over the section "peers" a worker hands its stick tables to the one that replaces it, and to
 * the other nodes. On a unix socket HAProxy 2.6 loses them at every reload, on TCP it keeps
 * them. The old worker looks for the new one where it listened itself, so that place is always
 * 127.0.0.1: an address that changes when a node joins or leaves would lose the tables. Others
 * come in by a frontend, which also knows who may: the section knows no addresses. */
#include <string.h>

#include "model/member.h"
#include "render/backend.h"

#define INCOMING "lockstep.tables.in"

static void
put_own_name(struct writer *w)
{
    writer_put_text(w->out, fields_text(w->layout->node, F_NODE_NAME));
}

void
haproxy_localpeer_write(struct writer *w)
{
    PUT(w->out, "    localpeer ");
    put_own_name(w);
    writer_end_of(w, w->layout->node, F_NODE_NAME);
}

static struct text
text_of(const char *s)
{
    return (struct text){s, (uint32_t)strlen(s)};
}

/* "": there is nobody to share with, or nowhere. */
static void
own_address(const struct writer *w, char ret[MEMBER_IP_BYTES])
{
    const struct render_input *in = w->layout->in;
    struct text url = fields_text(w->layout->node, F_NODE_URL);
    const char *fallback = in->url != NULL ? in->url : "";

    member_tables_address(
        fields_text(w->layout->node, F_NODE_PEERS_ADDRESS).s, url.len > 0 ? url.s : fallback,
        ret);
    if (in->peer_count == 0) {
        *ret = '\0';
    }
}

/* HAProxy refuses a name that stands there twice: two nodes can have taken one name while they
 * did not see each other. */
static bool
is_new_name(const struct writer *w, size_t i)
{
    const struct render_peer *peers = w->layout->in->peers;

    for (size_t j = 0; j < i; j++) {
        if (strcmp(peers[j].name, peers[i].name) == 0) {
            return false;
        }
    }
    return strcmp(peers[i].name, fields_text(w->layout->node, F_NODE_NAME).s) != 0;
}

static void
put_incoming(struct writer *w, const char *address)
{
    const struct render_input *in = w->layout->in;
    int64_t port = fields_int(w->layout->node, F_NODE_PEERS_PORT);

    writer_fixed(
        w, "\n"
           "# Stick tables of the other nodes; nobody else is let in.\n"
           "frontend " INCOMING "\n"
           "    mode tcp\n");
    writer_no_http_options(w, true);
    PUT(w->out, "    bind ");
    writer_put_address(w->out, text_of(address), port);
    /* HAProxy must start without the tables of others, too. */
    PUT(w->out, " transparent");
    writer_end_of(w, w->layout->node, F_NODE_PEERS_PORT);
    /* All on one line would be more words than HAProxy takes. */
    for (size_t i = 0; i < in->peer_count; i++) {
        PUT(w->out, "    acl lockstep.peer src ");
        buf_puts(w->out, in->peers[i].address);
        writer_end(w, -1);
    }
    writer_fixed(w, "    tcp-request connection reject unless lockstep.peer\n");
    if (fields_text(w->layout->haproxy, F_HAPROXY_LOG_TARGET).len > 0) {
        writer_fixed(w, "    no log\n");
    }
    /* Peers give a sign of life every three seconds. */
    writer_fixed(
        w, "    timeout client 10s\n"
           "    default_backend " INCOMING "\n"
           "\n"
           "backend " INCOMING "\n"
           "    mode tcp\n");
    writer_no_http_options(w, false);
    writer_fixed(
        w, "    timeout server 10s\n"
           "    timeout tunnel 10s\n");
    PUT(w->out, "    server peers 127.0.0.1:");
    writer_put_int(w->out, port);
    writer_end_of(w, w->layout->node, F_NODE_PEERS_PORT);
}

static void
put_peers(struct writer *w)
{
    const struct render_input *in = w->layout->in;

    for (size_t i = 0; i < in->peer_count; i++) {
        if (is_new_name(w, i)) {
            PUT(w->out, "    peer ");
            buf_puts(w->out, in->peers[i].name);
            PUT(w->out, " ");
            writer_put_address(w->out, text_of(in->peers[i].address), in->peers[i].port);
            writer_end(w, -1);
        }
    }
}

void
haproxy_peers_write(struct writer *w)
{
    char address[MEMBER_IP_BYTES];

    if (!w->layout->tables_used) {
        return;
    }
    own_address(w, address);
    if (*address != '\0') {
        put_incoming(w, address);
    }
    writer_fixed(w, "\npeers " BACKEND_PEERS "\n");
    PUT(w->out, "    peer ");
    put_own_name(w);
    PUT(w->out, " 127.0.0.1:");
    writer_put_int(w->out, fields_int(w->layout->node, F_NODE_PEERS_PORT));
    writer_end_of(w, w->layout->node, F_NODE_PEERS_PORT);
    if (*address != '\0') {
        put_peers(w);
    }
}

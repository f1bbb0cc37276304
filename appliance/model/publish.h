/* SPDX-License-Identifier: Apache-2.0 */
/* From "publish this URL to these servers" to objects. Pure: the caller makes the placeholder
 * certificate.
 *
 * A service called NAME owns the pool NAME, the monitor NAME, the servers NAME.LABEL (LABEL
 * has no dot) and, when it is a placeholder, the certificate NAME. */
#ifndef LOCKSTEP_MODEL_PUBLISH_H
#define LOCKSTEP_MODEL_PUBLISH_H

#include "base/buf.h"
#include "model/change.h"

struct publish_tools {
    /* Makes a self-signed certificate for the names, which end with NULL; PEM texts are
     * appended. */
    err_t (*placeholder)(
        void *ctx, const char *const *names, struct buf *chain, struct buf *key,
        struct error *e);
    void *ctx;
};

struct publish_input {
    const struct snapshot_pair *now;
    int64_t now_s;
    struct publish_tools tools;
};

/* A request as the API and the CLI give it:
 * {"url": "https://app.example.test/path" | "http://..." | "http://:8080" (any host) |
 *   "tcp://:5432" (or "urls": [...], same scheme, port and path),
 *  "to": ["10.0.0.5:8080", "[2001:db8::1]:80", "web1=10.0.0.5:80", "http://10.0.0.5:80"],
 *  "check": "tcp" | "http:/healthz" | "http:8081/healthz" (port 8081) (optional, default
 *   that of the service's pool, of a new one tcp), "name": service name (optional, default
 *   made from the first host or the port)}
 *
 * Publishing again under the same name (or, without a name, the same first URL) replaces
 * what the service owns: targets are a set, so servers that are no target any more go; a
 * target keeps the server that has its label or, without a label, its address and port.
 * What the request does not speak of (timeouts, weights, notes) stays. Objects of other
 * services are never touched; an own object that others use too is not rewritten but a
 * problem "shared_object" naming them. Listeners "http", "https", "http-<port>",
 * "https-<port>", "tcp-<port>" are made; one with the same mode, TLS and port is reused. An
 * https URL on port 443 comes with a redirect from port 80. When no uploaded certificate
 * covers the hosts, the service gets a placeholder; only placeholders are ever remade.
 *
 * Adds to set the operations on objects that differ, in an order in which references
 * resolve, and nothing when there is nothing to change or when p got an error. Problems
 * carry pointers into the request ("/to/1"). *ret_service: name of the service (in arena);
 * NULL when p got an error. */
void publish_plan(
    const json_t *request, const struct publish_input *in, struct arena *arena,
    struct change_set *set, const char **ret_service, struct problems *p);

/* *ret (in arena): name of the service whose URL this is, as publishing it again finds it.
 * ERR_INVALID: no such URL can be; ERR_NOT_FOUND; ERR_CONFLICT: it has other hosts, too. */
MUST_USE err_t publish_find(
    const char *url, const struct snapshot_pair *now, struct arena *arena, const char **ret,
    struct error *e);

/* Operations that remove a service and what only it owns; of its listeners those that were
 * made for one port ("tcp-<port>", "http-<port>", "https-<port>") and carry no other
 * service. ERR_NOT_FOUND. */
MUST_USE err_t publish_remove_plan(
    const char *service, const struct snapshot_pair *now, struct arena *arena,
    struct change_set *set, struct error *e);

#endif

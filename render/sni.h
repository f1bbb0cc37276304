/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a listener's certificates is shown for which name that a visitor asks for (SNI).
 * HAProxy keeps certificates of one name in the order in which they came in, by file or by
 * socket. So each name is given to one certificate (of each kind of key) as a filter: what is
 * shown depends on the objects alone. HAProxy looks for the exact name first, then for the
 * wildcard. Inside render/. */
#ifndef LOCKSTEP_RENDER_SNI_H
#define LOCKSTEP_RENDER_SNI_H

#include "render/layout.h"

struct sni;

/* webui: the object of this node's own pages, when it has a certificate; else NULL. */
struct sni *sni_new(const struct refs *refs, const struct object *webui);
void sni_cleanup(struct sni **s); /* for CLEANUP() */

/* Begins a listener. */
void sni_start(struct sni *s);
/* Adds a line, of a certificate by its place among all by name, or of the placeholder. Each
 * certificate has one line; the first line is for visitors whose name is known to none. All
 * lines come before the names. */
#define SNI_PLACEHOLDER SIZE_MAX
#define SNI_WEBUI       (SIZE_MAX - 1)
void sni_add_line(struct sni *s, size_t pos);
/* Give names to a certificate that has a line, those that are not yet taken. For a host of a
 * service, if the certificate is for it; whoever calls this gives its names later, too. */
void sni_give_host(struct sni *s, size_t pos, struct text host);
/* Gives the pages' certificate, which has a line, those of its hosts that it is for, and no
 * other name. */
void sni_give_webui(struct sni *s);

/* For all that it is for. Of a service, they are taken for every kind of key, of the listener
 * for the certificate's kind only. Only SNI_OF_LISTENER takes a name from a service whose host
 * is a wildcard. */
enum sni_rank { SNI_OF_SERVICE, SNI_OF_LISTENER, SNI_DEFAULT };

void sni_give_names(struct sni *s, size_t pos, enum sni_rank rank);
/* The listener's crt-list. */
void sni_write(const struct sni *s, struct buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Where this node's own pages are published: the local object names a shared listener, which
 * may be there or not. Pure. */
#ifndef LOCKSTEP_MODEL_WEBUI_H
#define LOCKSTEP_MODEL_WEBUI_H

#include "model/snapshot.h"

enum webui_place {
    WEBUI_UNPUBLISHED, /* it has no host names */
    WEBUI_NO_LISTENER, /* there is none of that name */
    WEBUI_LISTENER_OFF,
    WEBUI_LISTENER_TCP, /* which sees no host names */
    WEBUI_PUBLISHED,
};

/* *ret_listener: of the name, NULL where there is none. */
enum webui_place
webui_place(const struct snapshot_pair *pair, const struct object **ret_listener);
/* Whether a host name is one of the pages'. */
bool webui_has_host(const struct object *webui, struct text host);
/* The service that has one of these names, with all of its paths, so that it does not lead to
 * the pages where they are published, on that listener; or NULL. *ret_index: in the service's
 * list. */
const struct object *webui_taken_by(
    const struct snapshot_pair *pair, const struct object *listener, struct text host,
    uint32_t *ret_index);
/* Whether a service has one of them on a listener, at whatever path; one that is off keeps its
 * names. *ret_index: of the first in the service's list. */
bool webui_meets(
    const struct object *webui, const struct object *service, const struct object *listener,
    uint32_t *ret_index);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, conditions, and the lists in files that both and the listeners use. Inside
 * render/. */
#ifndef LOCKSTEP_RENDER_RULE_H
#define LOCKSTEP_RENDER_RULE_H

#include "render/writer.h"

#define RULE_CONDITION "is."          /* and a condition: its ACL */
#define RULE_SERVICE   "lockstep.at." /* and a service: the ACL of its requests */

/* acl/<which><name>.list */
#define LIST_FOLDER    "acl/"
#define LIST_CONDITION "condition."
#define LIST_SERVICE   "service." /* allowed networks */
#define LIST_LISTENER  "listener."
#define LIST_TRUSTED   "trusted."           /* proxies of a listener */
#define LIST_PROXY     "proxy."             /* who speaks the PROXY protocol to a listener */
#define LIST_WEBUI     LAYOUT_BACKEND_WEBUI /* allowed networks of this node's own pages */
#define LIST_SUFFIX    ".list"

/* The certificate of this node's API. */
#define WEBUI_CA "ca/" LAYOUT_BACKEND_WEBUI ".pem"

/* body/<rule>.txt */
#define BODY_FOLDER "body/"
#define BODY_SUFFIX ".txt"

/* haproxy_condition.c: the named ACL, and its file when it has one. */
void condition_put_acl(struct writer *w, const struct object *o);
void condition_write_list(struct rendered *r, const struct object *o);

/* haproxy_rule.c: what guards the services of a listener in http mode, and its rules. Before
 * that, txn.lockstep_service has the service's key in the map, where a guarded one serves. */
void rule_write_listener(struct writer *w, const struct layout_listener *l);
/* The tables of the services that limit their rate. */
void haproxy_rate_write(struct writer *w);
/* Whether an answer of this rule comes from a file. */
bool rule_has_body(const struct object *rule);

/* " -f acl/<which><name>.list" */
void list_put(struct buf *out, const char *which, struct text name);
/* list.c: all files of networks, conditions and answers. */
void list_write(struct rendered *r, struct layout *p);

#endif

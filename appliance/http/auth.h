/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes a request, and whether they may. */
#ifndef LOCKSTEP_HTTP_AUTH_H
#define LOCKSTEP_HTTP_AUTH_H

#include "http/request.h"

/* Sets r->caller and what belongs to it. False: refused, and answered. A key in the query is
 * never looked at, and of a session and a key in one request neither. */
bool auth_check(struct request *r);
/* Whether the credentials that auth_check accepted still are. Any thread that has r. */
bool auth_still_good(const struct request *r);

/* Set-Cookie of this node's session; token NULL: takes it back. */
void auth_set_cookie(struct request *r, const char *token);
/* cookie_name from what makes a node one of its kind. */
void auth_name_cookie(struct http *h);

#endif

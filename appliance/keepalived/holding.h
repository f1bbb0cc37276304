/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses this machine has at the moment: asked of the kernel by netlink
 * (rtnetlink(7)), and again only when it tells of a change. Thread-safe. */
#ifndef LOCKSTEP_KEEPALIVED_HOLDING_H
#define LOCKSTEP_KEEPALIVED_HOLDING_H

#include <stdbool.h>

#include "base/error.h"

struct holding;

MUST_USE err_t holding_open(struct holding **ret, struct error *e);
void holding_close(struct holding *h); /* NULL is allowed */
/* address: an IPv4 or IPv6 literal, perhaps with "/prefix" behind. False, too, when the kernel
 * does not answer. */
bool holding_has(struct holding *h, const char *address);

enum holding_place { HOLDING_ELSEWHERE, HOLDING_APART, HOLDING_TOGETHER };

/* Whether other (a literal) lies in the network of own: of the interface that has own.
 * HOLDING_ELSEWHERE: none has it, or h is NULL. */
enum holding_place holding_place_of(struct holding *h, const char *own, const char *other);

#endif

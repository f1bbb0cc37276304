/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds a TCP port of this node: /proc/net/tcp and tcp6 name the inodes of the sockets,
 * /proc/PID/fd the processes that have them open. */
#ifndef LOCKSTEP_HELPER_HOLDER_H
#define LOCKSTEP_HELPER_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define HOLDER_BYTES 48

/* An address and port that could not be bound because it is in use. */
struct claim {
    int family;          /* AF_INET, AF_INET6 */
    uint8_t address[16]; /* network order; all zero: any */
    uint16_t port;
    bool ours;                 /* found: held by our own HAProxy, and by nobody else */
    char holder[HOLDER_BYTES]; /* found: "nginx (pid 812)" of somebody else, or "" */
};

/* Fills ours and holder. master: pid of our HAProxy's master, 0 when it does not run; its
 * workers are its children. What cannot be found out stays not ours and nameless: a holder
 * in another pid namespace. ERR_IO, ERR_LIMIT. */
MUST_USE err_t holder_find(struct claim *claims, size_t count, pid_t master, struct error *e);

#endif

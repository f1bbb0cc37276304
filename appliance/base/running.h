/* SPDX-License-Identifier: Apache-2.0 */
/* Where HAProxy says which files it runs: a map with one entry, which the admin socket reads,
 * and changes when it brings the running worker to other files without a reload. Any other
 * value than a digest: it is being changed, or that was not brought to its end. */
#ifndef LOCKSTEP_BASE_RUNNING_H
#define LOCKSTEP_BASE_RUNNING_H

#define RUNNING_MAP      "map/lockstep.running.map"
#define RUNNING_KEY      "digest"
#define RUNNING_HEX      16 /* digits of a digest */
#define RUNNING_CHANGING "changing"
/* And with which files a worker was started: "description" of haproxy.cfg's section "global"
 * is this and their digest. */
#define RUNNING_DESCRIPTION "lockstep "

/* In the run directory: what a worker is to know of its servers when it starts (configuration
 * manual, "server-state-file"). Empty, it still has to say which format it has. */
#define SERVER_STATE_FILE  "server-state"
#define SERVER_STATE_EMPTY "1\n"

#endif

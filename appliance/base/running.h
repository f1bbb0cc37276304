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

#endif

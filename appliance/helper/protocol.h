/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between lockstepd and lockstep-helper on <run_dir>/helper.sock: one JSON object
 * a line, one request a connection, then one answer. Requests hold verbs, numbers and
 * literal addresses: no path, no command. The helper checks SO_PEERCRED.
 *
 * {"verb": "stage", "generation": N}   copies <state_dir>/stage/N (made by lockstepd) to
 *     <state_dir>/generation/N (root's), refusing file names and keywords that it does not
 *     allow, and runs "haproxy -c" on the copy -> {"ok": true, "exit_status", "output",
 *     "only_weights": bool}; prunes old ones first. only_weights: it did not run, since nothing
 *     but weights of servers differs from "current", of which it had nothing to say. A check
 *     that was ended by a signal is "unavailable", and one that takes too long "timeout"
 * {"verb": "bind-test", "binds": [{"address", "port", "vip"}]} -> {"ok": true, "failures":
 *     [{"address", "port", "reason", "holder"}]}; a port that our own HAProxy holds is
 *     free; at most HELPER_BINDS_MAX in a request
 * {"verb": "install", "generation": N} switches <state_dir>/generation/current
 * {"verb": "settle", "generation": N, "keep": K} switches <state_dir>/generation/good, prunes
 *     old ones, and takes certificates and keys out of all but those in use and K (absent, 0:
 *     none), which is about to be installed
 * {"verb": "reload", "backends": [{"from", "to"}], "servers": [{"from", "to"}], "states": bool}
 *     -> {"ok": true, "loaded": bool, "output", "worker": pid, "no_states"}; writes and removes
 *     the reload window. no_states: why the new worker got no state of a server, although it
 *     should have ("": it got them). The lists (absent: empty) say what has another name in
 *     the configuration that runs: its state is handed over under the new one. "states"
 *     (absent: true) false: no state is handed over
 * {"verb": "restart"} -> the same
 * {"verb": "status"} -> {"ok": true, "state": "running"|"stopped"|"failed", "master": pid,
 *     "worker": pid, "reloads", "failed_reloads", "old_workers": [{"pid", "age_s"}],
 *     "current": N, "good": N}; empties the file of server states when no reload may read it
 * Any refusal: {"ok": false, "code": name of err_t, "message"}. */
#ifndef LOCKSTEP_HELPER_PROTOCOL_H
#define LOCKSTEP_HELPER_PROTOCOL_H

#define HELPER_REQUEST_MAX_BYTES ((size_t)1 << 20)
#define HELPER_ANSWER_MAX_BYTES  ((size_t)1 << 20)
#define HELPER_BINDS_MAX         1000
#define HELPER_RENAMES_MAX       2048 /* in each list; so they fit into a request */
#define HELPER_OUTPUT_MAX_BYTES  ((size_t)256 << 10) /* of haproxy -c */

#endif

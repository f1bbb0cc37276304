/* SPDX-License-Identifier: Apache-2.0 */
/* The helper and HAProxy of a node, played by two threads on sockets, for tests of the engine.
 * It keeps generations as the helper does and "runs" what was installed when it is told to
 * reload; each thing can be made to fail. What fails here aborts. */
#ifndef LOCKSTEP_SUPPORT_FAKE_NODE_H
#define LOCKSTEP_SUPPORT_FAKE_NODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mailbox.h"

#define FAKE_PATH_BYTES    128
#define FAKE_GENERATIONS   256
#define FAKE_RENAMES_BYTES 256
#define FAKE_TEXT_BYTES    64

/* What can fail; the answers say so. */
enum fake_fault {
    FAKE_CHECK,   /* haproxy -c exits with 1 */
    FAKE_BIND,    /* every address is in use by nginx */
    FAKE_INSTALL, /* refused by the helper */
    FAKE_LOAD,    /* HAProxy does not take the new files */
    FAKE_STATES,  /* no state of a server is handed over */
    FAKE_SOCKET,  /* no change by the admin socket */
    FAKE_SETTLE,
    FAKE_STATUS,
    FAKE_SERVE, /* listeners accept and close */
};

#define FAKE_FAULTS (FAKE_SERVE + 1)

struct fake_facts {
    int64_t current, good;
    char current_digest[17]; /* of the files of current */
    char running[17];        /* of those that HAProxy loaded */
    int stages, bind_tests, installs, reloads, settles;
    int changes; /* by the admin socket, without those of the digest */
    int pid;
    int ran_rejected;                 /* how often HAProxy loaded what the check had refused */
    char renames[FAKE_RENAMES_BYTES]; /* of the last reload: "backend a=b server c=d ", or "no
                                         states" */
};

struct fake_node {
    char dir[FAKE_PATH_BYTES]; /* made by fake_init */
    char state_dir[FAKE_PATH_BYTES];
    char run_dir[FAKE_PATH_BYTES];
    int port; /* on 127.0.0.1: answers HTTP, as a listener of HAProxy would */

    struct mailbox *helper_thread, *haproxy_thread;
    int helper_fd, admin_fd, probe_fd, listen_fd;
    int stop_fds[2]; /* closing [1] ends both */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    int faults[FAKE_FAULTS]; /* how many further times; -1: always */
    bool hold, held;
    bool down;                       /* HAProxy answers nowhere */
    char forbidden[FAKE_TEXT_BYTES]; /* the check refuses each haproxy.cfg with it; "": none */
    char digests[FAKE_GENERATIONS][17];
    bool rejected[FAKE_GENERATIONS];
    struct fake_facts facts;
};

#define FAKE_FOLDER "/dev/shm" /* in memory: no slow syncs */
void fake_init(struct fake_node *f, const char *folder);
/* Only the names of the folders below dir. */
void fake_paths(struct fake_node *f, const char *dir);
void fake_start(struct fake_node *f);
void fake_stop(struct fake_node *f); /* the sockets are gone; what it kept is still there */
void fake_fini(struct fake_node *f); /* also removes the folder */

/* times: -1 = until it is set to 0. */
void fake_fail(struct fake_node *f, enum fake_fault fault, int times);
/* The next "stage" waits for fake_release. */
void fake_hold(struct fake_node *f);
void fake_await_held(struct fake_node *f);
void fake_release(struct fake_node *f);
struct fake_facts fake_look(struct fake_node *f);
/* "current" is a generation with these files, whatever was installed. */
void fake_set_current(struct fake_node *f, int64_t number, const char *digest);
/* HAProxy runs other files than before, or, NULL, does not run. */
void fake_run(struct fake_node *f, const char *digest);

#endif

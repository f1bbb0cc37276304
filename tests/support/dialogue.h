/* SPDX-License-Identifier: Apache-2.0 */
/* A unix socket on which a thread plays HAProxy (admin socket, master CLI) or lockstep-run:
 * one connection after the other, each a command and an answer. */
#ifndef LOCKSTEP_TESTS_SUPPORT_DIALOGUE_H
#define LOCKSTEP_TESTS_SUPPORT_DIALOGUE_H

#include <pthread.h>

/* The answer to a command (the first bytes of it); NULL: close without one. Runs on the
 * thread; the text must live on. */
typedef const char *(*dialogue_fn)(void *ctx, const char *command);

struct dialogue {
    dialogue_fn answer;
    void *ctx;
    int byte_ms; /* 0: the answer at once, else a byte each so many milliseconds */
    int mute;    /* 1: accepts, and says nothing until dialogue_close */
    int listener;
    int end; /* an eventfd: the thread is to end */
    pthread_t thread;
};

/* answer, ctx, byte_ms and mute are set before. Fails the test when it cannot. */
void dialogue_open(struct dialogue *d, const char *path);
void dialogue_close(struct dialogue *d);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A server of one connection on a thread of its own, for tests of clients. */
#ifndef LOCKSTEP_TESTS_SUPPORT_SERVER_H
#define LOCKSTEP_TESTS_SUPPORT_SERVER_H

#include <pthread.h>
#include <stddef.h>

/* What the server does with its one connection. */
enum act {
    ACT_ANSWER,     /* reads the request, sends the answer, closes */
    ACT_TRICKLE,    /* the same, byte by byte */
    ACT_SILENT,     /* reads until the client gives up */
    ACT_CLOSE,      /* closes at once */
    ACT_TLS,        /* as ACT_ANSWER, by TLS */
    ACT_TLS_SILENT, /* the handshake, and no answer */
    ACT_TO_END,     /* reads to end of file, sends the answer */
    ACT_EARLY,      /* sends the answer and closes, without reading */
    ACT_ECHO,       /* sends back what comes */
};

struct server {
    int fd;
    int port;
    enum act act;
    const char *answer;
    pthread_t thread;
    char request[8192]; /* what came first, as a string */
    char server_name[256];
    char source[46]; /* IPv4 address from which the connection came; "": by another family */
    size_t received;
};

/* Listens on 127.0.0.1 and sets port, or on the path of a unix socket. Both fail the test
 * when they cannot. */
void server_listen_inet(struct server *s);
void server_listen_unix(struct server *s, const char *path, int backlog);
void server_start(struct server *s, enum act act, const char *answer);
/* Waits for the end of the connection and closes. */
void server_stop(struct server *s);

#endif

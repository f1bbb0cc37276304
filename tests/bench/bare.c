/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bare.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <microhttpd.h>

#include "base/arena.h"

#define THREADS     2
#define MEMORY      ((size_t)32 << 10)
#define PRIORITIES  "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define FIELD_BYTES 1024
#define CONNECTIONS 16000 /* HAProxy keeps one to each server */

struct bare {
    struct MHD_Daemon *daemon;
    struct MHD_Response *response;
};

static enum MHD_Result
on_request(
    void *ctx, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *data, size_t *bytes, void **request)
{
    struct bare *b = ctx;

    (void)url;
    (void)method;
    (void)version;
    (void)data;
    (void)bytes;
    if (*request == NULL) {
        *request = b;
        return MHD_YES;
    }
    return MHD_queue_response(mhd, MHD_HTTP_OK, b->response);
}

/* libmicrohttpd writes these itself. */
static bool
is_its_own(const char *name)
{
    static const char *const own[] = {"Date", "Content-Length", "Connection"};

    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (strcasecmp(own[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void
set_fields(struct MHD_Response *response, const char *head)
{
    for (const char *line = strstr(head, "\r\n");
         line != NULL && strncmp(line, "\r\n\r\n", 4) != 0; line = strstr(line + 2, "\r\n")) {
        const char *start = line + 2;
        size_t len = strcspn(start, "\r");
        size_t name = strcspn(start, ":");
        char field[FIELD_BYTES];

        if (len == 0) {
            break;
        }
        ASSERT(name < len && len < sizeof field);
        memcpy(field, start, len);
        field[len] = '\0';
        field[name] = '\0';
        if (!is_its_own(field)) {
            ASSERT(MHD_add_response_header(response, field, field + name + 2) == MHD_YES);
        }
    }
}

struct bare *
bare_open(const struct bare_config *config)
{
    struct bare *b = xcalloc(1, sizeof *b);
    struct sockaddr_in in = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)config->port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    char *body = xstrdup(config->body);
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD;

    b->response = MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_MUST_FREE);
    ASSERT(b->response != NULL);
    set_fields(b->response, config->head);
    flags |= config->cert_pem != NULL ? MHD_USE_TLS : 0;
    b->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, b, MHD_OPTION_SOCK_ADDR, &in,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY,
        config->cert_pem != NULL ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, config->cert_pem,
        MHD_OPTION_HTTPS_MEM_KEY, config->key_pem, MHD_OPTION_HTTPS_PRIORITIES, PRIORITIES,
        MHD_OPTION_END);
    ASSERT(b->daemon != NULL);
    return b;
}

int
bare_port(const struct bare *b)
{
    return MHD_get_daemon_info(b->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

void
bare_close(struct bare *b)
{
    MHD_stop_daemon(b->daemon);
    MHD_destroy_response(b->response);
    free(b);
}

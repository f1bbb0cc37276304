/* SPDX-License-Identifier: Apache-2.0 */
/* Grammar of a publish request. Only for publish*.c. */
#ifndef LOCKSTEP_MODEL_PUBLISH_PARSE_H
#define LOCKSTEP_MODEL_PUBLISH_PARSE_H

#include <jansson.h>

#include "model/problems.h"

#define PUBLISH_LABEL_MAX 32

enum publish_scheme { PUBLISH_HTTP, PUBLISH_HTTPS, PUBLISH_TCP };

/* [LABEL "="] ["http://"] HOST ":" PORT; an IPv6 HOST stands in brackets. */
struct publish_target {
    const char *label;   /* NULL: none given */
    const char *address; /* normal form of TT_HOST */
    int port;
};

/* Texts are in the arena, in the normal form of their type. */
struct publish_request {
    const char *name; /* NULL: none given */
    enum publish_scheme scheme;
    int port;
    const char **hosts; /* none: any host; NULL at the end */
    size_t host_count;
    const char *path;
    struct publish_target *targets;
    size_t target_count;
    bool check_given; /* else a pool that is there keeps its own */
    bool check_http;
    int check_port; /* 0: the server's own */
    const char *check_path;
    const char *url_pointer; /* "/url" or "/urls/0": where problems of the whole URL go */
};

/* False when p got an error. */
bool publish_parse(
    const json_t *request, struct arena *arena, struct publish_request *ret,
    struct problems *p);

/* Only the URL, a text; the arena and v own what *ret points at. */
bool publish_parse_url(
    const json_t *v, struct arena *arena, struct publish_request *ret, struct problems *p);

#endif

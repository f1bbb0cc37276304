/* SPDX-License-Identifier: Apache-2.0 */
#include "model/publish_parse.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/object_build.h"
#include "model/publish_text.h"
#include "model/validate.h"
#include "model/value.h"

#define SHOWN_MAX 64 /* a longer key of the request is not repeated in a message */

static const char *const known_keys[] = {"url", "urls", "to", "check", "name"};

struct url {
    enum publish_scheme scheme;
    int port;
    const char *host; /* "" for any host */
    const char *path;
};

static const char *
url_scheme(const char *text, enum publish_scheme *ret)
{
    static const struct {
        const char *prefix;
        enum publish_scheme scheme;
    } schemes[] = {
        {"http://", PUBLISH_HTTP}, {"https://", PUBLISH_HTTPS}, {"tcp://", PUBLISH_TCP}};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i].prefix);
        if (strncasecmp(text, schemes[i].prefix, len) == 0) {
            *ret = schemes[i].scheme;
            return text + len;
        }
    }
    return NULL;
}

static bool
finish_tcp_url(const struct parser *ps, const struct authority *a, struct url *u)
{
    if (a->host[0] != '\0') {
        return parser_fail(
            ps, "tcp_host",
            "A tcp URL has no host, since nothing in the connection names it: write "
            "tcp://:5432.");
    }
    if (strcmp(u->path, "/") != 0) {
        return parser_fail(ps, "tcp_path", "A tcp URL has no path: write tcp://:5432.");
    }
    if (!a->has_port) {
        return parser_fail(ps, "port_missing", "A tcp URL needs a port: write tcp://:5432.");
    }
    u->host = "";
    return true;
}

static bool
finish_http_url(const struct parser *ps, const struct authority *a, struct url *u)
{
    if (a->ipv6) {
        return parser_fail(
            ps, "url_host",
            "Visitors are told apart by DNS names, not by addresses: give a name, or leave the "
            "host out as in http://:8080 for any.");
    }
    if (a->host[0] == '\0' && (u->scheme == PUBLISH_HTTPS || !a->has_port)) {
        return parser_fail(
            ps, "host_missing",
            "The URL has no host name. (http://:8080, with a port, publishes for any name.)");
    }
    const char *host = "";
    if (a->host[0] != '\0') {
        host = parser_check(
            ps, &schema_kind(K_SERVICE)->fields[F_SERVICE_HOSTS], a->host, "url_host",
            "This host name cannot be used:");
    }
    const char *path = parser_check(
        ps, &schema_kind(K_SERVICE)->fields[F_SERVICE_PATH], u->path, "url_path",
        "This path cannot be used:");
    if (path != NULL && validate_path_fault(path) != NULL) {
        return parser_fail(ps, "url_path", validate_path_fault(path));
    }
    if (host == NULL || path == NULL) {
        return false;
    }
    u->host = host;
    u->path = path;
    return true;
}

static bool
parse_url(const struct parser *ps, const json_t *v, struct url *u)
{
    const char *text = parser_text(ps, v);
    if (text == NULL) {
        return false;
    }
    const char *rest = url_scheme(text, &u->scheme);
    if (rest == NULL) {
        return parser_fail(ps, "url_scheme", "Start the URL with https://, http:// or tcp://.");
    }
    if (strchr(rest, '?') != NULL) {
        return parser_fail(
            ps, "url_query",
            "A service is published by host and path: remove \"?\" "
            "and what follows.");
    }
    if (strchr(rest, '#') != NULL) {
        return parser_fail(
            ps, "url_fragment", "Servers never see \"#\" and what follows: remove it.");
    }
    size_t len = strcspn(rest, "/");
    if (memchr(rest, '@', len) != NULL) {
        return parser_fail(
            ps, "url_user_info",
            "Names and passwords cannot stand in the URL: remove "
            "what is before \"@\".");
    }
    struct authority a;
    if (!parser_authority(ps, rest, len, &a)) {
        return false;
    }
    if (a.has_port && a.port < 0) {
        return parser_fail(ps, "port_range", "The port must be a number from 1 to 65535.");
    }
    u->path = rest[len] != '\0' ? rest + len : "/";
    u->port = u->scheme == PUBLISH_HTTPS ? 443 : 80;
    u->port = a.has_port ? a.port : u->port;
    return u->scheme == PUBLISH_TCP ? finish_tcp_url(ps, &a, u) : finish_http_url(ps, &a, u);
}

static bool
same_service(const struct parser *ps, const struct publish_request *r, const struct url *u)
{
    if (u->scheme != r->scheme) {
        return parser_fail(
            ps, "mixed_schemes",
            "All URLs of a service have one scheme: publish this one as a service of its own.");
    }
    if (u->port != r->port) {
        return parser_fail(
            ps, "mixed_ports",
            "All URLs of a service have one port: publish this one as a service of its own.");
    }
    if (strcmp(u->path, r->path) != 0) {
        return parser_fail(
            ps, "mixed_paths",
            "All URLs of a service have one path: publish this one as a service of its own.");
    }
    for (size_t i = 0; i < r->host_count; i++) {
        if (strcmp(r->hosts[i], u->host) == 0) {
            return parser_fail(
                ps, "duplicate", "This URL is given twice: remove one of the two.");
        }
    }
    if (r->host_count == 0 || u->host[0] == '\0') {
        return parser_fail(
            ps, "mixed_hosts",
            "A URL without a host name stands for every name: it cannot be combined with others.");
    }
    return true;
}

static bool
add_url(const struct parser *ps, struct publish_request *r, const json_t *v, bool first)
{
    struct url u = {.host = "", .path = "/"};
    if (!parse_url(ps, v, &u) || (!first && !same_service(ps, r, &u))) {
        return false;
    }
    if (first) {
        r->scheme = u.scheme;
        r->port = u.port;
        r->path = u.path;
    }
    if (u.host[0] != '\0') {
        r->hosts[r->host_count++] = u.host;
    }
    return true;
}

static void
parse_urls(struct parser *ps, const json_t *request, struct publish_request *r)
{
    const json_t *url = json_object_get(request, "url");
    const json_t *urls = json_object_get(request, "urls");
    parser_at(ps, "/url", url);
    r->url_pointer = "/url";
    if (url != NULL && urls != NULL) {
        parser_fail(ps, "url_and_urls", "Give either \"url\" or \"urls\", not both.");
        return;
    }
    if (url == NULL && urls == NULL) {
        parser_fail(
            ps, "required", "Say what to publish, for example https://app.example.test.");
        return;
    }
    size_t most = schema_kind(K_SERVICE)->fields[F_SERVICE_HOSTS].max_items;
    r->hosts = arena_alloc(ps->arena, (most + 1) * sizeof(r->hosts[0]));
    if (url != NULL) {
        (void)add_url(ps, r, url, true);
        return;
    }
    parser_at(ps, "/urls", NULL);
    if (!json_is_array(urls) || json_array_size(urls) == 0) {
        parser_fail(ps, "type", "\"urls\" must be a list of at least one URL.");
        return;
    }
    if (json_array_size(urls) > most) {
        parser_fail(ps, "too_many", "These are more URLs than a service can have names.");
        return;
    }
    r->url_pointer = "/urls/0";
    for (size_t i = 0; i < json_array_size(urls); i++) {
        parser_at(ps, arena_printf(ps->arena, "/urls/%zu", i), json_array_get(urls, i));
        if (!add_url(ps, r, json_array_get(urls, i), i == 0) && i == 0) {
            return; /* nothing to compare the others with */
        }
    }
}

static void
parse_check(struct parser *ps, const json_t *request, struct publish_request *r)
{
    const json_t *check = json_object_get(request, "check");
    parser_at(ps, "/check", check);
    if (check == NULL || json_is_null(check)) {
        return;
    }
    r->check_given = true;
    const char *s = parser_text(ps, check);
    if (s == NULL || strcmp(s, "tcp") == 0) {
        return;
    }
    if (strncmp(s, "http:", 5) != 0 || strchr(s, '/') == NULL) {
        parser_fail(
            ps, "check", "Write tcp, http:/healthz or, for another port, http:8081/healthz.");
        return;
    }
    s += 5;
    size_t len = strcspn(s, "/");
    r->check_http = true;
    r->check_port = len == 0 ? 0 : parser_port(s, len);
    if (r->check_port < 0) {
        parser_fail(
            ps, "check_port", "The port of the check must be a number from 1 to 65535.");
        return;
    }
    r->check_path = parser_check(
        ps, &schema_kind(K_MONITOR)->fields[F_MONITOR_PATH], s + len, "check_path",
        "The path of the check cannot be used:");
}

static void
parse_name(struct parser *ps, const json_t *request, struct publish_request *r)
{
    const json_t *name = json_object_get(request, "name");
    parser_at(ps, "/name", name);
    if (name == NULL || json_is_null(name)) {
        return;
    }
    const char *s = parser_text(ps, name);
    if (s == NULL) {
        return;
    }
    if (strncmp(s, VALUE_RESERVED_PREFIX, strlen(VALUE_RESERVED_PREFIX)) == 0) {
        parser_fail(
            ps, "reserved_name",
            "Names that start with \"" VALUE_RESERVED_PREFIX
            "\" are kept for the appliance's own "
            "parts: choose another name.");
        return;
    }
    r->name = parser_check(
        ps, &schema_kind(K_SERVICE)->fields[F_SERVICE_NAME], s, "name",
        "This name cannot be used:");
}

/* "~" and "/" as RFC 6901 writes them. */
static const char *
key_pointer(const struct parser *ps, const char *key)
{
    CLEANUP(buf_fini) struct buf out;
    buf_init(&out, (size_t)4 * SHOWN_MAX);
    buf_putc(&out, '/');
    for (; *key != '\0'; key++) {
        if (*key == '~' || *key == '/') {
            buf_puts(&out, *key == '~' ? "~0" : "~1");
        } else {
            buf_putc(&out, *key);
        }
    }
    return arena_strdup(ps->arena, buf_str(&out));
}

static void
check_keys(struct parser *ps, const json_t *request)
{
    const char *key;
    json_t *v;
    json_object_foreach(object_iterable(request), key, v)
    {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(known_keys); i++) {
            known = known || strcmp(key, known_keys[i]) == 0;
        }
        if (known) {
            continue;
        }
        bool shown = strlen(key) <= SHOWN_MAX;
        ps->pointer = shown ? key_pointer(ps, key) : "";
        parser_fail_with(
            ps, "unknown_field",
            "A publish request has url or urls, to, check and name, but not:",
            shown ? key : "a name this long");
    }
}

bool
publish_parse_url(
    const json_t *v, struct arena *arena, struct publish_request *ret, struct problems *p)
{
    struct parser ps = {.arena = arena, .p = p, .pointer = ""};

    *ret = (struct publish_request){.path = "/"};
    ret->hosts = arena_alloc(arena, 2 * sizeof(ret->hosts[0]));
    return add_url(&ps, ret, v, true);
}

bool
publish_parse(
    const json_t *request, struct arena *arena, struct publish_request *ret, struct problems *p)
{
    struct parser ps = {.arena = arena, .p = p, .pointer = ""};
    size_t errors = p->errors;
    *ret = (struct publish_request){.path = "/", .check_path = "/", .url_pointer = "/url"};
    if (!json_is_object(request)) {
        return parser_fail(&ps, "type", "A publish request is a JSON object.");
    }
    check_keys(&ps, request);
    parse_urls(&ps, request, ret);
    parse_targets(&ps, request, ret);
    parse_check(&ps, request, ret);
    parse_name(&ps, request, ret);
    return ps.p->errors == errors;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: [LABEL "="] ["http://"] HOST ":" PORT. */
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "model/publish_text.h"
#include "model/value.h"

/* A label is a name without "." (which separates it from the service's name) and ":". */
static const char *
parse_label(const struct parser *ps, const char *text, size_t len)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *label = arena_memdup0(ps->arena, text, len);
    if (len == 0 || len > PUBLISH_LABEL_MAX || strspn(label, allowed) != len ||
        label[0] == '_' || label[0] == '-') {
        parser_fail(
            ps, "target_label",
            "The label before \"=\" has at most 32 letters, digits, \"_\" and \"-\", and starts "
            "with a letter or a digit.");
        return NULL;
    }
    return label;
}

/* Takes "http://" off; NULL after a problem. */
static const char *
strip_scheme(const struct parser *ps, const char *s, enum publish_scheme publish)
{
    const char *end = strstr(s, "://");
    if (end == NULL) {
        return s;
    }
    if (strncasecmp(s, "https://", 8) == 0) {
        parser_fail(
            ps, "target_https",
            "Give the server as host:port, and then turn TLS on in the service's pool: lockstep "
            "set pool NAME tls=true verifyhost=NAME-IN-THE-CERTIFICATE (with ca where its "
            "authority is not one that this machine trusts, or with tls_verify=none).");
        return NULL;
    }
    if (strncasecmp(s, "http://", 7) != 0) {
        parser_fail(ps, "target_scheme", "The only scheme a server can have here is http://.");
        return NULL;
    }
    if (publish == PUBLISH_TCP) {
        parser_fail(
            ps, "target_tcp",
            "Connections of a tcp URL are passed on as they are: give the server as host:port.");
        return NULL;
    }
    return end + 3;
}

static bool
target_rest(const struct parser *ps, const char *s, bool scheme, struct publish_target *t)
{
    if (strpbrk(s, "?#") != NULL) {
        return parser_fail(
            ps, "target_query",
            "A server has no query: remove \"?\" or \"#\" and what "
            "follows.");
    }
    if (strchr(s, '=') != NULL) {
        return parser_fail(
            ps, "target_equals", "There is more than one \"=\": write label=host:port.");
    }
    if (strchr(s, '@') != NULL) {
        return parser_fail(
            ps, "target_user_info",
            "Names and passwords cannot stand here: remove what "
            "is before \"@\".");
    }
    size_t len = strcspn(s, "/");
    if (s[len] != '\0' && !(scheme && strcmp(s + len, "/") == 0)) {
        return parser_fail(
            ps, "target_path",
            "A server has no path (requests keep the one they came with): write host:port.");
    }
    struct authority a;
    if (!parser_authority(ps, s, len, &a)) {
        return false;
    }
    if (a.host[0] == '\0') {
        return parser_fail(
            ps, "target_host", "The server's address is missing: write host:port.");
    }
    if (!a.has_port) {
        return parser_fail(
            ps, "port_missing", "The server's port is missing: write host:port.");
    }
    if (a.port < 0) {
        return parser_fail(ps, "port_range", "The port must be a number from 1 to 65535.");
    }
    if (a.ipv6 && !value_is_ip(a.host)) {
        return parser_fail(
            ps, "target_host", "What stands in brackets is not an IPv6 address.");
    }
    const char *address = parser_check(
        ps, &schema_kind(K_SERVER)->fields[F_SERVER_ADDRESS], a.host, "target_host",
        "This address cannot be used:");
    if (address == NULL) {
        return false;
    }
    t->port = a.port;
    t->address = address;
    return true;
}

static bool
parse_target(
    const struct parser *ps, const json_t *v, enum publish_scheme publish,
    struct publish_target *t)
{
    const char *s = parser_text(ps, v);
    if (s == NULL) {
        return false;
    }
    size_t equals = strcspn(s, "=");
    /* An "=" behind the start of an address belongs to a query. */
    if (s[equals] == '=' && strcspn(s, "/?[") > equals) {
        t->label = parse_label(ps, s, equals);
        if (t->label == NULL) {
            return false;
        }
        s += equals + 1;
    }
    const char *rest = strip_scheme(ps, s, publish);
    return rest != NULL && target_rest(ps, rest, rest != s, t);
}

static bool
is_new_target(
    const struct parser *ps, const struct publish_request *r, const struct publish_target *t)
{
    ASSERT(t->address != NULL);
    for (size_t i = 0; i < r->target_count; i++) {
        const struct publish_target *other = &r->targets[i];
        if (t->label != NULL && other->label != NULL && strcmp(t->label, other->label) == 0) {
            return parser_fail(
                ps, "duplicate_label", "Another target has this label: change one.");
        }
        if (t->port == other->port && strcmp(t->address, other->address) == 0) {
            return parser_fail(
                ps, "duplicate_target",
                "This address and port are given twice: remove one of the two.");
        }
    }
    return true;
}

void
parse_targets(struct parser *ps, const json_t *request, struct publish_request *r)
{
    const json_t *to = json_object_get(request, "to");
    size_t most = schema_kind(K_POOL)->fields[F_POOL_MEMBERS].max_items;
    parser_at(ps, "/to", NULL);
    if (to == NULL) {
        parser_fail(ps, "required", "Say where the servers are, for example 10.0.0.5:8080.");
    } else if (!json_is_array(to)) {
        parser_fail(ps, "type", "\"to\" must be a list of targets such as 10.0.0.5:8080.");
    } else if (json_array_size(to) == 0) {
        parser_fail(ps, "no_targets", "Give at least one target such as 10.0.0.5:8080.");
    } else if (json_array_size(to) > most) {
        parser_fail(ps, "too_many", "These are more targets than a pool can have members.");
    } else {
        r->targets = arena_alloc(ps->arena, json_array_size(to) * sizeof(r->targets[0]));
    }
    for (size_t i = 0; r->targets != NULL && i < json_array_size(to); i++) {
        struct publish_target t = {0};
        parser_at(ps, arena_printf(ps->arena, "/to/%zu", i), json_array_get(to, i));
        if (parse_target(ps, json_array_get(to, i), r->scheme, &t) &&
            is_new_target(ps, r, &t)) {
            r->targets[r->target_count++] = t;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "http/router.h"

#include <stdio.h>
#include <string.h>

#include "routes_gen.h"

static const char *const method_names[] = {
    [METHOD_GET] = "GET",     [METHOD_POST] = "POST",     [METHOD_PUT] = "PUT",
    [METHOD_PATCH] = "PATCH", [METHOD_DELETE] = "DELETE",
};

/* The segment that names the kind stands third: /api/v1/{kind}. */
#define FAMILY_SEGMENT 2

static bool
family_fits(enum route_family family, const struct target *t, enum kind *ret)
{
    if (family == ROUTE_PLAIN) {
        return true;
    }
    return schema_kind_by_plural(t->segments[FAMILY_SEGMENT], ret) &&
           schema_kind(*ret)->singleton == (family == ROUTE_SINGLETON);
}

static bool
path_fits(const struct route *route, const struct target *t)
{
    if (route->segment_count != t->segment_count) {
        return false;
    }
    for (size_t i = 0; i < t->segment_count; i++) {
        const char *wanted = route->segments[i];

        if (wanted[0] == '{' ? t->segments[i][0] == '\0'
                             : strcmp(wanted, t->segments[i]) != 0) {
            return false;
        }
    }
    return true;
}

enum router_result
router_find(const char *method, const struct target *t, struct router_hit *ret)
{
    bool head = strcmp(method, "HEAD") == 0;
    const char *wanted = head ? "GET" : method;
    struct router_hit hit = {.head = head};

    for (size_t i = 0; i < ROUTE_COUNT && hit.route == NULL; i++) {
        const struct route *route = &routes[i];

        if (!path_fits(route, t) || !family_fits(route->family, t, &hit.kind)) {
            continue;
        }
        hit.allowed |= 1u << route->method;
        if (strcmp(method_names[route->method], wanted) == 0) {
            hit.route = route;
        }
    }
    *ret = hit;
    if (hit.route != NULL) {
        return ROUTER_FOUND;
    }
    return hit.allowed != 0 ? ROUTER_NO_METHOD : ROUTER_NO_PATH;
}

void
router_allow(unsigned allowed, char out[ROUTER_ALLOW_BYTES])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(method_names); i++) {
        if ((allowed & 1u << i) == 0) {
            continue;
        }
        len += (size_t)snprintf(
            out + len, ROUTER_ALLOW_BYTES - len, "%s%s%s", len > 0 ? ", " : "", method_names[i],
            i == METHOD_GET ? ", HEAD" : "");
        ASSERT(len < ROUTER_ALLOW_BYTES);
    }
}

const char *
router_segment(const struct route *route, const struct target *t, const char *name)
{
    for (size_t i = 0; i < route->segment_count; i++) {
        if (strcmp(route->segments[i], name) == 0) {
            return t->segments[i];
        }
    }
    return NULL;
}

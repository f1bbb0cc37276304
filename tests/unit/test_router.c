/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/tunables.h"
#include "engine/sync_doc.h"
#include "http/router.h"
#include "routes_gen.h"

struct lab {
    struct arena *arena;
    struct target target;
    struct router_hit hit;
};

static int
lab_open(void **state)
{
    struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct lab *l = arena_alloc(arena, sizeof *l);

    l->arena = arena;
    *state = l;
    return 0;
}

static int
lab_close(void **state)
{
    struct lab *l = *state;

    arena_free(l->arena);
    return 0;
}

static enum router_result
ask(struct lab *l, const char *method, const char *raw)
{
    struct error e;

    l->target = (struct target){.segment_count = 0};
    if (target_parse(raw, l->arena, &l->target, &e) != ERR_OK) {
        fail_msg("%s: %s", raw, e.msg);
    }
    return router_find(method, &l->target, &l->hit);
}

static void
leads_to(struct lab *l, const char *method, const char *raw, const char *operation)
{
    assert_int_equal(ask(l, method, raw), ROUTER_FOUND);
    assert_string_equal(l->hit.route->operation, operation);
}

static void
leads_nowhere(struct lab *l, const char *method, const char *raw)
{
    assert_int_equal(ask(l, method, raw), ROUTER_NO_PATH);
    assert_null(l->hit.route);
    assert_int_equal(l->hit.allowed, 0);
}

static void
allows(struct lab *l, const char *method, const char *raw, const char *expected)
{
    char text[ROUTER_ALLOW_BYTES];

    assert_int_equal(ask(l, method, raw), ROUTER_NO_METHOD);
    assert_null(l->hit.route);
    router_allow(l->hit.allowed, text);
    assert_string_equal(text, expected);
}

static const char *
method_text(enum http_method method)
{
    switch (method) {
    case METHOD_GET: return "GET";
    case METHOD_POST: return "POST";
    case METHOD_PUT: return "PUT";
    case METHOD_PATCH: return "PATCH";
    case METHOD_DELETE: return "DELETE";
    }
    return "";
}

/* A path of a row: "pools" for {kind} and "node" for {singleton}, else a name. */
static const char *
path_of(struct arena *arena, const struct route *route)
{
    const char *path = "";

    for (size_t i = 0; i < route->segment_count; i++) {
        const char *segment = route->segments[i];

        if (strcmp(segment, "{kind}") == 0 && route->family == ROUTE_COLLECTION) {
            segment = "pools";
        } else if (strcmp(segment, "{singleton}") == 0) {
            segment = "node";
        } else if (segment[0] == '{') {
            segment = "diff"; /* also a word that stands in other rows */
        }
        path = arena_printf(arena, "%s/%s", path, segment);
    }
    return path;
}

static void
every_row_is_reached(void **state)
{
    struct lab *l = *state;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        leads_to(
            l, method_text(routes[i].method), path_of(l->arena, &routes[i]),
            routes[i].operation);
        assert_ptr_equal(l->hit.route, &routes[i]);
        assert_false(l->hit.head);
    }
}

static void
every_row_has_what_its_permission_needs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct route *r = &routes[i];

        assert_non_null(r->handler);
        /* Only the way in is open to anybody, and it takes little. */
        if (r->permission == PERMISSION_NONE || r->permission == PERMISSION_SETUP) {
            assert_true(r->body_max <= 4096);
        }
        if (r->method != METHOD_GET && r->permission == PERMISSION_NONE) {
            assert_string_equal(r->operation, "session_create");
        }
        /* A handler on a thread of libmicrohttpd must not block. */
        if (r->runs == RUNS_INLINE) {
            assert_int_equal(r->method, METHOD_GET);
        }
        /* What exists is only changed by who has seen it. */
        if (r->family != ROUTE_PLAIN) {
            assert_int_equal(r->if_match, r->method != METHOD_GET && r->method != METHOD_POST);
        }
    }
}

static void
literal_segments_win(void **state)
{
    struct lab *l = *state;

    leads_to(l, "GET", "/api/v1/config/diff", "config_diff");
    leads_to(l, "GET", "/api/v1/draft", "draft_get");
    leads_to(l, "GET", "/api/v1/commits/diff", "commit_get");
    leads_to(l, "GET", "/api/v1/commits/diff/diff", "commit_diff");
    leads_to(l, "DELETE", "/api/v1/draft/pool/app", "draft_discard");
}

static void
families_are_told_apart_by_the_schema(void **state)
{
    struct lab *l = *state;

    leads_to(l, "GET", "/api/v1/pools/app", "object_get");
    assert_int_equal(l->hit.kind, K_POOL);
    leads_to(l, "POST", "/api/v1/automation_keys", "object_create");
    assert_int_equal(l->hit.kind, K_AUTOMATION_KEY);
    leads_to(l, "GET", "/api/v1/node", "singleton_get");
    assert_int_equal(l->hit.kind, K_NODE);
    leads_nowhere(l, "GET", "/api/v1/node/node");
    leads_nowhere(l, "GET", "/api/v1/pool");
    leads_nowhere(l, "GET", "/api/v1/pool/app");
    leads_nowhere(l, "GET", "/api/v1/nodes");
    allows(l, "POST", "/api/v1/node", "GET, HEAD, PUT, PATCH");
    allows(l, "DELETE", "/api/v1/pools", "GET, HEAD, POST");
}

static void
data_in_a_segment_is_no_path(void **state)
{
    struct lab *l = *state;

    leads_to(l, "GET", "/api/v1/servers/a%2fb", "object_get");
    assert_string_equal(router_segment(l->hit.route, &l->target, "{name}"), "a/b");
    leads_to(l, "GET", "/api/v1/servers/a;b=c", "object_get");
    leads_nowhere(l, "GET", "/api%2fv1/servers");
    leads_nowhere(l, "GET", "/api/v1/health;x");
}

static void
a_final_slash_is_another_path(void **state)
{
    struct lab *l = *state;

    leads_nowhere(l, "GET", "/api/v1/health/");
    leads_nowhere(l, "GET", "/api/v1/servers/");
    leads_nowhere(l, "GET", "/api/v1/");
}

static void
unknown_paths_are_unknown(void **state)
{
    struct lab *l = *state;

    leads_nowhere(l, "GET", "/");
    leads_nowhere(l, "GET", "/api");
    leads_nowhere(l, "GET", "/api/v2/health");
    leads_nowhere(l, "GET", "/API/V1/health");
    leads_nowhere(l, "GET", "/x/api/v1/health");
    leads_nowhere(l, "POST", "/api/v1/tasks/1/2");
}

static void
methods_have_a_case(void **state)
{
    struct lab *l = *state;

    allows(l, "get", "/api/v1/health", "GET, HEAD");
    allows(l, "Get", "/api/v1/health", "GET, HEAD");
    allows(l, "", "/api/v1/health", "GET, HEAD");
    allows(l, "OPTIONS", "/api/v1/servers/a", "GET, HEAD, PUT, PATCH, DELETE");
    allows(l, "GET", "/api/v1/changes", "POST");
    allows(l, "TRACE", "/api/v1/session", "GET, HEAD, POST, DELETE");
}

static void
head_is_get_without_a_body(void **state)
{
    struct lab *l = *state;

    leads_to(l, "HEAD", "/api/v1/servers", "object_list");
    assert_true(l->hit.head);
    allows(l, "HEAD", "/api/v1/changes", "POST");
}

static void
the_longest_allow_has_room(void **state)
{
    char text[ROUTER_ALLOW_BYTES];

    (void)state;
    router_allow(0x1f, text);
    assert_string_equal(text, "GET, HEAD, POST, PUT, PATCH, DELETE");
    router_allow(0, text);
    assert_string_equal(text, "");
}

static void
segments_are_found_by_name(void **state)
{
    struct lab *l = *state;

    leads_to(l, "DELETE", "/api/v1/draft/pool/app", "draft_discard");
    assert_string_equal(router_segment(l->hit.route, &l->target, "{kind}"), "pool");
    assert_string_equal(router_segment(l->hit.route, &l->target, "{name}"), "app");
    assert_null(router_segment(l->hit.route, &l->target, "{rev}"));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, lab_open, lab_close)

/* What one node may send, another takes. */
static void
routes_of_peers_take_what_a_document_may_hold(void **state)
{
    static const char *const operations[] = {
        "peer_config_replace", "peer_config_read", "peer_check", "peer_trial",
        "peer_draft_taken"};
#define TUNABLE_RANGE(name, def, min, max) {#name, max},

    static const struct {
        const char *name;
        int64_t max;
    } ranges[] = {TUNABLES_LIST(TUNABLE_RANGE)};

#undef TUNABLE_RANGE
    size_t found = 0;

    (void)state;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        for (size_t k = 0; k < ARRAY_LEN(operations); k++) {
            if (strcmp(routes[i].operation, operations[k]) == 0) {
                assert_int_equal(routes[i].body_max, SYNC_DOC_MAX);
                found++;
            }
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        if (strcmp(ranges[i].name, "sync_piece_commits") == 0) {
            assert_in_range(2 * ranges[i].max + 1, 1, SYNC_COMMITS_MAX);
            found++;
        }
    }
    assert_int_equal(found, ARRAY_LEN(operations) + 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_row_is_reached),
        CASE(every_row_has_what_its_permission_needs),
        CASE(literal_segments_win),
        CASE(families_are_told_apart_by_the_schema),
        CASE(data_in_a_segment_is_no_path),
        CASE(a_final_slash_is_another_path),
        CASE(unknown_paths_are_unknown),
        CASE(methods_have_a_case),
        CASE(head_is_get_without_a_body),
        CASE(the_longest_allow_has_room),
        CASE(segments_are_found_by_name),
        cmocka_unit_test(routes_of_peers_take_what_a_document_may_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

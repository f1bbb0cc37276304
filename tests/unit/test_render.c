/* SPDX-License-Identifier: Apache-2.0 */
/* What the golden cases cannot show: objects that must not be rendered, and what is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "render/haproxy.h"
#include "tests/support/golden.h"
#include "tests/support/pair.h"

struct lab {
    struct pair pair;
    struct rendered rendered;
    struct error error;
};

static const char objects[] =
    "[{'kind': 'listener', 'name': 'http', 'port': 80},"
    "{'kind': 'listener', 'name': 'tcp', 'port': 81, 'mode': 'tcp'},"
    "{'kind': 'server', 'name': 's', 'address': '10.0.0.1', 'port': 80},"
    "{'kind': 'monitor', 'name': 'm'},"
    "{'kind': 'pool', 'name': 'p', 'monitor': 'm', 'members': [{'server': 's'}]},"
    "{'kind': 'pool', 'name': 't', 'mode': 'tcp'},"
    "{'kind': 'service', 'name': 'web', 'listeners': ['http'], 'pool': 'p'},"
    "{'kind': 'service', 'name': 'raw', 'listeners': ['tcp'], 'pool': 't'},"
    "{'kind': 'condition', 'name': 'c', 'type': 'tls'},"
    "{'kind': 'rule', 'name': 'r', 'action': 'deny', 'service': 'web',"
    "  'conditions': [{'condition': 'c'}]}]";

static int
set_up(void **state)
{
    struct lab *l = xcalloc(1, sizeof *l);

    pair_init(&l->pair, objects);
    rendered_init(&l->rendered);
    *state = l;
    return 0;
}

static int
tear_down(void **state)
{
    struct lab *l = *state;

    rendered_fini(&l->rendered);
    pair_fini(&l->pair);
    free(l);
    return 0;
}

static err_t
render(struct lab *l)
{
    struct render_input in = {
        .objects = l->pair.objects,
        .run_dir = "/run/lockstep",
        .socket_group = "haproxy",
        .placeholder_pem = "placeholder\n",
    };

    return render_haproxy(&in, &l->rendered, pair_clear(&l->pair), &l->error);
}

static void
is_refused_at(struct lab *l, const char *kind, const char *name, const char *pointer)
{
    const struct problem *x = &l->pair.problems.items[0];

    assert_int_equal(render(l), ERR_INVALID);
    assert_int_equal(l->error.code, ERR_INVALID);
    assert_true(l->pair.problems.count >= 1);
    assert_int_equal(x->severity, SEVERITY_ERROR);
    assert_string_equal(x->code, "render");
    assert_string_equal(x->kind, kind);
    assert_string_equal(x->name, name);
    assert_string_equal(x->pointer, pointer);
    /* Half a configuration must not get anywhere. */
    assert_int_equal(l->rendered.count, 0);
    assert_int_equal(l->rendered.line_count, 0);
    assert_string_equal(l->rendered.digest, "");
    assert_null(rendered_find(&l->rendered, "haproxy.cfg"));
}

static void
a_reference_that_leads_nowhere_is_refused(void **state)
{
    static const struct {
        enum kind kind;
        const char *name, *user_kind, *user, *pointer;
    } rows[] = {
        {K_SERVER, "s", "pool", "p", "/members"},
        {K_MONITOR, "m", "pool", "p", "/monitor"},
        {K_POOL, "p", "service", "web", "/pool"},
        {K_POOL, "t", "service", "raw", "/pool"},
        {K_LISTENER, "http", "service", "web", "/listeners"},
        {K_SERVICE, "web", "rule", "r", "/service"},
        /* Without its condition the rule would deny everything. */
        {K_CONDITION, "c", "rule", "r", "/conditions"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct lab *l = NULL;

        set_up((void **)&l);
        assert_int_equal(render(l), ERR_OK);
        pair_remove(&l->pair, rows[i].kind, rows[i].name);
        is_refused_at(l, rows[i].user_kind, rows[i].user, rows[i].pointer);
        tear_down((void **)&l);
    }
}

static void
a_certificate_that_is_gone_is_refused(void **state)
{
    static const char patch[] = "{'tls': true, 'certificates': ['0123456789abcdef']}";
    struct lab *l = *state;

    pair_set(&l->pair, K_LISTENER, "http", patch);
    is_refused_at(l, "listener", "http", "/certificates");
    pair_set(&l->pair, K_LISTENER, "http", "{'certificates': []}");
    pair_set(&l->pair, K_SERVICE, "web", "{'certificate': '0123456789abcdef'}");
    is_refused_at(l, "service", "web", "/certificate");
}

static void
modes_of_pool_and_listener_must_agree(void **state)
{
    struct lab *l = *state;

    pair_set(&l->pair, K_POOL, "p", "{'mode': 'tcp'}");
    is_refused_at(l, "service", "web", "/pool");
    pair_set(&l->pair, K_POOL, "p", "{'mode': 'http'}");
    pair_set(&l->pair, K_POOL, "t", "{'mode': 'http'}");
    is_refused_at(l, "service", "raw", "/pool");
}

static void
a_tcp_listener_takes_one_service_that_is_on(void **state)
{
    struct lab *l = *state;
    const char *id = pair_find(&l->pair, K_LISTENER, "tcp")->id;
    const char *pool = pair_find(&l->pair, K_POOL, "t")->id;

    pair_set(
        &l->pair, K_SERVICE, "web",
        arena_printf(l->pair.arena, "{'listeners': ['%s'], 'pool': '%s'}", id, pool));
    is_refused_at(l, "service", "web", "/listeners");
    pair_set(&l->pair, K_SERVICE, "raw", "{'enabled': false}");
    assert_int_equal(render(l), ERR_OK);
}

static void
a_path_that_a_map_cannot_hold_is_refused(void **state)
{
    static const char bytes[] = {' ', '\n', '\x7f', '\xc3'};
    struct lab *l = *state;
    struct text path;
    char *at;

    pair_set(&l->pair, K_SERVICE, "web", "{'path': '/abc'}");
    path = object_text(pair_find(&l->pair, K_SERVICE, "web"), F_SERVICE_PATH);
    /* The checks of the type let no such path in: behind their back. */
    at = (char *)(uintptr_t)path.s;
    for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
        at[2] = bytes[i];
        is_refused_at(l, "service", "web", "/path");
    }
}

static void
all_problems_are_named_at_once(void **state)
{
    struct lab *l = *state;

    pair_remove(&l->pair, K_SERVER, "s");
    pair_remove(&l->pair, K_MONITOR, "m");
    pair_remove(&l->pair, K_POOL, "t");
    assert_int_equal(render(l), ERR_INVALID);
    assert_int_equal(l->pair.problems.count, 3);
}

static void
a_refused_render_does_not_spoil_the_next(void **state)
{
    struct lab *l = *state;
    char digest[RENDER_DIGEST_HEX + 1];
    size_t count;

    assert_int_equal(render(l), ERR_OK);
    count = l->rendered.count;
    memcpy(digest, l->rendered.digest, sizeof digest);
    pair_set(&l->pair, K_POOL, "p", "{'mode': 'tcp'}");
    assert_int_equal(render(l), ERR_INVALID);
    pair_set(&l->pair, K_POOL, "p", "{'mode': 'http'}");
    assert_int_equal(render(l), ERR_OK);
    assert_int_equal(l->rendered.count, count);
    assert_string_equal(l->rendered.digest, digest);
}

static void
the_digest_follows_every_file_and_stands_in_the_configuration(void **state)
{
    static const struct {
        enum kind kind;
        const char *name, *patch;
    } rows[] = {
        {K_SERVICE, "web", "{'hosts': ['a.test']}"},   /* map */
        {K_HAPROXY, "haproxy", "{'error_text': 'x'}"}, /* error page */
        {K_POOL, "p", "{'retries': 1}"},               /* haproxy.cfg */
        {K_LISTENER, "http", "{'tls': true}"},         /* list of certificates */
    };
    struct lab *l = *state;
    char before[RENDER_DIGEST_HEX + 1];

    assert_int_equal(render(l), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *line;

        memcpy(before, l->rendered.digest, sizeof before);
        pair_set(&l->pair, rows[i].kind, rows[i].name, rows[i].patch);
        assert_int_equal(render(l), ERR_OK);
        assert_string_not_equal(l->rendered.digest, before);
        line = arena_printf(
            l->pair.arena, "\n    description \"" RUNNING_DESCRIPTION "%s\"\n",
            l->rendered.digest);
        assert_non_null(
            strstr(buf_str(&rendered_find(&l->rendered, "haproxy.cfg")->bytes), line));
    }
}

static void
the_folder_of_the_sockets_is_one_word_whatever_it_is_called(void **state)
{
    struct lab *l = *state;
    struct render_input in = {
        .objects = l->pair.objects,
        .run_dir = "/a b\"$X",
        .socket_group = "my group",
        .placeholder_pem = "",
    };

    assert_int_equal(
        render_haproxy(&in, &l->rendered, pair_clear(&l->pair), &l->error), ERR_OK);
    assert_non_null(strstr(
        buf_str(&rendered_find(&l->rendered, "haproxy.cfg")->bytes),
        "\n    stats socket \"/a b\\\"\\$X/haproxy.sock\" mode 660 group \"my group\" level"));
    assert_non_null(strstr(
        buf_str(&rendered_find(&l->rendered, "haproxy.cfg")->bytes),
        "\n    bind unix@\"/a b\\\"\\$X/probe.sock\" mode 660 group \"my group\"\n"));
}

/* ---- other nodes ---- */

static const char sticky[] =
    "[{'kind': 'node', 'name': 'n1'}, {'kind': 'pool', 'name': 'p', 'stick': 'source'}]";

/* The end of haproxy.cfg of these objects and peers, from the backend of the pool on. */
static void
renders_as(const char *text, const struct render_input *with, const char *wanted)
{
    struct render_input in = *with;
    struct rendered r;
    struct error e;
    struct pair x;
    const char *end;

    pair_init(&x, text);
    rendered_init(&r);
    in.objects = x.objects;
    in.run_dir = "/run/lockstep";
    in.socket_group = "haproxy";
    in.placeholder_pem = "";
    assert_int_equal(render_haproxy(&in, &r, pair_clear(&x), &e), ERR_OK);
    end = strstr(buf_str(&rendered_find(&r, "haproxy.cfg")->bytes), "\nbackend p\n");
    assert_non_null(end);
    assert_string_equal(strchr(strstr(end, "stick on src"), '\n'), wanted);
    rendered_fini(&r);
    pair_fini(&x);
}

#define ALONE "\n\npeers lockstep.tables\n    peer n1 127.0.0.1:8444\n"

static void
without_others_or_without_an_address_for_them_tables_stay_here(void **state)
{
    static const struct render_peer peer = {"n2", "10.0.0.2", 8444};
    static const char *const urls[] = {
        NULL, "", "https://n1.example.test", "https://127.0.0.1"};

    (void)state;
    renders_as(sticky, &(struct render_input){.url = "https://10.0.0.1"}, ALONE);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        renders_as(
            sticky, &(struct render_input){.url = urls[i], .peers = &peer, .peer_count = 1},
            ALONE);
    }
}

static void
of_nodes_with_one_name_the_first_is_a_peer_and_all_are_let_in(void **state)
{
    static const struct render_peer peers[] = {
        {"n2", "10.0.0.2", 8444}, {"n1", "10.0.0.3", 8444}, {"n2", "10.0.0.4", 8444}};
    static const char wanted[] =
        "\n\n# Stick tables of the other nodes; nobody else is let in.\n"
        "frontend lockstep.tables.in\n"
        "    mode tcp\n"
        "    bind 10.0.0.1:8444 transparent\n"
        "    acl lockstep.peer src 10.0.0.2\n"
        "    acl lockstep.peer src 10.0.0.3\n"
        "    acl lockstep.peer src 10.0.0.4\n"
        "    tcp-request connection reject unless lockstep.peer\n"
        "    timeout client 10s\n"
        "    default_backend lockstep.tables.in\n"
        "\n"
        "backend lockstep.tables.in\n"
        "    mode tcp\n"
        "    timeout server 10s\n"
        "    timeout tunnel 10s\n"
        "    server peers 127.0.0.1:8444\n"
        "\n"
        "peers lockstep.tables\n"
        "    peer n1 127.0.0.1:8444\n"
        "    peer n2 10.0.0.2:8444\n";

    (void)state;
    renders_as(
        sticky,
        &(struct render_input){
            .url = "https://10.0.0.1:8443", .peers = peers, .peer_count = ARRAY_LEN(peers)},
        wanted);
}

static void
what_the_node_itself_says_of_its_address_counts(void **state)
{
    static const struct render_peer peer = {"n2", "10.0.0.2", 8444};
    static const char named[] =
        "[{'kind': 'node', 'name': 'n1', 'url': 'https://n1.example.test'},"
        " {'kind': 'pool', 'name': 'p', 'stick': 'source'}]";

    (void)state;
    renders_as(
        named,
        &(struct render_input){.url = "https://10.0.0.1:8443", .peers = &peer, .peer_count = 1},
        ALONE);
}

/* ---- the page of errors ---- */

static void
the_longest_hostile_error_page_fits_haproxys_buffer(void **state)
{
    struct lab *l = *state;
    struct buf CLEANUP(buf_fini) patch;

    buf_init(&patch, 10000);
    buf_puts(&patch, "{'error_title': '");
    for (int i = 0; i < 100; i++) {
        buf_putc(&patch, '&');
    }
    buf_puts(&patch, "', 'error_text': '");
    for (int i = 0; i < 500; i++) {
        buf_putc(&patch, '&');
    }
    buf_puts(&patch, "'}");
    pair_set(&l->pair, K_HAPROXY, "haproxy", buf_str(&patch));
    assert_int_equal(render(l), ERR_OK);
    /* tune.bufsize 16384 less tune.maxrewrite 1024 */
    assert_in_range(rendered_find(&l->rendered, "error/503.http")->bytes.len, 3600, 15000);
}

#define WITH_LAB(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_that_leads_nowhere_is_refused),
        cmocka_unit_test(without_others_or_without_an_address_for_them_tables_stay_here),
        cmocka_unit_test(of_nodes_with_one_name_the_first_is_a_peer_and_all_are_let_in),
        cmocka_unit_test(what_the_node_itself_says_of_its_address_counts),
        WITH_LAB(a_certificate_that_is_gone_is_refused),
        WITH_LAB(modes_of_pool_and_listener_must_agree),
        WITH_LAB(a_tcp_listener_takes_one_service_that_is_on),
        WITH_LAB(a_path_that_a_map_cannot_hold_is_refused),
        WITH_LAB(all_problems_are_named_at_once),
        WITH_LAB(a_refused_render_does_not_spoil_the_next),
        WITH_LAB(the_digest_follows_every_file_and_stands_in_the_configuration),
        WITH_LAB(the_folder_of_the_sockets_is_one_word_whatever_it_is_called),
        WITH_LAB(the_longest_hostile_error_page_fits_haproxys_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

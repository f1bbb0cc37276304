/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/x509.h"
#include "model/validate.h"
#include "tests/support/pair.h"

#define NOW_S ((int64_t)1800000000)
#define DAY_S ((int64_t)86400)

/* One web service on port 80, to which a case adds what is wrong. */
#define WEB                                                                                    \
    "{'kind': 'server', 'name': 'a1', 'address': '10.0.0.1', 'port': 80},"                     \
    "{'kind': 'server', 'name': 'a2', 'address': '10.0.0.2', 'port': 80},"                     \
    "{'kind': 'monitor', 'name': 'm', 'type': 'http'},"                                        \
    "{'kind': 'pool', 'name': 'web', 'monitor': 'm', 'members': [{'server': 'a1'},"            \
    "  {'server': 'a2'}]},"                                                                    \
    "{'kind': 'listener', 'name': 'http', 'port': 80},"                                        \
    "{'kind': 'service', 'name': 'site', 'listeners': ['http'], 'pool': 'web',"                \
    "  'hosts': ['a.test']}"
#define TCP_POOL "{'kind': 'pool', 'name': 'db', 'mode': 'tcp', 'members': [{'server': 'a1'}]},"

struct row {
    const char *what;
    const char *objects; /* beside WEB */
    const char *codes;   /* all problems found */
    const char *name;    /* where the first one is */
    const char *pointer;
    const char *says; /* a part of its message */
};

static const struct row rows[] = {
    {"web service", "", "", NULL, NULL, NULL},
    {"api port on a listener", ",{'kind': 'listener', 'name': 'x', 'port': 8443}",
     "reserved_port", "x", "/port", "8443"},
    {"peers port on a listener that is off",
     ",{'kind': 'listener', 'name': 'x', 'port': 8444, 'enabled': false}", "reserved_port", "x",
     "/port", "8444"},
    {"same port on all addresses", ",{'kind': 'listener', 'name': 'x', 'port': 80}",
     "port_clash", "x", "/addresses/0", "\"http\""},
    {"one address under 0.0.0.0",
     ",{'kind': 'listener', 'name': 'x', 'port': 80, 'addresses': ['10.0.0.9']}", "port_clash",
     "x", "/addresses/0", "0.0.0.0"},
    {"one address under ::",
     ",{'kind': 'listener', 'name': 'x', 'port': 80, 'addresses': ['2001:db8::9']}",
     "port_clash", "x", "/addresses/0", "(::)"},
    {"IPv4 and IPv6 do not meet",
     ",{'kind': 'listener', 'name': 'x', 'port': 81, 'addresses': ['0.0.0.0']},"
     "{'kind': 'listener', 'name': 'y', 'port': 81, 'addresses': ['::', '::1']}",
     "port_clash", "y", "/addresses/1", "of this listener overlap"},
    {"all of IPv4 beside all of IPv6",
     ",{'kind': 'listener', 'name': 'x', 'port': 81, 'addresses': ['0.0.0.0']},"
     "{'kind': 'listener', 'name': 'y', 'port': 81, 'addresses': ['::']}",
     "", NULL, NULL, NULL},
    {"two addresses on one port",
     ",{'kind': 'listener', 'name': 'x', 'port': 81, 'addresses': ['10.0.0.1']},"
     "{'kind': 'listener', 'name': 'y', 'port': 81, 'addresses': ['10.0.0.2']}",
     "", NULL, NULL, NULL},
    {"one address twice",
     ",{'kind': 'listener', 'name': 'x', 'port': 81, 'addresses': ['10.0.0.1']},"
     "{'kind': 'listener', 'name': 'y', 'port': 81, 'addresses': ['10.0.0.1']}",
     "port_clash", "y", "/addresses/0", "\"x\""},
    {"a listener that is off takes no port",
     ",{'kind': 'listener', 'name': 'x', 'port': 80, 'enabled': false}", "", NULL, NULL, NULL},
    {"host published twice",
     ",{'kind': 'service', 'name': 'two', 'listeners': ['http'], 'pool': 'web',"
     " 'hosts': ['b.test', 'a.test']}",
     "published_twice", "two", "/hosts/0", "\"site\""},
    {"same host with another path",
     ",{'kind': 'service', 'name': 'two', 'listeners': ['http'], 'pool': 'web',"
     " 'hosts': ['a.test'], 'path': '/shop'}",
     "", NULL, NULL, NULL},
    {"paths that differ in the last slash",
     ",{'kind': 'service', 'name': 't1', 'listeners': ['http'], 'pool': 'web',"
     " 'hosts': ['a.test'], 'path': '/shop'},"
     "{'kind': 'service', 'name': 't2', 'listeners': ['http'], 'pool': 'web',"
     " 'hosts': ['a.test'], 'path': '/shop/'}",
     "published_twice", "t2", "/hosts/0", "\"t1\""},
    {"two services for any host",
     ",{'kind': 'service', 'name': 't1', 'listeners': ['http'], 'pool': 'web'},"
     "{'kind': 'service', 'name': 't2', 'listeners': ['http'], 'pool': 'web'}",
     "published_twice", "t2", "/hosts", "any host"},
    {"trusted proxies in mode tcp",
     "," TCP_POOL "{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp',"
     " 'trusted_proxies': ['10.0.0.1']},"
     "{'kind': 'service', 'name': 'd1', 'listeners': ['x'], 'pool': 'db'}",
     "not_applicable", "x", "/trusted_proxies", "PROXY protocol"},
    {"a rate limit in mode tcp",
     "," TCP_POOL "{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp'},"
     "{'kind': 'service', 'name': 'd1', 'listeners': ['x'], 'pool': 'db', 'rate_limit': 1}",
     "not_applicable", "d1", "/rate_limit", "sees no requests"},
    {"one HTTP version twice",
     ",{'kind': 'listener', 'name': 'x', 'port': 81, 'alpn': ['h2', 'h2']}", "duplicate", "x",
     "/alpn/1", "twice"},
    {"two VIP groups with one address",
     ",{'kind': 'vip_group', 'name': 'v', 'addresses': ['192.0.2.1/24']},"
     "{'kind': 'vip_group', 'name': 'w', 'addresses': ['192.0.2.1/32', '192.0.2.2/24']}",
     "vip_twice", "w", "/addresses/0", "\"v\""},
    {"an address with two lengths in a VIP group",
     ",{'kind': 'vip_group', 'name': 'v', 'addresses': ['192.0.2.1/24', '192.0.2.1/25']}",
     "vip_twice", "v", "/addresses/1", "\"v\""},
    {"two primary VIP groups",
     ",{'kind': 'vip_group', 'name': 'v', 'addresses': ['192.0.2.1/24'], 'primary': true},"
     "{'kind': 'vip_group', 'name': 'w', 'addresses': ['192.0.2.2/24'], 'primary': true}",
     "primary_twice", "w", "/primary", "\"v\""},
    {"conditions without values",
     ",{'kind': 'condition', 'name': 'c', 'type': 'path'},"
     "{'kind': 'condition', 'name': 'd', 'type': 'tls'},"
     "{'kind': 'condition', 'name': 'e', 'type': 'host', 'match': 'present'},"
     "{'kind': 'condition', 'name': 'f', 'type': 'src', 'match': 'present'}",
     "required required", "c", "/values", "never be true"},
    {"a condition with a pattern that HAProxy cannot use",
     ",{'kind': 'condition', 'name': 'c', 'type': 'path', 'match': 'regex',"
     " 'values': ['^/a', '(']},"
     "{'kind': 'condition', 'name': 'd', 'type': 'path', 'match': 'prefix', 'values': ['/(']}",
     "regex", "c", "/values/0", "Correct this pattern"},
    {"conditions without a key",
     ",{'kind': 'condition', 'name': 'c', 'type': 'cookie', 'match': 'present'}", "required",
     "c", "/key", "cookie"},
    {"values that are no networks or methods",
     ",{'kind': 'condition', 'name': 'c', 'type': 'src', 'values': ['10.0.0.1', 'x']},"
     "{'kind': 'condition', 'name': 'd', 'type': 'method', 'values': ['get', 'PUT']}",
     "format format", "c", "/values/1", "\"x\" is not a network"},
    {"values that no path has as it is compared",
     ",{'kind': 'condition', 'name': 'c', 'type': 'path', 'match': 'prefix',"
     " 'values': ['/a', '/a%2Fb', '/a//b', '/%7Eb', '/a;b', '/%c3%bc', '/a\\\\b']},"
     "{'kind': 'condition', 'name': 'd', 'type': 'path', 'match': 'regex', 'values': ['//|;']},"
     "{'kind': 'condition', 'name': 'e', 'type': 'header', 'key': 'X', 'values': ['//;']}",
     "path_never_fits path_never_fits path_never_fits path_never_fits path_never_fits", "c",
     "/values/0", "No path is like this"},
    {"a service with a path that is not compared as it stands",
     ",{'kind': 'service', 'name': 'two', 'listeners': ['http'], 'pool': 'web',"
     " 'path': '/a;b'},"
     "{'kind': 'service', 'name': 'three', 'listeners': ['http'], 'pool': 'web',"
     " 'path': '/a%5Cb'}",
     "path_never_fits path_never_fits", "three", "/path", "No path is like this"},
    {"a rule without a place", ",{'kind': 'rule', 'name': 'r', 'action': 'deny'}", "one_place",
     "r", "/service", "to which the rule belongs"},
    {"a rule in two places",
     ",{'kind': 'rule', 'name': 'r', 'action': 'deny', 'service': 'site',"
     " 'listener': 'http'}",
     "one_place", "r", "/service", "take one of them out"},
    {"rules in mode tcp",
     "," TCP_POOL "{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp'},"
     "{'kind': 'service', 'name': 'd1', 'listeners': ['x'], 'pool': 'db'},"
     "{'kind': 'rule', 'name': 'q', 'action': 'deny', 'service': 'd1'},"
     "{'kind': 'rule', 'name': 'r', 'action': 'deny', 'listener': 'x'}",
     "not_applicable not_applicable", "q", "/service", "mode tcp"},
    {"a condition twice in a rule",
     ",{'kind': 'condition', 'name': 'c', 'type': 'tls'},"
     "{'kind': 'rule', 'name': 'r', 'action': 'deny', 'service': 'site',"
     " 'conditions': [{'condition': 'c'}, {'condition': 'c', 'negate': true}]}",
     "duplicate", "r", "/conditions/1/condition", "twice"},
    {"statuses that do not fit the action",
     ",{'kind': 'rule', 'name': 'q', 'action': 'deny', 'service': 'site', 'status': 200},"
     "{'kind': 'rule', 'name': 'r', 'action': 'return', 'service': 'site', 'status': 100},"
     "{'kind': 'rule', 'name': 's', 'action': 'redirect', 'service': 'site',"
     " 'status': 304, 'target': '/x'},"
     "{'kind': 'rule', 'name': 't', 'action': 'return', 'service': 'site',"
     " 'status': 204, 'body': 'x'}",
     "range range range not_applicable", "q", "/status", "from 400 to 599"},
    {"actions without what they need",
     "," TCP_POOL "{'kind': 'rule', 'name': 'o', 'action': 'redirect', 'service': 'site'},"
     "{'kind': 'rule', 'name': 'p', 'action': 'redirect', 'service': 'site',"
     " 'redirect_by': 'scheme'},"
     "{'kind': 'rule', 'name': 'q', 'action': 'use_pool', 'service': 'site'},"
     "{'kind': 'rule', 'name': 'r', 'action': 'use_pool', 'service': 'site', 'pool': 'db'},"
     "{'kind': 'rule', 'name': 's', 'action': 'set_header', 'service': 'site'},"
     "{'kind': 'rule', 'name': 't', 'action': 'del_header', 'service': 'site'}",
     "required required mode_mismatch required required required", "o", "/target", "target"},
    {"one of two is off",
     ",{'kind': 'service', 'name': 'two', 'listeners': ['http'], 'pool': 'web',"
     " 'hosts': ['a.test'], 'enabled': false}",
     "", NULL, NULL, NULL},
    {"same host on two listeners that both services share",
     ",{'kind': 'listener', 'name': 'x', 'port': 81},"
     "{'kind': 'service', 'name': 't1', 'listeners': ['http', 'x'], 'pool': 'web',"
     " 'hosts': ['b.test']},"
     "{'kind': 'service', 'name': 't2', 'listeners': ['http', 'x'], 'pool': 'web',"
     " 'hosts': ['b.test']}",
     "published_twice", "t2", "/hosts/0", "\"t1\""},
    {"http listener and tcp pool",
     "," TCP_POOL "{'kind': 'service', 'name': 'two', 'listeners': ['http'], 'pool': 'db',"
     " 'hosts': ['b.test']}",
     "mode_mismatch", "two", "/pool", "\"db\" has mode tcp"},
    {"listeners of two modes",
     ",{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp'},"
     "{'kind': 'service', 'name': 'two', 'listeners': ['http', 'x'], 'pool': 'web',"
     " 'hosts': ['b.test']}",
     "mode_mismatch", "two", NULL, "mode tcp"},
    {"two services on a tcp listener",
     "," TCP_POOL "{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp'},"
     "{'kind': 'service', 'name': 'd1', 'listeners': ['x'], 'pool': 'db'},"
     "{'kind': 'service', 'name': 'd2', 'listeners': ['x'], 'pool': 'db'}",
     "listener_taken", "d2", "/listeners", "\"d1\""},
    {"a tcp listener with one service on and one off",
     "," TCP_POOL "{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp'},"
     "{'kind': 'service', 'name': 'd1', 'listeners': ['x'], 'pool': 'db'},"
     "{'kind': 'service', 'name': 'd2', 'listeners': ['x'], 'pool': 'db',"
     " 'enabled': false}",
     "", NULL, NULL, NULL},
    {"a tcp listener without a service",
     ",{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp'}", "no_service", "x", "",
     "lead nowhere"},
    {"hosts and a path in mode tcp",
     "," TCP_POOL "{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp'},"
     "{'kind': 'service', 'name': 'd1', 'listeners': ['x'], 'pool': 'db',"
     " 'hosts': ['b.test'], 'path': '/x'}",
     "not_applicable not_applicable", "d1", "/hosts", "mode tcp"},
    {"TLS in mode tcp",
     "," TCP_POOL "{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp', 'tls': true},"
     "{'kind': 'service', 'name': 'd1', 'listeners': ['x'], 'pool': 'db'}",
     "", NULL, NULL, NULL},
    {"a server twice in one pool",
     ",{'kind': 'pool', 'name': 'p', 'members': [{'server': 'a1'}, {'server': 'a2'},"
     " {'server': 'a1'}]}",
     "duplicate", "p", "/members/2/server", "\"a1\""},
    {"two servers of a pool with one address",
     ",{'kind': 'server', 'name': 'a3', 'address': '10.0.0.1', 'port': 80},"
     "{'kind': 'pool', 'name': 'p', 'members': [{'server': 'a1'}, {'server': 'a3'}]}",
     "duplicate_target", "p", "/members/1/server", "\"a1\" and \"a3\""},
    {"two ports of one address in a pool",
     ",{'kind': 'server', 'name': 'a3', 'address': '10.0.0.1', 'port': 81},"
     "{'kind': 'pool', 'name': 'p', 'members': [{'server': 'a1'}, {'server': 'a3'}]}",
     "", NULL, NULL, NULL},
    {"a server in two pools", ",{'kind': 'pool', 'name': 'p', 'members': [{'server': 'a1'}]}",
     "", NULL, NULL, NULL},
    {"tcp pool with an http check",
     ",{'kind': 'pool', 'name': 'p', 'mode': 'tcp', 'monitor': 'm',"
     " 'members': [{'server': 'a1'}]}",
     "", NULL, NULL, NULL},
    {"pool without members", ",{'kind': 'pool', 'name': 'p'}", "empty_pool", "p", "/members",
     "no servers"},
    {"check that takes longer than its interval",
     ",{'kind': 'monitor', 'name': 'slow', 'interval_ms': 1000, 'timeout_ms': 1001}",
     "monitor_timeout", "slow", "/timeout_ms", "1001"},
    {"rules of sharing and stickiness that look into requests, in mode tcp",
     ",{'kind': 'pool', 'name': 'p', 'mode': 'tcp', 'balance': 'uri', 'stick': 'cookie',"
     " 'tls': true, 'sni': 'host', 'verifyhost': 'a.test', 'members': [{'server': 'a1'}]}",
     "not_applicable not_applicable not_applicable", "p", "/balance", "tcp mode"},
    {"rules that lack the name of what decides",
     ",{'kind': 'pool', 'name': 'p', 'balance': 'hdr', 'members': [{'server': 'a1'}]},"
     "{'kind': 'pool', 'name': 'q', 'balance': 'url_param', 'members': [{'server': 'a1'}]}",
     "required required", "p", "/hdr_name", "header"},
    {"a cookie that browsers drop",
     ",{'kind': 'pool', 'name': 'p', 'stick': 'cookie', 'cookie_samesite': 'none',"
     " 'members': [{'server': 'a1'}]}",
     "cookie_samesite", "p", "/cookie_samesite", "cookie_secure"},
    {"TLS that any public certificate would satisfy",
     ",{'kind': 'pool', 'name': 'p', 'tls': true, 'members': [{'server': 'a1'}]}", "tls_name",
     "p", "/verifyhost", "any public certificate"},
    {"TLS with a name to verify, or without verification",
     ",{'kind': 'pool', 'name': 'p', 'tls': true, 'verifyhost': 'a.test',"
     " 'members': [{'server': 'a1'}]},"
     "{'kind': 'pool', 'name': 'q', 'tls': true, 'sni': 'host', 'verifyhost': 'a.test',"
     " 'members': [{'server': 'a1'}]},"
     "{'kind': 'pool', 'name': 'n', 'tls': true, 'sni': 'name', 'sni_name': 'a.test',"
     " 'members': [{'server': 'a1'}]},"
     "{'kind': 'pool', 'name': 'r', 'tls': true, 'tls_verify': 'none',"
     " 'members': [{'server': 'a1'}]}",
     "", NULL, NULL, NULL},
    {"TLS where requests without a host would be verified for no name",
     ",{'kind': 'pool', 'name': 'p', 'tls': true, 'sni': 'host', 'members': [{'server': 'a1'}]}",
     "tls_name", "p", "/verifyhost", "any public certificate"},
    {"a name that would not be verified",
     ",{'kind': 'pool', 'name': 'p', 'tls': true, 'sni': 'name', 'sni_name': 'a.test',"
     " 'verifyhost': 'b.test', 'members': [{'server': 'a1'}]}",
     "tls_name", "p", "/verifyhost", "that name is checked"},
    {"an SNI without its name",
     ",{'kind': 'pool', 'name': 'p', 'tls': true, 'sni': 'name', 'members': [{'server': 'a1'}]}",
     "required", "p", "/sni_name", "name"},
    {"a pool without members that is off", ",{'kind': 'pool', 'name': 'p', 'enabled': false}",
     "", NULL, NULL, NULL},
    {"a check of HTTP/1.1 without a host",
     ",{'kind': 'monitor', 'name': 'c', 'type': 'http', 'http_version': 'http1_1'}", "required",
     "c", "/host", "Host header"},
    {"bodies that cannot be looked for",
     ",{'kind': 'monitor', 'name': 'c', 'type': 'http', 'body_match': 'regex',"
     " 'expect_body': 'a(b'},"
     "{'kind': 'monitor', 'name': 'd', 'type': 'http', 'body_match': 'string'}",
     "regex required", "c", "/expect_body", "character 4"},
    {"what is not used is not looked at",
     ",{'kind': 'monitor', 'name': 'c', 'body_match': 'regex', 'expect_body': 'a(b',"
     " 'http_version': 'http1_1', 'steps': [{'data': '\\\\q'}], 'agent_send': '\\\\q'}",
     "", NULL, NULL, NULL},
    {"a script without steps", ",{'kind': 'monitor', 'name': 'c', 'type': 'tcp-script'}",
     "required", "c", "/steps", "needs steps"},
    {"steps that cannot be sent or expected",
     ",{'kind': 'monitor', 'name': 'c', 'type': 'tcp-script', 'steps': ["
     "{'action': 'send', 'data': 'ok'}, {'action': 'send', 'data': '\\\\q'},"
     "{'action': 'send-hex', 'data': 'abc'}, {'action': 'expect', 'data': '\\\\x00'},"
     "{'action': 'expect-hex', 'data': 'zz'}, {'action': 'expect-regex', 'data': '['}]}",
     "probe_text probe_text probe_text probe_text regex", "c", "/steps/1/data", "hexadecimal"},
    {"an agent without a port", ",{'kind': 'monitor', 'name': 'c', 'type': 'agent'}",
     "required", "c", "/port", "agent"},
    {"a check of PostgreSQL without a user",
     ",{'kind': 'monitor', 'name': 'c', 'type': 'pgsql', 'user': ''}", "required", "c", "/user",
     "user"},
    {"TLS listener without a certificate for the host",
     ",{'kind': 'listener', 'name': 'https', 'port': 443, 'tls': true},"
     "{'kind': 'service', 'name': 'two', 'listeners': ['https'], 'pool': 'web',"
     " 'hosts': ['b.test']}",
     "certificate_names", "two", "/hosts/0", "b.test"},
};

static void
reports_what_is_wrong_and_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        struct pair x;
        char text[4096];
        print_message("  %s\n", row->what);
        assert_true(snprintf(text, sizeof(text), "[" WEB "%s]", row->objects) < 4096);
        pair_init(&x, text);
        validate_all(&x.objects, NOW_S, &x.problems);
        assert_string_equal(pair_codes(&x), row->codes);
        if (row->name != NULL) {
            const struct problem *first = &x.problems.items[0];
            assert_string_equal(first->name, row->name);
            assert_non_null(strstr(first->message, row->says));
            if (row->pointer != NULL) {
                assert_string_equal(first->pointer, row->pointer);
            }
        }
        pair_fini(&x);
    }
}

static void
only_warnings_leave_no_error(void **state)
{
    struct pair x;
    (void)state;
    pair_init(
        &x, "[{'kind': 'pool', 'name': 'p'},"
            "{'kind': 'monitor', 'name': 'slow', 'interval_ms': 1000, 'timeout_ms': 1001},"
            "{'kind': 'listener', 'name': 'x', 'port': 81, 'mode': 'tcp'}]");
    validate_all(&x.objects, NOW_S, &x.problems);
    assert_string_equal(pair_codes(&x), "no_service empty_pool monitor_timeout");
    assert_int_equal(x.problems.errors, 0);
    pair_fini(&x);
}

static void
dangling_references_are_named(void **state)
{
    static const struct {
        enum kind kind;
        const char *name;
        const char *user;
        const char *pointer;
    } cases[] = {
        {K_SERVER, "a2", "web", "/members/1/server"},
        {K_MONITOR, "m", "web", "/monitor"},
        {K_POOL, "web", "site", "/pool"},
        {K_LISTENER, "http", "site", "/listeners/0"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pair x;
        pair_init(&x, "[" WEB "]");
        pair_remove(&x, cases[i].kind, cases[i].name);
        validate_all(&x.objects, NOW_S, &x.problems);
        assert_string_equal(pair_codes(&x), "no_such_object");
        assert_string_equal(x.problems.items[0].name, cases[i].user);
        assert_string_equal(x.problems.items[0].pointer, cases[i].pointer);
        pair_fini(&x);
    }
}

static void
users_of_an_object_are_listed_once_each(void **state)
{
    struct pair x;
    (void)state;
    pair_init(
        &x, "[" WEB ",{'kind': 'pool', 'name': 'p', 'members': [{'server': 'a1'},"
            " {'server': 'a1'}]}]");
    const struct object *server = pair_find(&x, K_SERVER, "a1");
    assert_int_equal(validate_in_use(&x.objects, K_SERVER, server->id, &x.problems), 2);
    assert_string_equal(pair_codes(&x), "in_use in_use");
    assert_string_equal(x.problems.items[0].name, "p");
    assert_string_equal(x.problems.items[1].name, "web");
    assert_string_equal(x.problems.items[1].pointer, "/members/0/server");
    assert_non_null(strstr(x.problems.items[1].message, "the server \"a1\""));
    const struct object *service = pair_find(&x, K_SERVICE, "site");
    assert_int_equal(validate_in_use(&x.objects, K_SERVICE, service->id, pair_clear(&x)), 0);
    assert_int_equal(x.problems.count, 0);
    pair_fini(&x);
}

static void
the_port_of_the_tables_is_reserved_and_bound_where_there_is_one(void **state)
{
    struct pair x;
    struct bind *binds;

    (void)state;
    pair_init(
        &x, "[{'kind': 'node', 'peers_port': 9000}, {'kind': 'listener', 'name': 'a',"
            " 'port': 9000}, {'kind': 'listener', 'name': 'b', 'port': 8444}]");
    validate_all(&x.objects, NOW_S, &x.problems);
    assert_string_equal(pair_codes(&x), "reserved_port");
    assert_string_equal(x.problems.items[0].name, "a");
    assert_int_equal(validate_binds(&x.objects, NULL, &binds), 4);
    free(binds);
    pair_fini(&x);
    pair_init(
        &x, "[{'kind': 'node', 'peers_port': 8443}, {'kind': 'pool', 'name': 'p',"
            " 'stick': 'source', 'enabled': false}]");
    validate_all(&x.objects, NOW_S, &x.problems);
    assert_string_equal(pair_codes(&x), "reserved_port");
    assert_string_equal(x.problems.items[0].pointer, "/peers_port");
    assert_int_equal(validate_binds(&x.objects, NULL, &binds), 0);
    free(binds);
    pair_fini(&x);
    pair_init(
        &x, "[{'kind': 'node', 'peers_port': 9000}, {'kind': 'pool', 'name': 'p',"
            " 'stick': 'source'}]");
    assert_int_equal(validate_binds(&x.objects, NULL, &binds), 1);
    assert_string_equal(binds[0].address, "127.0.0.1");
    assert_int_equal(binds[0].port, 9000);
    assert_int_equal(binds[0].object->kind, K_NODE);
    free(binds);
    assert_int_equal(validate_binds(&x.objects, "2001:db8::1", &binds), 2);
    assert_string_equal(binds[0].address, "127.0.0.1");
    assert_false(binds[0].vip);
    assert_string_equal(binds[1].address, "2001:db8::1");
    assert_true(binds[1].vip);
    free(binds);
    pair_fini(&x);
}

static void
binds_are_those_of_enabled_listeners_in_order(void **state)
{
    struct pair x;
    struct bind *binds = NULL;
    (void)state;
    pair_init(
        &x,
        "[{'kind': 'listener', 'name': 'a', 'port': 443, 'addresses': ['::', '0.0.0.0']},"
        "{'kind': 'listener', 'name': 'b', 'port': 80, 'addresses': ['10.0.0.2', '10.0.0.1']},"
        "{'kind': 'listener', 'name': 'c', 'port': 81, 'enabled': false}]");
    assert_int_equal(validate_binds(&(struct snapshot_pair){x.shared, NULL}, NULL, &binds), 4);
    assert_string_equal(binds[0].address, "10.0.0.1");
    assert_int_equal(binds[0].port, 80);
    assert_string_equal(binds[1].address, "10.0.0.2");
    assert_string_equal(binds[2].address, "0.0.0.0");
    assert_string_equal(binds[3].address, "::");
    assert_string_equal(binds[3].object->name.s, "a");
    free(binds);
    pair_fini(&x);
}

/* ---- certificates ---- */

static json_t *
certificate(const char *name, const char *const *names, int days)
{
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;
    struct error e;
    buf_init(&chain, 65536);
    buf_init(&key, 65536);
    assert_int_equal(x509_selfsigned(names, NOW_S, days, &chain, &key, &e), ERR_OK);
    return json_pack(
        "{s:s, s:s, s:s, s:s}", "kind", "certificate", "name", name, "chain", buf_str(&chain),
        "key", buf_str(&key));
}

static void
tls_pair(struct pair *x, const char *hosts, json_t *cert, bool at_listener)
{
    char text[4096];
    assert_true(
        snprintf(
            text, sizeof(text),
            "[" WEB ",{'kind': 'listener', 'name': 'https', 'port': 443, 'tls': true,"
            " 'certificates': [%s]},"
            "{'kind': 'service', 'name': 'two', 'listeners': ['https'], 'pool': 'web',"
            " 'certificate': %s, 'hosts': [%s]}]",
            at_listener ? "'cert'" : "", at_listener ? "null" : "'cert'", hosts) < 4096);
    json_t *objects = pair_json(text);
    json_array_append_new(objects, cert);
    pair_init_json(x, objects);
    json_decref(objects);
    validate_all(&x->objects, NOW_S, &x->problems);
}

static void
certificate_must_name_the_hosts(void **state)
{
    static const char *const names[] = {"b.test", "*.c.test", NULL};

    static const struct {
        const char *hosts;
        const char *codes;
    } cases[] = {
        {"'b.test'", ""},
        {"'b.test', 'x.c.test'", ""},
        {"'*.c.test'", ""},
        {"'c.test'", "certificate_names"},
        {"'y.x.c.test'", "certificate_names"},
        {"'x.b.test', 'y.b.test'", "certificate_names"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        struct pair x;
        tls_pair(&x, cases[i / 2].hosts, certificate("cert", names, 90), i % 2 != 0);
        assert_string_equal(pair_codes(&x), cases[i / 2].codes);
        assert_int_equal(x.problems.errors, 0);
        pair_fini(&x);
    }
}

static void
certificate_warns_before_and_after_its_end(void **state)
{
    static const char *const names[] = {"b.test", NULL};
    struct pair x;
    (void)state;
    tls_pair(&x, "'b.test'", certificate("cert", names, 90), true);
    assert_int_equal(x.problems.count, 0);
    validate_all(&x.objects, NOW_S + (90 - 15) * DAY_S, pair_clear(&x));
    assert_int_equal(x.problems.count, 0);
    validate_all(&x.objects, NOW_S + (90 - 13) * DAY_S, pair_clear(&x));
    assert_string_equal(pair_codes(&x), "certificate_expires");
    validate_all(&x.objects, NOW_S + 91 * DAY_S, pair_clear(&x));
    assert_string_equal(pair_codes(&x), "certificate_expired");
    assert_int_equal(x.problems.errors, 0);
    validate_object(pair_find(&x, K_CERTIFICATE, "cert"), NOW_S + 91 * DAY_S, &x.problems);
    assert_string_equal(pair_codes(&x), "certificate_expired");
    validate_all(&x.objects, NOW_S - 2 * DAY_S, pair_clear(&x));
    assert_string_equal(pair_codes(&x), "certificate_not_yet");
    pair_fini(&x);
}

static void
key_of_another_certificate_is_refused(void **state)
{
    static const char *const names[] = {"b.test", NULL};
    struct pair x;
    json_t *cert = certificate("cert", names, 90);
    json_t *other = certificate("cert", names, 90);
    (void)state;
    json_object_set(cert, "key", json_object_get(other, "key"));
    json_decref(other);
    tls_pair(&x, "'b.test'", cert, true);
    validate_object(pair_find(&x, K_CERTIFICATE, "cert"), NOW_S, pair_clear(&x));
    assert_string_equal(pair_codes(&x), "certificate_key");
    assert_string_equal(x.problems.items[0].pointer, "/key");
    assert_int_equal(x.problems.errors, 1);
    validate_object(pair_find(&x, K_POOL, "web"), NOW_S, pair_clear(&x));
    assert_int_equal(x.problems.count, 0);
    pair_fini(&x);
}

static void
other_objects_have_no_costly_check(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, "[" WEB "]");
    for (size_t i = 0; i < snapshot_count(x.shared); i++) {
        validate_object(snapshot_at(x.shared, i), NOW_S, &x.problems);
    }
    assert_int_equal(x.problems.count, 0);
    pair_fini(&x);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_what_is_wrong_and_where),
        cmocka_unit_test(only_warnings_leave_no_error),
        cmocka_unit_test(dangling_references_are_named),
        cmocka_unit_test(users_of_an_object_are_listed_once_each),
        cmocka_unit_test(the_port_of_the_tables_is_reserved_and_bound_where_there_is_one),
        cmocka_unit_test(binds_are_those_of_enabled_listeners_in_order),
        cmocka_unit_test(certificate_must_name_the_hosts),
        cmocka_unit_test(certificate_warns_before_and_after_its_end),
        cmocka_unit_test(key_of_another_certificate_is_refused),
        cmocka_unit_test(other_objects_have_no_costly_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

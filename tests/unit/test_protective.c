/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/change_lab.h"

/* C263 */
static void
replace_does_not_undo_a_protection_by_leaving_it_out(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_CREATE, K_LISTENER, NULL, "{'name':'t','port':443,'tls':true}");
    lab_works(w);
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':444}");
    lab_fails(w, ERR_INVALID, "would undo", "left_out listener t /tls");
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':444,'tls':true}");
    lab_works(w);
    /* By a word, or where there is nothing to undo. */
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':444,'tls':false}");
    lab_works(w);
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':445}");
    lab_works(w);
    lab_op(w, CHANGE_MERGE, K_LISTENER, "t", "{'tls':true}");
    lab_works(w);
    lab_op(w, CHANGE_MERGE, K_LISTENER, "t", "{'tls':null}");
    lab_works(w);
}

static void
what_was_off_or_checked_stays_so(void **state)
{
    struct change_lab *w = *state;

    lab_op(
        w, CHANGE_MERGE, K_POOL, "p",
        "{'enabled':false,'stick':'cookie','cookie_secure':true}");
    lab_works(w);
    lab_op(w, CHANGE_REPLACE, K_POOL, "p", "{'stick':'cookie'}");
    lab_fails(
        w, ERR_INVALID, "would undo",
        "left_out pool p /enabled\nleft_out pool p /monitor\nleft_out pool p /cookie_secure");
    lab_op(
        w, CHANGE_REPLACE, K_POOL, "p",
        "{'enabled':true,'stick':'cookie','monitor':null,'cookie_secure':false}");
    lab_works(w);
    /* A default that is not empty can be the open one, too. */
    lab_op(w, CHANGE_MERGE, K_LISTENER, "l", "{'addresses':['127.0.0.1']}");
    lab_works(w);
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "l", "{'port':81}");
    lab_fails(w, ERR_INVALID, "would undo", "left_out listener l /addresses");
}

static void
what_has_no_meaning_any_more_may_go(void **state)
{
    struct change_lab *w = *state;

    lab_op(
        w, CHANGE_CREATE, K_LISTENER, NULL,
        "{'name':'t','port':443,'tls':true,'strict_sni':true,'tls_min_version':'TLSv1.3'}");
    lab_works(w);
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':443,'tls':true}");
    lab_fails(
        w, ERR_INVALID, "would undo",
        "left_out listener t /tls_min_version\nleft_out listener t /strict_sni");
    /* Not by leaving that out as well. */
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':443}");
    lab_fails(
        w, ERR_INVALID, "would undo",
        "left_out listener t /tls\nleft_out listener t /tls_min_version\n"
        "left_out listener t /strict_sni");
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':443,'tls':false}");
    lab_works(w);
}

/* Without its "not", a rule that denies all but some would deny these alone. */
static void
an_item_of_a_list_keeps_its_not(void **state)
{
    struct change_lab *w = *state;

    lab_op(
        w, CHANGE_CREATE, K_CONDITION, NULL,
        "{'name':'office','type':'src','values':['192.0.2.0/24']}");
    lab_op(w, CHANGE_CREATE, K_CONDITION, NULL, "{'name':'crypt','type':'tls'}");
    lab_op(
        w, CHANGE_CREATE, K_RULE, NULL,
        "{'name':'r','service':'s','action':'deny',"
        "'conditions':[{'condition':'office','negate':true}]}");
    lab_works(w);
    lab_op(
        w, CHANGE_MERGE, K_RULE, "r",
        "{'conditions':[{'condition':'crypt'},{'condition':'office'}]}");
    lab_fails(w, ERR_INVALID, "would undo", "left_out rule r /conditions/1/negate");
    lab_op(w, CHANGE_REPLACE, K_RULE, "r", "{'service':'s','action':'deny'}");
    lab_fails(w, ERR_INVALID, "would undo", "left_out rule r /conditions");
    lab_op(
        w, CHANGE_MERGE, K_RULE, "r",
        "{'conditions':[{'condition':'crypt'},{'condition':'office','negate':true}]}");
    lab_works(w);
    lab_op(
        w, CHANGE_MERGE, K_RULE, "r", "{'conditions':[{'condition':'office','negate':false}]}");
    lab_works(w);
}

/* ---- every field is decided ---- */

#define PROTECTS "" /* its default opens, or switches on, what somebody closed */

/* Why a field may be left out of a PUT. */
#define SAFE    "its default is the safe one"
#define REFUSED "the object is refused without it, or nothing of it is left to protect"
#define WORDS   "it is for people"
#define SHARE   "it is about how load is shared, not about who gets in"
#define TIMES   "its default is a limit as well"
#define LOOK    "it is about how an answer looks or travels, not about who gets it"
#define SENT    "it is about what a check sends; what it accepts is protected"

static const struct decision {
    const char *field; /* kind.field or kind.field.field */
    const char *reason;
} decisions[] = {
    {"admin.note", WORDS},
    {"automation_key.scope", PROTECTS},
    {"automation_key.pools", PROTECTS},
    {"automation_key.note", WORDS},
    {"condition.key", REFUSED},
    {"condition.match", PROTECTS},
    {"condition.values", REFUSED},
    {"condition.ignore_case", PROTECTS},
    {"condition.note", WORDS},
    {"haproxy.maxconn", TIMES},
    {"haproxy.nbthread", SHARE},
    {"haproxy.http_request_timeout_ms", TIMES},
    {"haproxy.http_keep_alive_timeout_ms", TIMES},
    {"haproxy.hard_stop_after_s", TIMES},
    {"haproxy.log_target", PROTECTS},
    {"haproxy.log_format", LOOK},
    {"haproxy.extra_global", PROTECTS},
    {"haproxy.extra_defaults", PROTECTS},
    {"haproxy.error_title", WORDS},
    {"haproxy.error_text", WORDS},
    {"listener.enabled", PROTECTS},
    {"listener.mode", REFUSED},
    {"listener.addresses", PROTECTS},
    {"listener.allowed_networks", PROTECTS},
    {"listener.trusted_proxies", PROTECTS},
    {"listener.accept_proxy", PROTECTS},
    {"listener.accept_proxy_networks", PROTECTS},
    {"listener.tls", PROTECTS},
    {"listener.certificates", "connections stay encrypted; a placeholder is shown"},
    {"listener.tls_min_version", PROTECTS},
    {"listener.alpn", LOOK},
    {"listener.strict_sni", PROTECTS},
    {"listener.client_timeout_ms", TIMES},
    {"listener.maxconn", PROTECTS},
    {"listener.extra", PROTECTS},
    {"monitor.type", PROTECTS},
    {"monitor.interval_ms", TIMES},
    {"monitor.timeout_ms", TIMES},
    {"monitor.rise", TIMES},
    {"monitor.fall", TIMES},
    {"monitor.port", "the server's own port is checked then"},
    {"monitor.tls", "the check is encrypted as the pool's connections are"},
    {"monitor.sni", SENT},
    {"monitor.send_proxy", SENT},
    {"monitor.method", SENT},
    {"monitor.http_version", SENT},
    {"monitor.path", SENT},
    {"monitor.host", SENT},
    {"monitor.expect_status", PROTECTS},
    {"monitor.body_match", PROTECTS},
    {"monitor.expect_body", REFUSED},
    {"monitor.user", SENT},
    {"monitor.domain", SENT},
    {"monitor.steps", REFUSED},
    {"monitor.steps.action", "a step has no name by which it would be the same one"},
    {"monitor.agent_send", SENT},
    {"node.name", WORDS},
    {"node.url", WORDS},
    {"node.peers_port", "only the other nodes are let in"},
    {"node.peers_address", "only the other nodes are let in"},
    {"node.keep_in_step", "a node that is held says so, and nothing is less safe"},
    {"node.note", WORDS},
    {"pool.enabled", PROTECTS},
    {"pool.mode", REFUSED},
    {"pool.balance", SHARE},
    {"pool.uri_len", SHARE},
    {"pool.uri_depth", SHARE},
    {"pool.uri_whole", SHARE},
    {"pool.url_param", SHARE},
    {"pool.hdr_name", SHARE},
    {"pool.hash_type", SHARE},
    {"pool.hash_function", SHARE},
    {"pool.hash_avalanche", SHARE},
    {"pool.members", "without servers nothing is answered, which opens nothing"},
    {"pool.members.weight", SHARE},
    {"pool.members.role", SHARE},
    {"pool.monitor", PROTECTS},
    {"pool.slowstart_ms", SHARE},
    {"pool.stick", SHARE},
    {"pool.cookie_name", LOOK},
    {"pool.cookie_httponly", SAFE},
    {"pool.cookie_secure", PROTECTS},
    {"pool.cookie_samesite", PROTECTS},
    {"pool.stick_table_size", TIMES},
    {"pool.stick_table_expire_ms", TIMES},
    {"pool.send_proxy", PROTECTS},
    {"pool.http_reuse", PROTECTS},
    {"pool.compression", SAFE},
    {"pool.compression_types", LOOK},
    {"pool.tls", PROTECTS},
    {"pool.tls_verify", SAFE},
    {"pool.ca", PROTECTS},
    {"pool.verifyhost", PROTECTS},
    {"pool.sni", PROTECTS},
    {"pool.sni_name", REFUSED},
    {"pool.alpn", LOOK},
    {"pool.client_certificate", "servers that ask for it refuse the connection then"},
    {"pool.connect_timeout_ms", TIMES},
    {"pool.server_timeout_ms", TIMES},
    {"pool.queue_timeout_ms", TIMES},
    {"pool.tunnel_timeout_ms", TIMES},
    {"pool.idle_timeout_ms", TIMES},
    {"pool.retries", TIMES},
    {"rule.enabled", PROTECTS},
    {"rule.service", REFUSED},
    {"rule.listener", REFUSED},
    {"rule.order", PROTECTS},
    {"rule.match", PROTECTS},
    {"rule.conditions", PROTECTS},
    {"rule.conditions.negate", PROTECTS},
    {"rule.status", LOOK},
    {"rule.content_type", LOOK},
    {"rule.body", WORDS},
    {"rule.redirect_by", REFUSED},
    {"rule.target", REFUSED},
    {"rule.pool", REFUSED},
    {"rule.path_prefix", LOOK},
    {"rule.path", LOOK},
    {"rule.header", REFUSED},
    {"rule.value", REFUSED},
    {"rule.note", WORDS},
    {"server.maxconn", PROTECTS},
    {"server.maxqueue", SHARE},
    {"server_state.state", PROTECTS},
    {"server_state.weight", PROTECTS},
    {"server_state.note", WORDS},
    {"service.enabled", PROTECTS},
    {"service.hosts", PROTECTS},
    {"service.path", PROTECTS},
    {"service.certificate", "connections stay encrypted; the listener's is shown"},
    {"service.redirect_https", SAFE},
    {"service.allowed_networks", PROTECTS},
    {"service.rate_limit", PROTECTS},
    {"service.rate_limit_period_s", PROTECTS},
    {"service.note", WORDS},
    {"vip_group.primary", WORDS},
    {"vip_group.note", WORDS},
    {"webui.name", WORDS},
    {"webui.hosts", "without it nothing is published"},
    {"webui.listener", "the pages are asked for by the same names, from the same networks"},
    {"webui.position", SAFE},
    {"webui.allowed_networks", SAFE},
    {"webui.chain", "the listener shows one of its own certificates"},
    {"webui.key", "a chain without its key is refused"},
    {"webui.note", WORDS},
};

static size_t
expect_decided(const char *prefix, const struct schema_field *fields, uint32_t count)
{
    size_t seen = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct schema_field *f = &fields[i];
        const struct decision *found = NULL;
        char name[128];

        (void)snprintf(name, sizeof name, "%s.%s", prefix, f->name);
        seen += f->type == FT_RECORD ? expect_decided(name, f->fields, f->field_count) : 0;
        if (f->required || f->read_only) {
            assert_false(f->protective);
            continue;
        }
        for (size_t j = 0; j < ARRAY_LEN(decisions); j++) {
            found = strcmp(decisions[j].field, name) == 0 ? &decisions[j] : found;
        }
        if (found == NULL) {
            fail_msg("%s: decide whether a PUT may leave it out", name);
        } else if (f->protective != (found->reason[0] == '\0')) {
            fail_msg("%s: the schema says otherwise", name);
        }
        seen++;
    }
    return seen;
}

/* What is required cannot be left out, and what the product sets no caller gives. */
static void
of_every_field_it_is_decided_whether_it_protects(void **state)
{
    size_t seen = 0;

    (void)state;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);

        seen += expect_decided(kind->name, kind->fields, kind->field_count);
    }
    assert_int_equal(seen, ARRAY_LEN(decisions));
}

static int
setup(void **state)
{
    *state = change_lab_new();
    return 0;
}

static int
teardown(void **state)
{
    change_lab_free(*state);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            replace_does_not_undo_a_protection_by_leaving_it_out, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_off_or_checked_stays_so, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_meaning_any_more_may_go, setup, teardown),
        cmocka_unit_test_setup_teardown(an_item_of_a_list_keeps_its_not, setup, teardown),
        cmocka_unit_test(of_every_field_it_is_decided_whether_it_protects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, lists and directives: texts of users that only look like expressions pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/running.h"
#include "helper/refuse_tables.h"
#include "model/schema.h"

struct row {
    const char *section, *line;
    const char *told; /* part of the message; NULL: allowed */
};

static const struct row rows[] = {
    {"frontend f", "acl is.a path,concat(/) -m beg -i -f acl/a.list", NULL},
    {"frontend f", "http-request return status 200 content-type a/b file body/a.txt if a",
     NULL},
    {"frontend f", "http-request set-header X map(/etc/x) if is.a", NULL},
    {"frontend f", "http-request add-header X \"%%[path,map(/etc/x)]\" if is.a", NULL},
    {"frontend f", "http-request set-path /map(/x)", NULL},
    {"frontend f", "http-request replace-path \"^map(/.*)?\\$\" \"/map(\\\\1)\"", NULL},
    {"frontend f", "http-request redirect location \"/?map(/x)\" code 302", NULL},
    {"frontend f", "http-request set-header use-service x", NULL},
    {"frontend f", "http-after-response set-header lua.x map(/x) if { var(txn.a) -m found }",
     NULL},
    {"frontend f", "http-request set-src req.hdr_ip(X-Forwarded-For,-1) if is.a", NULL},
    {"frontend f", "tcp-request connection expect-proxy layer4 if { src -f acl/a.list }", NULL},
    {"frontend f", "tcp-request session reject if !{ src -f acl/a.list }", NULL},
    {"backend b", "stick-table type ipv6 size 100k expire 10s store http_req_rate(10s)", NULL},
    {"frontend f", "http-request set-header X %[path,map(/x)]", "no file"},
    {"frontend f", "http-request set-header X %%%[path,map(/x)]", "no file"},
    {"frontend f", "http-request set-header X map(/x) if { path,map(/y) -m found }", "no file"},
    {"frontend f", "http-request redirect location /%{+Q}[path,map(/x)]", "no file"},
    {"frontend f", "http-request return status 200 content-type a/b file body/b.txt",
     "no file"},
    {"frontend f", "http-request lua.x", "runs code"},
    {"frontend f", "tcp-request content lua.x", "runs code"},
    {"frontend f", "tcp-request session reject if !{ src -f acl/b.list }", "no file"},
};

/* Its value becomes another without a check: nothing may make a number of it, or a pattern. */
static const struct row running[] = {
    {"frontend f", "http-request set-var(txn.a) str(digest),map(" RUNNING_MAP ")", NULL},
    {"frontend f", "http-request set-var(txn.a) str(digest),map(" RUNNING_MAP ",x)", NULL},
    {"frontend f", "http-request set-var(txn.a) path,map_str_int(" RUNNING_MAP ")", "alone"},
    {"frontend f", "acl a str(digest),map_str_ip(" RUNNING_MAP ") -m found", "alone"},
    {"frontend f", "http-request track-sc0 path,map_reg(" RUNNING_MAP ")", "alone"},
    {"frontend f", "http-request set-header X %[path,map_str(" RUNNING_MAP ")]", "alone"},
    {"frontend f", "acl a path -m len -f " RUNNING_MAP, "alone"},
    {"frontend f", "acl a path -M -f " RUNNING_MAP, "alone"},
    {"frontend f", "http-request deny if { path -m reg -f " RUNNING_MAP " }", "alone"},
    {"frontend f", "http-request set-map(" RUNNING_MAP ") a b", "alone"},
    {"frontend f", "http-request add-acl(" RUNNING_MAP ") a", "alone"},
    {"frontend f", "http-request return content-type a/b file " RUNNING_MAP, "alone"},
    {"frontend f", "bind :443 ssl crt " RUNNING_MAP, "alone"},
    {"backend b", "server s 10.0.0.1:443 ssl ca-file " RUNNING_MAP, "alone"},
    {"defaults", "errorfile 503 " RUNNING_MAP, "alone"},
    {"global", "ssl-dh-param-file " RUNNING_MAP, "alone"},
};

/* A file of the generation whose bytes HAProxy would take for expressions, or an expression in
 * a place where only a format stands: nothing of that reaches a file of somebody else. */
static const struct row evaluated[] = {
    {"frontend f", "http-request return content-type a/b lf-file body/a.txt", "evaluates"},
    {"frontend f", "http-request return lf-file acl/a.list content-type a/b if a", "evaluates"},
    {"frontend f", "http-request deny status 403 lf-file body/a.txt", "evaluates"},
    {"frontend f", "http-request tarpit lf-file body/a.txt", "evaluates"},
    {"backend b", "http-response return content-type a/b lf-file body/a.txt", "evaluates"},
    {"backend b", "http-response deny content-type a/b lf-file body/a.txt", "evaluates"},
    {"backend b", "http-after-response return lf-file body/a.txt", "evaluates"},
    {"defaults", "http-error status 503 content-type a/b lf-file body/a.txt", "evaluates"},
    {"frontend f", "http-request return content-type a/b lf-string %[path,map(/x)]", "no file"},
    {"frontend f", "http-request return content-type a/b string %[path,map(/x)]", "no file"},
    {"frontend f", "http-request return status 200 hdr X %[path,map(/x)]", "no file"},
    {"defaults", "http-error status 503 content-type a/b lf-string %[path,map(/x)]", "no file"},
    {"defaults", "http-error status 503 hdr X %[path,map(/x)]", "no file"},
    {"frontend f", "log-format %[path,map(/x)]", "no file"},
    {"frontend f", "log-format-sd %[path,map(/x)]", "no file"},
    {"frontend f", "error-log-format %[path,map(/x)]", "no file"},
    {"frontend f", "unique-id-format %[path,map(/x)]", "no file"},
    {"frontend f", "capture request header a,map(/x) len 10", "no file"},
    {"frontend f", "http-request capture path,map(/x) len 10", "no file"},
    {"frontend f", "http-request replace-header X a %[path,map(/x)]", "no file"},
    {"frontend f", "http-request replace-path a %[path,map(/x)]", "no file"},
    {"frontend f", "http-request set-var-fmt(txn.a) %[path,map(/x)]", "no file"},
    {"frontend f", "http-request track-sc0 path,map(/x)", "no file"},
    {"frontend f", "redirect location %[path,map(/x)]", "no file"},
    {"frontend f", "monitor fail if { path,map(/x) -m found }", "no file"},
    {"frontend f", "filter bwlim-in a key path,map(/x) table t limit 1m", "no file"},
    {"global", "set-var proc.a str(a),map(/x)", "no file"},
    {"global", "set-var-fmt proc.a %[str(a),map(/x)]", "no file"},
    {"backend b", "http-check send meth GET uri-lf /%[str(a),map(/x)]", "no file"},
    {"backend b", "http-check send meth GET uri / body-lf %[str(a),map(/x)]", "no file"},
    {"backend b", "http-check send meth GET uri / hdr X %[str(a),map(/x)]", "no file"},
    {"backend b", "http-check set-var(check.a) str(a),map(/x)", "no file"},
    {"backend b", "http-check expect status 200 on-success %[str(a),map(/x)]", "no file"},
    {"backend b", "tcp-check send-lf %[str(a),map(/x)]", "no file"},
    {"backend b", "tcp-check expect string a on-error %[str(a),map(/x)]", "no file"},
    {"backend b", "server s 10.0.0.1:80 ssl sni str(a),map(/x)", "no file"},
    {"backend b", "use-server %[path,map(/x)] if a", "no file"},
    {"backend b", "balance hash path,map(/x)", "no file"},
    {"backend b", "stick store-request path,map(/x)", "no file"},
    /* Words that mean a text in another line. */
    {"frontend f", "acl replace-path path,map(/x) -m found", "no file"},
    {"frontend f", "acl set-path path,map(/x) -m found", "no file"},
    {"frontend f", "use_backend replace-path %[path,map(/x)]", "no file"},
    {"frontend f", "tcp-request replace-path path,map(/x)", "no file"},
    {"frontend f", "http-response set-header X map(/x)", "no file"},
    {"backend b", "http-check replace-path path,map(/x)", "no file"},
    {"backend b", "http-check set-header X path,map(/x)", "no file"},
    {"backend b", "http-after-response replace-path path,map(/x)", "no file"},
    {"backend b", "stick replace-path path,map(/x)", "no file"},
    {"global", "set-var replace-path str(a),map(/x)", "no file"},
    {"frontend f", "http-request set-map[/x) a b", "no file"},
    {"frontend f", "http-request add-acl /x", "no file"},
    {"global", "server-state-file unix@/run/lockstep/server-state", "server states"},
    /* Rules in another line's clothes. */
    {"frontend f", "stats http-request return content-type a/b file /x", "not allowed here"},
    {"frontend f", "stats http-request lua.x", "not allowed here"},
    {"listen l", "stats http-request deny lf-file /x if a", "not allowed here"},
    {"defaults", "stats enable", "not allowed here"},
    /* HAProxy itself sets this one to what "localpeer" says. */
    {"frontend f", "bind '${HAPROXY_LOCALPEER}'", "environment variable"},
    {"frontend f", "bind ${HAPROXY_LOCALPEER}", "environment variable"},
    {"frontend f", "bind \"\\${HAPROXY_LOCALPEER}\"", "environment variable"},
    {"frontend f", "bind $HAPROXY_LOCALPEER", "environment variable"},
    {"frontend f", "bind ipv4@${HAPROXY_LOCALPEER}", "environment variable"},
    {"frontend f", "bind :80,${HAPROXY_LOCALPEER}", "environment variable"},
    {"global", "log ${HAPROXY_LOCALPEER} local0", "environment variable"},
    {"global", "stats socket ${HAPROXY_LOCALPEER}", "is not the admin socket"},
    {"peers p", "peer a ${HAPROXY_LOCALPEER}", "environment variable"},
    {"resolvers r", "nameserver n ${HAPROXY_LOCALPEER}", "environment variable"},
    {"backend b", "server s ${HAPROXY_LOCALPEER}", "environment variable"},
    {"backend b", "server s 10.0.0.1:80 addr ${HAPROXY_LOCALPEER}", "environment variable"},
    {"backend b", "server s 10.0.0.1:80 source ${HAPROXY_LOCALPEER}", "environment variable"},
    {"backend b", "default-server source ${HAPROXY_LOCALPEER}", "environment variable"},
    {"backend b", "source 0.0.0.0 usesrc ${HAPROXY_LOCALPEER}", "environment variable"},
    {"backend b", "dispatch ${HAPROXY_LOCALPEER}", "environment variable"},
    {"backend b", "tcp-check connect addr ${HAPROXY_LOCALPEER}", "environment variable"},
    /* What is only sent. */
    {"frontend f", "http-request return content-type a/b file body/a.txt", NULL},
    {"defaults", "http-error status 503 errorfile body/a.txt", NULL},
};

static void
list_files(struct staged *list)
{
    staged_init(list);
    staged_add(list, "acl/a.list");
    staged_add(list, "body/a.txt");
    staged_add(list, RUNNING_MAP);
    staged_sort(list);
}

static void
check(const struct row *table, size_t count)
{
    struct staged list;
    const struct refuse r = {.files = &list, .run_dir = "/run/lockstep"};

    list_files(&list);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_fini) struct buf text;
        struct error e = {.code = ERR_OK};
        err_t code;

        buf_init(&text, 1 << 16);
        buf_printf(
            &text, "global\n    default-path config\n%s\n    %s\n", table[i].section,
            table[i].line);
        code = refuse_config(&r, text.data, text.len, &e);
        if ((code == ERR_OK) != (table[i].told == NULL) ||
            (table[i].told != NULL && strstr(e.msg, table[i].told) == NULL)) {
            fail_msg("[%s]: %s", table[i].line, e.msg);
        }
    }
    staged_fini(&list);
}

static void
lines_of_rules_are_told_from_what_they_look_like(void **state)
{
    (void)state;
    check(rows, ARRAY_LEN(rows));
}

static void
only_the_converter_map_reads_which_files_run(void **state)
{
    static const char certificates[] = "body/a.txt [ocsp " RUNNING_MAP "]\n";
    struct staged list;
    const struct refuse r = {.files = &list, .run_dir = "/run/lockstep"};
    struct error e;

    (void)state;
    check(running, ARRAY_LEN(running));
    list_files(&list);
    assert_int_equal(
        refuse_crt_list(&r, "crt-list/a.list", certificates, sizeof certificates - 1, &e),
        ERR_DENIED);
    assert_non_null(strstr(e.msg, "alone"));
    staged_fini(&list);
}

static void
no_expression_names_a_file_of_somebody_else(void **state)
{
    (void)state;
    check(evaluated, ARRAY_LEN(evaluated));
}

/* Every directive that a user may add is one that the helper lets through. */
static void
keywords_of_the_schema_are_allowed(void **state)
{
    static const struct {
        enum text_type type;
        const char *section;
    } places[] = {
        {TT_GLOBAL_DIRECTIVE, "global"},
        {TT_DEFAULTS_DIRECTIVE, "defaults"},
        {TT_LISTENER_DIRECTIVE, "frontend"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const struct schema_keyword *k = schema_text_type_keywords[places[i].type];

        assert_non_null(k->word);
        for (; k->word != NULL; k++) {
            char keyword[64] = "";

            assert_true(strcspn(k->word, " ") < sizeof keyword);
            memcpy(keyword, k->word, strcspn(k->word, " "));
            if (!refuse_section_allows(refuse_section_find(places[i].section), keyword) ||
                refuse_reason(keyword) != NULL) {
                fail_msg("[%s] [%s]", places[i].section, k->word);
            }
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_rules_are_told_from_what_they_look_like),
        cmocka_unit_test(only_the_converter_map_reads_which_files_run),
        cmocka_unit_test(no_expression_names_a_file_of_somebody_else),
        cmocka_unit_test(keywords_of_the_schema_are_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

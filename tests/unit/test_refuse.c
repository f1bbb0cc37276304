/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper/refuse.h"
#include "helper/refuse_tables.h"
#include "helper/words.h"
#include "tests/support/golden.h"

#define RUN_DIR "/run/lockstep"

static const char *const staged_names[] = {
    "crt-list/a.list", "crt/a.pem", "error/503.http", "haproxy.cfg", "map/a.map",
};

struct files {
    struct staged list;
    struct refuse refuse;
};

static void
files_init(struct files *f)
{
    staged_init(&f->list);
    for (size_t i = 0; i < ARRAY_LEN(staged_names); i++) {
        staged_add(&f->list, staged_names[i]);
    }
    staged_sort(&f->list);
    f->refuse = (struct refuse){.files = &f->list, .run_dir = RUN_DIR};
}

static void
files_cleanup(struct files *f)
{
    staged_fini(&f->list);
}

/* A line in a section, or with section NULL a whole file. */
static err_t
check(const char *section, const char *line, struct error *e)
{
    CLEANUP(files_cleanup) struct files f;
    CLEANUP(buf_fini) struct buf text;

    files_init(&f);
    buf_init(&text, 1 << 20);
    if (section != NULL) {
        buf_printf(&text, "global\n    default-path config\n%s\n    %s\n", section, line);
    } else {
        buf_puts(&text, line);
    }
    *e = (struct error){.code = ERR_OK};
    return refuse_config(&f.refuse, text.data, text.len, e);
}

struct hostile {
    const char *section;
    const char *line;
    const char *told; /* part of the message */
};

static const struct hostile hostile[] = {
    /* what runs programs or loads code, as text and in disguise */
    {NULL, "program x\n", "line 1: \"program\" runs programs"},
    {NULL, "global\n\nprogram x\n", "line 3: \"program\""},
    {NULL, "\"program\" x\n", "\"program\""},
    {NULL, "'program' x\n", "\"program\""},
    {NULL, "pro\"gra\"m x\n", "\"program\""},
    {NULL, "pro'gram' x\n", "\"program\""},
    {NULL, "pro\\x67ram x\n", "\"program\""},
    {NULL, "\\x70\\x72ogram x\n", "\"program\""},
    {NULL, "pro\\gram x\n", "pro\\gram"},
    {NULL, "   \t program x\n", "\"program\""},
    {NULL, "no program x\n", "\"program\""},
    {NULL, "default program x\n", "\"program\""},
    {NULL, "global\nprogram# x\n", "\"program\""},
    {"global", "external-check", "runs programs"},
    {"backend b", "external-check command /bin/true", "runs programs"},
    {"backend b", "option external-check", "runs programs"},
    {"backend b", "no option external-check", "runs programs"},
    {"global", "insecure-fork-wanted", "lets HAProxy run programs"},
    {"global", "insecure-setuid-wanted", "lets HAProxy run programs"},
    {"global", "lua-load /etc/x.lua", "loads code"},
    {"global", "lua-load-per-thread x", "loads code"},
    {"global", "lua-prepend-path /x", "loads code"},
    {"global", "module-load x.so", "loads code"},
    {"global", "ssl-engine rdrand", "loads code"},
    {"global", "ssl-provider default", "loads code"},
    {"global", "ssl-provider-path /x", "loads code"},
    {"frontend f", "http-request lua.x", "runs code"},
    {"frontend f", "http-request use-service lua.x", "runs code"},
    {"frontend f", "tcp-request content lua.x", "runs code"},
    {"frontend f", "filter spoe engine x config /etc/x", "another configuration"},
    {"frontend f", "filter opentracing config x", "another configuration"},
    {"frontend f", "filter", "another configuration"},
    {"backend b", "use-fcgi-app x", "not"},
    /* sections that are none of ours */
    {NULL, "mailers m\n", "sends mail"},
    {NULL, "ring r\n", "writes a file"},
    {NULL, "fcgi-app a\n", "another program"},
    {NULL, "crt-store s\n", "generation"},
    {NULL, "log-forward l\n", "not allowed here"},
    {NULL, "traces\n", "not allowed here"},
    {NULL, "bind 127.0.0.1:80\n", "not allowed here"},
    {"cache c", "bind 127.0.0.1:80", "not allowed here"},
    {NULL, "[A]\n", "not allowed here"},
    {NULL, ".if defined(X)\n", "not allowed here"},
    {"global", ".if 1", "not allowed here"},
    {"global", ".alert x", "not allowed here"},
    /* who HAProxy is and where */
    {"global", "user root", "whom HAProxy runs as"},
    {"global", "user haproxy root", "whom HAProxy runs as"},
    {"global", "user", "whom HAProxy runs as"},
    {"global", "group root", "whom HAProxy runs as"},
    {"global", "uid 0", "whom HAProxy runs as"},
    {"global", "gid 0", "whom HAProxy runs as"},
    {"global", "setcap cap_sys_admin", "may do"},
    {"global", "chroot /", "empty directory"},
    {"global", "chroot", "empty directory"},
    {"global", "chroot /var/lib/haproxy/../..", "empty directory"},
    {"global", "daemon", "supervisor"},
    {"global", "master-worker no-exit-on-failure", "supervisor"},
    {"global", "pidfile /etc/x", "writes a file"},
    {"global", "setenv A b", "environment"},
    {"global", "presetenv A b", "environment"},
    {"global", "resetenv", "environment"},
    {"global", "unsetenv PATH", "environment"},
    {"global", "unix-bind prefix /x", "moves sockets"},
    {"global", "default-path origin /etc", "out of the generation"},
    {"global", "default-path parent", "out of the generation"},
    {"global", "default-path", "out of the generation"},
    {NULL, "defaults\n errorfile 503 error/503.http\n", "before default-path"},
    {NULL, "frontend f\n acl a path -f map/a.map\nglobal\n default-path config\n",
     "before default-path"},
    {"global", "crt-base /etc", "out of the generation"},
    {"global", "ca-base /etc", "out of the generation"},
    {"global", "key-base /etc", "out of the generation"},
    {"global", "issuers-chain-path /etc", "outside the generation"},
    {"global", "tune.ssl.keylog on", "not allowed here"},
    {"global", "expose-experimental-directives", "not allowed here"},
    /* sockets */
    {"global", "stats socket /tmp/x level admin", "is not the admin socket"},
    {"global", "stats socket ipv4@0.0.0.0:9999 level admin", "is not the admin socket"},
    {"global", "stats socket " RUN_DIR "/helper.sock", "is not the admin socket"},
    {"global", "stats socket " RUN_DIR "/x/../haproxy.sock", "is not the admin socket"},
    {"global", "stats socket " RUN_DIR "/haproxy.sock,/tmp/y", "is not the admin socket"},
    {"global", "stats socket", "is not the admin socket"},
    {"global", "stats socket " RUN_DIR "/haproxy.sock mode 666", "mode"},
    {"global", "stats socket " RUN_DIR "/haproxy.sock mode", "mode"},
    {"global", "stats socket " RUN_DIR "/haproxy.sock user nobody", "user"},
    {"global", "stats socket " RUN_DIR "/haproxy.sock expose-fd all", "expose-fd"},
    {"global", "stats bind-process 1", "not allowed here"},
    {"global", "log /etc/x local0", "no internet address"},
    {"global", "log fd@2 local0", "no internet address"},
    {"global", "log ring@r local0", "no internet address"},
    {"frontend f", "bind /tmp/x", "no internet address"},
    {"frontend f", "bind unix@/tmp/x", "no internet address"},
    {"frontend f", "bind " RUN_DIR "/run.sock", "no internet address"},
    {"frontend f", "bind unix@" RUN_DIR "/haproxy.sock", "no internet address"},
    {"frontend f", "bind unix@" RUN_DIR "/probe.sock,/tmp/x", "no internet address"},
    {"frontend f", "bind 127.0.0.1:80,/tmp/x", "no internet address"},
    {"frontend f", "bind 127.0.0.1:80,fd@3", "no internet address"},
    {"frontend f", "bind abns@x", "no internet address"},
    {"frontend f", "bind sockpair@3", "no internet address"},
    {"frontend f", "bind udp@unix@/x", "no internet address"},
    {"frontend f", "bind 127.0.0.1:80 namespace x", "network of this node"},
    {"peers p", "bind /tmp/x", "no internet address"},
    {"peers p", "peer a unix@/tmp/x", "no internet address"},
    {"peers p", "server a /tmp/x", "no internet address"},
    {"backend b", "server s " RUN_DIR "/run.sock", "no internet address"},
    {"backend b", "server s unix@" RUN_DIR "/helper.sock", "no internet address"},
    {"backend b", "server s abns@x", "no internet address"},
    {"backend b", "server s 10.0.0.1:80 addr /tmp/x", "no internet address"},
    {"backend b", "server s 10.0.0.1:80 check agent-addr unix@/x", "no internet address"},
    {"backend b", "server s 10.0.0.1:80 socks4 /x", "no internet address"},
    {"backend b", "server s 10.0.0.1:80 namespace x", "network of this node"},
    {"backend b", "server-template s 1-3 /x:80", "no internet address"},
    {"backend b", "dispatch /x", "no internet address"},
    {"backend b", "http-check connect addr /x port 80", "no internet address"},
    {"backend b", "tcp-check connect addr unix@/x", "no internet address"},
    {"resolvers r", "nameserver n unix@/x", "no internet address"},
    {"backend b", "email-alert to x", "sends mail"},
    /* files */
    {"frontend f", "bind :443 ssl crt /etc/x.pem", "no file of this generation"},
    {"frontend f", "bind :443 ssl crt crt", "no file of this generation"},
    {"frontend f", "bind :443 ssl crt crt/../crt/a.pem", "no file of this generation"},
    {"frontend f", "bind :443 ssl crt ./crt/a.pem", "no file of this generation"},
    {"frontend f", "bind :443 ssl crt crt/a.pem crt /etc/x", "no file of this generation"},
    {"frontend f", "bind :443 ssl crt-list /etc/x", "no file of this generation"},
    {"frontend f", "bind :443 ssl crt crt/a.pem ca-file /x", "no file of this generation"},
    {"frontend f", "bind :443 ssl ca-verify-file /x", "no file of this generation"},
    {"frontend f", "bind :443 ssl crl-file /x", "no file of this generation"},
    {"frontend f", "bind :443 ssl tls-ticket-keys /x", "no file of this generation"},
    {"frontend f", "bind :443 ssl default-crt /x", "no file of this generation"},
    {"peers p", "default-bind ssl crt /x", "no file of this generation"},
    {"backend b", "server s 10.0.0.1:80 ssl ca-file /x", "no file of this generation"},
    {"backend b", "server s 10.0.0.1:80 ssl crt /x", "no file of this generation"},
    {"backend b", "default-server inter 1s ssl crl-file /x", "no file of this generation"},
    {"defaults", "errorfile 503 /etc/passwd", "no file of this generation"},
    {"defaults", "errorfile 503", "no file of this generation"},
    {"http-errors e", "errorfile 503 /etc/passwd", "no file of this generation"},
    {"frontend f", "http-request return status 200 file /etc/x", "no file"},
    {"frontend f", "http-request return status 200 lf-file /etc/x", "evaluates"},
    {"frontend f", "http-request deny errorfile /etc/x", "no file"},
    {"frontend f", "http-error status 503 file /etc/x", "no file"},
    {"frontend f", "acl a path -f /etc/passwd", "no file of this generation"},
    {"frontend f", "acl a path -i -m str -f ../x", "no file of this generation"},
    {"frontend f", "acl a path -f", "no file of this generation"},
    {"frontend f", "use_backend b if { path -f /etc/passwd }", "no file"},
    {"frontend f", "use_backend b if !{ path -f /etc/passwd }", "no file"},
    {"frontend f", "use_backend b if { path -- x } { path -f /x }", "no file"},
    {"frontend f", "use_backend %[path,map(/etc/passwd,b)]", "no file"},
    {"frontend f", "use_backend %[path,map_beg(../x)]", "no file"},
    {"frontend f", "use_backend %[path,lower,map_str_int(/x)]", "no file"},
    {"frontend f", "use_backend %[path,map(\\'/x\\')]", "no file"},
    {"frontend f", "stick on src map(/etc/passwd)", "no file"},
    {"frontend f", "http-request set-var(txn.a) path,map(/x)", "no file"},
    {"frontend f", "http-request set-map(/x) a b", "no file"},
    {"frontend f", "http-request del-acl(/x) a", "no file"},
    {"frontend f", "http-request add-acl(map/a.map", "no file"},
    {"frontend f", "http-request deny if { req.hdr(a),jwt_verify(b,/x) }", "key file"},
    {"global", "ssl-dh-param-file /etc/x", "no file of this generation"},
    {"global", "server-state-file /etc/passwd", "server states"},
    {"global", "server-state-base /etc", "server states"},
    {"backend b", "server-state-file-name /etc/passwd", "server states"},
    {"global", "stats-file /etc/x", "not allowed here"},
    {"global", "h1-case-adjust-file /etc/x", "not allowed here"},
    /* the text itself */
    {"frontend f", "http-request set-header X \"$HOME\"", "environment variable"},
    {"frontend f", "http-request set-header X \"${HOME}\"", "environment variable"},
    {"frontend f", "http-request set-header X \"a", "quote that does not end"},
    {"frontend f", "http-request set-header X 'a", "quote that does not end"},
    {"frontend f", "http-request set-header X \\x00", "NUL"},
    {"frontend f", "http-request set-header X \\x4", "\\x without"},
    {"frontend f", "http-request set-header X \\xzz", "\\x without"},
    {"frontend f", "http-request set-header X a\rb", "control character"},
    {"frontend f", "http-request set-header X a\x7f", "control character"},
    {"global", "\"\" program x", "first word that is empty"},
    {NULL, "global\nprogram", "line 2: the line does not end"},
};

static void
hostile_lines_are_refused_with_their_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        struct error e;

        if (check(hostile[i].section, hostile[i].line, &e) != ERR_DENIED ||
            strstr(e.msg, hostile[i].told) == NULL ||
            strncmp(e.msg, "haproxy.cfg line ", 17) != 0) {
            fail_msg("[%s] [%s]: %s", hostile[i].section, hostile[i].line, e.msg);
        }
    }
}

static const struct {
    const char *section;
    const char *line;
} harmless[] = {
    {"global", "no busy-polling"},
    {"global", "chroot /var/lib/haproxy"},
    {"global", "log 192.0.2.1:514 local0"},
    {"global", "log udp@[2001:db8::1]:514 local0"},
    {"global", "log /dev/log local0"},
    {"global", "log stdout format raw local0"},
    {"global", "stats socket unix@" RUN_DIR "/haproxy.sock mode 600 level admin"},
    {"global", "stats timeout 10s"},
    {"global", "ssl-dh-param-file crt/a.pem"},
    {"global", "server-state-file " RUN_DIR "/server-state"},
    {"defaults", "no log"},
    {"defaults", "log global"},
    {"defaults", "errorfile 503 error/503.http"},
    {"frontend f", "bind 127.0.0.1:80,[::1]:80 transparent"},
    {"frontend f", "bind ipv6@:443 ssl crt crt/a.pem crt-list crt-list/a.list"},
    {"frontend f", "bind " RUN_DIR "/probe.sock mode 660"},
    {"frontend f", "acl a path -i -f map/a.map"},
    {"frontend f", "acl a path -- -f /etc/passwd"},
    {"frontend f", "acl a path_beg /api ../x"},
    {"frontend f", "use_backend b if { path -f map/a.map } or !{ path -- -f /x }"},
    {"frontend f", "use_backend %[path,map_beg(map/a.map,b)]"},
    {"frontend f", "http-request set-map(map/a.map) a b"},
    {"frontend f", "http-request return status 200 file error/503.http"},
    {"frontend f", "http-request set-header X file /etc/passwd"},
    {"frontend f", "http-request set-header X \"../../etc/passwd\""},
    {"frontend f", "http-request set-header X '`id` | $(x)' if a # \"$X\""},
    {"frontend f", "http-request use-service prometheus-exporter if a"},
    {"frontend f", "filter compression"},
    {"frontend f", "filter cache c"},
    {"frontend f", "monitor-uri /"},
    {"backend b", "server s 10.0.0.1:80 check addr 10.0.0.2 port 81"},
    {"backend b", "server s www.example.test:80 ssl verify required ca-file crt/a.pem"},
    {"backend b", "server-state-file-name use-backend-name"},
    {"backend b", "http-check connect port 80 addr 10.0.0.1"},
    {"backend b", "http-request set-path /%[path,field(2,/)]"},
    {"backend b", "http-request set-header X roadmap(/etc/x)"},
    {"peers p", "peer a 10.0.0.1:8444"},
    {"resolvers r", "nameserver n udp@10.0.0.1:53"},
    {"userlist u", "user root password $5$x"},
    {"cache c", "max-age 60"},
    {"http-errors e", "errorfile 503 error/503.http"},
    {NULL, ""},
    {NULL, "# program x\n"},
    {NULL, "\n   # program\n\n"},
    {NULL, "frontend f\n# caf\xc3\xa9 $X \"\n"},
};

static void
a_dollar_that_is_escaped_or_outside_double_quotes_is_text(void **state)
{
    struct error e;

    (void)state;
    assert_int_equal(check("frontend f", "http-request set-header X \"\\$X\"", &e), ERR_OK);
    assert_int_equal(check("frontend f", "http-request set-header X $X", &e), ERR_OK);
    assert_int_equal(check("frontend f", "http-request set-header X '$X'", &e), ERR_OK);
}

static void
harmless_lines_are_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        struct error e;

        if (check(harmless[i].section, harmless[i].line, &e) != ERR_OK) {
            fail_msg("[%s] [%s]: %s", harmless[i].section, harmless[i].line, e.msg);
        }
    }
}

static void
a_line_has_at_most_64_words(void **state)
{
    CLEANUP(buf_fini) struct buf line;
    struct error e;

    (void)state;
    buf_init(&line, 4096);
    buf_puts(&line, "acl a path");
    for (int i = 3; i < WORDS_MAX; i++) {
        buf_puts(&line, " x");
    }
    assert_int_equal(check("frontend f", line.data, &e), ERR_OK);
    buf_puts(&line, " x");
    assert_int_equal(check("frontend f", line.data, &e), ERR_DENIED);
    assert_non_null(strstr(e.msg, "more than 64 words"));
}

static void
a_refused_word_is_printable_and_short(void **state)
{
    CLEANUP(buf_fini) struct buf line;
    struct error e;

    (void)state;
    buf_init(&line, 4096);
    buf_puts(&line, "\xff\xc3");
    for (int i = 0; i < 500; i++) {
        buf_putc(&line, 'x');
    }
    assert_int_equal(check("global", line.data, &e), ERR_DENIED);
    assert_non_null(strstr(e.msg, "\"??xxxx"));
    assert_true(strlen(e.msg) < 200);
}

/* Words are read as HAProxy does; each line is followed by what HAProxy 2.6 makes of it. */
static void
words_are_those_that_haproxy_reads(void **state)
{
    static const struct {
        const char *line;
        const char *words; /* with | between them */
    } cases[] = {
        {"a b\tc", "a|b|c"},
        {"a\\ b", "a b"},
        {"a\\\\ b", "a\\|b"},
        {"a\\#b #c", "a#b"},
        {"a#b c", "a"},
        {"\"a b\" 'c d'", "a b|c d"},
        {"\"a'b\" 'c\"d'", "a'b|c\"d"},
        {"a\\\"b \\'c", "a\"b|'c"},
        {"'a\\b\\' c", "a\\b\\|c"},
        {"\"a\\tb\"\\n", "a\tb\n"},
        {"\\r", "\r"},
        {"\\x41\\x7a\\x5C", "Az\\"},
        {"a\\q \\", "a\\q|\\"},
        {"\\$a \"\\$b\"", "\\$a|$b"},
        {"a \"\" b", "a||b"},
        {"a\"b\"'c'd", "abcd"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(words_fini) struct words w;
        CLEANUP(buf_fini) struct buf joined;
        struct error e;

        words_init(&w);
        buf_init(&joined, 4096);
        assert_int_equal(words_parse(&w, span_of(cases[i].line), &e), ERR_OK);
        for (size_t k = 0; k < w.count; k++) {
            buf_printf(&joined, "%s%s", k > 0 ? "|" : "", w.at[k]);
        }
        assert_string_equal(buf_str(&joined), cases[i].words);
    }
}

static err_t
check_list(const char *text, struct error *e)
{
    CLEANUP(files_cleanup) struct files f;

    files_init(&f);
    *e = (struct error){.code = ERR_OK};
    return refuse_crt_list(&f.refuse, "crt-list/a.list", text, strlen(text), e);
}

/* Why C082 cannot be: HAProxy is never given a folder of certificates but a list in our order,
 * which names files of its own generation only; the folder is root's, and a file in it that no
 * list names is not read. */
static void
certificate_lists_name_staged_files_only(void **state)
{
    static const char *const good[] = {
        "",
        "\n  \n",
        "# /etc/x\ncrt/a.pem\n",
        "crt/a.pem [alpn h2,http/1.1 ocsp-update off] a.test *.b.test !c.test\n",
        "crt/a.pem [verify required ca-file crt/a.pem] a.test\n",
    };
    static const char *const bad[] = {
        "/etc/x.pem\n",
        "crt/b.pem a.test\n",
        "crt/a.pem\n../x.pem\n",
        "crt/a.pem [ca-file /etc/x] a.test\n",
        "crt/a.pem[ca-file /etc/x]a.test\n",
        "crt/a.pem [crl-file ../x]\n",
        "crt/a.pem [key /etc/x]\n",
        "crt/a.pem #x [ca-file /etc/x]\n",
        "crt/a.pem a\\ b\n",
        "crt/a.pem \"a\"\n",
        "crt/a.pem $X\n",
        "crt/a.pem\r\n",
        "crt/a.pem",
    };
    struct error e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        if (check_list(good[i], &e) != ERR_OK) {
            fail_msg("[%s]: %s", good[i], e.msg);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (check_list(bad[i], &e) != ERR_DENIED ||
            strncmp(e.msg, "crt-list/a.list line ", 21) != 0) {
            fail_msg("[%s]: %s", bad[i], e.msg);
        }
    }
}

static void
a_list_line_may_name_many_hosts(void **state)
{
    CLEANUP(buf_fini) struct buf text;
    struct error e;

    (void)state;
    buf_init(&text, 65536);
    buf_puts(&text, "crt/a.pem");
    for (int i = 0; i < 500; i++) {
        buf_printf(&text, " h%d.test", i);
    }
    buf_putc(&text, '\n');
    assert_int_equal(check_list(text.data, &e), ERR_OK);
}

static void
add_folder(struct staged *s, const char *folder, const char *name)
{
    CLEANUP(xfree_cleanup) char *path = golden_path(folder, name);
    char **names;
    size_t count = golden_list(path, &names);

    for (size_t i = 0; i < count; i++) {
        char full[512];

        (void)snprintf(full, sizeof full, "%s/%s", name, names[i]);
        staged_add(s, full);
    }
    golden_free(names, count);
}

static void
check_golden(const char *folder)
{
    static const char *const parts[] = {"acl", "body", "ca", "crt", "crt-list", "error", "map"};
    CLEANUP(staged_fini) struct staged files;
    CLEANUP(buf_fini) struct buf text;
    const struct refuse r = {.files = &files, .run_dir = RUN_DIR};
    struct error e = {.code = ERR_OK};

    staged_init(&files);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (golden_is_folder(folder, parts[i])) {
            add_folder(&files, folder, parts[i]);
        }
    }
    staged_sort(&files);
    buf_init(&text, GOLDEN_FILE_MAX_BYTES);
    golden_read(folder, "haproxy.cfg", &text);
    if (refuse_config(&r, text.data, text.len, &e) != ERR_OK) {
        fail_msg("%s: %s", folder, e.msg);
    }
    for (size_t i = 0; i < files.count; i++) {
        if (strncmp(files.names[i], "crt-list/", 9) == 0) {
            buf_reset(&text);
            golden_read(folder, files.names[i], &text);
            if (refuse_crt_list(&r, files.names[i], text.data, text.len, &e) != ERR_OK) {
                fail_msg("%s: %s", folder, e.msg);
            }
        }
    }
}

static void
all_that_is_rendered_is_allowed(void **state)
{
    CLEANUP(xfree_cleanup) char *top = golden_folder("render");
    char **names;
    size_t count = golden_list(top, &names);
    size_t checked = 0;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (golden_is_folder(top, names[i])) {
            CLEANUP(xfree_cleanup) char *folder = golden_path(top, names[i]);

            check_golden(folder);
            checked++;
        }
    }
    golden_free(names, count);
    assert_true(checked > 0);
}

static void
keyword_tables_are_sorted(void **state)
{
    static const char *const sections[] = {
        "global", "defaults",  "frontend", "backend", "listen",
        "peers",  "resolvers", "userlist", "cache",   "http-errors",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        const struct refuse_section *s = refuse_section_find(sections[i]);

        assert_non_null(s);
        for (size_t k = 0; k < s->keyword_count; k++) {
            assert_true(k == 0 || strcmp(s->keywords[k - 1], s->keywords[k]) < 0);
            assert_true(refuse_section_allows(s, s->keywords[k]));
            /* A reason to refuse stands in the way of no keyword that is allowed. */
            assert_null(refuse_reason(s->keywords[k]));
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_lines_are_refused_with_their_number),
        cmocka_unit_test(harmless_lines_are_allowed),
        cmocka_unit_test(a_dollar_that_is_escaped_or_outside_double_quotes_is_text),
        cmocka_unit_test(a_line_has_at_most_64_words),
        cmocka_unit_test(a_refused_word_is_printable_and_short),
        cmocka_unit_test(words_are_those_that_haproxy_reads),
        cmocka_unit_test(certificate_lists_name_staged_files_only),
        cmocka_unit_test(a_list_line_may_name_many_hosts),
        cmocka_unit_test(all_that_is_rendered_is_allowed),
        cmocka_unit_test(keyword_tables_are_sorted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

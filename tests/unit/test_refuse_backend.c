/* SPDX-License-Identifier: Apache-2.0 */
/* What backends and checks may say, and what they may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "helper/refuse.h"

static err_t
check(const char *section, const char *line, struct error *e)
{
    CLEANUP(staged_fini) struct staged files;
    const struct refuse r = {.files = &files, .run_dir = "/run/lockstep"};
    char text[512];
    int bytes = snprintf(
        text, sizeof text, "global\n    default-path config\n%s\n    %s\n", section, line);

    assert_true(bytes > 0 && (size_t)bytes < sizeof text);
    staged_init(&files);
    staged_add(&files, "ca/app.pem");
    staged_sort(&files);
    return refuse_config(&r, text, (size_t)bytes, e);
}

static void
servers_name_staged_files_the_system_trusts_or_nothing(void **state)
{
    static const struct {
        const char *line, *told;
    } hostile[] = {
        {"default-server ssl verify required ca-file /x", "no file of this generation"},
        {"default-server ssl verify required ca-file ca/../x", "no file of this generation"},
        {"default-server ssl verify required ca-file @system-ca/x", "no file"},
        {"server s 10.0.0.1:80 ssl ca-file @system-ca/../x", "no file of this generation"},
        {"default-server ssl verify required crl-file @system-ca",
         "no file of this generation"},
        {"default-server ssl verify required crt @system-ca", "no file of this generation"},
        {"default-server agent-check agent-addr /x", "no internet address"},
        {"tcp-check connect addr /x", "no internet address"},
        {"option external-check", "runs programs"},
    };
    struct error e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        if (check("backend b", hostile[i].line, &e) != ERR_DENIED ||
            strstr(e.msg, hostile[i].told) == NULL) {
            fail_msg("[%s]: %s", hostile[i].line, e.msg);
        }
    }
}

static void
what_backends_need_is_allowed(void **state)
{
    static const struct {
        const char *section, *line;
    } harmless[] = {
        {"backend b",
         "default-server ssl verify required ca-file @system-ca verifyhost a.test"},
        {"backend b", "default-server ssl verify required ca-file ca/app.pem"},
        {"backend b", "default-server sni req.hdr(host),host_only,lower"},
        {"backend b", "default-server agent-check agent-port 99 agent-send \"a\\x0a\""},
        {"backend b", "default-server check check-ssl check-sni a.test check-send-proxy"},
        {"backend b", "default-server send-proxy-v2 slowstart 30s"},
        {"backend b", "tcp-check send \"/etc/passwd \\x0d\\x0a\""},
        {"backend b", "http-check expect rstring \"^/etc/(a|b)\""},
        {"backend b", "option pgsql-check user \"/etc/x\""},
        {"backend b", "cookie A insert indirect nocache httponly attr SameSite=Lax"},
        {"backend b", "stick-table type ipv6 size 100 expire 30m peers lockstep.tables"},
        {"backend b", "compression type text/html"},
        {"frontend f", "disabled"},
        {"peers p", "peer n:1 127.0.0.1:8444"},
        {"frontend f", "bind 10.0.0.1:8444 transparent"},
        {"global", "localpeer n:1"},
    };
    struct error e = {.code = ERR_OK};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        if (check(harmless[i].section, harmless[i].line, &e) != ERR_OK) {
            fail_msg("[%s]: %s", harmless[i].line, e.msg);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_name_staged_files_the_system_trusts_or_nothing),
        cmocka_unit_test(what_backends_need_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

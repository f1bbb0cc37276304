/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/text_rows.h"

static void
networks_are_brought_into_one_form(void **state)
{
    (void)state;
    CHECK(
        TT_NETWORK, SAME("10.0.0.0/8"), BECOMES("10.1.2.3/8", "10.0.0.0/8"), SAME("10.1.2.3"),
        BECOMES("10.1.2.3/32", "10.1.2.3"), SAME("0.0.0.0/0"), SAME("::/0"),
        BECOMES("2001:DB8:0::1/33", "2001:db8::/33"), BECOMES("::1/128", "::1"),
        REFUSED("10.0.0.0/33", "from 0 to 32"), REFUSED("::/129", "from 0 to 128"),
        REFUSED("10.0.0.0/", "from 0 to 32"), REFUSED("10.0.0.0/08", "from 0 to 32"),
        REFUSED("10.0.0.0/8/8", "from 0 to 32"), REFUSED("10.0.0/8", "not an IP address"),
        REFUSED("fe80::1%eth0", "zone"), REFUSED("::ffff:192.0.2.1", "::ffff:"),
        REFUSED("[2001:db8::1]", "without brackets"), REFUSED("a.example/8", "not an IP"));
    CHECK(
        TT_VIP, SAME("192.0.2.10/24"), SAME("192.0.2.10/32"),
        BECOMES("2001:DB8::10/64", "2001:db8::10/64"), REFUSED("192.0.2.10", "prefix length"),
        REFUSED("192.0.2.10/0", "prefix length"), REFUSED("0.0.0.0/8", "no single address"),
        REFUSED("::/8", "no single address"), REFUSED("[::1]/64", "without brackets"));
    CHECK(
        TT_ENDPOINT, SAME(""), SAME("192.0.2.9:514"),
        BECOMES("[2001:DB8::9]:514", "[2001:db8::9]:514"), REFUSED("192.0.2.9", "a port"),
        REFUSED("2001:db8::9:514", "a port"), REFUSED("192.0.2.9:0", "a port"),
        REFUSED("192.0.2.9:65536", "a port"), REFUSED("192.0.2.9:514-515", "a port"),
        REFUSED("[::1]", "a port"), REFUSED("[fe80::1%eth0]:514", "zone"),
        REFUSED("log.example:514", "not an IP address"), REFUSED("/dev/log:1", "not an IP"));
}

static void
texts_of_http_are_taken_as_they_are(void **state)
{
    (void)state;
    CHECK(
        TT_TOKEN, SAME("X-Forwarded-For"), SAME("a_b.c~1"), SAME(""),
        REFUSED("a b", "use only"), REFUSED("a:", "use only"), REFUSED("a(b)", "use only"));
    CHECK(
        TT_HEADER_VALUE, SAME("a \"b\" $HOME %[src] {} ; \\ # '"), SAME(""), SAME("\xc3\xbc"),
        REFUSED(" a", "spaces"), REFUSED("a ", "spaces"));
    CHECK(TT_MATCH_VALUE, SAME("#a b"), SAME("^/x(y|z)$"), REFUSED(" #a", "spaces"));
    CHECK(
        TT_TARGET, SAME(""), SAME("https://a.example/x?y=%20#z"), SAME("/x?y=z"),
        REFUSED("/a b", "%XX"), REFUSED("/\xc3\xbc", "%XX"), REFUSED("ftp://x/", "http"),
        REFUSED("x", "http"));
    CHECK(
        TT_MEDIA_TYPE, SAME("text/html"), SAME("text/plain; charset=utf-8"),
        SAME("a/b+c;x=1; y=2"), REFUSED("text", "media type"), REFUSED("a/b;", "media type"),
        REFUSED("a/b; x", "media type"), REFUSED("a/b x", "media type"),
        REFUSED("/b", "media type"), REFUSED("a/", "media type"));
    CHECK(TT_BODY, SAME(""), SAME("a\n\tb\n"), REFUSED("a\r\n", "line breaks"));
}

static void
directives_have_a_harmless_keyword_and_plain_values(void **state)
{
    (void)state;
    CHECK(
        TT_GLOBAL_DIRECTIVE, SAME("tune.bufsize 32768"), SAME("busy-polling"),
        REFUSED("user root", "\"user root\""), REFUSED("chroot /", "keywords"),
        REFUSED("tune.bufsizes 1", "keywords"), REFUSED("tune", "keywords"),
        REFUSED(" busy-polling", "keywords"), REFUSED("no busy-polling", "keywords"),
        REFUSED("log-tag a/b", "values"), REFUSED("log-tag $X", "values"),
        REFUSED("log-tag \"x\"", "values"), REFUSED("log-tag a#b", "values"),
        REFUSED("log-tag a  b", "values"), REFUSED("log-tag ", "values"));
    CHECK(
        TT_DEFAULTS_DIRECTIVE, SAME("option http-buffer-request"), SAME("retry-on 503,504"),
        REFUSED("option external-check", "keywords"), REFUSED("option", "keywords"),
        REFUSED("errorfile 503 x", "keywords"));
    CHECK(
        TT_LISTENER_DIRECTIVE, SAME("backlog 4096"), SAME("rate-limit sessions 10"),
        REFUSED("bind :80", "keywords"), REFUSED("stats uri /", "keywords"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_brought_into_one_form),
        cmocka_unit_test(texts_of_http_are_taken_as_they_are),
        cmocka_unit_test(directives_have_a_harmless_keyword_and_plain_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

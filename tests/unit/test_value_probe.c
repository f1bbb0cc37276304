/* SPDX-License-Identifier: Apache-2.0 */
/* The text types of pools and of their checks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "tests/support/text_rows.h"

static void
path_of_a_check_may_have_a_query(void **state)
{
    (void)state;
    CHECK(
        TT_PATH_QUERY, SAME("/"), SAME("/a"), SAME("/a?b=c&d=/..//e?f"), SAME("/?%20"),
        REFUSED("", "starts with"), REFUSED("?a", "starts with"), REFUSED("/../?a", "\"..\""),
        REFUSED("/a#b", "query"), REFUSED("/?a#b", "no fragment"), REFUSED("/?a b", "%XX"),
        REFUSED("/?%", "%XX"), REFUSED("/?\xc3\xbc", "%XX"), REFUSED("/?\"", "%XX"));
}

static void
dns_name_is_no_address_and_may_be_empty(void **state)
{
    (void)state;
    CHECK(
        TT_DNS_NAME, SAME(""), SAME("a"), BECOMES("App.Example.Test.", "app.example.test"),
        REFUSED("10.0.0.1", "no number"), REFUSED("::1", "only letters"),
        REFUSED("*.a", "only letters"), REFUSED("a b", "only letters"),
        REFUSED("a)", "only letters"));
}

static void
words_for_haproxy_have_no_meaning_of_their_own(void **state)
{
    (void)state;
    CHECK(
        TT_WORD, SAME(""), SAME("X-Tenant"), SAME("_a.b-9"), REFUSED("-i", "starts with"),
        REFUSED(".a", "starts with"), REFUSED("a b", "only letters"),
        REFUSED("a)", "only letters"), REFUSED("a,b", "only letters"),
        REFUSED("\xc3\xbc", "starts with"));
    CHECK(
        TT_MIME_TYPE, SAME("text/html"), SAME("application/vnd.a+json"),
        REFUSED("", "such as text/html"), REFUSED("text", "such as text/html"),
        REFUSED("text/", "such as text/html"), REFUSED("/html", "such as text/html"),
        REFUSED("a/b/c", "such as text/html"), REFUSED("text/*", "such as text/html"),
        REFUSED("text/html; a", "such as text/html"));
}

static void
text_of_a_check_is_kept_byte_for_byte(void **state)
{
    (void)state;
    CHECK(
        TT_PROBE_TEXT, SAME(""), SAME(" \\r\\n \"'#$HOME %[src] u\xcc\x88"),
        REFUSED("a\nb", "control"), REFUSED("a\tb", "control"), REFUSED("\xff", "UTF-8"));
    CHECK(TT_PEM_CA, SAME(""), REFUSED("x", ""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_of_a_check_may_have_a_query),
        cmocka_unit_test(dns_name_is_no_address_and_may_be_empty),
        cmocka_unit_test(words_for_haproxy_have_no_meaning_of_their_own),
        cmocka_unit_test(text_of_a_check_is_kept_byte_for_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/pem.h"
#include "base/x509.h"

#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END   "-----END CERTIFICATE-----\n"

static void
normal_form_is(const char *pem, const char *want)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e = {.msg = ""};

    buf_init(&out, pem_normal_max(strlen(pem)));
    if (x509_normalize(pem, strlen(pem), &out, &e) != ERR_OK) {
        fail_msg("%s: %s", pem, e.msg);
    }
    assert_string_equal(buf_str(&out), want);
}

static void
refused(const char *pem, size_t bytes, const char *reason)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e = {.msg = ""};

    buf_init(&out, 1000);
    buf_puts(&out, "kept");
    assert_int_equal(x509_normalize(pem, bytes, &out, &e), ERR_INVALID);
    assert_string_equal(buf_str(&out), "kept");
    if (strstr(e.msg, reason) == NULL) {
        fail_msg("%s: wanted \"%s\", got \"%s\"", pem, reason, e.msg);
    }
}

static void
line_ends_blank_lines_and_text_outside_are_normalised(void **state)
{
    (void)state;
    normal_form_is(
        "subject=CN = a\r\n\r\n-----BEGIN CERTIFICATE-----\r\n\r\nQUJD\r\n \t\r\n"
        "-----END CERTIFICATE-----  \r\n\r\nissuer\r\n",
        BEGIN "QUJD\n" END);
    normal_form_is(BEGIN "QUJD\n" END, BEGIN "QUJD\n" END);
    normal_form_is(BEGIN "QUJD\n-----END CERTIFICATE-----", BEGIN "QUJD\n" END);
}

static void
blocks_of_all_kinds_stay_in_order(void **state)
{
    static const char text[] = BEGIN "QUJD\n" END "-----BEGIN EC PRIVATE KEY-----\nQQ==\n"
                                     "-----END EC PRIVATE KEY-----\n" BEGIN "QUI=\n" END;

    (void)state;
    normal_form_is(text, text);
}

static void
lines_are_wrapped_at_64(void **state)
{
    char in[1000];
    char want[1000];
    static const char line[] =
        "QUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJD";

    (void)state;
    (void)snprintf(in, sizeof in, BEGIN "%s%sQUJD\n" END, line, line);
    (void)snprintf(want, sizeof want, BEGIN "%s\n%s\nQUJD\n" END, line, line);
    normal_form_is(in, want);
    normal_form_is(want, want);
    (void)snprintf(in, sizeof in, BEGIN "QUJD\n%s\n%.60s\n" END, line, line);
    (void)snprintf(want, sizeof want, BEGIN "%s\n%s\n" END, line, line);
    normal_form_is(in, want);
    (void)snprintf(in, sizeof in, BEGIN "Q\nU\nJ\nD\n" END);
    normal_form_is(in, BEGIN "QUJD\n" END);
}

static void
maximum_suffices_for_any_input(void **state)
{
    char in[3000];

    (void)state;
    for (size_t n = 4; n <= 2000; n += 4) {
        CLEANUP(buf_fini) struct buf out;
        int len;

        len = snprintf(in, sizeof in, "-----BEGIN A-----\n%0*d\n-----END A-----", (int)n, 0);
        buf_init(&out, pem_normal_max((size_t)len));
        assert_int_equal(x509_normalize(in, (size_t)len, &out, NULL), ERR_OK);
    }
}

static void
broken_blocks_are_refused(void **state)
{
    static const struct {
        const char *pem;
        const char *reason;
    } rows[] = {
        {"", "no PEM block"},
        {"\n\nonly text\n", "no PEM block"},
        {BEGIN "QUJD\n", "block 1 has no end"},
        {BEGIN END, "block 1 is cut off"},
        {BEGIN "QUJ\n" END, "block 1 is cut off"},
        {BEGIN "Q===\n" END, "block 1 is cut off"},
        {BEGIN "QUI=\nQUJD\n" END, "block 1 holds what is not base64"},
        {BEGIN "QU=D\n" END, "block 1 holds what is not base64"},
        {BEGIN "QU D\n" END, "block 1 holds what is not base64"},
        {BEGIN "QU-D\n" END, "block 1 holds what is not base64"},
        {BEGIN "Proc-Type: 4,ENCRYPTED\n\nQUJD\n" END, "block 1 holds what is not base64"},
        {BEGIN "QUJD\n" BEGIN "QUJD\n" END, "block 1 holds what is not base64"},
        {BEGIN "QUJD\n-----END X-----\n", "begins as CERTIFICATE and ends as X"},
        {BEGIN "QUJD\n" END BEGIN "QUJ\n" END, "block 2 is cut off"},
        {END, "block 1 has no proper beginning"},
        {"-----BEGIN CERTIFICATE----\nQUJD\n", "block 1 has no proper beginning"},
        {"-----BEGIN certificate-----\nQUJD\n", "block 1 has no proper beginning"},
        {"-----BEGIN -----\nQUJD\n", "block 1 has no proper beginning"},
        {"-----BEGIN \x1b[2J-----\nQUJD\n", "block 1 has no proper beginning"},
        {"-----", "block 1 has no proper beginning"},
        {"-----BEGIN "
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-----\n",
         "block 1 has no proper beginning"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        refused(rows[i].pem, strlen(rows[i].pem), rows[i].reason);
    }
}

static void
nul_bytes_are_refused_in_blocks(void **state)
{
    static const char pem[] = BEGIN "QU\0D\n" END;

    (void)state;
    refused(pem, sizeof pem - 1, "not base64");
}

static void
normal_form_obeys_the_maximum(void **state)
{
    static const char pem[] = BEGIN "QUJD\n" END;
    CLEANUP(buf_fini) struct buf out;
    struct error e;

    (void)state;
    buf_init(&out, sizeof pem - 2);
    assert_int_equal(x509_normalize(pem, sizeof pem - 1, &out, &e), ERR_LIMIT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_ends_blank_lines_and_text_outside_are_normalised),
        cmocka_unit_test(blocks_of_all_kinds_stay_in_order),
        cmocka_unit_test(lines_are_wrapped_at_64),
        cmocka_unit_test(maximum_suffices_for_any_input),
        cmocka_unit_test(broken_blocks_are_refused),
        cmocka_unit_test(nul_bytes_are_refused_in_blocks),
        cmocka_unit_test(normal_form_obeys_the_maximum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

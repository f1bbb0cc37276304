/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"

static void
text_from_the_node_cannot_drive_the_terminal(void **state)
{
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&out, 1024);
    cli_put_text(&out, "a\033[2J\r\n\tb\x7f");
    assert_string_equal(buf_str(&out), "a\\x1b[2J\\x0d\\x0a\\x09b\\x7f");
    buf_reset(&out);
    cli_put_text(
        &out, "\xc2\x9b"
              "31m");
    assert_null(strstr(buf_str(&out), "\xc2\x9b"));
    buf_reset(&out);
    cli_put_text(&out, "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(buf_str(&out), "gr\xc3\xbc\xc3\x9f");
}

static void
path_segments_are_encoded(void **state)
{
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&out, 1024);
    rest_put_segment(&out, "a/b?c=d&e%2f..~");
    assert_string_equal(buf_str(&out), "a%2Fb%3Fc%3Dd%26e%252f..~");
}

static void
options_are_taken_out_of_the_arguments(void **state)
{
    char a0[] = "publish", a1[] = "--to", a2[] = "x", a3[] = "url", a4[] = "--name=n",
         a5[] = "--plan";
    char *argv[] = {a0, a1, a2, a3, a4, a5, NULL};
    int argc = 6;

    (void)state;
    assert_string_equal(cli_option(&argc, argv, "--to"), "x");
    assert_string_equal(cli_option(&argc, argv, "--name"), "n");
    assert_true(cli_flag(&argc, argv, "--plan"));
    assert_false(cli_flag(&argc, argv, "--plan"));
    assert_int_equal(argc, 2);
    assert_string_equal(argv[1], "url");
    assert_null(argv[2]);
}

static void
every_command_has_a_sentence_of_help(void **state)
{
    (void)state;
    for (const struct command *k = cli_commands; k->name != NULL; k++) {
        size_t len = strlen(k->help);
        assert_true(len > 10 && k->help[len - 1] == '.');
        assert_non_null(k->run);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_from_the_node_cannot_drive_the_terminal),
        cmocka_unit_test(path_segments_are_encoded),
        cmocka_unit_test(options_are_taken_out_of_the_arguments),
        cmocka_unit_test(every_command_has_a_sentence_of_help),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "cli/show.h"

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

/* ---- command lines ---- */

#define WORDS_MAX 16

struct line {
    struct cli cli;
    char text[512];
    char *words[WORDS_MAX];
    int count;
};

/* What becomes of "lockstep TEXT": the status of cli_parse. */
static int
parse(struct line *l, const char *text)
{
    *l = (struct line){.count = 1};
    size_t len = strlen(text);
    assert_true(len < sizeof(l->text));
    memcpy(l->text, text, len + 1);
    char *at = l->text;
    l->words[0] = at;
    while (at != NULL) {
        l->words[l->count++] = at;
        at = strchr(at, ' ');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    return cli_parse(&l->cli, &l->count, l->words);
}

static void
options_stand_anywhere(void **state)
{
    struct line l;

    (void)state;
    assert_int_equal(
        parse(&l, "--json publish --to x http://a --name=n http://b --url u --plan"), 0);
    assert_string_equal(l.cli.command->name, "publish");
    assert_int_equal(l.count, 3);
    assert_string_equal(l.words[1], "http://a");
    assert_string_equal(l.words[2], "http://b");
    assert_null(l.words[3]);
    assert_string_equal(cli_option(&l.cli, "--to"), "x");
    assert_string_equal(cli_option(&l.cli, "--name"), "n");
    assert_string_equal(cli_option(&l.cli, "--url"), "u");
    assert_true(cli_flag(&l.cli, "--plan") && cli_flag(&l.cli, "--json"));
    assert_false(cli_flag(&l.cli, "--apply"));
    assert_null(cli_option(&l.cli, "--check"));
}

static void
what_follows_two_dashes_is_no_option(void **state)
{
    struct line l;

    (void)state;
    assert_int_equal(parse(&l, "get pool -- --json"), 0);
    assert_int_equal(l.count, 3);
    assert_string_equal(l.words[2], "--json");
    assert_false(cli_flag(&l.cli, "--json"));
    assert_int_equal(parse(&l, "import -"), 0);
    assert_string_equal(l.words[1], "-");
}

static void
an_option_that_repeats_keeps_every_value(void **state)
{
    struct line l;

    (void)state;
    assert_int_equal(parse(&l, "apply --only pool/a --only=pool/b --confirm 60"), 0);
    json_t *only = cli_option_list(&l.cli, "--only");
    assert_int_equal(json_array_size(only), 2);
    assert_string_equal(json_string_value(json_array_get(only, 1)), "pool/b");
    json_decref(only);
    assert_int_equal(cli_number(&l.cli, "--confirm", 0), 60);
    assert_int_equal(cli_number(&l.cli, "--timeout", 7), 7);
}

static void
a_wrong_line_is_refused(void **state)
{
    static const char *const wrong[] = {
        "nonsense",
        "get",                              /* KIND is missing */
        "get pool a b",                     /* too many */
        "publish http://a",                 /* --to is missing */
        "publish http://a --to",            /* without a value */
        "publish http://a --to x --plan=1", /* a flag with one */
        "publish http://a --to x --limit 3",
        "--limit 3 history", /* before its command */
        "history --limit many",
        "history --limit -1",
        "history -l",
        "publish http://a --to x --note n", /* of no apply */
        "publish http://a --to x --confirm 60",
        "restore 3 --confirm 60",
        "restore 3 --note n",
        "publish http://a --to x --to y", /* the first would be lost */
        "history --limit 3 --limit 4",
    };
    struct line l;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(parse(&l, wrong[i]), EXIT_USAGE);
    }
    assert_int_equal(parse(&l, "get --help"), 0);
    assert_int_equal(parse(&l, "help nonsense"), 0);
}

static void
what_belongs_to_an_option_goes_with_it(void **state)
{
    struct line l;

    (void)state;
    assert_int_equal(parse(&l, "restore 3 --apply --note n --confirm 60"), 0);
    assert_int_equal(parse(&l, "restore --note n 3 --apply"), 0);
    /* The last one of those that stand before any command holds. */
    assert_int_equal(parse(&l, "--url a status --url b"), 0);
    assert_string_equal(cli_option(&l.cli, "--url"), "b");
}

static void
cut_values_differ_as_the_whole_ones_do(void **state)
{
    char before[201], after[201];

    (void)state;
    for (size_t at = 0; at < 200; at++) {
        for (size_t room = 16; room < 230; room += 7) {
            CLEANUP(buf_fini) struct buf a;
            CLEANUP(buf_fini) struct buf b;

            memset(before, 'x', 200);
            memset(after, 'x', 200);
            before[200] = '\0';
            after[200] = '\0';
            /* One of them ends there, or has another character. */
            after[at] = room % 2 == 0 ? '\0' : 'y';
            buf_init(&a, 1024);
            buf_init(&b, 1024);
            show_cut(before, after, room, &a, &b);
            assert_string_not_equal(buf_str(&a), buf_str(&b));
            assert_true(text_width(buf_str(&a)) <= room && text_width(buf_str(&b)) <= room);
            assert_true(room < 200 || strcmp(buf_str(&a), before) == 0);
        }
    }
}

static void
cut_values_are_cut_between_characters(void **state)
{
    CLEANUP(buf_fini) struct buf a;
    CLEANUP(buf_fini) struct buf b;
    const char *x = "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"
                    "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc";
    const char *y = "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"
                    "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xb6";

    (void)state;
    buf_init(&a, 1024);
    buf_init(&b, 1024);
    show_cut(x, y, 16, &a, &b);
    assert_string_equal(buf_str(&a), "...\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc");
    assert_string_equal(buf_str(&b), "...\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xb6");
}

static void
lines_are_broken_at_blanks_where_there_are_some(void **state)
{
    (void)state;
    assert_int_equal(text_line("one two three", 8), 7);
    assert_int_equal(text_line("one two", 7), 7);
    assert_int_equal(text_line("unbroken", 4), 4);
    assert_int_equal(text_line("", 4), 0);
}

static void
help_fits_the_screen(void **state)
{
    (void)state;
    for (const struct command *k = cli_commands; k->name != NULL; k++) {
        const char *at = k->help;
        assert_non_null(k->run);
        while (*at != '\0') {
            size_t len = strcspn(at, "\n");
            /* An example is copied from its line and must stay whole. */
            assert_true(len <= 80 || strncmp(at, "  lockstep", 10) == 0);
            at += len + 1;
        }
    }
}

static void
times_are_read_without_a_t(void **state)
{
    struct cli c = {.arena = arena_new(4096)};

    (void)state;
    assert_string_equal(show_time(&c, "2026-01-02T03:04:05Z"), "2026-01-02 03:04:05 UTC");
    assert_string_equal(show_time(&c, ""), "");
    arena_free(c.arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_from_the_node_cannot_drive_the_terminal),
        cmocka_unit_test(path_segments_are_encoded),
        cmocka_unit_test(options_stand_anywhere),
        cmocka_unit_test(what_follows_two_dashes_is_no_option),
        cmocka_unit_test(an_option_that_repeats_keeps_every_value),
        cmocka_unit_test(a_wrong_line_is_refused),
        cmocka_unit_test(what_belongs_to_an_option_goes_with_it),
        cmocka_unit_test(cut_values_differ_as_the_whole_ones_do),
        cmocka_unit_test(cut_values_are_cut_between_characters),
        cmocka_unit_test(lines_are_broken_at_blanks_where_there_are_some),
        cmocka_unit_test(help_fits_the_screen),
        cmocka_unit_test(times_are_read_without_a_t),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

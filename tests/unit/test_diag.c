/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "render/diag.h"
#include "tests/support/golden.h"

struct lab {
    struct golden golden;
    struct arena *arena;
    struct problems problems;
};

static int
set_up(void **state)
{
    struct lab *l = xcalloc(1, sizeof *l);

    golden_open(&l->golden, "full");
    l->arena = arena_new(ARENA_DEFAULT_BYTES);
    problems_init(&l->problems, l->arena);
    *state = l;
    return 0;
}

static int
tear_down(void **state)
{
    struct lab *l = *state;

    golden_close(&l->golden);
    arena_free(l->arena);
    free(l);
    return 0;
}

/* Checks that the output means one problem. */
static void
means(struct lab *l, const char *output, const struct problem *wanted)
{
    const struct problem *x = &l->problems.items[0];

    problems_init(&l->problems, l->arena);
    diag_haproxy(output, &l->golden.rendered, &l->problems);
    assert_int_equal(l->problems.count, 1);
    assert_int_equal(x->severity, wanted->severity);
    assert_string_equal(x->code, "haproxy");
    if (wanted->kind == NULL) {
        assert_null(x->kind);
    } else {
        assert_string_equal(x->kind, wanted->kind);
        assert_string_equal(x->name, wanted->name);
    }
    assert_string_equal(x->pointer, wanted->pointer != NULL ? wanted->pointer : "");
    if (wanted->message != NULL) {
        assert_string_equal(x->message, wanted->message);
    }
}

static size_t
line_with(const struct lab *l, const char *text)
{
    const char *s = buf_str(&rendered_find(&l->golden.rendered, "haproxy.cfg")->bytes);
    const char *at = strstr(s, text);
    size_t line = 1;

    assert_non_null(at);
    for (; s < at; s++) {
        line += *s == '\n' ? 1 : 0;
    }
    return line;
}

static void
the_line_leads_to_object_and_field(void **state)
{
    static const char *const forms[] = {
        "[ALERT]    (12) : config : parsing [haproxy.cfg:%zu] : bad\n",
        "[ALERT] (12) : config : parsing [/a/b:c/haproxy.cfg:%zu]: bad",
        "[ALERT]    (12) : config : Parsing [haproxy.cfg:%zu]: bad",
        "[ALERT]    (12) : config : [haproxy.cfg:%zu] : bad\r\n",
        "[ALERT]    (12) : [haproxy.cfg:%zu] : bad",
        "[EMERG]    [haproxy.cfg:%zu] : bad",
    };
    struct lab *l = *state;
    size_t line = line_with(l, "balance leastconn");

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const char *before = forms[i];
        const char *place = strstr(before, "%zu");
        const char *output = arena_printf(
            l->arena, "%.*s%zu%s", (int)(place - before), before, line, place + strlen("%zu"));

        means(
            l, output,
            &(struct problem){SEVERITY_ERROR, NULL, "pool", "app", "/balance", "bad"});
    }
}

static void
a_line_of_nobody_is_kept_without_an_object(void **state)
{
    static const char *const places[] = {
        "haproxy.cfg:1",
        "haproxy.cfg:0",
        "haproxy.cfg:100000",
        "haproxy.cfg:99999999999999999999999",
        "haproxy.cfg:",
        "other.cfg:110",
        ""};
    struct lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        means(
            l, arena_printf(l->arena, "[ALERT] (1) : config : parsing [%s] : x", places[i]),
            &(struct problem){.severity = SEVERITY_ERROR});
    }
}

static void
a_place_inside_the_message_counts_too(void **state)
{
    struct lab *l = *state;
    size_t line = line_with(l, "frontend postgres");

    means(
        l, arena_printf(l->arena, "[ALERT] (1) : config : this [haproxy.cfg:%zu] is odd", line),
        &(struct problem){SEVERITY_ERROR, NULL, "listener", "postgres", "/name", NULL});
    means(
        l, arena_printf(l->arena, "[ALERT] (1) : config : see haproxy.cfg:%zu.", line),
        &(struct problem){SEVERITY_ERROR, NULL, "listener", "postgres", "/name", NULL});
    means(
        l, arena_printf(l->arena, "[ALERT] (1) : config : [haproxy.cfg:%zu", line),
        &(struct problem){SEVERITY_ERROR, NULL, "listener", "postgres", "/name", NULL});
}

static void
notices_and_summaries_are_skipped(void **state)
{
    static const char output[] =
        "[NOTICE]   (1) : haproxy version is 2.6.12\n"
        "\n"
        "Warnings were found.\n"
        "Configuration file is valid\n"
        "[ALERT]    (1) : config : Error(s) found in configuration file : haproxy.cfg\n"
        "[ALERT]    (1) : config : Fatal errors found in configuration.\n";
    struct lab *l = *state;

    diag_haproxy(output, &l->golden.rendered, &l->problems);
    assert_int_equal(l->problems.count, 0);
    diag_haproxy("", &l->golden.rendered, &l->problems);
    assert_int_equal(l->problems.count, 0);
}

static void
names_lead_to_objects_where_there_is_no_line(void **state)
{
    static const struct {
        const char *text, *kind, *name;
    } rows[] = {
        {"backend 'app' has no server available!", "pool", "app"},
        {"missing timeouts for backend 'pg'.", "pool", "pg"},
        {"backend app: broken", "pool", "app"},
        {"about backend app.", "pool", "app"},
        {"proxy 'static' is odd", "pool", "static"},
        {"Proxy 'postgres': unable to find required default_backend", "listener", "postgres"},
        {"Starting frontend https: cannot bind socket [0.0.0.0:443]", "listener", "https"},
        {"'server app/app2' : could not resolve address", "server", "app2"},
        {"Server pg/pg1 is DOWN", "server", "pg1"},
        {"backend 'pg', server 'pg2': unable to find", "server", "pg2"},
        {"'server app/nosuch' : odd", "pool", "app"},
        {"'server pg/app1' : not in that pool", "pool", "pg"},
        {"server 'app1' of nowhere", NULL, NULL},
        {"'server nosuch/app1' : odd", NULL, NULL},
        {"backend 'ap' or backends app", NULL, NULL},
        {"the listener frontend 'https'", "listener", "https"},
        {"frontend'https' in quotes", "listener", "https"},
        {"backend A_Z{9}", NULL, NULL},
        {"backend '@' or `x~", NULL, NULL},
        {"two: backend nosuch, backend app", NULL, NULL},
        {"backend", NULL, NULL},
        {"thebackend app", NULL, NULL},
        {"backend{app}", NULL, NULL},
        {"server", NULL, NULL},
        {"frontend '' here", NULL, NULL},
        {"frontend ...", NULL, NULL},
    };
    struct lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        means(
            l, arena_printf(l->arena, "[WARNING] (1) : config : %s", rows[i].text),
            &(struct problem){
                SEVERITY_WARNING, NULL, rows[i].kind, rows[i].name, "", rows[i].text});
    }
}

static void
a_certificates_file_is_more_telling_than_the_line(void **state)
{
    struct lab *l = *state;
    size_t line = line_with(l, "bind 0.0.0.0:443");

    means(
        l,
        arena_printf(
            l->arena,
            "[ALERT] (1) : config : parsing [haproxy.cfg:%zu] : 'bind' : unable to load from "
            "file 'crt/5eed000000000003.pem'.",
            line),
        &(struct problem){SEVERITY_ERROR, NULL, "certificate", "wild", "", NULL});
    means(
        l,
        arena_printf(
            l->arena, "[ALERT] (1) : config : parsing [haproxy.cfg:%zu] : no 'crt/nosuch.pem'.",
            line),
        &(struct problem){SEVERITY_ERROR, NULL, "listener", "https", "/addresses", NULL});
}

static void
the_placeholder_is_nobodys_certificate(void **state)
{
    struct lab *l = *state;

    golden_close(&l->golden);
    golden_open(&l->golden, "tls");
    means(
        l, "[ALERT] (1) : config : cannot load 'crt/placeholder.pem'",
        &(struct problem){.severity = SEVERITY_ERROR});
}

static void
indented_lines_belong_to_the_message_before_them(void **state)
{
    struct lab *l = *state;

    means(
        l, "[WARNING] (1) : config : odd.\n   | While\n\t| more\n   | end",
        &(struct problem){SEVERITY_WARNING, .message = "odd. | While | more | end"});
}

static void
what_has_no_level_is_kept_as_a_warning(void **state)
{
    struct lab *l = *state;

    means(
        l, "Segmentation fault\n",
        &(struct problem){SEVERITY_WARNING, .message = "Segmentation fault"});
    means(
        l, "[DIAG] (1) : config : mind this",
        &(struct problem){SEVERITY_WARNING, .message = "mind this"});
    means(l, "[WARNING", &(struct problem){SEVERITY_WARNING, .message = "[WARNING"});
}

static void
foreign_bytes_do_not_get_through(void **state)
{
    struct lab *l = *state;
    char output[3000];

    means(
        l,
        "[ALERT] (1) : a\x01\xff\x7f"
        "b",
        &(struct problem){SEVERITY_ERROR, .message = "a ? b"});
    means(
        l, "[ALERT] (1) : \xc3\xbc", &(struct problem){SEVERITY_ERROR, .message = "\xc3\xbc"});
    means(
        l, "[ALERT] (1) : \xc3\xbc \xc2\x85\xc3",
        &(struct problem){SEVERITY_ERROR, .message = "\xc3\xbc ?"});
    means(l, "[ALERT] (1) : \x02x", &(struct problem){SEVERITY_ERROR, .message = "x"});
    memset(output, 'x', sizeof output - 1);
    output[sizeof output - 1] = '\0';
    means(l, output, &(struct problem){SEVERITY_WARNING});
    assert_in_range(strlen(l->problems.items[0].message), 400, 1000);
}

static void
every_message_of_many_is_counted(void **state)
{
    struct lab *l = *state;
    struct buf CLEANUP(buf_fini) out;

    buf_init(&out, 100000);
    for (int i = 0; i < PROBLEMS_MAX + 20; i++) {
        buf_puts(&out, "[ALERT] (1) : config : bad\n");
    }
    diag_haproxy(buf_str(&out), &l->golden.rendered, &l->problems);
    assert_int_equal(l->problems.errors, PROBLEMS_MAX + 20);
    assert_int_equal(l->problems.count, PROBLEMS_MAX);
}

#define WITH_LAB(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LAB(the_line_leads_to_object_and_field),
        WITH_LAB(a_line_of_nobody_is_kept_without_an_object),
        WITH_LAB(a_place_inside_the_message_counts_too),
        WITH_LAB(notices_and_summaries_are_skipped),
        WITH_LAB(names_lead_to_objects_where_there_is_no_line),
        WITH_LAB(a_certificates_file_is_more_telling_than_the_line),
        WITH_LAB(the_placeholder_is_nobodys_certificate),
        WITH_LAB(indented_lines_belong_to_the_message_before_them),
        WITH_LAB(what_has_no_level_is_kept_as_a_warning),
        WITH_LAB(foreign_bytes_do_not_get_through),
        WITH_LAB(every_message_of_many_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

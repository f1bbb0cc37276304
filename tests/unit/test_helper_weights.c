/* SPDX-License-Identifier: Apache-2.0 */
/* When the checker need not run, and when it must. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/running.h"
#include "helper/weights.h"
#include "tests/support/helper_lab.h"
#include "tests/support/self.h"

#define DIGEST      "0123456789abcdef"
#define DIGEST2     "fedcba9876543210"
#define GLOBAL(hex) "global\n    description \"lockstep " hex "\"\n"
#define SERVER(n)   "    server a 192.0.2.1:80 weight " n

static bool
may_skip(const char *before, const char *after)
{
    return weights_config(span_of(before), span_of(after));
}

/* ---- pairs of configurations ------------------------------------------------------------ */

struct pair {
    const char *before, *after;
};

/* Lines of a backend. */
static const struct pair weights[] = {
    {SERVER("1"), SERVER("256")},
    {SERVER("256"), SERVER("0")},
    {SERVER("10"), SERVER("100")},
    {SERVER("100"), SERVER("10")},
    {SERVER("19"), SERVER("20")},
    {SERVER("1 maxconn 5 backup"), SERVER("2 maxconn 5 backup")},
    {SERVER("1 cookie \"x y\" # z"), SERVER("2 cookie \"x y\" # z")},
    {SERVER("1 weight 3"), SERVER("2 weight 3")},
    {"\tserver \"a\" [2001:db8::1]:80  weight 1", "\tserver \"a\" [2001:db8::1]:80  weight 2"},
};

static const struct pair others[] = {
    /* not a weight from 0 to 256, written plainly */
    {SERVER("1"), SERVER("257")},
    {SERVER("1"), SERVER("1000")},
    {SERVER("1"), SERVER("99999999999999999999")},
    {SERVER("1"), SERVER("010")},
    {SERVER("1"), SERVER("00")},
    {SERVER("1"), SERVER("+2")},
    {SERVER("1"), SERVER("-2")},
    {SERVER("1"), SERVER("2%")},
    {SERVER("1"), SERVER("0x2")},
    {SERVER("1"), SERVER("2.5")},
    {SERVER("1"), SERVER("")},
    {SERVER("1"), SERVER("\"2\"")},
    {SERVER("1"), SERVER("2\\")},
    {SERVER("1"), SERVER("2#")},
    {SERVER("1"), SERVER("2\r")},
    {SERVER("1"), SERVER("2\t")},
    {SERVER("1"), SERVER("2 ")},
    {SERVER("1 check"), SERVER("2  check")},
    {SERVER("1%"), SERVER("2%")},
    {SERVER("1a"), SERVER("2a")},
    {SERVER("1\"\""), SERVER("2\"\"")},
    {SERVER("1\t"), SERVER("2\t")},
    {"    server a b weight1", "    server a b weight2"},
    {SERVER("300"), SERVER("2")},
    {SERVER("010"), SERVER("10")},
    /* not of a server */
    {"    # server a 192.0.2.1:80 weight 1", "    # server a 192.0.2.1:80 weight 2"},
    {"    server a 192.0.2.1:80 # weight 1", "    server a 192.0.2.1:80 # weight 2"},
    {"    default-server weight 1", "    default-server weight 2"},
    {"    default-server x y weight 1", "    default-server x y weight 2"},
    {"    server-template a 2 x:80 weight 1", "    server-template a 2 x:80 weight 2"},
    {"    no server a x:80 weight 1", "    no server a x:80 weight 2"},
    {"    use-server weight 1", "    use-server weight 2"},
    {"    server weight 1", "    server weight 2"},
    {"    server a weight 1", "    server a weight 2"},
    {"    server a b weight weight 1", "    server a b weight weight 2"},
    {"    server a b cookie weight 1", "    server a b cookie weight 2"},
    {"    server a b \"c weight 1\"", "    server a b \"c weight 2\""},
    {"    server a \"b weight 1\"", "    server a \"b weight 2\""},
    {"    server a b\\ weight 1", "    server a b\\ weight 2"},
    {"    server a b 'weight 1'", "    server a b 'weight 2'"},
    {"    server a b \"weight\" 1", "    server a b \"weight\" 2x"},
    /* more than that */
    {SERVER("1"), "    server b 192.0.2.1:80 weight 2"},
    {SERVER("1"), "    server a 192.0.2.2:80 weight 2"},
    {SERVER("1"), "   server a 192.0.2.1:80 weight 2"},
    {SERVER("1"), SERVER("2 backup")},
    {SERVER("1 backup"), SERVER("2")},
    {SERVER("1 maxconn 5"), SERVER("2 maxconn 6")},
    {SERVER("1"), SERVER("2 weight 3")},
    {SERVER("1 weight 3"), SERVER("2 weight 4")},
    {SERVER("1"), "    server a 192.0.2.1:80 Weight 2"},
    {SERVER("1"), SERVER("2\n    server b 192.0.2.1:80 weight 2")},
    {SERVER("1\n    server b 192.0.2.1:80 weight 2"), SERVER("2")},
    {SERVER("1\n    server b 192.0.2.1:80 weight 2"),
     "    server b 192.0.2.1:80 weight 2\n" SERVER("1")},
    {SERVER("1"), "    # comment\n" SERVER("2")},
    /* nothing */
    {SERVER("1"), SERVER("1")},
};

static void
compare_pair(const struct pair *p, bool want)
{
    char before[1024];
    char after[1024];

    (void)snprintf(
        before, sizeof before, GLOBAL(DIGEST) "backend b\n%s\nbackend c\n", p->before);
    (void)snprintf(after, sizeof after, GLOBAL(DIGEST2) "backend b\n%s\nbackend c\n", p->after);
    if (may_skip(before, after) != want) {
        fail_msg("\"%s\" and \"%s\"", p->before, p->after);
    }
}

static void
weights_of_servers_may_differ(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(weights); i++) {
        compare_pair(&weights[i], true);
    }
    assert_true(may_skip("backend b\n" SERVER("1") "\n", "backend b\n" SERVER("2") "\n"));
}

static void
nothing_else_of_a_line_may_differ(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        compare_pair(&others[i], false);
    }
}

static void
the_digest_may_differ_where_it_stands(void **state)
{
#define TAIL(n) "backend b\n" SERVER(n) "\n"
    static const char *const other[] = {
        GLOBAL("fedcba987654321") TAIL("2"),
        GLOBAL("fedcba98765432100") TAIL("2"),
        GLOBAL("FEDCBA9876543210") TAIL("2"),
        GLOBAL("fedcba987654321g") TAIL("2"),
        GLOBAL("") TAIL("2"),
        "global\n    description \"lockstop " DIGEST2 "\"\n" TAIL("2"),
        "global\n    description 'lockstep " DIGEST2 "'\n" TAIL("2"),
        "global\n    description lockstep\\ " DIGEST2 "\n" TAIL("2"),
        "global\n    description \"lockstep " DIGEST2 "\" x\n" TAIL("2"),
        "global\n  description \"lockstep " DIGEST2 "\"\n" TAIL("2"),
        "global\r\n    description \"lockstep " DIGEST2 "\"\r\n" TAIL("2"),
        "\nglobal\n    description \"lockstep " DIGEST2 "\"\n" TAIL("2"),
        "    description \"lockstep " DIGEST2 "\"\nglobal\n" TAIL("2"),
        GLOBAL(DIGEST2) "backend b\n" SERVER("2"),
        GLOBAL(DIGEST2) TAIL("2") "\n",
        GLOBAL(DIGEST2),
        "",
    };
    static const char elsewhere[] = "global\n  frontend f\n    description \"lockstep %s\"\n%s";
    static const char twice[] = GLOBAL("%s") "    description \"lockstep %s\"\n" TAIL("%d");
    char before[512];
    char after[512];

    (void)state;
    assert_true(may_skip(GLOBAL(DIGEST) TAIL("1"), GLOBAL(DIGEST2) TAIL("2")));
    assert_true(may_skip(GLOBAL(DIGEST) TAIL("1"), GLOBAL(DIGEST) TAIL("2")));
    assert_false(may_skip(GLOBAL(DIGEST) TAIL("1"), GLOBAL(DIGEST2) TAIL("1")));
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        if (may_skip(GLOBAL(DIGEST) TAIL("1"), other[i]) ||
            may_skip(other[i], GLOBAL(DIGEST) TAIL("1"))) {
            fail_msg("%s", other[i]);
        }
    }
    (void)snprintf(before, sizeof before, elsewhere, DIGEST, TAIL("1"));
    (void)snprintf(after, sizeof after, elsewhere, DIGEST2, TAIL("2"));
    assert_false(may_skip(before, after));
    (void)snprintf(before, sizeof before, twice, DIGEST, DIGEST, 1);
    (void)snprintf(after, sizeof after, twice, DIGEST2, DIGEST2, 2);
    assert_false(may_skip(before, after));
#undef TAIL
}

static void
a_nul_is_no_end(void **state)
{
    static const char before[] = GLOBAL(DIGEST) "backend b\n" SERVER("1") "\n#\0 a\n";
    char after[sizeof before];

    (void)state;
    memcpy(after, before, sizeof before);
    strstr(after, "weight 1")[7] = '2';
    assert_true(weights_config(
        (struct span){before, sizeof before - 1}, (struct span){after, sizeof after - 1}));
    after[sizeof after - 3] = 'b';
    assert_false(weights_config(
        (struct span){before, sizeof before - 1}, (struct span){after, sizeof after - 1}));
    strstr(after, "weight 2")[7] = '\0';
    assert_false(weights_config(
        (struct span){before, sizeof before - 1}, (struct span){after, sizeof after - 1}));
}

/* ---- each byte of one configuration ----------------------------------------------------- */

static const char flipped_before[] =
    "global\n    default-path config\n    description \"lockstep " DIGEST "\"\n"
    "defaults\n    mode http # weight 1\n"
    "backend b\n    default-server weight 7 maxconn 7\n"
    "    server weight 192.0.2.1:80 weight 1 maxconn 5\n"
    "    server b 192.0.2.2:80 weight 100 cookie \"weight 4\"\n"
    "    server c 192.0.2.3:80 weight 25\n"
    "frontend f\n    http-request set-header x \" weight 5 \"\n";

/* What may stand where the number of the first three digits at most begins. */
static bool
is_plain_weight(const char *number)
{
    size_t n = strspn(number, "0123456789");
    int64_t value;

    return n > 0 && n <= 3 && (number[n] == ' ' || number[n] == '\n') &&
           (number[0] != '0' || n == 1) && span_number((struct span){number, n}, 256, &value);
}

static bool
is_allowed(const char *text, size_t at)
{
    static const char *const servers[] = {
        "server weight 192.0.2.1:80 weight ", "server b 192.0.2.2:80 weight ",
        "server c 192.0.2.3:80 weight "};
    const char *digest = strstr(flipped_before, DIGEST);
    size_t start = (size_t)(digest - flipped_before);

    if (at >= start && at < start + strlen(DIGEST)) {
        return text[at] != '\0' && strchr("0123456789abcdef", text[at]) != NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        const char *found = strstr(flipped_before, servers[i]);
        size_t number = (size_t)(found - flipped_before) + strlen(servers[i]);
        size_t digits = strspn(flipped_before + number, "0123456789");

        if (at >= number && at < number + digits) {
            /* As many as before: a space amid would make the rest of the line another. */
            return strspn(text + number, "0123456789") == digits &&
                   is_plain_weight(text + number);
        }
    }
    return false;
}

static void
each_byte_that_is_changed_is_seen(void **state)
{
    char after[sizeof flipped_before];
    struct span before = {flipped_before, sizeof flipped_before - 1};
    size_t skipped = 0;

    (void)state;
    memcpy(after, flipped_before, sizeof after);
    /* One weight differs anyway. */
    memcpy(strstr(after, "weight 25"), "weight 26", 9);
    for (size_t at = 0; at < before.n; at++) {
        char was = after[at];

        for (int c = 0; c < 256; c++) {
            bool same = (char)c == flipped_before[at];
            bool want;

            after[at] = (char)c;
            /* The weight that differs may become the one of before. */
            want = same ? strcmp(after, flipped_before) != 0 : is_allowed(after, at);
            if (weights_config(before, (struct span){after, before.n}) != want) {
                fail_msg("byte %zu as %d: %s", at, c, after);
            }
            skipped += want && !same;
        }
        after[at] = was;
    }
    /* 16 digits with 15 other values each, then the digits of the weights 1; 100; 25. */
    assert_int_equal(skipped, 16 * 15 + 9 + (1 + 9 + 9) + (8 + 9));
}

/* ---- in the helper ---------------------------------------------------------------------- */

#define CONFIG(hex, n) GLOBAL(hex) "backend b\n" SERVER(n) "\n"
#define RUNNING(hex)   RUNNING_KEY " " hex "\n"
#define WARNED         "WARNED"
#define WARNING        "[WARNING]  (1) : config : parsing [haproxy.cfg:1] : x\n"
#define LATER          CONFIG(DIGEST2, "2"), RUNNING(DIGEST2)

static void
put(struct helper_lab *l, int n, const char *config, const char *running)
{
    helper_lab_put(l, n, "haproxy.cfg", config);
    helper_lab_put(l, n, RUNNING_MAP, running);
    helper_lab_put(l, n, "map/a.map", "a b\n");
    helper_lab_put(l, n, "error/503.http", "HTTP/1.0 503\r\n\r\n");
}

static void
call(struct helper_lab *l, const char *verb, int n)
{
    char request[64];

    (void)snprintf(request, sizeof request, "{'verb': '%s', 'generation': %d}", verb, n);
    helper_lab_ok(l, request);
}

/* Stages n; the checker must have run, or not. */
static void
stages(struct helper_lab *l, int n, bool checked)
{
    call(l, "stage", n);
    assert_int_equal(helper_lab_int(l, "exit_status"), 0);
    assert_string_equal(helper_lab_text(l, "output"), checked ? "checked\n" : "");
    assert_int_equal(json_is_true(json_object_get(l->answer, "only_weights")), !checked);
}

/* 1 is current. */
static void
begin(struct helper_lab *l)
{
    put(l, 1, CONFIG(DIGEST, "1"), RUNNING(DIGEST));
    stages(l, 1, true);
    call(l, "install", 1);
}

static void
write_generation(struct helper_lab *l, const char *name, const char *text)
{
    struct error e;

    assert_int_equal(
        file_write_at(
            AT_FDCWD, helper_lab_path(l, "state/generation/%s", name), text, strlen(text), 0640,
            &e),
        ERR_OK);
}

static void
weights_need_no_checker(void **state)
{
    struct helper_lab *l = *state;
    struct stat st;

    begin(l);
    put(l, 2, LATER);
    stages(l, 2, false);
    assert_int_equal(stat(helper_lab_path(l, "state/generation/2/.checked"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(access(helper_lab_path(l, "state/generation/.2.tmp"), F_OK), -1);
    call(l, "install", 2);
    put(l, 3, CONFIG(DIGEST, "3"), RUNNING(DIGEST));
    stages(l, 3, false);
    call(l, "install", 3);
    call(l, "settle", 3);
    /* What is there already is looked at anew, and so is the current one. */
    stages(l, 3, true);
    stages(l, 2, true);
    put(l, 2, CONFIG(DIGEST, "4"), RUNNING(DIGEST));
    stages(l, 2, false);
}

static void
another_file_needs_the_checker(void **state)
{
    static const struct pair changes[] = {
        {"map/a.map", "a c\n"},
        {"map/b.map", ""},
        {"error/503.http", "HTTP/1.0 503 x\r\n\r\n"},
        {"haproxy.cfg", CONFIG(DIGEST2, "2") "backend c\n"},
        {"haproxy.cfg", CONFIG(DIGEST, "1")},
        {RUNNING_MAP, "digest " DIGEST2 "0\n"},
        {RUNNING_MAP, "digest fedcba987654321\n"},
        {RUNNING_MAP, "digest FEDCBA9876543210\n"},
        {RUNNING_MAP, "digest " DIGEST2},
        {RUNNING_MAP, "digest " DIGEST2 "\nx y\n"},
        {RUNNING_MAP, "digest  fedcba98765432\n"},
        {RUNNING_MAP, ""},
    };
    struct helper_lab *l = *state;

    begin(l);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        int n = 2 + (int)i;

        put(l, n, LATER);
        helper_lab_put(l, n, changes[i].before, changes[i].after);
        stages(l, n, true);
    }
    put(l, 30, LATER);
    assert_int_equal(unlink(helper_lab_path(l, "state/stage/30/map/a.map")), 0);
    stages(l, 30, true);
    put(l, 31, LATER);
    helper_lab_put(l, 31, RUNNING_MAP, RUNNING(DIGEST));
    stages(l, 31, false);
}

static void
what_is_current_must_be_marked(void **state)
{
    static const char *const marks[] = {"0\n", "", "0", "3\n", "00\n", "0\n1 2 3 4.5 6.7\n"};
    struct helper_lab *l = *state;

    put(l, 1, CONFIG(DIGEST, "1"), RUNNING(DIGEST));
    stages(l, 1, true);
    put(l, 2, LATER);
    stages(l, 2, true);
    call(l, "install", 1);
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        write_generation(l, "1/.checked", marks[i]);
        put(l, 3, LATER);
        helper_lab_put(
            l, 3, "haproxy.cfg", i % 2 == 0 ? CONFIG(DIGEST, "7") : CONFIG(DIGEST, "8"));
        stages(l, 3, true);
    }
    assert_int_equal(unlink(helper_lab_path(l, "state/generation/1/.checked")), 0);
    put(l, 4, LATER);
    stages(l, 4, true);
    stages(l, 1, true);
    put(l, 5, LATER);
    stages(l, 5, false);
    assert_int_equal(unlink(helper_lab_path(l, "state/generation/1/map/a.map")), 0);
    put(l, 6, LATER);
    stages(l, 6, true);
    assert_int_equal(
        file_remove_tree_at(AT_FDCWD, helper_lab_path(l, "state/generation/1"), NULL), ERR_OK);
    put(l, 7, LATER);
    stages(l, 7, true);
}

static void
what_the_checker_warns_of_is_not_swallowed(void **state)
{
    struct helper_lab *l = *state;

    put(l, 1, CONFIG(DIGEST, "1") "# " WARNED "\n", RUNNING(DIGEST));
    for (int n = 2; n <= 3; n++) {
        call(l, "stage", n - 1);
        assert_string_equal(helper_lab_text(l, "output"), WARNING);
        call(l, "install", n - 1);
        put(l, n, n == 2 ? CONFIG(DIGEST2, "2") "# " WARNED "\n" : CONFIG(DIGEST2, "3"),
            RUNNING(DIGEST2));
    }
    stages(l, 3, true);
    call(l, "install", 3);
    put(l, 4, CONFIG(DIGEST, "4"), RUNNING(DIGEST));
    stages(l, 4, false);
}

/* A package manager puts the new one in place of the old one. */
static void
replace_program(struct helper_lab *l)
{
    CLEANUP(buf_fini) struct buf program;

    buf_init(&program, (size_t)64 << 20);
    assert_int_equal(file_read_at(AT_FDCWD, self_path(), &program, NULL), ERR_OK);
    assert_int_equal(
        file_write_at(
            AT_FDCWD, helper_lab_path(l, "state/haproxy"), program.data, program.len, 0755,
            NULL),
        ERR_OK);
}

static void
another_program_checks_anew(void **state)
{
    struct helper_lab *l = *state;
    char path[LAB_PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s", helper_lab_path(l, "state/haproxy"));
    l->context.haproxy = path;
    replace_program(l);
    begin(l);
    put(l, 2, LATER);
    stages(l, 2, false);
    replace_program(l);
    put(l, 3, LATER);
    stages(l, 3, true);
    call(l, "install", 3);
    put(l, 4, CONFIG(DIGEST, "4"), RUNNING(DIGEST));
    stages(l, 4, false);
    call(l, "install", 4);
    assert_int_equal(unlink(path), 0);
    write_generation(l, "4/.checked", "0\n");
    put(l, 5, LATER);
    if (self_spawn_reports()) {
        helper_lab_refused(
            l, "{'verb': 'stage', 'generation': 5}", "unavailable", "state/haproxy");
        helper_lab_refused(
            l, "{'verb': 'install', 'generation': 5}", "conflict", "not checked");
    }
}

static void
what_is_refused_is_refused_all_the_same(void **state)
{
    struct helper_lab *l = *state;

    begin(l);
    write_generation(l, "1/haproxy.cfg", CONFIG(DIGEST, "1") "program x\n");
    put(l, 2, CONFIG(DIGEST2, "2") "program x\n", RUNNING(DIGEST2));
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 2}", "denied", "\"program\"");
    assert_int_equal(access(helper_lab_path(l, "state/generation/2"), F_OK), -1);
}

/* Its mark stays, so that a roll-back can install it, but proves nothing for other files. */
static void
what_the_checker_refuses_now_is_no_evidence(void **state)
{
    struct helper_lab *l = *state;

    begin(l);
    assert_int_equal(
        file_write_at(AT_FDCWD, helper_lab_path(l, "state/refusing"), "", 0, 0600, NULL),
        ERR_OK);
    call(l, "stage", 1);
    assert_int_equal(helper_lab_int(l, "exit_status"), 1);
    assert_int_equal(unlink(helper_lab_path(l, "state/refusing")), 0);
    put(l, 2, LATER);
    stages(l, 2, true);
    call(l, "install", 1);
}

/* HAProxy takes 0000000000000001 for a number, but not aaaaaaaaaaaaaaaa. */
static void
no_digest_is_read_as_a_number(void **state)
{
    static const char reader[] =
        "global\n    default-path config\n    description \"lockstep 0000000000000001\"\n"
        "frontend f\n    acl a str(digest),map_str_int(" RUNNING_MAP ") -m found\n"
        "backend b\n" SERVER("1") "\n";
    struct helper_lab *l = *state;

    put(l, 1, reader, RUNNING("0000000000000001"));
    helper_lab_refused(l, "{'verb': 'stage', 'generation': 1}", "denied", "line 5");
}

/* haproxy -c -f FILE. */
static int
checker(const char *path)
{
    CLEANUP(buf_fini) struct buf text = {0};
    const char *end = strstr(path, "generation/");
    char refusing[LAB_PATH_BYTES];

    (void)snprintf(
        refusing, sizeof refusing, "%.*srefusing", end != NULL ? (int)(end - path) : 0, path);
    if (file_exists_at(AT_FDCWD, refusing)) {
        return 1;
    }
    buf_init(&text, (size_t)1 << 20);
    if (file_read_at(AT_FDCWD, path, &text, NULL) != ERR_OK) {
        return 2;
    }
    return fputs(strstr(buf_str(&text), WARNED) != NULL ? WARNING : "checked\n", stdout) < 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_servers_may_differ),
        cmocka_unit_test(nothing_else_of_a_line_may_differ),
        cmocka_unit_test(the_digest_may_differ_where_it_stands),
        cmocka_unit_test(a_nul_is_no_end),
        cmocka_unit_test(each_byte_that_is_changed_is_seen),
        HELPER_LAB_TEST(weights_need_no_checker),
        HELPER_LAB_TEST(another_file_needs_the_checker),
        HELPER_LAB_TEST(what_is_current_must_be_marked),
        HELPER_LAB_TEST(what_the_checker_warns_of_is_not_swallowed),
        HELPER_LAB_TEST(another_program_checks_anew),
        HELPER_LAB_TEST(what_is_refused_is_refused_all_the_same),
        HELPER_LAB_TEST(no_digest_is_read_as_a_number),
        HELPER_LAB_TEST(what_the_checker_refuses_now_is_no_evidence),
    };

    if (argc == 4 && strcmp(argv[1], "-c") == 0) {
        return checker(argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

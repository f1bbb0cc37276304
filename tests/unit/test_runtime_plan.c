/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/runtime_plan.h"

#define FILES_MAX 8
#define TEXT_MAX  ((size_t)1 << 20)

/* Files as "name", "text", in the order of their names, up to a NULL. */
typedef const char *files[2 * FILES_MAX];

struct set {
    struct rendered rendered;
    struct artefact items[FILES_MAX];
};

static void
set_open(struct set *s, const char *const *of)
{
    *s = (struct set){.rendered = {.items = s->items}};
    for (; of[0] != NULL; of += 2) {
        struct artefact *a = &s->items[s->rendered.count++];

        a->name = of[0];
        buf_init(&a->bytes, TEXT_MAX);
        buf_puts(&a->bytes, of[1]);
    }
}

static void
set_close(struct set *s)
{
    for (size_t i = 0; i < s->rendered.count; i++) {
        buf_fini(&s->items[i].bytes);
    }
}

static void
put_change(const struct runtime_change *c, struct buf *out)
{
    switch (c->what) {
    case RUNTIME_WEIGHT:
        buf_printf(out, "weight %s/%s %" PRId64 "\n", c->backend, c->server, c->number);
        return;
    case RUNTIME_MAXCONN:
        buf_printf(out, "maxconn %s/%s %" PRId64 "\n", c->backend, c->server, c->number);
        return;
    case RUNTIME_ADDRESS:
        buf_printf(
            out, "address %s/%s %s %" PRId64 "\n", c->backend, c->server, c->address,
            c->number);
        return;
    case RUNTIME_CERTIFICATE:
    case RUNTIME_MAP: break;
    }
    buf_printf(out, "%s %s\n", c->what == RUNTIME_MAP ? "map" : "certificate", c->file->name);
}

static void
check(const char *const *before, const char *const *after, const char *wanted)
{
    struct buf CLEANUP(buf_fini) got;
    struct runtime_plan CLEANUP(runtime_plan_fini) plan;
    struct set a;
    struct set b;

    buf_init(&got, TEXT_MAX);
    set_open(&a, before);
    set_open(&b, after);
    runtime_plan_make(&a.rendered, &b.rendered, &plan);
    if (plan.reload[0] != '\0') {
        buf_printf(&got, "reload: %s", plan.reload);
    } else {
        for (size_t i = 0; i < plan.count; i++) {
            put_change(&plan.items[i], &got);
        }
    }
    assert_string_equal(buf_str(&got), wanted);
    set_close(&a);
    set_close(&b);
}

#define HEAD                                                                                   \
    "global\n    description \"lockstep 0123456789abcdef\"\n    maxconn 9\n\nbackend b\n"

static void
check_config(const char *before, const char *after, const char *wanted)
{
    const files a = {"haproxy.cfg", before};
    const files b = {"haproxy.cfg", after};

    check(a, b, wanted);
}

static void
lines_of_servers_become_changes(void **state)
{
    static const struct {
        const char *before, *after, *wanted;
    } rows[] = {
        {"s 10.0.0.1:80 weight 1", "s 10.0.0.1:80 weight 1", ""},
        {"s 10.0.0.1:80 weight 1", "s 10.0.0.1:80 weight 0", "weight b/s 0\n"},
        {"s 10.0.0.1:80 weight 1", "s 10.0.0.1:80 weight 256", "weight b/s 256\n"},
        {"s 10.0.0.1:80", "s 10.0.0.1:80 weight 5", "weight b/s 5\n"},
        {"s 10.0.0.1:80 weight 1", "s 10.0.0.2:80 weight 1", "address b/s 10.0.0.2 80\n"},
        {"s 10.0.0.1:80 weight 1", "s 10.0.0.1:81 weight 1", "address b/s 10.0.0.1 81\n"},
        {"s 10.0.0.1:80", "s [2001:db8::1]:80", "address b/s 2001:db8::1 80\n"},
        {"s [::1]:80", "s 10.0.0.1:80", "address b/s 10.0.0.1 80\n"},
        {"s 10.0.0.1:80 maxconn 5 backup", "s 10.0.0.1:80 maxconn 6 backup", "maxconn b/s 6\n"},
        {"s 10.0.0.1:80 backup", "s 10.0.0.1:80 maxconn 6 backup", "maxconn b/s 6\n"},
        {"s 10.0.0.1:80 weight 1 maxconn 5", "s [::1]:81 weight 2 maxconn 6",
         "address b/s ::1 81\nmaxconn b/s 6\nweight b/s 2\n"},
        {"s x.test:80 weight 1 resolvers r", "s x.test:80 weight 2 resolvers r",
         "weight b/s 2\n"},
        {"s 10.0.0.1:80 cookie \"a b\"", "s 10.0.0.1:80 cookie \"a b\"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf CLEANUP(buf_fini) before;
        struct buf CLEANUP(buf_fini) after;

        buf_init(&before, TEXT_MAX);
        buf_init(&after, TEXT_MAX);
        buf_printf(&before, HEAD "    server %s\n", rows[i].before);
        buf_printf(&after, HEAD "    server %s\n", rows[i].after);
        check_config(buf_str(&before), buf_str(&after), rows[i].wanted);
    }
}

static void
other_lines_of_servers_take_a_reload(void **state)
{
    static const struct {
        const char *before, *after;
    } rows[] = {
        {"s 10.0.0.1:80", "t 10.0.0.1:80"},
        {"s 10.0.0.1:80", "s 10.0.0.1:80 backup"},
        {"s 10.0.0.1:80 backup", "s 10.0.0.1:80"},
        {"s 10.0.0.1:80 weight 1 backup", "s 10.0.0.1:80 backup weight 1 check"},
        {"s 10.0.0.1:80", "s x.test:80"},
        {"s x.test:80", "s y.test:80"},
        {"s x.test:80", "s 10.0.0.1:80"},
        {"s 10.0.0.1:80", "s unix@/run/x"},
        {"s 10.0.0.1:80", "s 10.0.0.1:+80"},
        {"s 10.0.0.1:80", "s 10.0.0.1:99999"},
        {"s 10.0.0.1:80", "s 10.0.0.1"},
        /* What holds then is said elsewhere. */
        {"s 10.0.0.1:80 weight 2", "s 10.0.0.1:80"},
        {"s 10.0.0.1:80 maxconn 2", "s 10.0.0.1:80"},
        {"s 10.0.0.1:80 maxconn 2", "s 10.0.0.1:80 maxconn 0"},
        {"s 10.0.0.1:80 weight 1", "s 10.0.0.1:80 weight 257"},
        {"s 10.0.0.1:80 weight 1", "s 10.0.0.1:80 weight x"},
        {"s 10.0.0.1:80 cookie \"a weight 1\"", "s 10.0.0.1:80 cookie \"a weight 2\""},
        {"s 10.0.0.1:80 cookie a\\ weight 1", "s 10.0.0.1:80 cookie a\\ weight 2"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf CLEANUP(buf_fini) before;
        struct buf CLEANUP(buf_fini) after;
        struct buf CLEANUP(buf_fini) wanted;

        buf_init(&before, TEXT_MAX);
        buf_init(&after, TEXT_MAX);
        buf_init(&wanted, TEXT_MAX);
        buf_printf(&before, HEAD "    server %s\n", rows[i].before);
        buf_printf(&after, HEAD "    server %s\n", rows[i].after);
        buf_printf(&wanted, "reload: haproxy.cfg line 6: server %c", rows[i].after[0]);
        check_config(buf_str(&before), buf_str(&after), buf_str(&wanted));
    }
}

static void
comments_and_the_digest_are_no_difference(void **state)
{
    (void)state;
    check_config(
        "# a\nglobal\n    description \"lockstep 0123456789abcdef\"\n\nbackend b\n"
        "    # check x\n    server s 10.0.0.1:80 weight 1\n",
        "global\n    # b\n    # c\n    description \"lockstep fedcba9876543210\"\nbackend b\n"
        "    server s 10.0.0.1:80 weight 2\n# end\n",
        "weight b/s 2\n");
}

static void
any_other_line_is_named_without_what_it_says(void **state)
{
    static const struct {
        const char *before, *after, *wanted;
    } rows[] = {
        {HEAD, HEAD "    option httpchk GET /secret\n",
         "reload: haproxy.cfg line 6: option httpchk"},
        {HEAD "    retries 3\n", HEAD "    retries 4\n",
         "reload: haproxy.cfg line 6: retries 4"},
        {HEAD "    retries 3\n", HEAD, "reload: haproxy.cfg line 5"},
        {HEAD, HEAD "\nbackend c\n", "reload: haproxy.cfg line 7: backend c"},
        {HEAD "    tcp-check send AUTH\\ x\n", HEAD "    tcp-check send AUTH\\ y\n",
         "reload: haproxy.cfg line 6: tcp-check send"},
        /* A server's line that is in no backend. */
        {"listen l\n    server s 10.0.0.1:80 weight 1\n",
         "listen l\n    server s 10.0.0.1:80 weight 2\n",
         "reload: haproxy.cfg line 2: server s"},
        /* The same server under another backend. */
        {"backend a\n    server s 10.0.0.1:80\n", "backend b\n    server s 10.0.0.1:80\n",
         "reload: haproxy.cfg line 1: backend b"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_config(rows[i].before, rows[i].after, rows[i].wanted);
    }
}

static void
more_servers_than_are_quicker_take_a_reload(void **state)
{
    struct buf CLEANUP(buf_fini) before;
    struct buf CLEANUP(buf_fini) after;

    (void)state;
    buf_init(&before, TEXT_MAX);
    buf_init(&after, TEXT_MAX);
    buf_puts(&before, HEAD);
    buf_puts(&after, HEAD);
    for (int i = 0; i <= RUNTIME_SERVERS_MAX; i++) {
        buf_printf(&before, "    server s%d 10.0.0.1:80 weight 1\n", i);
        buf_printf(&after, "    server s%d 10.0.0.1:80 weight 2\n", i);
    }
    check_config(
        buf_str(&before), buf_str(&after), "reload: haproxy.cfg line 262: server s256");
}

static void
other_files_are_compared_by_name_and_content(void **state)
{
    static const files base = {"crt-list/l.list", "crt/a.pem\n", "crt/a.pem",   "A\n",
                               "error/503.http",  "x\n",         "haproxy.cfg", HEAD,
                               "map/l.map",       "# s\na/ b\n", RUNNING_MAP,   "digest 1\n"};

    static const struct {
        size_t at;
        const char *name, *text, *wanted;
    } rows[] = {
        {1, "crt/a.pem", "B\n", "certificate crt/a.pem\n"},
        {4, "map/l.map", "# s\na/ c\n", "map map/l.map\n"},
        {4, "map/l.map", "", "map map/l.map\n"},
        {4, "map/l.map", "# other\n\na/ b\n# more\n", ""},
        {4, "map/l.map", "a/\n",
         "reload: map/l.map has a line that the admin socket does not take"},
        {4, "map/l.map", " a/ b\n",
         "reload: map/l.map has a line that the admin socket does not take"},
        {4, "map/k.map", "a/ b\n", "reload: map/k.map is new"},
        {4, "map/m.map", "a/ b\n", "reload: map/l.map is gone"},
        {5, RUNNING_MAP, "digest 2\n", ""},
        {2, "error/503.http", "y\n", "reload: error/503.http"},
        {0, "crt-list/l.list", "crt/a.pem\n#\n", "reload: crt-list/l.list"},
    };

    (void)state;
    check(base, base, "");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        files changed;

        memcpy(changed, base, sizeof changed);
        changed[2 * rows[i].at] = rows[i].name;
        changed[2 * rows[i].at + 1] = rows[i].text;
        check(base, changed, rows[i].wanted);
    }
}

static void
what_no_payload_holds_takes_a_reload(void **state)
{
    struct buf CLEANUP(buf_fini) text;
    files before = {"crt/a.pem", "A\n", "haproxy.cfg", HEAD, "map/l.map", "a/ b\n"};
    files after;

    (void)state;
    buf_init(&text, TEXT_MAX);
    for (int i = 0; i < RUNTIME_PAYLOAD_BYTES; i++) {
        buf_putc(&text, 'a');
    }
    buf_puts(&text, " b\n");
    memcpy(after, before, sizeof after);
    after[1] = buf_str(&text);
    check(before, after, "reload: crt/a.pem is too long for the admin socket");
    memcpy(after, before, sizeof after);
    after[5] = buf_str(&text);
    check(before, after, "reload: map/l.map has a line that the admin socket does not take");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_servers_become_changes),
        cmocka_unit_test(other_lines_of_servers_take_a_reload),
        cmocka_unit_test(comments_and_the_digest_are_no_difference),
        cmocka_unit_test(any_other_line_is_named_without_what_it_says),
        cmocka_unit_test(more_servers_than_are_quicker_take_a_reload),
        cmocka_unit_test(other_files_are_compared_by_name_and_content),
        cmocka_unit_test(what_no_payload_holds_takes_a_reload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/golden/render/<case>/objects.json gives exactly the other files of its folder, and
 * HAProxy accepts them without a warning. "--update" writes them anew. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/golden.h"

static bool update;

static void
each_case(void (*fn)(struct golden *g))
{
    char *folder = golden_folder("render");
    char **names = NULL;
    size_t count = golden_list(folder, &names);
    size_t cases = 0;

    for (size_t i = 0; i < count; i++) {
        struct golden g;

        if (golden_is_folder(folder, names[i])) {
            golden_open(&g, names[i]);
            fn(&g);
            golden_close(&g);
            cases++;
        }
    }
    assert_true(cases >= 5);
    golden_free(names, count);
    free(folder);
}

/* Files of a case, but for objects.json and peers.json. Artefacts stand one folder deep, never
 * deeper. */
static size_t
count_files(const char *folder)
{
    char **names = NULL;
    size_t count = golden_list(folder, &names);
    size_t files = 0;

    for (size_t i = 0; i < count; i++) {
        if (golden_is_folder(folder, names[i])) {
            char *inner = golden_path(folder, names[i]);
            char **inner_names = NULL;
            size_t inner_count = golden_list(inner, &inner_names);

            files += inner_count;
            golden_free(inner_names, inner_count);
            free(inner);
        } else if (
            strcmp(names[i], "objects.json") != 0 && strcmp(names[i], "peers.json") != 0) {
            files++;
        }
    }
    golden_free(names, count);
    return files;
}

static void
write_anew(const struct golden *g)
{
    static const char *const old[] = {"haproxy.cfg", "map",   "ca",  "crt",
                                      "crt-list",    "error", "acl", "body"};
    struct error e = {0};

    for (size_t i = 0; i < ARRAY_LEN(old); i++) {
        char *path = golden_path(g->folder, old[i]);

        assert_int_equal(file_remove_tree_at(AT_FDCWD, path, &e), ERR_OK);
        free(path);
    }
    if (objects_file_write(&g->rendered, g->folder, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
}

static void
compare(struct golden *g)
{
    for (size_t i = 0; i < g->rendered.count; i++) {
        const struct artefact *a = &g->rendered.items[i];
        struct buf CLEANUP(buf_fini) wanted;

        buf_init(&wanted, GOLDEN_FILE_MAX_BYTES);
        golden_read(g->folder, a->name, &wanted);
        if (wanted.len != a->bytes.len ||
            memcmp(buf_str(&wanted), buf_str(&a->bytes), wanted.len) != 0) {
            fail_msg(
                "%s/%s differs; is now:\n%s", g->folder, a->name,
                a->secret ? "(secret)" : buf_str(&a->bytes));
        }
    }
    assert_int_equal(count_files(g->folder), g->rendered.count);
}

static void
compare_or_update(struct golden *g)
{
    if (update) {
        write_anew(g);
    }
    compare(g);
}

static void
objects_give_the_files_of_their_folder(void **state)
{
    (void)state;
    each_case(compare_or_update);
}

static void
check(struct golden *g)
{
    const char *haproxy[OBJECTS_FILE_CHECKERS];
    size_t count = objects_file_checkers(haproxy);
    char *path = golden_path(g->folder, "haproxy.cfg");
    struct buf CLEANUP(buf_fini) out;
    struct error e = {0};

    buf_init(&out, GOLDEN_FILE_MAX_BYTES);
    for (size_t i = 0; i < count; i++) {
        if (objects_file_check(haproxy[i], path, &out, &e) != ERR_OK) {
            fail_msg("%s: %s\n%s", g->folder, e.msg, buf_str(&out));
        }
    }
    free(path);
}

static void
haproxy_accepts_every_case_without_a_warning(void **state)
{
    (void)state;
    each_case(check);
}

static void
compare_again(struct golden *g)
{
    golden_again(g);
    compare(g);
}

static void
memory_of_an_earlier_render_leaves_no_trace(void **state)
{
    (void)state;
    each_case(compare_again);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_give_the_files_of_their_folder),
        cmocka_unit_test(haproxy_accepts_every_case_without_a_warning),
        cmocka_unit_test(memory_of_an_earlier_render_leaves_no_trace),
    };

    update = argc == 2 && strcmp(argv[1], "--update") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

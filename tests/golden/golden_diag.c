/* SPDX-License-Identifier: Apache-2.0 */
/* tests/golden/diag/<fault>.txt: a rendered case with a fault put in, what HAProxy said, and
 * the problems that it means. "--update" asks HAProxy again and writes the last two.
 *
 *   render: full               case of tests/golden/render
 *   file: haproxy.cfg          the file that the next two lines concern
 *   find: balance leastconn    "\n" stands for an end of line
 *   put: balance nosuch
 *   live: no                   the answer depends on more than HAProxy: only what is stored
 *   live: 2.6                  later versions have nothing against it
 *   ---
 *   [ALERT] ...
 *   ---
 *   error pool app /balance: ...
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "render/diag.h"
#include "tests/support/golden.h"

#define FAULT_MAX_BYTES ((size_t)256 << 10)
#define EDITS           4

static bool update;

struct edit {
    const char *file, *find, *put;
};

struct fault {
    char *folder, *name;
    struct buf text; /* cut into the strings below */
    const char *render;
    size_t live; /* how many of the programs are asked */
    struct edit edits[EDITS];
    size_t edit_count;
    const char *output, *problems;
};

/* "\n" in a line of the head, in place. */
static char *
unescape(char *s)
{
    char *at;

    while ((at = strstr(s, "\\n")) != NULL) {
        *at = '\n';
        memmove(at + 1, at + 2, strlen(at + 2) + 1);
    }
    return s;
}

static void
take_head_line(struct fault *f, char *line)
{
    char *value = strchr(line, ':');
    struct edit *e = &f->edits[f->edit_count];

    assert_non_null(value);
    *value = '\0';
    value = unescape(value + 2);
    if (strcmp(line, "render") == 0) {
        f->render = value;
    } else if (strcmp(line, "live") == 0) {
        f->live = strcmp(value, "no") != 0 ? 1 : 0;
    } else if (strcmp(line, "file") == 0) {
        e->file = value;
    } else if (strcmp(line, "find") == 0) {
        e->find = value;
    } else {
        assert_string_equal(line, "put");
        e->put = value;
        f->edit_count++;
        assert_true(f->edit_count < EDITS);
        f->edits[f->edit_count].file = e->file;
    }
}

/* Cuts at the first line "---"; what is behind it. */
static char *
cut(char *text)
{
    char *at = strncmp(text, "---\n", 4) == 0 ? text : strstr(text, "\n---\n");

    assert_non_null(at);
    at += *at == '\n' ? 1 : 0;
    *at = '\0';
    return at + strlen("---\n");
}

static void
fault_read(struct fault *f, const char *folder, const char *name)
{
    char *text;

    *f = (struct fault){
        .folder = xstrdup(folder), .name = xstrdup(name), .live = OBJECTS_FILE_CHECKERS};
    f->edits[0].file = "haproxy.cfg";
    buf_init(&f->text, FAULT_MAX_BYTES);
    golden_read(folder, name, &f->text);
    text = f->text.data;
    f->output = cut(text);
    f->problems = cut(f->text.data + (f->output - text));
    for (char *line = strtok_r(text, "\n", &text); line != NULL;
         line = strtok_r(NULL, "\n", &text)) {
        take_head_line(f, line);
    }
    assert_true(f->render != NULL && f->edit_count > 0);
}

static void
fault_fini(struct fault *f)
{
    buf_fini(&f->text);
    free(f->folder);
    free(f->name);
}

/* Without process ids and without the folder of the moment. */
static void
put_normal(struct buf *out, const char *s, const char *folder)
{
    while (*s != '\0') {
        size_t digits = *s == '(' ? strspn(s + 1, "0123456789") : 0;

        if (digits > 0 && s[digits + 1] == ')') {
            s += digits + 2;
            buf_puts(out, "(1)");
        } else if (strncmp(s, folder, strlen(folder)) == 0) {
            s += strlen(folder) + 1;
        } else if (strncmp(s, "[NOTICE]", 8) == 0) {
            s += strcspn(s, "\n") + 1; /* HAProxy's version */
        } else {
            buf_putc(out, *s++);
        }
    }
}

static void
put_fault(const struct fault *f, struct artefact *a)
{
    struct buf text;

    buf_init(&text, GOLDEN_FILE_MAX_BYTES);
    for (size_t i = 0; i < f->edit_count; i++) {
        const struct edit *e = &f->edits[i];
        const char *at;

        if (strcmp(e->file, a->name) != 0) {
            continue;
        }
        at = strstr(buf_str(&a->bytes), e->find);
        if (at == NULL) {
            fail_msg("%s: nowhere: %s", f->name, e->find);
        }
        buf_reset(&text);
        buf_put(&text, a->bytes.data, (size_t)(at - a->bytes.data));
        buf_puts(&text, e->put);
        buf_puts(&text, at + strlen(e->find));
        buf_reset(&a->bytes);
        buf_put(&a->bytes, buf_str(&text), text.len);
    }
    buf_fini(&text);
}

static void
put_faults(const struct fault *f, struct golden *g)
{
    for (size_t i = 0; i < g->rendered.count; i++) {
        put_fault(f, &g->rendered.items[i]);
    }
}

/* What that HAProxy says to the files with the fault in them. */
static void
ask(const char *haproxy, const struct fault *f, struct golden *g, struct buf *ret_output)
{
    char folder[] = "/tmp/golden_diag.XXXXXX";
    struct buf CLEANUP(buf_fini) raw;
    struct error e = {0};
    char *config;
    err_t code;

    buf_init(&raw, FAULT_MAX_BYTES);
    assert_non_null(mkdtemp(folder));
    config = golden_path(folder, "haproxy.cfg");
    assert_int_equal(objects_file_write(&g->rendered, folder, &e), ERR_OK);
    code = objects_file_check(haproxy, config, &raw, &e);
    if (code != ERR_INVALID && f->live) {
        fail_msg("%s accepts %s/%s", haproxy, g->folder, f->name);
    }
    assert_int_equal(file_remove_tree_at(AT_FDCWD, folder, &e), ERR_OK);
    free(config);
    if (code == ERR_OK) {
        return; /* only a start would tell */
    }
    buf_reset(ret_output);
    put_normal(ret_output, buf_str(&raw), folder);
}

static void
put_problems(const struct golden *g, const char *output, bool messages, struct buf *out)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct problems p;

    problems_init(&p, arena);
    diag_haproxy(output, &g->rendered, &p);
    for (size_t i = 0; i < p.count; i++) {
        const struct problem *x = &p.items[i];

        assert_string_equal(x->code, "haproxy");
        buf_printf(
            out, "%s %s %s %s:", x->severity == SEVERITY_ERROR ? "error" : "warning",
            x->kind != NULL ? x->kind : "-", x->name != NULL ? x->name : "-", x->pointer);
        buf_printf(out, messages ? " %s\n" : "\n", x->message);
    }
}

/* Writes the last two parts of the file anew. */
static void
write_anew(const struct fault *f, const char *output, const char *problems)
{
    struct buf CLEANUP(buf_fini) text;
    char *path = golden_path(f->folder, f->name);
    struct error e = {0};

    buf_init(&text, FAULT_MAX_BYTES);
    golden_read(f->folder, f->name, &text);
    text.len = (size_t)(strstr(buf_str(&text), "\n---\n") - buf_str(&text));
    buf_printf(&text, "\n---\n%s---\n%s", output, problems);
    assert_int_equal(file_write_at(AT_FDCWD, path, buf_str(&text), text.len, 0644, &e), ERR_OK);
    free(path);
}

static void
each_fault(void (*fn)(const struct fault *f, struct golden *g))
{
    char *folder = golden_folder("diag");
    char **names = NULL;
    size_t count = golden_list(folder, &names);

    assert_true(count >= 15);
    for (size_t i = 0; i < count; i++) {
        struct fault f;
        struct golden g;

        fault_read(&f, folder, names[i]);
        golden_open(&g, f.render);
        fn(&f, &g);
        golden_close(&g);
        fault_fini(&f);
    }
    golden_free(names, count);
    free(folder);
}

static void
compare_stored(const struct fault *f, struct golden *g)
{
    struct buf CLEANUP(buf_fini) problems;
    struct buf CLEANUP(buf_fini) output;

    buf_init(&problems, FAULT_MAX_BYTES);
    buf_init(&output, FAULT_MAX_BYTES);
    buf_puts(&output, f->output);
    if (update) {
        put_faults(f, g);
        ask(OBJECTS_FILE_HAPROXY, f, g, &output);
    }
    put_problems(g, buf_str(&output), true, &problems);
    if (update) {
        write_anew(f, buf_str(&output), buf_str(&problems));
    } else if (strcmp(buf_str(&problems), f->problems) != 0) {
        fail_msg("%s: is now:\n%s", f->name, buf_str(&problems));
    }
}

static void
stored_output_means_the_stored_problems(void **state)
{
    (void)state;
    each_fault(compare_stored);
}

static void
compare_live(const struct fault *f, struct golden *g)
{
    struct buf CLEANUP(buf_fini) stored;
    struct buf CLEANUP(buf_fini) live;
    struct buf CLEANUP(buf_fini) output;
    const char *haproxy[OBJECTS_FILE_CHECKERS];
    size_t count = objects_file_checkers(haproxy);

    buf_init(&stored, FAULT_MAX_BYTES);
    buf_init(&live, FAULT_MAX_BYTES);
    buf_init(&output, FAULT_MAX_BYTES);
    put_problems(g, f->output, false, &stored);
    put_faults(f, g);
    for (size_t i = 0; i < count && i < f->live; i++) {
        buf_reset(&live);
        buf_reset(&output);
        ask(haproxy[i], f, g, &output);
        put_problems(g, buf_str(&output), false, &live);
        if (strcmp(buf_str(&stored), buf_str(&live)) != 0) {
            fail_msg("%s: %s said:\n%s", f->name, haproxy[i], buf_str(&output));
        }
    }
}

static void
haproxy_still_says_the_same_of_the_same_fault(void **state)
{
    (void)state;
    each_fault(compare_live);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_output_means_the_stored_problems),
        cmocka_unit_test(haproxy_still_says_the_same_of_the_same_fault),
    };

    update = argc == 2 && strcmp(argv[1], "--update") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

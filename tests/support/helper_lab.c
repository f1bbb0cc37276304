/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/helper_lab.h"

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

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "helper/protocol.h"
#include "helper/server.h"
#include "tests/support/self.h"

static void
must(err_t code, const struct error *e)
{
    if (code != ERR_OK) {
        fail_msg("%s", e->msg);
    }
}

static int
folder(const char *path)
{
    struct error e;
    int fd = -1;

    must(file_mkdir_at(AT_FDCWD, path, 0755, &e), &e);
    must(file_open_dir_at(AT_FDCWD, path, &fd, &e), &e);
    return fd;
}

void
helper_lab_open(struct helper_lab *l, const char *haproxy)
{
    struct helper_context *c = &l->context;

    *l = (struct helper_lab){.top = "/tmp/lockstep-test-helper-XXXXXX"};
    assert_non_null(mkdtemp(l->top));
    (void)snprintf(l->state_dir, sizeof l->state_dir, "%.60s/state", l->top);
    (void)snprintf(l->run_dir, sizeof l->run_dir, "%.60s/run", l->top);
    c->state_dir = l->state_dir;
    c->run_dir = l->run_dir;
    c->haproxy = haproxy;
    c->uid = getuid();
    tunables_default(&c->tunables);
    (void)close(folder(l->state_dir));
    c->run_fd = folder(l->run_dir);
    c->stage_fd = folder(helper_lab_path(l, "state/stage"));
    c->generation_fd = folder(helper_lab_path(l, "state/generation"));
    (void)snprintf(c->admin_path, sizeof c->admin_path, "%s/haproxy.sock", l->run_dir);
    (void)snprintf(c->master_path, sizeof c->master_path, "%s/master.sock", l->run_dir);
    (void)snprintf(c->service_path, sizeof c->service_path, "%s/run.sock", l->run_dir);
}

void
helper_lab_close(struct helper_lab *l)
{
    struct error e;

    json_decref(l->answer);
    helper_context_close(&l->context);
    must(file_remove_tree_at(AT_FDCWD, l->top, &e), &e);
}

int
helper_lab_setup(void **state)
{
    struct helper_lab *l = xcalloc(1, sizeof *l);

    helper_lab_open(l, self_path());
    *state = l;
    return 0;
}

int
helper_lab_teardown(void **state)
{
    helper_lab_close(*state);
    free(*state);
    return 0;
}

const char *
helper_lab_path(struct helper_lab *l, const char *fmt, ...)
{
    static char path[LAB_PATH_BYTES * 2];
    int n = snprintf(path, sizeof path, "%s/", l->top);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(path + n, sizeof path - (size_t)n, fmt, ap);
    va_end(ap);
    return path;
}

void
helper_lab_put(struct helper_lab *l, int64_t n, const char *name, const char *text)
{
    const char *slash = strrchr(name, '/');
    struct error e;

    (void)mkdir(helper_lab_path(l, "state/stage/%d", (int)n), 0755);
    if (slash != NULL) {
        (void)mkdir(
            helper_lab_path(l, "state/stage/%d/%.*s", (int)n, (int)(slash - name), name), 0755);
    }
    must(
        file_write_at(
            AT_FDCWD, helper_lab_path(l, "state/stage/%d/%s", (int)n, name), text, strlen(text),
            0644, &e),
        &e);
}

void
helper_lab_ask(struct helper_lab *l, const char *request)
{
    CLEANUP(buf_fini) struct buf text;
    CLEANUP(buf_fini) struct buf answer;
    struct error e;

    buf_init(&text, HELPER_REQUEST_MAX_BYTES);
    buf_init(&answer, HELPER_ANSWER_MAX_BYTES);
    buf_puts(&text, request);
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\'') {
            text.data[i] = '"';
        }
    }
    helper_answer(&l->context, buf_str(&text), text.len, &answer);
    json_decref(l->answer);
    l->answer = NULL;
    must(json_parse(answer.data, answer.len, &l->answer, &e), &e);
    assert_int_equal(answer.data[answer.len - 1], '\n');
}

void
helper_lab_ok(struct helper_lab *l, const char *request)
{
    helper_lab_ask(l, request);
    if (!json_is_true(json_object_get(l->answer, "ok"))) {
        fail_msg("%s: %s", request, helper_lab_text(l, "message"));
    }
}

void
helper_lab_refused(
    struct helper_lab *l, const char *request, const char *code, const char *part)
{
    helper_lab_ask(l, request);
    if (!json_is_false(json_object_get(l->answer, "ok")) ||
        strcmp(helper_lab_text(l, "code"), code) != 0 ||
        strstr(helper_lab_text(l, "message"), part) == NULL) {
        CLEANUP(buf_fini) struct buf text;

        buf_init(&text, HELPER_ANSWER_MAX_BYTES);
        json_canonical(l->answer, &text);
        fail_msg("%s: %s", request, buf_str(&text));
    }
}

const char *
helper_lab_text(const struct helper_lab *l, const char *key)
{
    const char *text = json_string_value(json_object_get(l->answer, key));

    return text != NULL ? text : "(none)";
}

int64_t
helper_lab_int(const struct helper_lab *l, const char *key)
{
    const json_t *v = json_object_get(l->answer, key);

    assert_true(json_is_integer(v));
    return json_integer_value(v);
}

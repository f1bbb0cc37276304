/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/self.h"

#include <limits.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"

const char *
self_path(void)
{
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    assert_true(n > 0);
    path[n] = '\0';
    return path;
}

err_t
self_run(
    const char *how, int64_t deadline_ms, struct buf *out, int *ret_status, struct error *e)
{
    const char *argv[] = {self_path(), how, "second argument", NULL};
    struct proc_result r = {.exit_status = -1};
    err_t code = proc_run(argv, deadline_ms, out, &r, e);

    *ret_status = r.exit_status;
    return code;
}

void
self_aborts(const char *how, const char *assertion)
{
    CLEANUP(buf_fini) struct buf out;
    const char *found;
    int status;

    buf_init(&out, 1 << 20);
    assert_int_equal(self_run(how, SELF_LONG_MS, &out, &status, NULL), ERR_OK);
    /* 128 + SIGABRT, or what a sanitizer makes of it. */
    assert_int_not_equal(status, 0);
    found = strstr(buf_str(&out), "assertion failed: ");
    assert_non_null(found);
    assert_non_null(strstr(found, assertion));
}

bool
self_spawn_reports(void)
{
    char path[] = "/lockstep/no/such";
    char *argv[] = {path, NULL};
    pid_t pid = -1;

    if (posix_spawn(&pid, path, NULL, NULL, argv, argv + 1) != 0) {
        return true;
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return false;
}

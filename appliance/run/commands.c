/* SPDX-License-Identifier: Apache-2.0 */
#include "run/commands.h"

#include <stdio.h>
#include <string.h>

#define SETPRIV "/usr/bin/setpriv" /* util-linux */

/* What the helper may do beyond an ordinary root without capabilities, by verb. Owner and
 * group of what it writes need none: it runs as uid 0 and with the group's gid. */
static const char *const helper_capabilities[] = {
    "dac_read_search",  /* stage: <state_dir>/stage is open to lockstepd only */
    "net_bind_service", /* bind-test: ports below 1024 */
    "sys_ptrace",       /* bind-test: /proc/PID/fd of the process that holds a port */
};

static void
add(struct commands_argv *a, const char *item)
{
    ASSERT(a->count < COMMANDS_ARGS_MAX);
    a->items[a->count++] = item;
    a->items[a->count] = NULL;
}

/* Items that are put together stand in the text. */
static void
add_made(struct commands_argv *a, const char *first, const char *second)
{
    char *at = a->text + a->text_len;
    size_t room = sizeof a->text - a->text_len;
    int n = snprintf(at, room, "%s%s", first, second);

    ASSERT(n >= 0 && (size_t)n < room);
    a->text_len += (size_t)n + 1;
    add(a, at);
}

static void
add_number(struct commands_argv *a, const char *prefix, unsigned number)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", number);
    add_made(a, prefix, text);
}

static void
add_option(struct commands_argv *a, const char *name, const char *value)
{
    if (value != NULL) {
        add(a, name);
        add(a, value);
    }
}

static void
add_bounding_set(struct commands_argv *a)
{
    char list[256] = "-all";
    size_t len = strlen(list);

    for (size_t i = 0; i < ARRAY_LEN(helper_capabilities); i++) {
        int n = snprintf(list + len, sizeof list - len, ",+%s", helper_capabilities[i]);

        ASSERT(n > 0 && (size_t)n < sizeof list - len);
        len += (size_t)n;
    }
    add_made(a, "--bounding-set=", list);
}

void
commands_helper(const struct run_options *o, struct commands_argv *ret)
{
    *ret = (struct commands_argv){.count = 0};
    add(ret, SETPRIV);
    add_number(ret, "--regid=", o->gid);
    add(ret, "--clear-groups");
    add(ret, "--no-new-privs");
    add(ret, "--inh-caps=-all");
    add_bounding_set(ret);
    add(ret, o->helper_path);
    add_option(ret, "--state-dir", o->state_dir);
    add_option(ret, "--run-dir", o->run_dir);
    add_option(ret, "--haproxy", o->haproxy);
    add_option(ret, "--tunables", o->tunables_path);
    add(ret, "--uid");
    add_number(ret, "", o->uid);
    add(ret, "--gid");
    add_number(ret, "", o->gid);
}

void
commands_daemon(const struct run_options *o, struct commands_argv *ret)
{
    *ret = (struct commands_argv){.count = 0};
    add(ret, SETPRIV);
    add_number(ret, "--reuid=", o->uid);
    add_number(ret, "--regid=", o->gid);
    add(ret, "--clear-groups");
    add(ret, "--no-new-privs");
    add(ret, "--inh-caps=-all");
    add(ret, "--bounding-set=-all");
    add(ret, o->daemon_path);
    add_option(ret, "--state-dir", o->state_dir);
    add_option(ret, "--run-dir", o->run_dir);
    add_option(ret, "--socket-group", o->group_name);
    add_option(ret, "--listen", o->listen);
    add_option(ret, "--node-name", o->node_name);
    add_option(ret, "--tunables", o->tunables_path);
    for (size_t i = 0; i < o->daemon_arg_count; i++) {
        add(ret, o->daemon_args[i]);
    }
}

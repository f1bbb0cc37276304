/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/show.h"

#define PAGE "1000"
#define KIB  1024LL

/* "512", "3.4k", "1.2G": three digits are enough to look at. */
static const char *
bytes_text(struct cli *c, const json_t *v)
{
    static const char units[] = "kMGTP";
    json_int_t n = json_integer_value(v), tenths = n * 10;
    size_t unit = 0;

    if (!json_is_integer(v)) {
        return NULL;
    }
    if (n < KIB) {
        return arena_printf(c->arena, "%lld", (long long)n);
    }
    for (tenths /= KIB; tenths >= KIB * 10 && units[unit + 1] != '\0'; tenths /= KIB) {
        unit++;
    }
    return arena_printf(
        c->arena, "%lld.%lld%c", (long long)(tenths / 10), (long long)(tenths % 10),
        units[unit]);
}

/* The columns that listeners, pools and servers have in common. */
static void
put_traffic(struct cli *c, struct table *t, const json_t *traffic)
{
    const json_t *sessions = json_object_get(traffic, "sessions");
    const json_t *responses = json_object_get(traffic, "responses");

    table_cell_value(t, json_object_get(sessions, "current"));
    table_cell_value(t, json_object_get(sessions, "total"));
    table_cell_value(t, json_object_get(json_object_get(traffic, "queue"), "current"));
    table_cell_value(t, json_object_get(responses, "5xx"));
    table_cell(t, bytes_text(c, json_object_get(traffic, "bytes_in")));
    table_cell(t, bytes_text(c, json_object_get(traffic, "bytes_out")));
}

static void
show_listeners(struct cli *c, const json_t *listeners)
{
    static const char *const heads[] = {"LISTENER", "STATUS", "OPEN", "TOTAL",
                                        "QUEUE",    "5XX",    "IN",   "OUT"};
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    const json_t *listener;
    size_t i;

    if (json_array_size(listeners) == 0) {
        puts("HAProxy has no listener.\n");
        return;
    }
    json_array_foreach(listeners, i, listener)
    {
        table_cell(t, cli_str(listener, "name"));
        table_cell(t, cli_str(listener, "status"));
        put_traffic(c, t, json_object_get(listener, "traffic"));
    }
    table_print(t);
    putchar('\n');
}

static void
show_pools(struct cli *c, const json_t *pools)
{
    static const char *const heads[] = {"POOL / SERVER", "STATE", "CHECK", "OPEN", "TOTAL",
                                        "QUEUE",         "5XX",   "IN",    "OUT"};
    struct table *t = table_new(c, heads, ARRAY_LEN(heads));
    const json_t *pool, *server;
    size_t i, j;

    if (json_array_size(pools) == 0) {
        puts("HAProxy has no pool.");
        return;
    }
    json_array_foreach(pools, i, pool)
    {
        table_cell(t, cli_str(pool, "name"));
        table_cell(t, cli_str(pool, "state"));
        table_cell(t, NULL);
        put_traffic(c, t, json_object_get(pool, "traffic"));
        json_array_foreach(json_object_get(pool, "servers"), j, server)
        {
            table_cell(t, arena_printf(c->arena, "  %s", cli_str(server, "name")));
            table_cell(t, server_state(server));
            table_cell(t, cli_str(json_object_get(server, "check"), "status"));
            put_traffic(c, t, json_object_get(server, "traffic"));
        }
    }
    table_print(t);
}

/* All pages as one answer. */
static int
fetch(struct cli *c, const char *pool, json_t **ret)
{
    const char *path = cli_query(c, cli_path(c, "stats", NULL), "pool", pool);
    json_t *whole = NULL, *page = NULL;
    int status;

    path = cli_query(c, path, "limit", PAGE);
    status = cli_get(c, path, &whole);
    while (status == 0 && cli_str(whole, "next")[0] != '\0') {
        status = cli_get(c, cli_query(c, path, "after", cli_str(whole, "next")), &page);
        if (status == 0) {
            json_array_extend(json_object_get(whole, "pools"), json_object_get(page, "pools"));
            json_object_set(whole, "next", json_object_get(page, "next"));
            json_decref(page);
        }
    }
    *ret = whole;
    return status;
}

int
cmd_stats(struct cli *c, int argc, char **argv)
{
    json_t *answer = NULL;
    int status = fetch(c, argc == 2 ? argv[1] : NULL, &answer);

    if (status == 0 && !cli_printed_json(c, answer)) {
        if (argc == 1) {
            show_listeners(c, json_object_get(answer, "listeners"));
        }
        show_pools(c, json_object_get(answer, "pools"));
    }
    json_decref(answer);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary answers to "show stat" and "show servers state". */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "haproxy/server_states.h"
#include "haproxy/stat.h"
#include "tests/support/fuzz_lab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_text(const char *s)
{
    ASSERT(strlen(s) <= 255);
    ASSERT(!utf8_has_control(s, strlen(s), ""));
}

static void
check_row(const struct stat_row *row)
{
    ASSERT(row->pxname[0] != '\0' && row->svname[0] != '\0' && row->status[0] != '\0');
    ASSERT(row->type <= STAT_LISTENER);
    ASSERT(row->scur >= -1 && row->ttime >= -1);
    check_text(row->pxname);
    check_text(row->svname);
    check_text(row->status);
    check_text(row->check_status);
    check_text(row->last_chk);
    ASSERT(server_state_name(server_state_of(row->status)) != NULL);
    (void)server_taken_out_by(row->status, NULL);
}

static void
check_states(const struct server_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct server_line *line = &t->lines[i];
        const struct server_line *found = server_table_find(t, line->backend, line->server);

        ASSERT(line->weight >= 0 && line->configured_weight >= 0);
        ASSERT(found != NULL && strcmp(found->server, line->server) == 0);
        (void)server_taken_out_by("MAINT", line);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new((size_t)256 << 20);
    const char *text = arena_memdup0(arena, data, size);
    CLEANUP(stat_table_fini) struct stat_table stat = {.rows = NULL};
    CLEANUP(server_table_fini) struct server_table states = {.lines = NULL};
    struct error e = {.code = ERR_OK};

    if (stat_parse(text, size, arena, &stat, &e) == ERR_OK) {
        ASSERT(stat.count + stat.parse_errors <= size);
        for (size_t i = 0; i < stat.count; i++) {
            check_row(&stat.rows[i]);
        }
    }
    if (server_table_parse(text, size, arena, &states, &e) == ERR_OK) {
        check_states(&states);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/server_states.h"

#include <stdlib.h>
#include <string.h>

#include "haproxy/span.h"
#include "haproxy/stat.h"

#define COLUMNS_MAX      64 /* 2.6 and 3.0 have 25 */
#define AGENT_CONFIGURED 0x02

/* ---- show servers state ---- */

enum place {
    AT_BACKEND,
    AT_SERVER,
    AT_ID,
    AT_ADMIN,
    AT_WEIGHT,
    AT_CONFIGURED,
    AT_AGENT,
    PLACES
};

static const char *const places[PLACES] = {
    [AT_BACKEND] = "be_name",
    [AT_SERVER] = "srv_name",
    [AT_ID] = "be_id",
    [AT_ADMIN] = "srv_admin_state",
    [AT_WEIGHT] = "srv_uweight",
    [AT_CONFIGURED] = "srv_iweight",
    [AT_AGENT] = "srv_agent_state",
};

struct columns {
    size_t at[PLACES];
    size_t count;
};

static bool
read_header(struct span line, struct columns *ret)
{
    struct span word;
    bool found[PLACES] = {false};
    bool all = true;

    ret->count = 0;
    if (!span_word(&line, &word) || !span_is(word, "#")) {
        return false;
    }
    for (; ret->count < COLUMNS_MAX && span_word(&line, &word); ret->count++) {
        for (size_t i = 0; i < PLACES; i++) {
            if (span_is(word, places[i])) {
                ret->at[i] = ret->count;
                found[i] = true;
            }
        }
    }
    for (size_t i = 0; i < PLACES; i++) {
        all = all && found[i];
    }
    return all;
}

static const char *
name_of(struct span s, struct arena *a)
{
    return arena_memdup0(a, s.p, s.n);
}

static bool
read_line(struct span line, const struct columns *c, struct arena *a, struct server_line *ret)
{
    struct span words[COLUMNS_MAX];
    int64_t numbers[PLACES] = {0};
    size_t count = 0;

    while (count < COLUMNS_MAX && span_word(&line, &words[count])) {
        count++;
    }
    if (count != c->count) {
        return false;
    }
    for (size_t i = AT_ID; i < PLACES; i++) {
        if (!span_number(words[c->at[i]], INT32_MAX, &numbers[i])) {
            return false;
        }
    }
    *ret = (struct server_line){
        .backend = name_of(words[c->at[AT_BACKEND]], a),
        .server = name_of(words[c->at[AT_SERVER]], a),
        .backend_id = numbers[AT_ID],
        .admin = (unsigned)numbers[AT_ADMIN],
        .weight = numbers[AT_WEIGHT],
        .configured_weight = numbers[AT_CONFIGURED],
        .agent = ((unsigned)numbers[AT_AGENT] & AGENT_CONFIGURED) != 0,
    };
    return true;
}

static int
compare_lines(const void *a, const void *b)
{
    const struct server_line *x = a;
    const struct server_line *y = b;
    int order = strcmp(x->backend, y->backend);

    return order != 0 ? order : strcmp(x->server, y->server);
}

/* The version of the format stands first, alone in its line. */
static bool
find_header(struct span *rest, struct columns *ret)
{
    struct span line;
    int64_t version;

    return span_line(rest, &line) && span_number(line, 99, &version) &&
           span_line(rest, &line) && read_header(line, ret);
}

err_t
server_table_parse(
    const char *text, size_t bytes, struct arena *a, struct server_table *ret, struct error *e)
{
    struct span rest = {text, bytes};
    struct server_table t = {.lines = NULL};
    struct columns columns;
    struct span line;
    size_t cap = 0;

    if (!find_header(&rest, &columns)) {
        return error_set(
            e, ERR_INVALID,
            "the answer to \"show servers state\" has no header of its columns");
    }
    while (rest.n > 0 && rest.p[0] != '\n') {
        bool whole = span_line(&rest, &line);

        if (t.count == cap) {
            cap = cap == 0 ? 64 : cap * 2;
            t.lines = xrealloc(t.lines, cap * sizeof *t.lines);
        }
        if (whole && t.count < STAT_MAX_ROWS &&
            read_line(line, &columns, a, &t.lines[t.count])) {
            t.count++;
        } else {
            t.parse_errors++;
        }
        rest.n = whole ? rest.n : 0;
    }
    if (t.count > 1) {
        qsort(t.lines, t.count, sizeof *t.lines, compare_lines);
    }
    *ret = t;
    return ERR_OK;
}

void
server_table_fini(struct server_table *t)
{
    free(t->lines);
    *t = (struct server_table){.lines = NULL};
}

const struct server_line *
server_table_find(const struct server_table *t, const char *backend, const char *server)
{
    struct server_line key = {.backend = backend, .server = server};

    return t->count == 0 ? NULL
                         : bsearch(&key, t->lines, t->count, sizeof *t->lines, compare_lines);
}

/* ---- states ---- */

static const struct {
    const char *word; /* of the column "status", to its end or a space */
    const char *name;
} states[] = {
    [SERVER_UNKNOWN] = {"", "unknown"},  [SERVER_UP] = {"UP", "up"},
    [SERVER_DOWN] = {"DOWN", "down"},    [SERVER_NO_CHECK] = {"no check", "no_check"},
    [SERVER_DRAIN] = {"DRAIN", "drain"}, [SERVER_MAINT] = {"MAINT", "maint"},
    [SERVER_NOLB] = {"NOLB", "nolb"},
};

enum server_state
server_state_of(const char *status)
{
    for (size_t i = SERVER_UP; i < ARRAY_LEN(states); i++) {
        size_t len = strlen(states[i].word);

        if (strncmp(status, states[i].word, len) == 0 &&
            (status[len] == '\0' || status[len] == ' ')) {
            return (enum server_state)i;
        }
    }
    return SERVER_UNKNOWN;
}

const char *
server_state_name(enum server_state s)
{
    return states[s].name;
}

/* The bits say more than the text, which names the first cause only. */
static const char *
by_bits(unsigned admin)
{
    bool configured = (admin & ADMIN_CONFIGURED_MAINT) != 0;
    bool forced = (admin & (ADMIN_FORCED_MAINT | ADMIN_FORCED_DRAIN)) != 0 && !configured;

    if ((admin & ADMIN_NO_ADDRESS) != 0) {
        return forced ? "operator+dns" : "dns";
    }
    if (forced) {
        return "operator";
    }
    if (configured) {
        return "configured";
    }
    return (admin & (ADMIN_INHERITED_MAINT | ADMIN_INHERITED_DRAIN)) != 0 ? "tracked" : NULL;
}

/* Without the bits. */
static const char *
by_text(const char *status)
{
    static const struct {
        const char *start, *by;
    } texts[] = {
        {"MAINT (resolution)", "dns"},
        {"MAINT (via ", "tracked"},
        {"MAINT", "operator"},
        {"DRAIN", "operator"},
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (strncmp(status, texts[i].start, strlen(texts[i].start)) == 0) {
            return texts[i].by;
        }
    }
    return NULL;
}

const char *
server_taken_out_by(const char *status, const struct server_line *line)
{
    enum server_state state = server_state_of(status);
    const char *by;

    if (strstr(status, " (agent)") != NULL) {
        return "agent";
    }
    if (state == SERVER_NOLB) {
        return "check";
    }
    by = line != NULL ? by_bits(line->admin) : by_text(status);
    return by == NULL && state == SERVER_DRAIN && line != NULL && line->weight == 0 ? "weight"
                                                                                    : by;
}

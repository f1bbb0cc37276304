/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/state_filter.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "helper/weights.h"
#include "helper/words.h"

#define ADDRESS_BYTES  INET6_ADDRSTRLEN
#define WEIGHT_DEFAULT 1

/* Bits of srv_admin_state and values of srv_op_state. */
enum { ADMIN_MAINT = 1, ADMIN_CONFIG_MAINT = 4, ADMIN_DRAIN = 8, ADMIN_MAX = 255 };

enum { OP_RUNNING = 2, OP_STOPPING = 3 };

/* ---- the servers of a configuration ---- */

struct server {
    const char *backend, *name;
    const char *host; /* a literal address, without brackets, or a DNS name */
    int64_t port, weight;
    bool literal;
    bool watched; /* something may take it out: a check, an agent, the server it tracks */
};

struct servers {
    struct server *items;
    size_t count, cap;
    struct arena *names;
};

static void
servers_cleanup(struct servers *s)
{
    free(s->items);
    arena_free(s->names);
}

static int
by_name(const void *a, const void *b)
{
    const struct server *x = a;
    const struct server *y = b;
    int order = strcmp(x->backend, y->backend);

    return order != 0 ? order : strcmp(x->name, y->name);
}

/* What "server" and "default-server" may set for the server. */
static void
read_options(const struct words *w, size_t first, struct server *s)
{
    for (size_t i = first; i < w->count; i++) {
        const char *word = w->at[i];

        if (strcmp(word, "check") == 0 || strcmp(word, "agent-check") == 0) {
            s->watched = true;
        } else if (strcmp(word, "no-check") == 0) {
            s->watched = false;
        } else if (strcmp(word, "track") == 0) {
            s->watched = true;
            i++;
        } else if (strcmp(word, "cookie") == 0) {
            i++;
        } else if (strcmp(word, "weight") == 0 && i + 1 < w->count) {
            int64_t weight = 0;

            if (span_number(span_of(w->at[i + 1]), WEIGHT_MAX, &weight)) {
                s->weight = weight;
            }
            i++;
        }
    }
}

static bool
is_literal(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* One word of the file, and not "-", which means none. */
static bool
is_plain(const char *host)
{
    for (const char *p = host; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~') {
            return false;
        }
    }
    return host[0] != '\0' && host[0] != '-';
}

/* "192.0.2.1:80", "[2001:db8::1]:80", "name.test:80" */
static bool
read_target(struct arena *names, const char *word, struct server *s)
{
    const char *colon = strrchr(word, ':');
    size_t bytes = colon != NULL ? (size_t)(colon - word) : 0;
    char *host;

    if (bytes == 0 || !span_number(span_of(colon + 1), 65535, &s->port)) {
        return false;
    }
    if (word[0] == '[' && bytes > 2 && word[bytes - 1] == ']') {
        word++;
        bytes -= 2;
    }
    host = arena_memdup0(names, word, bytes);
    s->host = host;
    s->literal = is_literal(host);
    return s->literal || is_plain(host);
}

static void
add_server(
    struct servers *all, const char *backend, const struct words *w,
    const struct server *defaults)
{
    struct server s = *defaults;

    if (w->count < 3 || !read_target(all->names, w->at[2], &s)) {
        return;
    }
    s.backend = backend;
    s.name = arena_strdup(all->names, w->at[1]);
    read_options(w, 3, &s);
    if (all->count == all->cap) {
        all->cap = all->cap == 0 ? 64 : all->cap * 2;
        all->items = xrealloc(all->items, all->cap * sizeof *all->items);
    }
    all->items[all->count++] = s;
}

/* Most lines of a configuration say nothing of servers. */
static bool
is_of_interest(struct span line)
{
    static const char *const keywords[] = {
        "server", "default-server", "backend", "defaults",  "frontend",
        "listen", "global",         "peers",   "resolvers",
    };
    struct span word;

    if (!span_word(&line, &word)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (span_is(word, keywords[i])) {
            return true;
        }
    }
    return false;
}

static err_t
read_servers(struct span text, struct servers *all, struct error *e)
{
    const struct server none = {.weight = WEIGHT_DEFAULT};
    struct server general = none; /* of the section "defaults" */
    struct server own = none;     /* of the present backend */
    const char *backend = NULL;
    bool in_defaults = false;
    CLEANUP(words_fini) struct words w;
    struct span line;

    words_init(&w);
    while (span_line(&text, &line)) {
        if (!is_of_interest(line)) {
            continue;
        }
        if (words_parse(&w, line, e) != ERR_OK) {
            return error_set(e, ERR_INVALID, "the new configuration cannot be read");
        }
        if (strcmp(w.at[0], "server") == 0) {
            if (backend != NULL) {
                add_server(all, backend, &w, &own);
            }
        } else if (strcmp(w.at[0], "default-server") == 0) {
            read_options(&w, 1, in_defaults ? &general : &own);
        } else {
            in_defaults = strcmp(w.at[0], "defaults") == 0;
            general = in_defaults ? none : general;
            own = general;
            backend = strcmp(w.at[0], "backend") == 0 && w.count > 1
                          ? arena_strdup(all->names, w.at[1])
                          : NULL;
        }
    }
    if (all->count > 0) {
        qsort(all->items, all->count, sizeof *all->items, by_name);
    }
    return ERR_OK;
}

/* ---- a line of the answer ---- */

/* All that an old HAProxy writes; those that a newer one adds (TLS, places of checks and
 * agents) are the configuration's business. */
enum field {
    BE_ID,
    BE_NAME,
    SRV_ID,
    SRV_NAME,
    ADDR,
    OP_STATE,
    ADMIN_STATE,
    UWEIGHT,
    IWEIGHT,
    CHANGED,
    CHECK_STATUS,
    CHECK_RESULT,
    CHECK_HEALTH,
    CHECK_STATE,
    AGENT_STATE,
    BE_FORCED,
    SRV_FORCED,
    FQDN,
    PORT,
    SRV_RECORD,
    FIELD_COUNT,
};

struct state {
    struct span words[FIELD_COUNT];
    int64_t numbers[FIELD_COUNT];
};

/* The greatest value of a number, 0: it is none. */
static const int64_t limits[FIELD_COUNT] = {
    [BE_ID] = INT32_MAX,      [SRV_ID] = INT32_MAX,
    [OP_STATE] = OP_STOPPING, [ADMIN_STATE] = ADMIN_MAX,
    [UWEIGHT] = WEIGHT_MAX,   [IWEIGHT] = WEIGHT_MAX,
    [CHANGED] = INT32_MAX,    [CHECK_STATUS] = 255,
    [CHECK_RESULT] = 4,       [CHECK_HEALTH] = INT32_MAX,
    [CHECK_STATE] = 31,       [AGENT_STATE] = 31,
    [BE_FORCED] = 1,          [SRV_FORCED] = 1,
};

static bool
read_state(struct span line, struct state *ret)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (!span_word(&line, &ret->words[i]) ||
            (limits[i] != 0 && !span_number(ret->words[i], limits[i], &ret->numbers[i]))) {
            return false;
        }
    }
    return true;
}

/* As strcmp. */
static int
compare_span(struct span a, const char *b)
{
    size_t bytes = strlen(b);
    int order = memcmp(a.p, b, a.n < bytes ? a.n : bytes);

    return order != 0 || a.n == bytes ? order : (a.n < bytes ? -1 : 1);
}

static int
by_words(const void *key, const void *item)
{
    const struct state *st = key;
    const struct server *s = item;
    int order = compare_span(st->words[BE_NAME], s->backend);

    return order != 0 ? order : compare_span(st->words[SRV_NAME], s->name);
}

/* By its new name, which st has from then on. */
static const struct server *
find_server(const struct servers *all, const struct renames *renames, struct state *st)
{
    if (all->count == 0 || !rename_list_apply(&renames->backends, &st->words[BE_NAME]) ||
        !rename_list_apply(&renames->servers, &st->words[SRV_NAME])) {
        return NULL;
    }
    return bsearch(st, all->items, all->count, sizeof *all->items, by_words);
}

/* ---- the file ---- */

static int64_t
admin_state(int64_t bits)
{
    bits &= ADMIN_MAINT | ADMIN_CONFIG_MAINT | ADMIN_DRAIN;
    /* HAProxy takes no file that says both. */
    return (bits & ADMIN_MAINT) != 0 ? bits & ~ADMIN_DRAIN : bits;
}

static bool
is_unreached(const struct state *st, const struct server *s)
{
    return s->watched && s->literal && st->numbers[OP_STATE] == OP_RUNNING &&
           st->numbers[CHECK_RESULT] == 0 && admin_state(st->numbers[ADMIN_STATE]) == 0 &&
           st->numbers[UWEIGHT] == st->numbers[IWEIGHT];
}

/* The address that HAProxy found for a name is good for the same name only. */
static void
put_address(const struct state *st, const struct server *s, struct buf *out)
{
    struct span found = st->words[ADDR];
    char address[ADDRESS_BYTES];

    span_copy(found, address, sizeof address);
    if (s->literal) {
        buf_puts(out, s->host);
    } else if (
        span_is(st->words[FQDN], s->host) && found.n < sizeof address && is_literal(address)) {
        buf_puts(out, address);
    } else {
        buf_putc(out, '-');
    }
}

static void
put_number(const struct state *st, enum field field, struct buf *out)
{
    buf_i64(out, st->numbers[field]);
    buf_putc(out, ' ');
}

static void
put_state(const struct state *st, const struct server *s, struct buf *out)
{
    put_number(st, BE_ID, out);
    buf_printf(out, "%s %" PRId64 " %s ", s->backend, st->numbers[SRV_ID], s->name);
    put_address(st, s, out);
    buf_printf(
        out, " %" PRId64 " %" PRId64 " ", s->watched ? st->numbers[OP_STATE] : OP_RUNNING,
        admin_state(st->numbers[ADMIN_STATE]));
    for (enum field f = UWEIGHT; f <= SRV_FORCED; f++) {
        put_number(st, f, out);
    }
    buf_printf(out, "%s %" PRId64 " -\n", s->literal ? "-" : s->host, s->port);
}

err_t
state_filter(
    struct span shown, struct span config, const struct renames *renames, bool as_started,
    struct buf *out, struct error *e)
{
    /* A name of one letter takes an arena's smallest piece. */
    CLEANUP(servers_cleanup)
    struct servers all = {.names = arena_new(ARENA_DEFAULT_BYTES + config.n * 8)};
    struct span line = {NULL, 0};
    struct state st = {.numbers = {0}};
    err_t code = read_servers(config, &all, e);

    if (code != ERR_OK) {
        return code;
    }
    if (!span_line(&shown, &line) || !span_is(line, "1")) {
        return error_set(e, ERR_INVALID, "the states of servers have an unknown form");
    }
    buf_puts(out, SERVER_STATE_EMPTY);
    while (span_line(&shown, &line) && line.n > 0) {
        if (line.p[0] != '#' && read_state(line, &st)) {
            const struct server *s = find_server(&all, renames, &st);

            if (s != NULL && !as_started) {
                st.numbers[UWEIGHT] = st.numbers[IWEIGHT] = s->weight;
            }
            if (s != NULL && !is_unreached(&st, s)) {
                put_state(&st, s, out);
            }
        }
    }
    /* An empty line ends the answer. */
    return line.n > 0 ? error_set(e, ERR_INVALID, "the states of servers were cut")
                      : buf_status(out, e);
}

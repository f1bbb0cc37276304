/* SPDX-License-Identifier: Apache-2.0 */
#include "render/runtime_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX  64
#define WEIGHT_MAX 256

struct word {
    const char *p;
    size_t n;
};

static bool
word_is(struct word w, const char *text)
{
    return w.n == strlen(text) && memcmp(w.p, text, w.n) == 0;
}

static bool
word_equal(struct word a, struct word b)
{
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* ---- the plan ---- */

static void
need_reload(struct runtime_plan *plan, const char *file, const char *why)
{
    (void)snprintf(plan->reload, sizeof plan->reload, "%.90s%s", file, why);
}

static struct runtime_change *
add(struct runtime_plan *plan, enum runtime_what what)
{
    struct runtime_change *c;

    if (plan->count == plan->cap) {
        plan->cap = plan->cap == 0 ? 8 : plan->cap * 2;
        plan->items = xrealloc(plan->items, plan->cap * sizeof *plan->items);
    }
    c = &plan->items[plan->count++];
    *c = (struct runtime_change){.what = what};
    return c;
}

void
runtime_plan_fini(struct runtime_plan *plan)
{
    free(plan->items);
    arena_free(plan->texts);
}

/* ---- lines ---- */

struct lines {
    const char *p, *end;
    struct word line; /* the present one */
    size_t number;    /* its number, from 1 */
};

static struct lines
lines_of(const struct artefact *a)
{
    const char *text = buf_str(&a->bytes);

    return (struct lines){.p = text, .end = text + a->bytes.len};
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* The next line that says something. */
static bool
next_line(struct lines *l)
{
    while (l->p < l->end) {
        const char *end = memchr(l->p, '\n', (size_t)(l->end - l->p));
        const char *p = l->p;

        end = end != NULL ? end : l->end;
        l->line = (struct word){p, (size_t)(end - p)};
        l->number++;
        l->p = end < l->end ? end + 1 : end;
        while (p < end && is_space(*p)) {
            p++;
        }
        if (p < end && *p != '#') {
            return true;
        }
    }
    l->line = (struct word){"", 0};
    return false;
}

/* Returns how many words there are; more than WORDS_MAX: 0. */
static size_t
split(struct word line, struct word words[WORDS_MAX])
{
    const char *p = line.p;
    const char *end = p + line.n;
    size_t count = 0;

    while (p < end) {
        const char *start;

        while (p < end && is_space(*p)) {
            p++;
        }
        start = p;
        while (p < end && !is_space(*p)) {
            p++;
        }
        if (p > start && count == WORDS_MAX) {
            return 0;
        }
        if (p > start) {
            words[count++] = (struct word){start, (size_t)(p - start)};
        }
    }
    return count;
}

/* ---- a server's line ---- */

struct server {
    struct word words[WORDS_MAX]; /* without what is taken out below */
    size_t count;
    struct word host;
    int64_t port, weight, maxconn; /* -1: not given */
};

static bool
read_number(struct word w, int64_t max, int64_t *ret)
{
    int64_t v = 0;

    if (w.n == 0 || w.n > 10) {
        return false;
    }
    for (size_t i = 0; i < w.n; i++) {
        if (w.p[i] < '0' || w.p[i] > '9') {
            return false;
        }
        v = v * 10 + (w.p[i] - '0');
    }
    *ret = v;
    return v <= max;
}

/* "192.0.2.1:80", "[2001:db8::1]:80"; a name is in no form of a literal address. */
static bool
read_address(struct word w, struct server *s)
{
    size_t n = w.n;

    while (n > 0 && w.p[n - 1] != ':') {
        n--;
    }
    if (n < 2 || !read_number((struct word){w.p + n, w.n - n}, 65535, &s->port)) {
        return false;
    }
    s->host = (struct word){w.p, n - 1};
    if (s->host.n > 2 && s->host.p[0] == '[' && s->host.p[s->host.n - 1] == ']') {
        s->host = (struct word){s->host.p + 1, s->host.n - 2};
        return true;
    }
    for (size_t i = 0; i < s->host.n; i++) {
        if ((s->host.p[i] < '0' || s->host.p[i] > '9') && s->host.p[i] != '.') {
            return false;
        }
    }
    return true;
}

/* Takes name, address, weight and limit of "server NAME ADDRESS ..." apart. */
static bool
read_server(struct word line, struct server *s)
{
    size_t kept = 0;

    *s = (struct server){.port = -1, .weight = -1, .maxconn = -1};
    s->count = split(line, s->words);
    if (s->count < 3 || !word_is(s->words[0], "server") ||
        memchr(line.p, '"', line.n) != NULL || memchr(line.p, '\'', line.n) != NULL ||
        memchr(line.p, '\\', line.n) != NULL) {
        return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        bool last = i + 1 == s->count;
        bool taken = false;

        if (i > 2 && !last && word_is(s->words[i], "weight")) {
            taken = read_number(s->words[i + 1], WEIGHT_MAX, &s->weight);
        } else if (i > 2 && !last && word_is(s->words[i], "maxconn")) {
            taken = read_number(s->words[i + 1], INT32_MAX, &s->maxconn);
        }
        if (taken) {
            i++;
        } else {
            s->words[kept++] = s->words[i];
        }
    }
    s->count = kept;
    return true;
}

static bool
same_address(const struct server *a, const struct server *b)
{
    return word_equal(a->words[2], b->words[2]);
}

/* What is not given comes from defaults that are not read here. */
static bool
is_settable(struct server *a, struct server *b)
{
    if (a->count != b->count || (a->weight >= 0 && b->weight < 0) ||
        (a->maxconn >= 0 && b->maxconn <= 0 && a->maxconn != b->maxconn)) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (i != 2 && !word_equal(a->words[i], b->words[i])) {
            return false;
        }
    }
    return same_address(a, b) || (read_address(a->words[2], a) && read_address(b->words[2], b));
}

static struct runtime_change *
add_server(
    struct runtime_plan *plan, enum runtime_what what, const char *backend,
    const struct server *s)
{
    struct runtime_change *c = add(plan, what);

    c->backend = backend;
    c->server = arena_memdup0(plan->texts, s->words[1].p, s->words[1].n);
    return c;
}

static bool
plan_server(
    struct runtime_plan *plan, const char *backend, struct word before, struct word after)
{
    struct server a;
    struct server b;

    if (backend == NULL || plan->count >= RUNTIME_SERVERS_MAX || !read_server(before, &a) ||
        !read_server(after, &b) || !is_settable(&a, &b)) {
        return false;
    }
    if (!same_address(&a, &b)) {
        struct runtime_change *c = add_server(plan, RUNTIME_ADDRESS, backend, &b);

        c->address = arena_memdup0(plan->texts, b.host.p, b.host.n);
        c->number = b.port;
    }
    if (b.maxconn > 0 && a.maxconn != b.maxconn) {
        add_server(plan, RUNTIME_MAXCONN, backend, &b)->number = b.maxconn;
    }
    if (b.weight >= 0 && a.weight != b.weight) {
        add_server(plan, RUNTIME_WEIGHT, backend, &b)->number = b.weight;
    }
    return true;
}

/* ---- haproxy.cfg ---- */

static bool
is_description(struct word line)
{
    struct word words[WORDS_MAX];

    return split(line, words) == 3 && word_is(words[0], "description") &&
           word_is(words[1], "\"lockstep");
}

/* The backend whose lines follow; as before inside of a section. */
static const char *
backend_after(struct runtime_plan *plan, struct word line, const char *backend)
{
    struct word words[WORDS_MAX];

    if (line.n == 0 || is_space(line.p[0])) {
        return backend;
    }
    return split(line, words) == 2 && word_is(words[0], "backend")
               ? arena_memdup0(plan->texts, words[1].p, words[1].n)
               : NULL;
}

static void
differs_at(struct runtime_plan *plan, const struct lines *l)
{
    struct word words[WORDS_MAX] = {{"", 0}, {"", 0}};
    size_t count = split(l->line, words);
    int first = (int)(words[0].n < 30 ? words[0].n : 30);
    int second = count > 1 ? (int)(words[1].n < 30 ? words[1].n : 30) : 0;

    (void)snprintf(
        plan->reload, sizeof plan->reload, "haproxy.cfg line %zu%s%.*s%s%.*s", l->number,
        words[0].n > 0 ? ": " : "", first, words[0].p, second > 0 ? " " : "", second,
        second > 0 ? words[1].p : "");
}

static void
plan_config(
    struct runtime_plan *plan, const struct artefact *running, const struct artefact *candidate)
{
    struct lines a = lines_of(running);
    struct lines b = lines_of(candidate);
    const char *backend = NULL;
    bool more = next_line(&a);

    while (next_line(&b)) {
        bool same = more && word_equal(a.line, b.line);

        if (!same && (!more || !(is_description(a.line) && is_description(b.line))) &&
            (!more || !plan_server(plan, backend, a.line, b.line))) {
            differs_at(plan, &b);
            return;
        }
        backend = backend_after(plan, b.line, backend);
        more = next_line(&a);
    }
    if (more) {
        differs_at(plan, &b);
    }
}

/* ---- maps, certificates ---- */

static bool
is_payload(const struct artefact *a)
{
    struct lines l = lines_of(a);
    struct word words[WORDS_MAX];

    while (next_line(&l)) {
        if (l.line.n >= RUNTIME_PAYLOAD_BYTES || is_space(l.line.p[0]) ||
            split(l.line, words) < 2) {
            return false;
        }
    }
    return true;
}

static void
plan_map(
    struct runtime_plan *plan, const struct artefact *running, const struct artefact *candidate)
{
    struct lines a = lines_of(running);
    struct lines b = lines_of(candidate);
    bool more = true;
    bool same = true;

    while (more && same) {
        more = next_line(&a);
        same = next_line(&b) == more && word_equal(a.line, b.line);
    }
    if (same) {
        return;
    }
    if (is_payload(candidate)) {
        add(plan, RUNTIME_MAP)->file = candidate;
    } else {
        need_reload(plan, candidate->name, " has a line that the admin socket does not take");
    }
}

static void
plan_file(
    struct runtime_plan *plan, const struct artefact *running, const struct artefact *candidate)
{
    const char *name = candidate->name;

    if (strcmp(name, "haproxy.cfg") == 0 || strcmp(name, RUNNING_MAP) == 0 ||
        (running->bytes.len == candidate->bytes.len &&
         memcmp(buf_str(&running->bytes), buf_str(&candidate->bytes), running->bytes.len) ==
             0)) {
        return;
    }
    if (strncmp(name, "map/", 4) == 0) {
        plan_map(plan, running, candidate);
    } else if (strncmp(name, "crt/", 4) != 0) {
        need_reload(plan, name, "");
    } else if (candidate->bytes.len < RUNTIME_PAYLOAD_BYTES) {
        add(plan, RUNTIME_CERTIFICATE)->file = candidate;
    } else {
        need_reload(plan, name, " is too long for the admin socket");
    }
}

/* Both are sorted: where they part first, the lesser name is missing in the other. */
static bool
same_names(
    struct runtime_plan *plan, const struct rendered *running, const struct rendered *candidate)
{
    size_t i = 0;

    while (i < running->count && i < candidate->count &&
           strcmp(candidate->items[i].name, running->items[i].name) == 0) {
        i++;
    }
    if (i == running->count && i == candidate->count) {
        return true;
    }
    bool is_new =
        i < candidate->count &&
        (i == running->count || strcmp(candidate->items[i].name, running->items[i].name) < 0);
    need_reload(
        plan, is_new ? candidate->items[i].name : running->items[i].name,
        is_new ? " is new" : " is gone");
    return false;
}

void
runtime_plan_make(
    const struct rendered *running, const struct rendered *candidate, struct runtime_plan *plan)
{
    *plan = (struct runtime_plan){.texts = arena_new(RENDER_MAX_BYTES)};
    if (!same_names(plan, running, candidate)) {
        return;
    }
    plan_config(
        plan, rendered_find(running, "haproxy.cfg"), rendered_find(candidate, "haproxy.cfg"));
    for (size_t i = 0; i < candidate->count && plan->reload[0] == '\0'; i++) {
        plan_file(plan, &running->items[i], &candidate->items[i]);
    }
}

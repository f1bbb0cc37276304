/* SPDX-License-Identifier: Apache-2.0 */
/* Requests a second that the API answers at 1,000 services, beside a bare
 * libmicrohttpd that answers the same bytes, by turns; and the time of a draft
 * write beside a SQLite transaction that writes as much. The server is that of
 * lockstepd, in this process so that it can also listen without TLS; the node
 * below it is a fake. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/x509.h"
#include "store/db.h"
#include "tests/bench/bare.h"
#include "tests/bench/load.h"
#include "tests/support/http_lab.h"

#define SERVICES      1000
#define ROUNDS        7
#define ROUND_MS      300
#define BARE_WARM     1000
#define WARM          50
#define WRITES        200
#define REQUEST_BYTES 4096
#define OPS_BYTES     ((size_t)8 << 20)
#define FOLDER        "/var/tmp" /* on a disk: writes are synced */

struct lab {
    struct http_lab *http;
    struct http *tls; /* the same API once more */
    struct buf cert, key;
};

/* ---- setting up ---- */

static void
tune(struct tunables *t)
{
    t->status_round_ms = 2000; /* as in the product */
}

static void
put_service(struct buf *out, int i)
{
    for (int n = 1; n <= 2; n++) {
        buf_printf(
            out,
            ",{'op':'create','kind':'server','body':{'name':'svc%d.s%d','address':"
            "'10.%d.%d.%d','port':8080}}",
            i, n, i / 250, i % 250, n);
    }
    buf_printf(
        out,
        ",{'op':'create','kind':'monitor','body':{'name':'svc%d','type':'"
        "http','path':"
        "'/"
        "healthz'}},{'op':'create','kind':'pool','body':{'name':'svc%d','"
        "monitor':'svc%d',"
        "'members':[{'server':'svc%d.s1'},{'server':'svc%d.s2'}]}}",
        i, i, i, i, i);
    buf_printf(
        out,
        ",{'op':'create','kind':'service','body':{'name':'svc%d','"
        "listeners':['web'],"
        "'hosts':['svc%d.example.test'],'pool':'svc%d'}}",
        i, i, i);
}

static void
fill(struct http_lab *l)
{
    struct buf CLEANUP(buf_fini) ops;

    buf_init(&ops, OPS_BYTES);
    buf_printf(
        &ops,
        "{'apply':true,'ops':[{'op':'create','kind':'listener','body':{'"
        "name':'web',"
        "'addresses':['127.0.0.1'],'port':%d}}",
        l->engine->fake.port);
    for (int i = 0; i < SERVICES; i++) {
        put_service(&ops, i);
    }
    buf_puts(&ops, "]}");
    http_lab_must(l, 200, "POST /api/v1/changes?wait=1", NULL, buf_str(&ops));
    if (strcmp(http_lab_text(l, "state"), "ok") != 0) {
        (void)fprintf(stderr, "apply: %s\n", l->body);
        exit(1);
    }
}

static void
must(err_t code, const struct error *e)
{
    if (code != ERR_OK) {
        (void)fprintf(stderr, "%s\n", e->msg);
        exit(1);
    }
}

static void
open_lab(struct lab *l)
{
    static const char *const names[] = {"localhost", NULL};
    struct http_config config = {.address = "127.0.0.1"};
    struct error e;

    l->http = http_lab_new_in(FOLDER, tune);
    fill(l->http);
    buf_init(&l->cert, 1 << 16);
    buf_init(&l->key, 1 << 16);
    must(
        x509_selfsigned(names, clock_wall_ms(&clock_system) / 1000, 9, &l->cert, &l->key, &e),
        &e);
    config.engine = l->http->engine->en;
    config.tunables = &l->http->engine->tunables;
    config.clock = &l->http->engine->clock;
    config.cert_pem = buf_str(&l->cert);
    config.key_pem = buf_str(&l->key);
    must(http_open(&config, &l->tls, &e), &e);
}

static void
close_lab(struct lab *l)
{
    http_close(l->tls);
    http_lab_delete(l->http);
    buf_fini(&l->cert);
    buf_fini(&l->key);
}

/* ---- reading ---- */

static const char *
request(struct lab *l, const char *path, char *space)
{
    int n = snprintf(
        space, REQUEST_BYTES,
        "GET %s HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\n\r\n", path,
        buf_str(&l->http->key));

    ASSERT(n > 0 && n < REQUEST_BYTES);
    return space;
}

static void
bench_get(struct lab *l, const char *what, const char *path, bool tls)
{
    char space[REQUEST_BYTES];
    const char *requests[] = {request(l, path, space)};
    struct load load = {.tls = tls, .requests = requests, .count = 1, .ms = ROUND_MS};
    struct bare_config config = {
        .cert_pem = tls ? buf_str(&l->cert) : NULL, .key_pem = tls ? buf_str(&l->key) : NULL};
    double ratio[ROUNDS], ours[ROUNDS], theirs[ROUNDS];
    struct bare *bare;

    http_lab_must(
        l->http, 200, arena_printf(l->http->engine->arena, "GET %s", path), NULL, NULL);
    config.head = arena_memdup0(
        l->http->engine->arena, l->http->head, (size_t)(l->http->body - l->http->head));
    config.body = l->http->body;
    bare = bare_open(&config);
    for (size_t i = 0; i < ROUNDS; i++) {
        load.port = bare_port(bare);
        theirs[i] = load_run(&load);
        load.port = tls ? http_port(l->tls) : http_port(l->http->http);
        ours[i] = load_run(&load);
        ratio[i] = ours[i] / theirs[i];
    }
    bare_close(bare);
    (void)printf(
        "GET %-28s %-5s bare %7.0f/s, lockstepd %7.0f/s\n", what, tls ? "TLS" : "plain",
        load_median(theirs, ROUNDS), load_median(ours, ROUNDS));
    (void)printf(
        "@ GET %s, %s, of bare|%.2f|>= 0.6\n", what, tls ? "TLS" : "plain",
        load_median(ratio, ROUNDS));
}

static void
bench_list(struct lab *l, const char *kind)
{
    char path[64];
    char space[REQUEST_BYTES];
    const char *requests[1];
    struct load load = {.requests = requests, .count = 1, .ms = ROUND_MS};
    double rate[ROUNDS];

    (void)snprintf(path, sizeof path, "/api/v1/%s?limit=100", kind);
    requests[0] = request(l, path, space);
    load.port = http_port(l->http->http);
    for (size_t i = 0; i < ROUNDS; i++) {
        rate[i] = load_run(&load);
    }
    (void)printf("@ list of 100 %s, per s|%.0f|>= 3000\n", kind, load_median(rate, ROUNDS));
}

/* ---- writing ---- */

/* The rows of a draft write: the body and the row of the draft. */
static const char bare_tables[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
    "CREATE TABLE body (hash BLOB, kind TEXT, form INTEGER, data BLOB, "
    "PRIMARY KEY (hash, kind));"
    "CREATE TABLE draft (kind TEXT, id TEXT, name TEXT, hash BLOB, base BLOB, "
    "author TEXT, "
    "at INTEGER, PRIMARY KEY (kind, id)) WITHOUT ROWID;";
#define BARE(id)                                                                               \
    "BEGIN IMMEDIATE;"                                                                         \
    "INSERT INTO body VALUES (randomblob(32), 'server', 0, randomblob(300));"                  \
    "INSERT OR REPLACE INTO draft VALUES ('server', " id ", 'svc7.s1', "                       \
    "randomblob(32), randomblob(32), 'key deploy', 1);"                                        \
    "COMMIT;"
/* One row of the draft again and again, or another one each time. */
static const char bare_edit[] = BARE("'0123456789abcdef'");
static const char bare_create[] = BARE("lower(hex(randomblob(8)))");

static struct db *
open_bare(const struct lab *l)
{
    char path[FAKE_PATH_BYTES + 16];
    struct db *d = NULL;
    struct error e;

    (void)snprintf(path, sizeof path, "%s/bare.db", l->http->engine->fake.dir);
    must(file_create_at(AT_FDCWD, path, "", 0, 0600, &e), &e);
    must(db_open(path, &d, &e), &e);
    must(db_script(d, bare_tables, &e), &e);
    return d;
}

static double
write_bare(struct db *d, const char *transaction)
{
    int64_t start = load_now_us();
    struct error e;

    must(db_script(d, transaction, &e), &e);
    return (double)(load_now_us() - start);
}

/* A kind of draft write. */
struct write {
    const char *what;
    const char *line;    /* method and path */
    const char *body[2]; /* around a number that is another one each time */
    const char *bare;
};

static const struct write writes[] = {
    {"port of a server", "PATCH /api/v1/servers/svc7.s1", {"{\"port\":", "}"}, bare_edit},
    {"limit of a server", "PATCH /api/v1/servers/svc8.s1", {"{\"maxconn\":", "}"}, bare_edit},
    {"hosts of a service",
     "PATCH /api/v1/services/svc9",
     {"{\"hosts\":[\"h", ".test\"]}"},
     bare_edit},
    {"new server",
     "POST /api/v1/servers",
     {"{\"name\":\"new", "\",\"address\":\"10.9.9.9\",\"port\":80}"},
     bare_create},
};

/* From call to answer, on a kept connection; the ETag leads to the next. */
static double
write_draft(struct lab *l, int fd, const struct write *w, int n)
{
    struct http_lab *h = l->http;
    struct buf CLEANUP(buf_fini) out;
    char body[128];
    bool patch = w->line[1] == 'A';
    int64_t start;

    (void)snprintf(body, sizeof body, "%s%d%s", w->body[0], 1000 + n, w->body[1]);
    buf_init(&out, REQUEST_BYTES);
    buf_printf(
        &out,
        "%s HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\n%s%s%s"
        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        w->line, buf_str(&h->key), patch ? "If-Match: " : "",
        patch ? http_lab_field(h, "ETag") : "", patch ? "\r\n" : "", strlen(body), body);
    start = load_now_us();
    http_lab_send(fd, buf_str(&out), out.len);
    if (!http_lab_read(h, fd, false) || h->status != (patch ? 200 : 201)) {
        (void)fprintf(stderr, "draft write: %s\n", buf_str(&h->bytes));
        exit(1);
    }
    return (double)(load_now_us() - start);
}

static void
bench_draft(struct lab *l, struct db *d, const struct write *w)
{
    static double ratio[WRITES], ours[WRITES], theirs[WRITES];
    const char *path = strchr(w->line, ' ');
    int fd;

    http_lab_must(
        l->http, 200, arena_printf(l->http->engine->arena, "GET%s", path), NULL, NULL);
    fd = http_lab_connect(l->http);
    for (int i = 0; i < WARM; i++) {
        (void)write_draft(l, fd, w, i - WARM);
    }
    for (int i = 0; i < WRITES; i++) {
        theirs[i] = write_bare(d, w->bare);
        ours[i] = write_draft(l, fd, w, i);
        ratio[i] = ours[i] / theirs[i];
    }
    (void)close(fd);
    (void)printf(
        "draft write, %s: bare SQLite %.0f us, from call to answer %.0f us\n", w->what,
        load_median(theirs, WRITES), load_median(ours, WRITES));
    (void)printf(
        "@ draft write, %s, of a bare transaction|%.2f|<= 2\n", w->what,
        load_median(ratio, WRITES));
}

static void
bench_drafts(struct lab *l)
{
    struct db *d = open_bare(l);

    /* The log of a new database grows at first, which takes longer than writing it anew does.
     */
    for (int i = 0; i < BARE_WARM; i++) {
        (void)write_bare(d, bare_edit);
    }
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
        bench_draft(l, d, &writes[i]);
    }
    db_close(d);
}

/* ---- */

static void
bench_health(struct lab *l)
{
    static const char *const paths[] = {"/api/v1/health", "/api/v1/ready"};

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char space[REQUEST_BYTES];
        const char *requests[] = {request(l, paths[i], space)};
        struct load load = {.requests = requests, .count = 1, .ms = ROUND_MS};

        load.port = http_port(l->http->http);
        (void)printf(
            "@ GET %s, ms|%.3f|<= 1\n", paths[i] + strlen("/api/v1"),
            load_latency_us(&load) / 1000);
    }
}

int
main(void)
{
    static struct lab l;

    open_lab(&l);
    for (int tls = 0; tls < 2; tls++) {
        bench_get(&l, "status", "/api/v1/status", tls == 1);
        bench_get(&l, "one object", "/api/v1/pools/svc500", tls == 1);
    }
    bench_list(&l, "services");
    bench_list(&l, "pools");
    bench_list(&l, "servers");
    bench_health(&l);
    bench_drafts(&l);
    close_lab(&l);
    return 0;
}

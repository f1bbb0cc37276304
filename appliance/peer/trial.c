/* SPDX-License-Identifier: Apache-2.0 */
#include "peer/trial.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/x509.h"

#define LINE_BYTES ((size_t)8192)
/* libcurl looks a name up on a thread of its own, which nobody can end: when DNS does not
 * answer, it outlives its trial. So many at once, and such a one is taken for ended after so
 * long. */
#define LOOKUPS_MAX    128
#define LOOKUP_LEFT_MS 60000
/* An address from which no name is made. Connections go to the server nevertheless. */
#define NAMELESS "127.0.0.1"

struct trials {
    pthread_mutex_t lock;
    int64_t lookups_ms[LOOKUPS_MAX]; /* until when each place is taken, monotonic */
};

struct running {
    struct trial *trial;
    CURL *curl;
    struct curl_slist *headers, *place;
    bool enough; /* of the answer is there */
    bool ended;
    bool failed_lookup;
    int64_t limit_ms;
    int64_t *lookup; /* its place; NULL: nothing is looked up */
};

err_t
trials_open(struct trials **ret, struct error *e)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return error_set(e, ERR_INTERNAL, "libcurl does not start");
    }
    *ret = xcalloc(1, sizeof **ret);
    lock_init(&(*ret)->lock);
    return ERR_OK;
}

void
trials_close(struct trials *all)
{
    ASSERT(pthread_mutex_destroy(&all->lock) == 0);
    free(all);
    curl_global_cleanup();
}

/* ---- names ---- */

static bool
is_name(const char *address)
{
    struct in6_addr unused;

    return inet_pton(AF_INET, address, &unused) != 1 &&
           inet_pton(AF_INET6, address, &unused) != 1;
}

/* False: none is free. */
static bool
lookup_begin(struct trials *all, struct running *r)
{
    int64_t now_ms = clock_mono_ms(&clock_system);

    lock_take(&all->lock);
    for (size_t i = 0; i < LOOKUPS_MAX && r->lookup == NULL; i++) {
        if (all->lookups_ms[i] <= now_ms) {
            all->lookups_ms[i] = INT64_MAX;
            r->lookup = &all->lookups_ms[i];
        }
    }
    lock_give(&all->lock);
    return r->lookup != NULL;
}

/* Its name is being looked up, still. */
static bool
is_looked_up(const struct running *r)
{
    curl_off_t took_us = 0;

    (void)curl_easy_getinfo(r->curl, CURLINFO_NAMELOOKUP_TIME_T, &took_us);
    return r->lookup != NULL && took_us == 0 && !r->failed_lookup;
}

static void
lookup_end(struct trials *all, struct running *r)
{
    if (r->lookup == NULL) {
        return;
    }
    bool goes_on = is_looked_up(r);
    lock_take(&all->lock);
    *r->lookup = goes_on ? clock_mono_ms(&clock_system) + LOOKUP_LEFT_MS : 0;
    lock_give(&all->lock);
}

/* False: DNS gives no answer, or it has an address by now. */
static bool
is_not_in_dns(const char *name)
{
    unsigned char answer[NS_PACKETSZ];
    struct __res_state dns;

    memset(&dns, 0, sizeof dns);
    if (res_ninit(&dns) != 0) {
        return false;
    }
    dns.retrans = 1; /* second */
    dns.retry = 1;
    int bytes = res_nquery(&dns, name, ns_c_in, ns_t_a, answer, sizeof answer);
    int why = dns.res_h_errno;
    res_nclose(&dns);
    return bytes < 0 && (why == HOST_NOT_FOUND || why == NO_DATA);
}

/* libcurl does not say why a lookup failed. *silent: DNS gave no answer about another name,
 * which is not waited for again. */
static void
tell_lookup(struct trial *t, bool *silent)
{
    bool absent = !*silent && is_not_in_dns(t->address);

    *silent = !absent;
    (void)snprintf(
        t->why, sizeof t->why, "%s",
        absent ? "its name is not in DNS" : "DNS does not answer about its name");
}

/* ---- what is asked ---- */

static struct curl_slist *
longer(struct curl_slist *list, const char *text)
{
    struct curl_slist *l = curl_slist_append(list, text);

    ASSERT(l != NULL);
    return l;
}

/* The header that HAProxy sends, and nothing of libcurl's own. */
static struct curl_slist *
headers_of(const struct trial_way *way)
{
    struct curl_slist *list = longer(longer(NULL, "Accept:"), "User-Agent:");
    CLEANUP(buf_fini) struct buf host;

    buf_init(&host, LINE_BYTES);
    buf_puts(&host, "Host:");
    if (way->host[0] != '\0') {
        buf_printf(&host, " %s", way->host);
    }
    list = longer(list, buf_str(&host));
    return way->http_version == 11 ? longer(list, "Connection: close") : list;
}

/* "::address:port": whatever the URL says, the connection goes there. */
static struct curl_slist *
place_of(const struct trial *t)
{
    CLEANUP(buf_fini) struct buf place;
    bool v6 = strchr(t->address, ':') != NULL;

    buf_init(&place, LINE_BYTES);
    buf_printf(
        &place, "::%s%s%s:%lld", v6 ? "[" : "", t->address, v6 ? "]" : "", (long long)t->port);
    return longer(NULL, buf_str(&place));
}

static size_t
on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct running *r = ctx;
    struct buf *body = &r->trial->body;
    size_t room = TRIAL_BODY_BYTES - body->len;
    size_t bytes = size * count;

    buf_put(body, data, bytes < room ? bytes : room);
    r->enough = bytes >= room;
    return r->enough ? 0 : bytes;
}

/* The empty line behind the header of the answer itself, not of one that announces it. */
static size_t
on_header(char *data, size_t size, size_t count, void *ctx)
{
    struct running *r = ctx;
    size_t bytes = size * count;
    long status = 0;

    (void)curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    r->enough = bytes <= 2 && data[0] != ' ' && (status >= 200 || status == 101) &&
                !r->trial->way->wants_body;
    return r->enough ? 0 : bytes;
}

static void
set_blob(CURL *c, CURLoption option, const char *pem)
{
    union {
        const char *in;
        void *out;
    } text = {.in = pem};
    struct curl_blob blob = {text.out, strlen(pem), CURL_BLOB_NOCOPY};

    ASSERT(curl_easy_setopt(c, option, &blob) == CURLE_OK);
}

static CURLcode
on_ssl_ctx(CURL *curl, void *ssl_ctx, void *ctx)
{
    const struct trial_way *way = ctx;

    (void)curl;
    return x509_demand_name(ssl_ctx, way->name) ? CURLE_OK : CURLE_ABORTED_BY_CALLBACK;
}

static void
set_tls(CURL *c, const struct trial_way *way)
{
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, way->verify ? 1L : 0L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, way->verify && way->sni[0] != '\0' ? 2L : 0L);
    curl_easy_setopt(c, CURLOPT_SSL_ENABLE_ALPN, way->http_version == 20 ? 1L : 0L);
    curl_easy_setopt(c, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    if (way->verify && way->ca[0] != '\0') {
        set_blob(c, CURLOPT_CAINFO_BLOB, way->ca);
        curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    }
    /* libcurl itself verifies no name but the one that it asks for. */
    if (way->verify && way->sni[0] == '\0' && way->name[0] != '\0') {
        ASSERT(curl_easy_setopt(c, CURLOPT_SSL_CTX_FUNCTION, on_ssl_ctx) == CURLE_OK);
        curl_easy_setopt(c, CURLOPT_SSL_CTX_DATA, way);
    }
    if (way->chain != NULL) {
        set_blob(c, CURLOPT_SSLCERT_BLOB, way->chain);
        set_blob(c, CURLOPT_SSLKEY_BLOB, way->key);
    }
}

static void
set_http(CURL *c, const struct running *r)
{
    const struct trial_way *way = r->trial->way;

    curl_easy_setopt(
        c, CURLOPT_HTTP_VERSION,
        way->http_version == 20   ? (long)CURL_HTTP_VERSION_2TLS
        : way->http_version == 11 ? (long)CURL_HTTP_VERSION_1_1
                                  : (long)CURL_HTTP_VERSION_1_0);
    curl_easy_setopt(c, CURLOPT_NOBODY, strcmp(way->method, "HEAD") == 0 ? 1L : 0L);
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, way->method);
    curl_easy_setopt(c, CURLOPT_REQUEST_TARGET, way->target);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
}

static void
prepare(struct running *r, int64_t max_ms)
{
    const struct trial *t = r->trial;
    const struct trial_way *way = t->way;
    CLEANUP(buf_fini) struct buf url;
    CURL *c = curl_easy_init();

    ASSERT(c != NULL);
    r->curl = c;
    r->headers = way->http ? headers_of(way) : NULL;
    r->place = place_of(t);
    r->limit_ms = way->timeout_ms < max_ms ? way->timeout_ms : max_ms;
    buf_init(&url, LINE_BYTES);
    buf_printf(
        &url, "%s://%s/", way->tls ? "https" : "http",
        way->sni[0] != '\0' ? way->sni : NAMELESS);
    curl_easy_setopt(c, CURLOPT_URL, buf_str(&url));
    curl_easy_setopt(c, CURLOPT_CONNECT_TO, r->place);
    curl_easy_setopt(c, CURLOPT_PRIVATE, r);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)r->limit_ms);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)r->limit_ms);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a lookup that hangs */
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECT_ONLY, way->http ? 0L : 1L);
    curl_easy_setopt(c, CURLOPT_HAPROXYPROTOCOL, way->proxy_header ? 1L : 0L);
    if (way->tls) {
        set_tls(c, way);
    }
    if (way->http) {
        set_http(c, r);
    }
}

/* ---- what came ---- */

/* What is left of the time has odd milliseconds: two digits are enough. */
static void
tell_time(const struct running *r)
{
    struct trial *t = r->trial;

    (void)snprintf(
        t->why, sizeof t->why, "%s within %.2g s",
        is_looked_up(r) ? "DNS does not answer about its name" : "no answer",
        (double)r->limit_ms / 1000);
}

static void
tell_connection(struct running *r)
{
    struct trial *t = r->trial;
    long number = 0;
    const char *reason;

    (void)curl_easy_getinfo(r->curl, CURLINFO_OS_ERRNO, &number);
    reason = number > 0 ? strerrordesc_np((int)number) : NULL;
    (void)snprintf(t->why, sizeof t->why, "%s", reason != NULL ? reason : "no connection");
    t->why[0] = (char)tolower((unsigned char)t->why[0]);
}

static void
tell(struct running *r, CURLcode code)
{
    static const struct {
        CURLcode code;
        const char *why;
    } known[] = {
        {CURLE_PEER_FAILED_VERIFICATION, "its certificate does not verify"},
        {CURLE_SSL_CACERT_BADFILE, "the trusted authorities cannot be used"},
        {CURLE_SSL_CERTPROBLEM, "the client certificate cannot be used"},
        {CURLE_SSL_CONNECT_ERROR, "TLS does not begin"},
        {CURLE_GOT_NOTHING, "closed without an answer"},
        {CURLE_SEND_ERROR, "closed without an answer"},
        {CURLE_RECV_ERROR, "closed without an answer"},
        {CURLE_UNSUPPORTED_PROTOCOL, "the answer is not HTTP"},
        {CURLE_WEIRD_SERVER_REPLY, "the answer is not HTTP"},
    };
    struct trial *t = r->trial;
    const char *why = curl_easy_strerror(code);

    if (code == CURLE_OPERATION_TIMEDOUT) {
        tell_time(r);
        return;
    }
    if (code == CURLE_COULDNT_CONNECT) {
        tell_connection(r);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        why = known[i].code == code ? known[i].why : why;
    }
    (void)snprintf(t->why, sizeof t->why, "%s", why);
}

static void
end(struct running *r, CURLcode code)
{
    struct trial *t = r->trial;

    r->ended = true;
    r->failed_lookup = code == CURLE_COULDNT_RESOLVE_HOST;
    (void)curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &t->status);
    /* A connection that closes before the body's announced end has shown its body, too. */
    t->answered = code == CURLE_OK || r->enough ||
                  (t->way->http && t->status > 0 && code == CURLE_PARTIAL_FILE);
    if (!t->answered) {
        tell(r, code);
    }
}

static void
take_ended(CURLM *multi)
{
    CURLMsg *message;
    int left = 0;

    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        char *of = NULL;

        if (message->msg == CURLMSG_DONE &&
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &of) == CURLE_OK) {
            union {
                char *in;
                struct running *out;
            } r = {.in = of};

            end(r.out, message->data.result);
        }
    }
}

static void
run(CURLM *multi, int64_t max_ms)
{
    int64_t end_ms = clock_mono_ms(&clock_system) + max_ms;
    int running = 0;

    while (curl_multi_perform(multi, &running) == CURLM_OK) {
        int64_t left_ms = end_ms - clock_mono_ms(&clock_system);

        take_ended(multi);
        if (running == 0 || left_ms <= 0 ||
            curl_multi_poll(multi, NULL, 0, (int)left_ms, NULL) != CURLM_OK) {
            break;
        }
    }
    take_ended(multi);
}

/* False: it is not tried. */
static bool
begin(struct trials *all, struct running *r, struct trial *t, int64_t max_ms)
{
    *r = (struct running){.trial = t};
    t->answered = false;
    t->status = 0;
    buf_init(&t->body, TRIAL_BODY_BYTES);
    t->untried = is_name(t->address) && !lookup_begin(all, r);
    if (t->untried) {
        (void)snprintf(t->why, sizeof t->why, "too many names are being looked up");
        return false;
    }
    prepare(r, max_ms);
    return true;
}

static void
finish(struct trials *all, struct running *r, CURLM *multi, bool *dns_silent)
{
    if (r->curl == NULL) {
        return;
    }
    if (!r->ended) {
        tell_time(r);
    } else if (r->failed_lookup) {
        tell_lookup(r->trial, dns_silent);
    }
    lookup_end(all, r);
    (void)curl_multi_remove_handle(multi, r->curl);
    curl_easy_cleanup(r->curl);
    curl_slist_free_all(r->headers);
    curl_slist_free_all(r->place);
}

void
trials_run(struct trials *all, struct trial *trials, size_t count, int64_t max_ms)
{
    struct running *list = xcalloc(count + 1, sizeof *list);
    CURLM *multi = curl_multi_init();
    bool dns_silent = false;

    ASSERT(multi != NULL);
    for (size_t i = 0; i < count; i++) {
        if (begin(all, &list[i], &trials[i], max_ms)) {
            ASSERT(curl_multi_add_handle(multi, list[i].curl) == CURLM_OK);
        }
    }
    run(multi, max_ms);
    for (size_t i = 0; i < count; i++) {
        finish(all, &list[i], multi, &dns_silent);
    }
    (void)curl_multi_cleanup(multi);
    free(list);
}

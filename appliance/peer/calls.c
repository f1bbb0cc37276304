/* SPDX-License-Identifier: Apache-2.0 */
#include "peer/calls.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/mailbox.h"

#define POLL_MS      1000 /* libcurl wakes up by itself when it has to */
#define HEADER_BYTES 1024
#define IDLE_S       60L /* a kept connection is not used again after so long */

struct running {
    struct running *next;
    CURL *curl;
    struct curl_slist *headers;
    char *url, *pin, *body;
    call_fn fn;
    void *ctx;
    int64_t began_ms, dead_ms;
    struct call_answer answer;
};

struct calls {
    CURLM *multi;
    struct mailbox *box;
    _Atomic bool stopping;

    pthread_mutex_t lock;
    struct running *fresh; /* not begun */

    struct running *under_way; /* the thread's own */
};

/* ---- one call ---- */

/* A node at the other end of a cut cable is found out while it is waited for. Kept connections
 * have what their first call set. */
static int
on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const struct running *r = ctx;
    unsigned dead_ms = (unsigned)r->dead_ms;
    static const int on = 1, probe_s = 1;

    (void)purpose;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe_s, sizeof probe_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof probe_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof dead_ms);
    return CURL_SOCKOPT_OK;
}

static size_t
on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct running *r = ctx;

    buf_put(&r->answer.body, data, size * count);
    return r->answer.body.failed ? 0 : size * count;
}

static void
add_header(struct running *r, const char *name, const char *value)
{
    CLEANUP(buf_wipe_fini) struct buf line;
    struct curl_slist *longer;

    buf_init(&line, HEADER_BYTES);
    buf_printf(&line, "%s: %s", name, value);
    longer = curl_slist_append(r->headers, buf_str(&line));
    ASSERT(longer != NULL);
    r->headers = longer;
}

static struct running *
running_new(const struct call *c, call_fn fn, void *ctx)
{
    struct running *r = xcalloc(1, sizeof *r);
    CLEANUP(buf_fini) struct buf url;

    buf_init(&url, HEADER_BYTES);
    buf_printf(&url, "%s%s", c->url, c->path);
    r->url = buf_take(&url);
    r->pin = xstrdup(c->pin);
    r->body = c->body != NULL ? memcpy(xmalloc(c->body_len + 1), c->body, c->body_len) : NULL;
    r->fn = fn;
    r->ctx = ctx;
    r->dead_ms = c->dead_ms;
    buf_init(&r->answer.body, c->answer_max);
    r->curl = curl_easy_init();
    ASSERT(r->curl != NULL);
    {
        CLEANUP(buf_wipe_fini) struct buf bearer;

        buf_init(&bearer, HEADER_BYTES);
        buf_printf(&bearer, "Bearer %s", c->key);
        add_header(r, "Authorization", buf_str(&bearer));
    }
    add_header(r, "Lockstep-Node-Id", c->node);
    curl_easy_setopt(r->curl, CURLOPT_CUSTOMREQUEST, c->method);
    if (r->body != NULL) {
        add_header(r, "Content-Type", "application/json");
        curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, r->body);
        curl_easy_setopt(r->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_len);
    }
    curl_easy_setopt(r->curl, CURLOPT_TIMEOUT_MS, (long)c->timeout_ms);
    curl_easy_setopt(
        r->curl, CURLOPT_CONNECTTIMEOUT_MS,
        (long)(c->dead_ms < c->timeout_ms ? c->dead_ms : c->timeout_ms));
    return r;
}

static void
running_free(struct running *r)
{
    curl_easy_cleanup(r->curl);
    curl_slist_free_all(r->headers);
    buf_fini(&r->answer.body);
    free(r->url);
    free(r->pin);
    free(r->body);
    free(r);
}

static void
begin(struct calls *all, struct running *r)
{
    CURL *c = r->curl;

    add_header(r, "Expect", "");
    curl_easy_setopt(c, CURLOPT_URL, r->url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->headers);
    curl_easy_setopt(c, CURLOPT_PRIVATE, r);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a lookup that hangs */
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, IDLE_S);
    curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(c, CURLOPT_SOCKOPTDATA, r);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    ASSERT(curl_easy_setopt(c, CURLOPT_PINNEDPUBLICKEY, r->pin) == CURLE_OK);
    r->began_ms = clock_mono_ms(&clock_system);
    r->next = all->under_way;
    all->under_way = r;
    ASSERT(curl_multi_add_handle(all->multi, c) == CURLM_OK);
}

/* ---- its end ---- */

static void
note_address(struct running *r, CURLINFO which, char ret[CALL_IP_BYTES])
{
    char *ip = NULL;

    if (curl_easy_getinfo(r->curl, which, &ip) == CURLE_OK && ip != NULL) {
        (void)snprintf(ret, CALL_IP_BYTES, "%s", ip);
    }
}

static void
judge(struct running *r, CURLcode code)
{
    static const struct {
        CURLcode from;
        err_t code;
        const char *why;
    } known[] = {
        {CURLE_OPERATION_TIMEDOUT, ERR_TIMEOUT, "no answer in time"},
        {CURLE_COULDNT_RESOLVE_HOST, ERR_UNAVAILABLE, "its name did not resolve"},
        {CURLE_SSL_PINNEDPUBKEYNOTMATCH, ERR_DENIED,
         "its public key is another one than the one that was pinned"},
        {CURLE_SSL_CONNECT_ERROR, ERR_UNAVAILABLE, "TLS does not begin"},
        {CURLE_WRITE_ERROR, ERR_LIMIT, "the answer is too long"},
        {CURLE_GOT_NOTHING, ERR_UNAVAILABLE, "closed without an answer"},
        {CURLE_RECV_ERROR, ERR_UNAVAILABLE, "closed without an answer"},
        {CURLE_SEND_ERROR, ERR_UNAVAILABLE, "closed without an answer"},
    };
    struct error *e = &r->answer.error;
    long number = 0;

    e->code = ERR_OK;
    if (code == CURLE_OK) {
        (void)curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &r->answer.status);
        note_address(r, CURLINFO_LOCAL_IP, r->answer.local);
        note_address(r, CURLINFO_PRIMARY_IP, r->answer.remote);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].from == code) {
            (void)error_set(e, known[i].code, "%s", known[i].why);
            return;
        }
    }
    (void)curl_easy_getinfo(r->curl, CURLINFO_OS_ERRNO, &number);
    if (code == CURLE_COULDNT_CONNECT && number > 0) {
        (void)error_errno(e, ERR_UNAVAILABLE, (int)number, "no connection");
    } else {
        (void)error_set(e, ERR_UNAVAILABLE, "%s", curl_easy_strerror(code));
    }
}

static void
end(struct running *r)
{
    r->answer.took_ms = clock_mono_ms(&clock_system) - r->began_ms;
    r->fn(r->ctx, &r->answer);
    running_free(r);
}

static void
end_stopped(struct running *r)
{
    (void)error_set(&r->answer.error, ERR_UNAVAILABLE, "the daemon stops");
    end(r);
}

static void
take_out(struct calls *all, struct running *r)
{
    struct running **link = &all->under_way;

    while (*link != r) {
        link = &(*link)->next;
    }
    *link = r->next;
    (void)curl_multi_remove_handle(all->multi, r->curl);
}

/* ---- the thread ---- */

static struct running *
take_fresh(struct calls *all)
{
    struct running *list;

    lock_take(&all->lock);
    list = TAKE(all->fresh);
    lock_give(&all->lock);
    return list;
}

static void
begin_fresh(struct calls *all)
{
    struct running *list = take_fresh(all);

    while (list != NULL) {
        struct running *r = list;

        list = list->next;
        begin(all, r);
    }
}

static void
take_ended(struct calls *all)
{
    CURLMsg *message;
    int left = 0;

    while ((message = curl_multi_info_read(all->multi, &left)) != NULL) {
        union {
            char *in;
            struct running *out;
        } r = {NULL};

        if (message->msg == CURLMSG_DONE &&
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &r.in) == CURLE_OK) {
            judge(r.out, message->data.result);
            take_out(all, r.out);
            end(r.out);
        }
    }
}

static void
run(void *ctx)
{
    struct calls *all = ctx;

    while (!atomic_load(&all->stopping)) {
        int running = 0;

        begin_fresh(all);
        (void)curl_multi_perform(all->multi, &running);
        take_ended(all);
        (void)curl_multi_poll(all->multi, NULL, 0, POLL_MS, NULL);
    }
    for (struct running *r = take_fresh(all), *next; r != NULL; r = next) {
        next = r->next;
        end_stopped(r);
    }
    while (all->under_way != NULL) {
        struct running *r = all->under_way;

        take_out(all, r);
        end_stopped(r);
    }
}

err_t
calls_open(struct calls **ret, struct error *e)
{
    struct calls *all = xcalloc(1, sizeof *all);
    err_t code = ERR_OK;

    lock_init(&all->lock);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        code = error_set(e, ERR_INTERNAL, "libcurl does not start");
    }
    all->multi = code == ERR_OK ? curl_multi_init() : NULL;
    if (code == ERR_OK) {
        code = mailbox_open("calls", 1, 1, &all->box, e);
    }
    if (code == ERR_OK) {
        code = mailbox_post(all->box, run, all, e);
    }
    if (code != ERR_OK) {
        calls_close(all);
        return code;
    }
    *ret = all;
    return ERR_OK;
}

void
calls_stop(struct calls *all)
{
    lock_take(&all->lock);
    atomic_store(&all->stopping, true);
    lock_give(&all->lock);
    if (all->multi != NULL) {
        (void)curl_multi_wakeup(all->multi);
    }
    mailbox_close(TAKE(all->box));
}

void
calls_close(struct calls *all)
{
    if (all == NULL) {
        return;
    }
    calls_stop(all);
    (void)curl_multi_cleanup(all->multi);
    curl_global_cleanup();
    (void)pthread_mutex_destroy(&all->lock);
    free(all);
}

void
calls_start(struct calls *all, const struct call *c, call_fn fn, void *ctx)
{
    struct running *r = running_new(c, fn, ctx);
    bool stopped;

    lock_take(&all->lock);
    stopped = atomic_load(&all->stopping);
    if (!stopped) {
        r->next = all->fresh;
        all->fresh = r;
    }
    lock_give(&all->lock);
    if (stopped) {
        end_stopped(r);
    } else {
        (void)curl_multi_wakeup(all->multi);
    }
}

/* ---- waiting ---- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool ended;
    struct call_answer *ret;
};

static void
on_ended(void *ctx, struct call_answer *a)
{
    struct waiter *w = ctx;

    lock_take(&w->lock);
    *w->ret = *a;
    a->body = (struct buf){.max = 0}; /* the waiter's now */
    w->ended = true;
    ASSERT(pthread_cond_signal(&w->done) == 0);
    lock_give(&w->lock);
}

err_t
calls_wait(struct calls *all, const struct call *c, struct call_answer *ret)
{
    struct waiter w = {.ret = ret};

    lock_init(&w.lock);
    lock_cond_init(&w.done);
    calls_start(all, c, on_ended, &w);
    lock_take(&w.lock);
    while (!w.ended) {
        ASSERT(pthread_cond_wait(&w.done, &w.lock) == 0);
    }
    lock_give(&w.lock);
    (void)pthread_cond_destroy(&w.done);
    (void)pthread_mutex_destroy(&w.lock);
    return ret->error.code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "peer/rest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/arena.h"

#define REST_MAGIC      0x52455354u
#define POLL_MS         60000 /* libcurl wakes up by itself when it has to */
#define EVENT_MAX_BYTES ((size_t)4 << 20)
#define TOPIC_BYTES     32

struct rest {
    unsigned magic;
    const struct rest_config *config;
    CURL *curl;
};

void
rest_answer_init(struct rest_answer *a)
{
    memset(a, 0, sizeof(*a));
    buf_init(&a->body, REST_ANSWER_MAX_BYTES);
}

void
rest_answer_fini(struct rest_answer *a)
{
    buf_fini(&a->body);
}

err_t
rest_open(const struct rest_config *config, struct rest **ret, struct error *e)
{
    if (strncasecmp(config->url, "https://", 8) != 0 &&
        strncasecmp(config->url, "http://", 7) != 0) {
        return error_set(e, ERR_INVALID, "\"%s\" is not an http or https URL", config->url);
    }
    if (config->pin != NULL && strncasecmp(config->url, "https://", 8) != 0) {
        return error_set(
            e, ERR_INVALID, "%s has no key to compare with the pinned one: use https",
            config->url);
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return error_set(e, ERR_INTERNAL, "libcurl does not start");
    }
    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        curl_global_cleanup();
        return error_set(e, ERR_INTERNAL, "libcurl does not start");
    }
    struct rest *r = xcalloc(1, sizeof(*r));
    r->magic = REST_MAGIC;
    r->config = config;
    r->curl = curl;
    *ret = r;
    return ERR_OK;
}

void
rest_close(struct rest *r)
{
    if (r == NULL) {
        return;
    }
    ASSERT(r->magic == REST_MAGIC);
    r->magic = 0;
    curl_easy_cleanup(r->curl);
    curl_global_cleanup();
    free(r);
}

void
rest_put_segment(struct buf *out, const char *s)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '.' || c == '_' || c == '~') {
            buf_putc(out, (char)c);
        } else {
            buf_putc(out, '%');
            buf_putc(out, digits[c >> 4]);
            buf_putc(out, digits[c & 15]);
        }
    }
}

static size_t
on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct buf *body = ctx;

    buf_put(body, data, size * count);
    return body->failed ? 0 : size * count;
}

/* Copies the value of "name: value" when the header line is of that name. */
static bool
header_value(const char *line, size_t len, const char *name, struct buf *out)
{
    size_t n = strlen(name);

    if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':') {
        return false;
    }
    const char *from = line + n + 1;
    const char *to = line + len;
    while (from < to && (*from == ' ' || *from == '\t')) {
        from++;
    }
    while (to > from && (to[-1] == '\r' || to[-1] == '\n' || to[-1] == ' ')) {
        to--;
    }
    buf_put(out, from, (size_t)(to - from));
    return true;
}

static void
take(struct buf *from, char *to, size_t bytes)
{
    if (from->len < bytes) {
        memcpy(to, buf_str(from), from->len + 1);
    }
    buf_reset(from);
}

static size_t
on_header(char *data, size_t size, size_t count, void *ctx)
{
    struct rest_answer *a = ctx;
    size_t len = size * count;
    CLEANUP(buf_fini) struct buf value;

    buf_init(&value, 8192);
    if (header_value(data, len, "ETag", &value)) {
        take(&value, a->etag, sizeof(a->etag));
    } else if (header_value(data, len, "Set-Cookie", &value) && value.len > 0) {
        value.len = strcspn(buf_str(&value), ";");
        value.data[value.len] = '\0';
        take(&value, a->cookie, sizeof(a->cookie));
    }
    return len;
}

static struct curl_slist *
headers_of(const struct rest *r, const struct rest_request *q)
{
    struct curl_slist *list = NULL;
    CLEANUP(buf_wipe_fini) struct buf line;
    const char *const pairs[][2] = {
        {"Authorization: Bearer ", r->config->key},
        {"Content-Type: ", q->body != NULL ? "application/json" : NULL},
        {"If-Match: ", q->if_match},
        {"Cookie: ", q->cookie},
        {"Lockstep-CSRF: ", q->csrf},
        {"Lockstep-Unlock: ", r->config->unlock ? "no-holder" : NULL},
        {"Expect:", ""},
    };

    buf_init(&line, 16384);
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        if (pairs[i][1] == NULL || (q->cookie != NULL && i == 0)) {
            continue;
        }
        buf_reset(&line);
        buf_puts(&line, pairs[i][0]);
        buf_puts(&line, pairs[i][1]);
        struct curl_slist *longer = curl_slist_append(list, buf_str(&line));
        ASSERT(longer != NULL);
        list = longer;
    }
    return list;
}

static void
prepare(
    struct rest *r, const struct rest_request *q, const char *url, struct curl_slist *headers,
    struct rest_answer *a)
{
    CURL *c = r->curl;

    curl_easy_reset(c);
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, q->method);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)r->config->timeout_ms);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &a->body);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, a);
    if (q->body != NULL) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, q->body);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
    }
    if (r->config->pin != NULL) {
        /* The pin is the identity; the certificate is self-signed by design. */
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
        ASSERT(
            curl_easy_setopt(c, CURLOPT_PINNEDPUBLICKEY, r->config->pin) ==
            CURLE_OK); /* without it there would be no check at all */
    }
}

struct event_reader {
    CURL *curl;
    struct rest_answer *answer; /* gets the body of a refusal */
    struct buf text;            /* what is not a whole event yet */
    rest_event_fn fn;
    void *ctx;
    bool done;
};

/* The data of each whole event ("...data: {...}\n...\n\n") in the buffer. */
static void
take_events(struct event_reader *x)
{
    char *end;

    while (!x->done && x->text.len > 0 && (end = strstr(x->text.data, "\n\n")) != NULL) {
        *end = '\0';
        const char *data = strstr(x->text.data, "data: ");
        const char *name = strstr(x->text.data, "event: ");
        if (data != NULL && name != NULL && name < data) {
            char topic[TOPIC_BYTES] = {0};
            size_t len = strcspn(name + 7, "\n");
            memcpy(topic, name + 7, len < sizeof(topic) ? len : 0);
            x->done = !x->fn(x->ctx, topic, data + 6, strcspn(data + 6, "\n"));
        }
        size_t used = (size_t)(end - x->text.data) + 2;
        memmove(x->text.data, x->text.data + used, x->text.len - used + 1);
        x->text.len -= used;
    }
}

static size_t
on_event_bytes(char *data, size_t size, size_t count, void *ctx)
{
    struct event_reader *x = ctx;

    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &x->answer->status);
    if (x->answer->status >= 400) {
        return on_body(data, size, count, &x->answer->body);
    }
    buf_put(&x->text, data, size * count);
    if (x->text.failed) {
        return 0;
    }
    take_events(x);
    return x->done ? 0 : size * count;
}

static err_t
explain(
    CURLcode code, const struct rest_config *config, const struct rest_answer *a,
    struct error *e)
{
    if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH) {
        return error_set(
            e, ERR_DENIED, "%s presents another key than the pinned one", config->url);
    }
    if (code == CURLE_PEER_FAILED_VERIFICATION) {
        return error_set(e, ERR_DENIED, "the certificate of %s does not verify", config->url);
    }
    if (code == CURLE_OPERATION_TIMEDOUT) {
        return error_set(
            e, ERR_TIMEOUT, "%s did not answer within %lld ms", config->url,
            (long long)config->timeout_ms);
    }
    if (code == CURLE_WRITE_ERROR && a->body.failed) {
        return error_set(e, ERR_LIMIT, "the answer of %s is too long", config->url);
    }
    return error_set(e, ERR_UNAVAILABLE, "%s: %s", config->url, curl_easy_strerror(code));
}

/* Nothing of a former answer. */
static void
clear(struct rest_answer *a)
{
    buf_reset(&a->body);
    a->status = 0;
    a->etag[0] = '\0';
    a->cookie[0] = '\0';
    a->retry_after_s = 0;
}

static err_t
put_url(const struct rest *r, const char *path, struct buf *url, struct error *e)
{
    buf_init(url, 8192);
    buf_puts(url, r->config->url);
    buf_puts(url, path);
    return buf_status(url, e);
}

err_t
rest_call(
    struct rest *r, const struct rest_request *q, struct rest_answer *ret, struct error *e)
{
    ASSERT(r->magic == REST_MAGIC);
    CLEANUP(buf_fini) struct buf url;
    err_t err = put_url(r, q->path, &url, e);

    if (err != ERR_OK) {
        return err;
    }
    clear(ret);
    struct curl_slist *headers = headers_of(r, q);
    prepare(r, q, buf_str(&url), headers, ret);
    CURLcode code = curl_easy_perform(r->curl);
    curl_slist_free_all(headers);
    if (code != CURLE_OK) {
        return explain(code, r->config, ret, e);
    }
    curl_off_t retry = 0;
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &ret->status);
    curl_easy_getinfo(r->curl, CURLINFO_RETRY_AFTER, &retry);
    ret->retry_after_s = (long)retry;
    return ERR_OK;
}

/* As curl_easy_perform, but sets *stopped when fd can be read before the end. */
static CURLcode
perform_until(CURL *curl, int fd, bool *stopped)
{
    struct curl_waitfd stop = {.fd = fd, .events = CURL_WAIT_POLLIN};
    CURLM *multi = curl_multi_init();
    CURLcode code = CURLE_OK;
    int running = 1, unused;

    ASSERT(multi != NULL && curl_multi_add_handle(multi, curl) == CURLM_OK);
    while (curl_multi_perform(multi, &running) == CURLM_OK && running > 0 && !*stopped) {
        if (curl_multi_poll(multi, &stop, fd > 0 ? 1 : 0, POLL_MS, NULL) != CURLM_OK) {
            break;
        }
        *stopped = stop.revents != 0;
    }
    const CURLMsg *message = curl_multi_info_read(multi, &unused);
    if (message != NULL) {
        code = message->data.result;
    }
    (void)curl_multi_remove_handle(multi, curl);
    (void)curl_multi_cleanup(multi);
    return code;
}

err_t
rest_events(
    struct rest *r, const char *path, rest_event_fn fn, void *ctx, struct rest_answer *ret,
    struct error *e)
{
    ASSERT(r->magic == REST_MAGIC);
    CLEANUP(buf_fini) struct buf url;
    struct event_reader reader = {.curl = r->curl, .answer = ret, .fn = fn, .ctx = ctx};
    const struct rest_request q = {.method = "GET", .path = path};
    err_t err = put_url(r, path, &url, e);

    if (err != ERR_OK) {
        return err;
    }
    clear(ret);
    buf_init(&reader.text, EVENT_MAX_BYTES);
    struct curl_slist *headers = curl_slist_append(headers_of(r, &q), "Last-Event-ID: 0");
    prepare(r, &q, buf_str(&url), headers, ret);
    curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, on_event_bytes);
    curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, &reader);
    bool stopped = false;
    CURLcode code = perform_until(r->curl, r->config->stop_fd, &stopped);
    curl_slist_free_all(headers);
    buf_fini(&reader.text);
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &ret->status);
    if (reader.done || stopped || (code == CURLE_OK && ret->status >= 400)) {
        return ERR_OK;
    }
    if (code == CURLE_OK) {
        return error_set(e, ERR_UNAVAILABLE, "%s ended the stream", r->config->url);
    }
    return explain(code, r->config, ret, e);
}

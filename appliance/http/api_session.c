/* SPDX-License-Identifier: Apache-2.0 */
/* The first administrator, signing in and out. */
#include <netinet/in.h>
#include <string.h>

#include "base/json.h"
#include "http/api.h"
#include "http/auth.h"
#include "http/reply.h"
#include "routes_gen.h"
#include "version_gen.h"

#define TOKEN_BYTES 128

static json_t *
setup_json(struct request *r, bool configured)
{
    return json_pack(
        "{s:b, s:s, s:s}", "configured", configured, "node", api_node_name(request_view(r)),
        "release", LOCKSTEP_VERSION);
}

void
http_setup_get(struct request *r)
{
    reply_json(r, 200, setup_json(r, account_configured(r->http->config.engine)));
}

/* What was typed does not stay in memory. */
static void
wipe_text(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    union {
        const char *in;
        char *out;
    } u = {.in = json_string_value(value)};

    if (u.out != NULL) {
        crypt_wipe(u.out, json_string_length(value));
    }
}

/* Texts of the body, all of them required. False: refused. */
static bool
read_texts(struct request *r, const char *const *keys, const char **texts)
{
    struct error e;

    if (!request_only_keys(r, keys)) {
        return false;
    }
    for (size_t i = 0; keys[i] != NULL; i++) {
        if (json_get_str(r->json, keys[i], &texts[i], &e) != ERR_OK) {
            reply_error(r, &e, NULL);
            return false;
        }
    }
    return true;
}

void
http_setup_create(struct request *r)
{
    static const char *const keys[] = {"token", "name", "password", NULL};
    struct problems *p = request_problems(r);
    struct error e = {.code = ERR_OK};
    const char *texts[3];

    if (!read_texts(r, keys, texts)) {
        return;
    }
    if (account_setup(r->http->config.engine, texts[0], texts[1], texts[2], p, &e) != ERR_OK) {
        reply_error(r, &e, p);
    } else {
        reply_json(r, 201, setup_json(r, true));
    }
    wipe_text(r->json, "token");
    wipe_text(r->json, "password");
}

static json_t *
pools_json(struct request *r)
{
    const struct view *v = request_view(r);
    json_t *names = json_array();

    for (size_t i = 0; i < r->grant.pool_count; i++) {
        const struct object *pool = snapshot_by_id(v->now.shared, K_POOL, r->grant.pools[i]);

        if (pool != NULL) {
            (void)json_array_append_new(names, json_string(pool->name.s));
        }
    }
    return names;
}

static json_t *
session_json(struct request *r, const struct session *s)
{
    const struct schema_field *scope =
        &schema_kind(K_AUTOMATION_KEY)->fields[F_AUTOMATION_KEY_SCOPE];
    bool admin = s != NULL;
    int64_t value = admin ? V_AUTOMATION_KEY_SCOPE_FULL : r->grant.scope;

    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o}", "admin", admin ? json_string(s->admin) : json_null(),
        "key", admin ? json_null() : json_string(r->grant.name), "scope", scope->values[value],
        "pools", pools_json(r), "csrf", admin ? json_string(s->csrf) : json_null());
}

void
http_session_get(struct request *r)
{
    reply_json(r, 200, session_json(r, r->caller == CALLER_ADMIN ? &r->session : NULL));
}

/* Whom the throttle counts. Behind this machine's own HAProxy everybody has one address: only
 * then, and only of the nearest proxy, the word about the client is taken. */
static const char *
client_of(const struct request *r, char *out)
{
    const char *peer = r->connection->peer;
    bool local = strncmp(peer, "127.", 4) == 0 || strcmp(peer, "::1") == 0 ||
                 strcmp(peer, r->http->address) == 0;
    const char *forwarded = local ? header_forwarded(&r->header, out) : NULL;

    return forwarded != NULL ? forwarded : peer;
}

static void
refuse_login(struct request *r, const struct error *e, int64_t retry_s)
{
    if (e->code == ERR_BUSY && retry_s > 0) {
        reply_problem(
            r, 429, "too_many_tries", "too many failed tries: wait %lld s", (long long)retry_s);
        reply_retry_after(r, retry_s);
    } else if (e->code == ERR_DENIED) {
        reply_problem(r, 401, "unauthorized", "name or password is wrong");
    } else {
        reply_error(r, e, NULL);
    }
}

void
http_session_create(struct request *r)
{
    static const char *const keys[] = {"name", "password", NULL};
    struct error e = {.code = ERR_OK};
    struct session session;
    char forwarded[INET6_ADDRSTRLEN];
    struct account_login login = {.client = client_of(r, forwarded)};
    const char *texts[2];
    int64_t retry_s = 0;
    struct buf token;

    if (!read_texts(r, keys, texts)) {
        return;
    }
    buf_init(&token, TOKEN_BYTES);
    ASSERT(buf_reserve(&token, TOKEN_BYTES));
    login.name = texts[0];
    login.password = texts[1];
    if (account_login(r->http->config.engine, &login, &token, &session, &retry_s, &e) !=
        ERR_OK) {
        refuse_login(r, &e, retry_s);
    } else {
        reply_json(r, 201, session_json(r, &session));
        auth_set_cookie(r, buf_str(&token));
        crypt_wipe(&session, sizeof session);
    }
    wipe_text(r->json, "password");
    buf_wipe(&token);
    buf_fini(&token);
}

void
http_session_delete(struct request *r)
{
    struct error e;

    if (r->caller == CALLER_ADMIN &&
        account_logout(r->http->config.engine, r->credential, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_none(r, 204);
    auth_set_cookie(r, NULL);
}

static void
set_unlocked(struct request *r, bool unlock)
{
    struct error e;

    if (r->caller != CALLER_ADMIN) {
        reply_problem(
            r, 422, "no_session",
            "A key says it with each request: Lockstep-Unlock: no-holder.");
    } else if (account_unlock(r->http->config.engine, r->credential, unlock, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
    } else {
        reply_none(r, 204);
    }
}

void
http_session_unlock(struct request *r)
{
    set_unlocked(r, true);
}

void
http_session_lock(struct request *r)
{
    set_unlocked(r, false);
}

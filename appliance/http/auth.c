/* SPDX-License-Identifier: Apache-2.0 */
#include "http/auth.h"

#include <stdio.h>
#include <string.h>

#include "base/crypt.h"
#include "base/x509.h"
#include "engine/members.h"
#include "http/reply.h"
#include "sync/cluster.h"

#define COOKIE_PREFIX    "lockstep_session_"
#define COOKIE_HEX       8
#define CREDENTIAL_BYTES 128
#define KEY_ARENA_BYTES  65536 /* a key names up to 1000 pools */

void
auth_name_cookie(struct http *h)
{
    const char *pem = h->config.cert_pem;
    char hex[SHA256_HEX + 1];
    struct x509_info info;

    if (pem != NULL && x509_read(pem, strlen(pem), &info, NULL) == ERR_OK) {
        memcpy(hex, info.fingerprint_hex, sizeof hex);
    } else {
        struct hash hash = sha256(&h->port, sizeof h->port);

        hash_hex(&hash, hex);
    }
    (void)snprintf(
        h->cookie_name, sizeof h->cookie_name, COOKIE_PREFIX "%.*s", COOKIE_HEX, hex);
}

void
auth_set_cookie(struct request *r, const char *token)
{
    reply_header(
        r, "Set-Cookie",
        arena_printf(
            r->arena, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", r->http->cookie_name,
            token != NULL ? token : "", r->http->tls ? "; Secure" : "",
            token != NULL ? "" : "; Max-Age=0"));
}

static bool
is_credential(const char *s, size_t len)
{
    return len > 0 && len <= CREDENTIAL_BYTES &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") >= len;
}

bool
auth_still_good(const struct request *r)
{
    struct engine *en = r->http->config.engine;
    /* Not that of the request: a stream asks again and again. */
    CLEANUP(arena_cleanup) struct arena *arena = NULL;
    struct key_grant grant;

    if (r->caller == CALLER_KEY) {
        arena = arena_new(KEY_ARENA_BYTES);
        return account_key(en, r->credential, arena, &grant, NULL) == ERR_OK;
    }
    return account_session_alive(en, r->credential);
}

static bool
known(struct request *r)
{
    struct engine *en = r->http->config.engine;

    if (r->caller == CALLER_KEY) {
        return account_key(en, r->credential, r->arena, &r->grant, NULL) == ERR_OK;
    }
    return account_session(en, r->credential, &r->session, NULL) == ERR_OK;
}

/* Exactly one of the two, and one of which the engine knows. */
static bool
identify(struct request *r)
{
    const char *key = header_bearer(&r->header);
    size_t len = key != NULL ? strlen(key) : 0;
    size_t cookie_len = 0;
    const char *cookie = header_cookie(&r->header, r->http->cookie_name, &cookie_len);

    if (r->header.authorization != NULL && cookie != NULL) {
        reply_problem(r, 400, "two_credentials", "the request has both a session and a key");
        return false;
    }
    if (cookie != NULL) {
        key = cookie;
        len = cookie_len;
    }
    if (key == NULL || !is_credential(key, len)) {
        reply_problem(
            r, 401, "unauthorized",
            "sign in, or send an automation key (Authorization: Bearer)");
        return false;
    }
    r->caller = cookie != NULL ? CALLER_ADMIN : CALLER_KEY;
    r->credential = arena_memdup0(r->arena, key, len);
    if (!known(r)) {
        reply_problem(
            r, 401, "unauthorized", "%s",
            r->caller == CALLER_KEY ? "there is no such automation key"
                                    : "the session has ended: sign in again");
        return false;
    }
    r->actor.name = r->caller == CALLER_KEY
                        ? arena_printf(r->arena, "key %s", r->grant.name)
                        : arena_printf(r->arena, "admin %s", r->session.admin);
    return true;
}

/* Another page can make a browser send the cookie, but not this header. */
static bool
csrf_fits(const struct request *r)
{
    const char *sent = r->header.csrf;
    const char *wanted = r->session.csrf;

    return sent != NULL && strlen(sent) == strlen(wanted) &&
           crypt_equal(sent, wanted, strlen(wanted));
}

static enum permission
permission_of(const struct request *r)
{
    enum permission p = r->route->permission;
    bool managed = r->route->family != ROUTE_PLAIN && schema_kind(r->hit.kind)->manage;

    return p == PERMISSION_EDIT && managed ? PERMISSION_MANAGE : p;
}

/* What a switch is about: the object of the path "/api/v1/<plural>/{name}...". */
static const struct object *
switched(struct request *r)
{
    enum kind kind;

    if (r->route->segment_count < 4 || !schema_kind_by_plural(r->route->segments[2], &kind) ||
        strcmp(r->route->segments[3], "{name}") != 0) {
        return NULL;
    }
    return snapshot_by_name(
        snapshot_of(&request_view(r)->now, kind), kind, request_segment(r, "{name}"));
}

static bool
allowed(struct request *r)
{
    static const enum permission most[] = {
        [V_AUTOMATION_KEY_SCOPE_READ] = PERMISSION_SIGNED_IN,
        [V_AUTOMATION_KEY_SCOPE_OPERATE] = PERMISSION_OPERATE,
        [V_AUTOMATION_KEY_SCOPE_WRITE] = PERMISSION_EDIT,
        [V_AUTOMATION_KEY_SCOPE_FULL] = PERMISSION_MANAGE,
    };
    enum permission needed = permission_of(r);

    if (needed > most[r->grant.scope]) {
        reply_problem(
            r, 403, "scope", "the scope of this automation key does not allow this call");
        return false;
    }
    if (needed == PERMISSION_OPERATE && r->grant.pool_count > 0) {
        const struct object *o = switched(r);
        bool reached = o != NULL && account_reaches(&r->grant, request_view(r), o);

        request_drop_view(r);
        if (!reached) {
            reply_problem(
                r, 403, "scope",
                "this automation key is bound to pools that this is no part of");
            return false;
        }
    }
    return true;
}

/* Who presents a key learns enough to see which of two keys is the wrong one. */
static bool
is_peer(struct request *r)
{
    struct engine *en = r->http->config.engine;
    const char *key = header_bearer(&r->header);
    char given[MEMBER_PRINT_BYTES], own[MEMBER_PRINT_BYTES];
    struct member self;

    if (key == NULL || !is_credential(key, strlen(key))) {
        reply_problem(
            r, 401, "no_peer_key",
            "other nodes call with this node's peer key (Authorization: "
            "Bearer), and none arrived");
        return false;
    }
    if (members_is_key(en, key)) {
        r->caller = CALLER_PEER;
        r->actor.name = "node";
        return true;
    }
    members_self(en, &self);
    member_key_print(key, given);
    member_key_print(self.key, own);
    reply_problem(
        r, 401, "wrong_peer_key",
        "a key with the fingerprint %s arrived, that of the node %s (release %s) has %s", given,
        self.name, self.release, own);
    crypt_wipe(&self, sizeof self);
    return false;
}

static bool
is_member(struct request *r)
{
    const char *refusal = NULL;
    struct error e;

    if (members_admit(r->http->config.engine, r->header.node_id, &refusal, &e) != ERR_OK) {
        reply_problem(r, 403, refusal, "%s", e.msg);
        return false;
    }
    return true;
}

/* Says of whoever changes something whether that may be what all nodes share. The engine looks
 * at what a change is about: routes do not. */
static void
find_right(struct request *r)
{
    char message[CLUSTER_MESSAGE_BYTES];
    bool unlocked;

    /* A page that only looks does not keep it unlocked. */
    if (r->route->method == METHOD_GET || r->http->config.cluster == NULL) {
        return;
    }
    unlocked = r->caller == CALLER_ADMIN
                   ? account_unlocked(r->http->config.engine, r->credential)
                   : r->header.unlock != NULL && strcmp(r->header.unlock, "no-holder") == 0;
    if (cluster_right(r->http->config.cluster, unlocked, message) != RIGHT_EDIT) {
        r->actor.locked = arena_strdup(r->arena, message);
    }
}

bool
auth_check(struct request *r)
{
    switch (r->route->permission) {
    case PERMISSION_NONE: return true;
    case PERMISSION_PEER: return is_peer(r);
    case PERMISSION_MEMBER: return is_peer(r) && is_member(r);
    case PERMISSION_SETUP:
        if (account_configured(r->http->config.engine)) {
            reply_problem(r, 409, "conflict", "the node has an administrator already");
            return false;
        }
        return true;
    case PERMISSION_SIGNED_IN:
    case PERMISSION_OPERATE:
    case PERMISSION_EDIT:
    case PERMISSION_MANAGE: break;
    }
    if (!identify(r)) {
        return false;
    }
    find_right(r);
    if (r->caller == CALLER_KEY) {
        return allowed(r);
    }
    if (r->route->method != METHOD_GET && !csrf_fits(r)) {
        reply_problem(
            r, 403, "csrf", "the header Lockstep-CSRF is missing or not that of the session");
        return false;
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/commit.h"
#include "engine/first_start.h"
#include "store/sessions.h"

#define SECRET_BYTES     32
#define CSRF_BYTES       24
#define TEXT_BYTES       ((size_t)512)
#define PASSWORD_MIN     12
#define PASSWORD_MAX     200
#define COOKIE_MAX_BYTES 128
#define KEY_PREFIX       "lsk_"
#define KEY_TEXT_BYTES   (sizeof KEY_PREFIX - 1 + 43)

/* ---- passwords ---- */

err_t
account_hash_password(json_t *body, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf text;
    const json_t *given = json_object_get(body, "password");
    size_t bytes;

    buf_init(&text, TEXT_BYTES);
    if (!json_is_string(given)) {
        return ERR_OK; /* absent, or for the schema to refuse */
    }
    bytes = json_string_length(given);
    if (bytes < PASSWORD_MIN || bytes > PASSWORD_MAX) {
        return error_set(
            e, ERR_INVALID, "A password has %d to %d bytes.", PASSWORD_MIN, PASSWORD_MAX);
    }
    crypt_password_hash(json_string_value(given), &text);
    ASSERT(json_object_set_new(body, "password", json_string(buf_str(&text))) == 0);
    return ERR_OK;
}

/* ---- first administrator ---- */

bool
account_configured(struct engine *en)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    const struct object *const *items;

    return snapshot_kind(v->now.local, K_ADMIN, &items) > 0;
}

struct setup_call {
    json_t *body;
    struct problems *p;
};

static err_t
already_set_up(struct error *e)
{
    return error_set(e, ERR_CONFLICT, "this node has an administrator already");
}

static err_t
setup_on_engine(struct engine *en, void *ctx, struct error *e)
{
    static const struct actor who = {"setup"};
    const struct setup_call *call = ctx;
    struct change_set set;
    struct error error;
    err_t code;

    if (account_configured(en)) {
        return already_set_up(e);
    }
    change_set_init(&set);
    code = change_set_add(
        &set,
        (struct change){.op = CHANGE_CREATE, .kind = K_ADMIN, .body = json_incref(call->body)},
        e);
    if (code == ERR_OK) {
        code = commit_direct(en, &set, NULL, &who, call->p, e);
    }
    change_set_fini(&set);
    if (code == ERR_OK && first_start_token(en, &error) != ERR_OK) {
        log_warning("cannot remove the setup token: %s", error.msg);
    }
    return code;
}

/* Without white space at both ends: it is pasted. */
static size_t
trim(const char **s)
{
    static const char space[] = " \t\r\n";
    size_t bytes;

    *s += strspn(*s, space);
    bytes = strlen(*s);
    while (bytes > 0 && strchr(space, (*s)[bytes - 1]) != NULL) {
        bytes--;
    }
    return bytes;
}

static err_t
check_token(struct engine *en, const char *token, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf stored;
    const char *wanted;
    size_t wanted_bytes;
    size_t bytes = trim(&token);
    err_t code;

    buf_init(&stored, TEXT_BYTES);
    code = first_start_read_token(en, &stored, e);
    if (code == ERR_NOT_FOUND) {
        return already_set_up(e);
    }
    if (code != ERR_OK) {
        return code;
    }
    wanted = buf_str(&stored);
    wanted_bytes = trim(&wanted);
    if (wanted_bytes == 0 || bytes != wanted_bytes || !crypt_equal(wanted, token, bytes)) {
        return error_set(e, ERR_DENIED, "the setup token is not right");
    }
    return ERR_OK;
}

err_t
account_setup(
    struct engine *en, const char *token, const char *name, const char *password,
    struct problems *p, struct error *e)
{
    json_auto_t *body = NULL;
    struct setup_call call = {.p = p};
    err_t code;

    if (account_configured(en)) {
        return already_set_up(e);
    }
    code = check_token(en, token, e);
    if (code != ERR_OK) {
        return code;
    }
    body = json_pack("{s:s, s:s}", "name", name, "password", password);
    if (body == NULL) {
        return error_set(e, ERR_INVALID, "name and password are UTF-8 text");
    }
    code = account_hash_password(body, e);
    if (code == ERR_INVALID) {
        problems_add(
            p, SEVERITY_ERROR, "length",
            &(struct problem){.kind = "admin", .name = name, .pointer = "/password"},
            "A password has %d to %d bytes.", PASSWORD_MIN, PASSWORD_MAX);
    }
    call.body = body;
    return code == ERR_OK ? engine_run(en, setup_on_engine, &call, e) : code;
}

/* ---- signing in and out ---- */

struct login_call {
    const char *name;
    const char *password_text; /* the hash that the password was checked against */
    const struct session_row *row;
};

static err_t
drop_stale(struct engine *en, struct error *e)
{
    struct hash token;
    err_t code = ERR_OK;

    while (code == ERR_OK && sessions_drop(en->sessions, &token)) {
        code = store_session_remove(en->store, &token, e);
    }
    return code;
}

/* The password may have been changed while it was checked. */
static err_t
login_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct login_call *call = ctx;
    const struct object *admin = snapshot_by_name(en->live.local, K_ADMIN, call->name);
    err_t code;

    if (admin == NULL ||
        strcmp(object_text(admin, F_ADMIN_PASSWORD).s, call->password_text) != 0) {
        return error_set(e, ERR_DENIED, "name or password is wrong");
    }
    code = store_session_put(en->store, call->row, e);
    if (code != ERR_OK) {
        return code;
    }
    sessions_add(en->sessions, call->row);
    engine_audit(en, call->name, "login", "");
    return drop_stale(en, e);
}

static err_t
make_session(
    struct engine *en, const struct login_call *call, struct buf *ret_token,
    struct session *ret, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf token;
    CLEANUP(buf_wipe_fini) struct buf csrf;
    struct session_row row = {.created_ms = clock_wall_ms(en->config->clock)};
    struct login_call full = *call;
    err_t code;

    buf_init(&token, TEXT_BYTES);
    buf_init(&csrf, TEXT_BYTES);
    crypt_token(&token, SECRET_BYTES);
    crypt_token(&csrf, CSRF_BYTES);
    row.token = sha256(buf_str(&token), token.len);
    row.used_ms = row.created_ms;
    (void)snprintf(row.admin, sizeof row.admin, "%s", call->name);
    (void)snprintf(row.csrf, sizeof row.csrf, "%s", buf_str(&csrf));
    full.row = &row;
    code = engine_run(en, login_on_engine, &full, e);
    if (code == ERR_OK) {
        buf_put(ret_token, buf_str(&token), token.len);
        memcpy(ret->admin, row.admin, sizeof ret->admin);
        memcpy(ret->csrf, row.csrf, sizeof ret->csrf);
    }
    return code;
}

err_t
account_login(
    struct engine *en, const struct account_login *login, struct buf *ret_token,
    struct session *ret, int64_t *ret_retry_s, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    const struct object *admin = snapshot_by_name(v->now.local, K_ADMIN, login->name);
    struct login_call call = {.name = login->name};

    if (!throttle_try(en->throttle, login->name, login->client, ret_retry_s)) {
        return error_set(
            e, ERR_BUSY, "too many failed tries: wait %lld s", (long long)*ret_retry_s);
    }
    if (admin != NULL) {
        call.password_text = object_text(admin, F_ADMIN_PASSWORD).s;
    }
    /* For an unknown name too, which so takes as long as a wrong password. */
    if (!crypt_password_check(login->password, call.password_text)) {
        log_warning("sign-in of %s from %s refused", login->name, login->client);
        return error_set(e, ERR_DENIED, "name or password is wrong");
    }
    throttle_clear(en->throttle, login->name, login->client);
    return make_session(en, &call, ret_token, ret, e);
}

/* The last use goes to the database now and then; it is lost when the queue is full. */
struct use_job {
    struct engine *en;
    struct session_row row;
};

static void
store_use(void *ctx)
{
    struct use_job *job = ctx;
    struct session_row present;
    struct error error;
    bool unused;

    /* It may have ended since; ends happen on this thread only. */
    if (sessions_use(job->en->sessions, &job->row.token, &present, &unused) &&
        store_session_put(job->en->store, &job->row, &error) != ERR_OK) {
        log_warning("last use of a session: %s", error.msg);
    }
    free(job);
}

static err_t
token_hash(const char *token, struct hash *ret, struct error *e)
{
    size_t bytes = strnlen(token, COOKIE_MAX_BYTES + 1);

    if (bytes == 0 || bytes > COOKIE_MAX_BYTES) {
        return error_set(e, ERR_DENIED, "not signed in");
    }
    *ret = sha256(token, bytes);
    return ERR_OK;
}

err_t
account_session(struct engine *en, const char *token, struct session *ret, struct error *e)
{
    struct session_row row;
    struct hash hash;
    bool store = false;
    err_t code = token_hash(token, &hash, e);

    if (code != ERR_OK) {
        return code;
    }
    if (!sessions_use(en->sessions, &hash, &row, &store)) {
        return error_set(e, ERR_DENIED, "not signed in");
    }
    if (store) {
        struct use_job *job = xmalloc(sizeof *job);
        struct error unused;

        *job = (struct use_job){en, row};
        if (engine_post(en, store_use, job, &unused) != ERR_OK) {
            free(job);
        }
    }
    memcpy(ret->admin, row.admin, sizeof ret->admin);
    memcpy(ret->csrf, row.csrf, sizeof ret->csrf);
    return ERR_OK;
}

err_t
account_unlock(struct engine *en, const char *token, bool unlock, struct error *e)
{
    struct hash hash;
    err_t code = token_hash(token, &hash, e);

    if (code == ERR_OK && !sessions_unlock(en->sessions, &hash, unlock)) {
        code = error_set(e, ERR_DENIED, "not signed in");
    }
    return code;
}

void
account_lock_all(struct engine *en)
{
    sessions_lock_all(en->sessions);
}

bool
account_unlocked(struct engine *en, const char *token)
{
    struct hash hash;

    return token_hash(token, &hash, NULL) == ERR_OK && sessions_unlocked(en->sessions, &hash);
}

static err_t
logout_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct hash *token = ctx;

    sessions_remove(en->sessions, token);
    return store_session_remove(en->store, token, e);
}

bool
account_session_alive(struct engine *en, const char *token)
{
    struct hash hash;
    struct error unused;

    return token_hash(token, &hash, &unused) == ERR_OK && sessions_alive(en->sessions, &hash);
}

err_t
account_logout(struct engine *en, const char *token, struct error *e)
{
    struct hash hash;
    err_t code = token_hash(token, &hash, e);

    return code == ERR_OK ? engine_run(en, logout_on_engine, &hash, e) : code;
}

/* ---- automation keys ---- */

static void
key_hash(const char *key, char out[SHA256_HEX + 1])
{
    struct hash hash = sha256(key, strlen(key));

    hash_hex(&hash, out);
}

static void
collect_pool(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    const char ***next = ctx;

    (void)pointer;
    if (kind == K_POOL) {
        *(*next)++ = id;
    }
}

static void
read_grant(const struct object *o, struct arena *a, struct key_grant *ret)
{
    const char **pools = NULL;
    size_t count = object_value(o, F_AUTOMATION_KEY_POOLS)->count;
    const char **next;

    *ret = (struct key_grant){
        .name = arena_strdup(a, o->name.s), .scope = object_int(o, F_AUTOMATION_KEY_SCOPE)};
    if (ret->scope != V_AUTOMATION_KEY_SCOPE_OPERATE || count == 0) {
        return;
    }
    pools = arena_alloc(a, count * sizeof *pools);
    next = pools;
    object_each_ref(o, collect_pool, &next);
    for (size_t i = 0; i < count; i++) {
        pools[i] = arena_strdup(a, pools[i]);
    }
    ret->pools = pools;
    ret->pool_count = count;
}

err_t
account_key(
    struct engine *en, const char *key, struct arena *a, struct key_grant *ret, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = NULL;
    const struct object *const *items;
    char wanted[SHA256_HEX + 1];
    size_t bytes = trim(&key);
    size_t count;

    if (bytes != KEY_TEXT_BYTES || strncmp(key, KEY_PREFIX, sizeof KEY_PREFIX - 1) != 0) {
        return error_set(e, ERR_DENIED, "this is no automation key");
    }
    key_hash(arena_memdup0(a, key, bytes), wanted);
    v = engine_view(en);
    count = snapshot_kind(v->now.shared, K_AUTOMATION_KEY, &items);
    for (size_t i = 0; i < count; i++) {
        struct text stored = object_text(items[i], F_AUTOMATION_KEY_KEY_HASH);

        if (stored.len == SHA256_HEX && crypt_equal(stored.s, wanted, SHA256_HEX)) {
            read_grant(items[i], a, ret);
            return ERR_OK;
        }
    }
    return error_set(e, ERR_DENIED, "this automation key is not known");
}

static bool
has_pool(const struct key_grant *grant, const char *id)
{
    for (size_t i = 0; i < grant->pool_count; i++) {
        if (strcmp(grant->pools[i], id) == 0) {
            return true;
        }
    }
    return false;
}

struct finding {
    enum kind kind;
    const char *id;
    bool found;
};

static void
find_ref(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct finding *f = ctx;

    (void)pointer;
    f->found = f->found || (kind == f->kind && strcmp(id, f->id) == 0);
}

static bool
reaches_server(const struct key_grant *grant, const struct view *v, const char *server)
{
    const struct object *const *pools;
    size_t count = snapshot_kind(v->now.shared, K_POOL, &pools);
    bool reached = false;

    for (size_t i = 0; i < count; i++) {
        struct finding f = {.kind = K_SERVER, .id = server};

        object_each_ref(pools[i], find_ref, &f);
        if (f.found && !has_pool(grant, pools[i]->id)) {
            return false;
        }
        reached = reached || f.found;
    }
    return reached;
}

bool
account_reaches(const struct key_grant *grant, const struct view *v, const struct object *o)
{
    if (grant->pool_count == 0) {
        return true;
    }
    if (o->kind == K_SERVER) {
        return reaches_server(grant, v, o->id);
    }
    if (o->kind == K_SERVICE) {
        return has_pool(grant, object_text(o, F_SERVICE_POOL).s);
    }
    return o->kind == K_POOL && has_pool(grant, o->id);
}

struct key_call {
    const json_t *body;
    const json_t *patch;
    const struct actor *who;
    struct problems *p;
};

static err_t
create_key_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct key_call *call = ctx;
    struct change_set set;
    err_t code;

    change_set_init(&set);
    code = change_set_add(
        &set,
        (struct change){
            .op = CHANGE_CREATE, .kind = K_AUTOMATION_KEY, .body = json_deep_copy(call->body)},
        e);
    if (code == ERR_OK) {
        code = commit_direct(en, &set, call->patch, call->who, call->p, e);
    }
    change_set_fini(&set);
    return code;
}

err_t
account_key_create(
    struct engine *en, const json_t *body, const struct actor *who, struct buf *ret_key,
    struct problems *p, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf key;
    json_auto_t *patch = NULL;
    struct key_call call = {.body = body, .who = who, .p = p};
    char hash[SHA256_HEX + 1];
    err_t code;

    buf_init(&key, TEXT_BYTES);
    buf_puts(&key, KEY_PREFIX);
    crypt_token(&key, SECRET_BYTES);
    key_hash(buf_str(&key), hash);
    patch = json_pack("{s:s}", "key_hash", hash);
    call.patch = patch;
    code = engine_run(en, create_key_on_engine, &call, e);
    if (code == ERR_OK) {
        buf_put(ret_key, buf_str(&key), key.len);
    }
    return code;
}

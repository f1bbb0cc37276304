/* SPDX-License-Identifier: Apache-2.0 */
/* One object, generic over the kinds: read, create, replace, change, delete. Reads and writes
 * see the draft, those of kinds that take effect at once the head. */
#include <string.h>

#include "base/json.h"
#include "engine/edit.h"
#include "http/api.h"
#include "http/cache.h"
#include "http/reply.h"
#include "routes_gen.h"

#define ETAG_BYTES (SHA256_HEX + 3)

/* The present name of the object that the path names. */
static const char *
path_name(const struct request *r)
{
    if (schema_kind(r->hit.kind)->singleton) {
        return schema_kind(r->hit.kind)->name;
    }
    return request_segment(r, "{name}");
}

static const struct object *
find(const struct request *r, const struct view *v, const char *name)
{
    const struct snapshot *s = snapshot_of(api_pair(v, r->hit.kind), r->hit.kind);

    if (schema_kind(r->hit.kind)->singleton) {
        return snapshot_singleton(s, r->hit.kind);
    }
    return name != NULL ? snapshot_by_name(s, r->hit.kind, name) : NULL;
}

static void
refuse_unknown(struct request *r)
{
    reply_problem(
        r, 404, error_name(ERR_NOT_FOUND), "there is no %s \"%s\"",
        schema_kind(r->hit.kind)->name, path_name(r));
}

static void
reply_object(struct request *r, int status, const struct object *o, json_t *json)
{
    char etag[ETAG_BYTES];

    etag[0] = '"';
    hash_hex(&o->objhash, etag + 1);
    memcpy(etag + 1 + SHA256_HEX, "\"", 2);
    reply_json(r, status, json);
    reply_header(r, "ETag", etag);
}

static void
get_object(struct request *r)
{
    const struct view *v = request_view(r);
    const struct object *o = find(r, v, path_name(r));
    struct object_refs refs = snapshot_refs(api_pair(v, r->hit.kind));

    if (o == NULL) {
        refuse_unknown(r);
    } else if (!cache_answer(r, o)) {
        reply_object(r, 200, o, object_to_json(o, &refs));
        cache_keep(r, o);
    }
}

void
http_object_get(struct request *r)
{
    get_object(r);
}

void
http_singleton_get(struct request *r)
{
    get_object(r);
}

/* ---- writes ---- */

/* The hash that If-Match names. One strong tag: a list or "*" would let a change through that
 * the caller has not seen. */
static bool
read_if_match(struct request *r, struct hash *ret)
{
    const char *value = r->header.if_match;
    char hex[SHA256_HEX + 1];

    if (strcmp(value, "*") == 0) {
        reply_problem(
            r, 428, "precondition_required",
            "If-Match must be the ETag of the object as you last saw it, not *");
        return false;
    }
    if (strlen(value) == ETAG_BYTES - 1 && value[0] == '"' && value[ETAG_BYTES - 2] == '"') {
        memcpy(hex, value + 1, SHA256_HEX);
        hex[SHA256_HEX] = '\0';
        if (hash_from_hex(hex, ret)) {
            return true;
        }
    }
    reply_problem(
        r, 412, error_name(ERR_STALE), "If-Match is not the ETag of the object as it is now");
    return false;
}

/* A password in the clear never gets beyond this point. */
static bool
hash_password(struct request *r)
{
    static const struct problem where = {.kind = "admin", .pointer = "/password"};
    struct error e;

    if (r->hit.kind != K_ADMIN || account_hash_password(r->json, &e) == ERR_OK) {
        return true;
    }
    if (e.code != ERR_INVALID) {
        reply_error(r, &e, NULL);
        return false;
    }
    problems_add(request_problems(r), SEVERITY_ERROR, "password", &where, "%s", e.msg);
    reply_problems(r, r->problems);
    return false;
}

/* Runs one operation; false: refused. */
static bool
edit(struct request *r, struct change op)
{
    struct problems *p = request_problems(r);
    struct change_set set;
    struct error e = {.code = ERR_OK};
    err_t code;

    change_set_init(&set);
    code = change_set_add(&set, op, &e);
    if (code == ERR_OK) {
        code = edit_draft(r->http->config.engine, &set, &r->actor, p, &e);
    }
    change_set_fini(&set);
    if (code != ERR_OK) {
        reply_error(r, &e, p);
        return false;
    }
    return true;
}

static const char *
body_name(const struct request *r)
{
    return json_string_value(json_object_get(r->json, "name"));
}

static void
reply_created(struct request *r, const char *key)
{
    const struct view *v = request_fresh_view(r);
    const struct object *o = find(r, v, body_name(r));
    struct object_refs refs = snapshot_refs(api_pair(v, r->hit.kind));
    struct buf path;
    json_t *json;

    if (o == NULL) {
        /* Somebody else's request was faster by a hair. */
        refuse_unknown(r);
        return;
    }
    json = object_to_json(o, &refs);
    if (key != NULL) {
        (void)json_object_set_new(json, "key", json_string(key));
    }
    reply_object(r, 201, o, json);
    buf_init(&path, 1024);
    buf_printf(&path, "/api/v1/%s/", schema_kind(o->kind)->plural);
    target_put_segment(&path, o->name.s);
    reply_header(r, "Location", buf_str(&path));
    buf_fini(&path);
}

static void
create_key(struct request *r)
{
    struct problems *p = request_problems(r);
    struct error e = {.code = ERR_OK};
    struct buf key;

    buf_init(&key, 128);
    ASSERT(buf_reserve(&key, 64));
    if (account_key_create(r->http->config.engine, r->json, &r->actor, &key, p, &e) != ERR_OK) {
        reply_error(r, &e, p);
    } else {
        reply_created(r, buf_str(&key));
    }
    buf_wipe(&key);
    buf_fini(&key);
}

void
http_object_create(struct request *r)
{
    struct change op = {.op = CHANGE_CREATE, .kind = r->hit.kind};

    if (r->hit.kind == K_AUTOMATION_KEY) {
        create_key(r);
        return;
    }
    if (hash_password(r)) {
        op.body = json_incref(r->json);
        if (edit(r, op)) {
            reply_created(r, NULL);
        }
    }
}

static void
change_object(struct request *r, enum change_op what)
{
    struct change op = {.op = what, .kind = r->hit.kind, .name = path_name(r)};
    const struct object *o;
    const struct view *v;
    struct object_refs refs;
    struct hash expected;

    if (!read_if_match(r, &expected)) {
        return;
    }
    if (find(r, request_view(r), op.name) == NULL) {
        refuse_unknown(r);
        return;
    }
    if (!hash_password(r)) {
        return;
    }
    op.if_match = &expected;
    op.body = json_incref(r->json);
    if (!edit(r, op)) {
        return;
    }
    v = request_fresh_view(r);
    o = find(r, v, body_name(r) != NULL ? body_name(r) : op.name);
    refs = snapshot_refs(api_pair(v, r->hit.kind));
    if (o == NULL) {
        refuse_unknown(r);
        return;
    }
    reply_object(r, 200, o, object_to_json(o, &refs));
}

void
http_object_replace(struct request *r)
{
    change_object(r, CHANGE_REPLACE);
}

void
http_object_merge(struct request *r)
{
    change_object(r, CHANGE_MERGE);
}

void
http_singleton_replace(struct request *r)
{
    change_object(r, CHANGE_REPLACE);
}

void
http_singleton_merge(struct request *r)
{
    change_object(r, CHANGE_MERGE);
}

void
http_object_delete(struct request *r)
{
    struct change op = {.op = CHANGE_DELETE, .kind = r->hit.kind, .name = path_name(r)};
    struct hash expected;

    if (!read_if_match(r, &expected)) {
        return;
    }
    op.if_match = &expected;
    if (edit(r, op)) {
        reply_none(r, 204);
    }
}

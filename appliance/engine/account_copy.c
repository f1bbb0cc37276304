/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "engine/account.h"
#include "engine/commit.h"

#define AUDIT_BYTES 256

err_t
account_read(struct engine *en, const char *name, json_t **ret, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    const struct object *admin = snapshot_by_name(v->now.local, K_ADMIN, name);

    if (admin == NULL) {
        return error_set(e, ERR_NOT_FOUND, "there is no administrator \"%.64s\" here", name);
    }
    *ret = json_pack(
        "{s:s, s:s, s:s}", "name", admin->name.s, "password",
        object_text(admin, F_ADMIN_PASSWORD).s, "note", object_text(admin, F_ADMIN_NOTE).s);
    return ERR_OK;
}

struct taking {
    const struct account_copy *copy;
    const char *name, *password, *note;
    const char *state;
    struct problems *p;
};

static bool
is_same(const struct object *held, const struct taking *t)
{
    return strcmp(object_text(held, F_ADMIN_PASSWORD).s, t->password) == 0 &&
           strcmp(object_text(held, F_ADMIN_NOTE).s, t->note) == 0;
}

static err_t
write_admin(struct engine *en, const struct taking *t, bool replaces, struct error *e)
{
    const struct actor who = {.name = t->copy->who};
    struct change op = {.op = CHANGE_CREATE, .kind = K_ADMIN};
    struct change_set set;
    err_t code;

    if (replaces) {
        op.op = CHANGE_REPLACE;
        op.name = t->name;
    }
    op.body =
        json_pack("{s:s, s:s, s:s}", "name", t->name, "password", t->password, "note", t->note);
    change_set_init(&set);
    code = change_set_add(&set, op, e);
    if (code == ERR_OK) {
        code = commit_direct(en, &set, NULL, &who, t->p, e);
    }
    change_set_fini(&set);
    return code;
}

static err_t
take_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct taking *t = ctx;
    const struct object *held = snapshot_by_name(en->live.local, K_ADMIN, t->name);
    char text[AUDIT_BYTES];
    err_t code;

    t->state = held != NULL ? "replaced" : "created";
    if (held != NULL && is_same(held, t)) {
        t->state = "same";
        return ERR_OK;
    }
    if (held != NULL && !t->copy->overwrite) {
        return error_set(
            e, ERR_CONFLICT,
            "there is an administrator \"%s\" already, with another password or note: "
            "overwrite replaces it (lockstep admin copy-to NODE --overwrite)",
            t->name);
    }
    code = write_admin(en, t, held != NULL, e);
    if (code == ERR_OK) {
        (void)snprintf(text, sizeof text, "%s administrator %s", t->state, t->name);
        engine_audit(en, t->copy->who, "admin_copy", text);
    }
    return code;
}

err_t
account_take(
    struct engine *en, const struct account_copy *copy, const char **ret_state,
    struct problems *p, struct error *e)
{
    struct taking t = {.copy = copy, .p = p};
    err_t code = json_get_str(copy->admin, "name", &t.name, e);

    if (code == ERR_OK) {
        code = json_get_str(copy->admin, "password", &t.password, e);
    }
    if (code == ERR_OK) {
        code = json_get_str(copy->admin, "note", &t.note, e);
    }
    if (code == ERR_OK && !crypt_password_is_hash(t.password)) {
        code = error_set(e, ERR_INVALID, "the password of an administrator is no hash of one");
    }
    if (code == ERR_OK) {
        code = engine_run(en, take_on_engine, &t, e);
    }
    if (code == ERR_OK) {
        *ret_state = t.state;
    }
    return code;
}

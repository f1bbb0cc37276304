/* SPDX-License-Identifier: Apache-2.0 */
/* From targets and a check to servers, a monitor and a pool. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/publish_plan.h"

/* A member of the pool as it is. */
struct member {
    const struct object *server;
    json_t *json; /* as the API shows it */
    bool kept;
};

/* What a target became: the server's name, and whether the pool has it as a member. */
struct place {
    const char *server;
    bool member;
};

struct targets {
    struct plan *pl;
    struct member *members;
    size_t member_count;
    struct place *places; /* by target */
};

static bool
is_at(const struct object *server, const struct publish_target *target)
{
    return object_int(server, F_SERVER_PORT) == target->port &&
           strcmp(object_text(server, F_SERVER_ADDRESS).s, target->address) == 0;
}

static const char *
server_name(const struct plan *pl, const char *label)
{
    return arena_printf(pl->arena, "%s.%s", pl->name, label);
}

/* Gives a target its server by name, and keeps that server's place in the pool. */
static void
claim(struct targets *t, size_t target, const char *name)
{
    struct owned *own = owned_find(&t->pl->owned, K_SERVER, name);
    if (own != NULL) {
        own->claimed = true;
    }
    t->places[target].server = name;
    for (size_t i = 0; i < t->member_count; i++) {
        if (strcmp(t->members[i].server->name.s, name) == 0) {
            t->members[i].kept = true;
            t->places[target].member = true;
        }
    }
}

/* Gives a target the server of that name, which is made or changed. */
static void
place(struct targets *t, size_t target, const char *name)
{
    struct plan *pl = t->pl;
    size_t most = (size_t)schema_kind(K_SERVER)->fields[F_SERVER_NAME].max;
    claim(t, target, name);
    if (strlen(name) > most) {
        plan_problem(
            pl, "too_long", arena_printf(pl->arena, "/to/%zu", target),
            "The server's name \"%s\" would be longer than %zu characters: use a shorter label "
            "or service name.",
            name, most);
        return;
    }
    const struct publish_target *to = &pl->r.targets[target];
    plan_put(
        pl, K_SERVER, name, json_pack("{s:s, s:i}", "address", to->address, "port", to->port));
}

static void
place_labelled(struct targets *t)
{
    for (size_t i = 0; i < t->pl->r.target_count; i++) {
        const char *label = t->pl->r.targets[i].label;
        if (label != NULL) {
            place(t, i, server_name(t->pl, label));
        }
    }
}

/* A member at the address of a target without a label is that target. */
static void
place_members(struct targets *t)
{
    for (size_t i = 0; i < t->pl->r.target_count; i++) {
        const struct publish_target *to = &t->pl->r.targets[i];
        for (size_t j = 0; to->label == NULL && j < t->member_count; j++) {
            const struct member *m = &t->members[j];
            if (!m->kept && is_at(m->server, to)) {
                claim(t, i, m->server->name.s);
                break;
            }
        }
    }
}

/* The rest gets the first free of s1, s2, ...: a name that no other target has, and whose
 * server, if there is one, only this service uses. */
static void
place_rest(struct targets *t)
{
    struct plan *pl = t->pl;
    int number = 1;
    for (size_t i = 0; i < pl->r.target_count; i++) {
        if (t->places[i].server != NULL || pl->r.targets[i].label != NULL) {
            continue;
        }
        const char *name = NULL;
        while (name == NULL) {
            const char *label = arena_printf(pl->arena, "s%d", number++);
            const char *candidate = server_name(pl, label);
            const struct owned *own = owned_find(&pl->owned, K_SERVER, candidate);
            bool taken = own != NULL && (own->claimed || own->other != NULL);
            for (size_t j = 0; j < pl->r.target_count; j++) {
                const char *other = t->places[j].server;
                taken = taken || (other != NULL && strcmp(other, candidate) == 0);
            }
            name = taken ? NULL : candidate;
        }
        place(t, i, name);
    }
}

static json_t *
new_members(const struct targets *t)
{
    json_t *members = json_array();
    for (size_t i = 0; i < t->member_count; i++) {
        if (t->members[i].kept) {
            json_array_append(members, t->members[i].json);
        }
    }
    for (size_t i = 0; i < t->pl->r.target_count; i++) {
        const struct place *at = &t->places[i];
        if (!at->member && at->server != NULL) {
            json_array_append_new(members, json_pack("{s:s}", "server", at->server));
        }
    }
    return members;
}

static void
delete_orphans(struct plan *pl)
{
    for (size_t i = 0; i < pl->owned.count; i++) {
        const struct owned *own = &pl->owned.items[i];
        if (own->o->kind == K_SERVER && !own->claimed && own->other == NULL) {
            plan_delete(pl, own->o);
        }
    }
}

/* A Host header that the servers know: the first of the service's names that is one. */
static const char *
check_host(const struct publish_request *r)
{
    for (size_t i = 0; i < r->host_count; i++) {
        if (r->hosts[i][0] != '*') {
            return r->hosts[i];
        }
    }
    return "";
}

static void
put_monitor(struct plan *pl)
{
    const struct publish_request *r = &pl->r;
    json_t *body =
        json_pack("{s:s, s:i}", "type", r->check_http ? "http" : "tcp", "port", r->check_port);
    if (r->check_http) {
        json_object_set_new(body, "path", json_string(r->check_path));
        json_object_set_new(body, "host", json_string(check_host(r)));
    }
    plan_put(pl, K_MONITOR, pl->name, body);
}

static void
read_members(struct targets *t, const json_t *members)
{
    t->members = xcalloc(json_array_size(members) + 1, sizeof(t->members[0]));
    for (size_t i = 0; i < json_array_size(members); i++) {
        json_t *json = json_array_get(members, i);
        const char *name = json_string_value(json_object_get(json, "server"));
        const struct object *server =
            name != NULL ? snapshot_by_name(t->pl->shared, K_SERVER, name) : NULL;
        if (server != NULL) {
            t->members[t->member_count++] = (struct member){server, json, false};
        }
    }
}

/* Without a word about the check the present one stays, also where it is not the service's own
 * or none; a new pool gets one. */
static void
plan_check(struct plan *pl, json_t *pool)
{
    bool has_own = owned_find(&pl->owned, K_MONITOR, pl->name) != NULL;

    if (!pl->r.check_given && pl->owned.pool != NULL) {
        return;
    }
    if (pl->r.check_given || !has_own) {
        put_monitor(pl);
    }
    json_object_set_new(pool, "monitor", json_string(pl->name));
}

void
plan_pool(struct plan *pl)
{
    json_t *pool = pl->owned.pool != NULL ? object_to_json(pl->owned.pool, &pl->refs) : NULL;
    struct targets t = {.pl = pl};
    t.places = xcalloc(pl->r.target_count + 1, sizeof(t.places[0]));
    read_members(&t, json_object_get(pool, "members"));
    place_labelled(&t);
    place_members(&t);
    place_rest(&t);
    const char *mode = pl->r.scheme == PUBLISH_TCP ? "tcp" : "http";
    json_t *wanted = json_pack("{s:s, s:o}", "mode", mode, "members", new_members(&t));
    plan_check(pl, wanted);
    plan_put(pl, K_POOL, pl->name, wanted);
    delete_orphans(pl);
    free(t.members);
    free(t.places);
    json_decref(pool);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for everything that is rendered, tried on random objects. A failure prints its
 * seed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/x509.h"
#include "tests/support/gen.h"
#include "tests/support/objects_file.h"
#include "tests/support/variant.h"

#define ROUNDS          12
#define LIVE_ROUNDS     200
#define OBJECTS         105
#define HOSTILE_WORLDS  2
#define FIELDS          64 /* at most, of a kind or record */
#define TEXTS_MAX_BYTES ((size_t)8 << 20)
#define OUT_MAX_BYTES   ((size_t)1 << 20)
#define NOW_S           1767225600

static uint64_t seed;
static struct buf placeholder;

#define HOLDS(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            print_error("seed %llu: %s\n", (unsigned long long)seed, #condition);              \
            fail();                                                                            \
        }                                                                                      \
    } while (0)

/* One random configuration, and what it is rendered to. */
struct world {
    struct gen *g;
    struct snapshot *shared, *local;
    struct rendered rendered;
};

static void
world_init(struct world *w, uint64_t s)
{
    seed = s;
    w->g = gen_new(s);
    gen_valid_pair(w->g, OBJECTS, NOW_S, &w->shared, &w->local);
    rendered_init(&w->rendered);
}

static void
world_fini(struct world *w)
{
    rendered_fini(&w->rendered);
    snapshot_unref(w->shared);
    snapshot_unref(w->local);
    gen_free(w->g);
}

static bool
render(const struct snapshot *shared, const struct snapshot *local, struct rendered *r)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(TEXTS_MAX_BYTES);
    static const struct render_peer peers[] = {
        {"p1", "10.9.0.1", 8444}, {"p2", "2001:db8::2", 8445}};
    struct render_input in = {
        .objects = {shared, local},
        .run_dir = "/run/lockstep",
        .socket_group = OBJECTS_FILE_GROUP,
        .placeholder_pem = buf_str(&placeholder),
        .url = "https://10.9.0.3:8443",
        .peers = peers,
        .peer_count = ARRAY_LEN(peers),
        .api_address = "127.0.0.1",
        .api_port = 8443,
        .api_pem = buf_str(&placeholder),
    };
    struct problems p;
    struct error e = {0};
    bool ok;

    problems_init(&p, arena);
    ok = render_haproxy(&in, r, &p, &e) == ERR_OK;
    HOLDS(ok == (p.errors == 0));
    return ok;
}

static size_t
lines_of(const struct rendered *r, size_t artefact)
{
    const struct buf *b = &r->items[artefact].bytes;
    size_t lines = 0;

    for (size_t i = 0; i < b->len; i++) {
        lines += b->data[i] == '\n' ? 1 : 0;
    }
    return lines;
}

/* ---- order ---- */

/* The same objects, put together in a random order. */
static struct snapshot *
shuffled(struct gen *g, const struct snapshot *s)
{
    size_t count = snapshot_count(s);
    const struct object **all = xcalloc(count, sizeof(*all));
    struct snapshot_edit *x = snapshot_edit_new(NULL);
    struct snapshot *after = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t j = gen_below(g, i + 1);

        all[i] = all[j];
        all[j] = snapshot_at(s, i);
    }
    for (size_t i = 0; i < count; i++) {
        snapshot_edit_put(x, object_ref(all[i]));
    }
    assert_int_equal(snapshot_seal(x, &after, NULL), ERR_OK);
    free(all);
    return after;
}

static void
the_order_of_insertion_does_not_matter(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= ROUNDS; s++) {
        struct world w;
        struct rendered again;
        struct snapshot *other;

        world_init(&w, s);
        rendered_init(&again);
        other = shuffled(w.g, w.shared);
        HOLDS(render(w.shared, w.local, &w.rendered));
        HOLDS(render(other, w.local, &again));
        HOLDS(w.rendered.count == again.count);
        for (size_t i = 0; i < again.count; i++) {
            const struct artefact *a = &w.rendered.items[i];
            const struct artefact *b = &again.items[i];

            HOLDS(strcmp(a->name, b->name) == 0);
            HOLDS(a->bytes.len == b->bytes.len);
            HOLDS(memcmp(buf_str(&a->bytes), buf_str(&b->bytes), a->bytes.len) == 0);
        }
        HOLDS(strcmp(w.rendered.digest, again.digest) == 0);
        rendered_fini(&again);
        snapshot_unref(other);
        world_fini(&w);
    }
}

/* ---- lines and names ---- */

static void
every_line_belongs_to_an_object_of_the_input_or_is_fixed(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= ROUNDS; s++) {
        struct world w;
        size_t config = 0;

        world_init(&w, s);
        HOLDS(render(w.shared, w.local, &w.rendered));
        while (strcmp(w.rendered.items[config].name, "haproxy.cfg") != 0) {
            config++;
        }
        HOLDS(lines_of(&w.rendered, config) == w.rendered.line_count);
        for (size_t i = 0; i < w.rendered.line_count; i++) {
            const struct line_origin *l = &w.rendered.lines[i];
            const struct snapshot *from;

            HOLDS((l->kind == -1) == (l->object == NULL));
            if (l->object == NULL) {
                continue;
            }
            from = schema_kind(l->object->kind)->scope == SCOPE_SHARED ? w.shared : w.local;
            HOLDS(l->kind == (int)l->object->kind);
            HOLDS(snapshot_by_id(from, l->object->kind, l->object->id) == l->object);
        }
        world_fini(&w);
    }
}

static void
names_of_files_are_sorted_and_stay_below_their_folder(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= ROUNDS; s++) {
        struct world w;

        world_init(&w, s);
        HOLDS(render(w.shared, w.local, &w.rendered));
        for (size_t i = 0; i < w.rendered.count; i++) {
            const char *name = w.rendered.items[i].name;
            const char *slash = strchr(name, '/');

            HOLDS(i == 0 || strcmp(w.rendered.items[i - 1].name, name) < 0);
            HOLDS(*name != '/' && *name != '.');
            HOLDS(slash == NULL || (strchr(slash + 1, '/') == NULL && slash[1] != '.'));
            HOLDS(rendered_find(&w.rendered, name) == &w.rendered.items[i]);
            HOLDS(w.rendered.items[i].secret == (strncmp(name, "crt/", 4) == 0));
        }
        world_fini(&w);
    }
}

/* ---- what HAProxy says ---- */

/* s with every server that has a DNS name moved to one that resolves anywhere. */
static struct snapshot *
without_names(const struct snapshot *s)
{
    struct snapshot_edit *x = snapshot_edit_new(s);
    json_auto_t *patch = json_pack("{s:s}", "address", "localhost");
    const struct object *const *servers = NULL;
    size_t count = snapshot_kind(s, K_SERVER, &servers);
    struct snapshot *after = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!value_is_ip(object_text(servers[i], F_SERVER_ADDRESS).s)) {
            struct object *o = NULL;

            assert_int_equal(object_with(servers[i], patch, &o, NULL), ERR_OK);
            snapshot_edit_put(x, o);
        }
    }
    assert_int_equal(snapshot_seal(x, &after, NULL), ERR_OK);
    return after;
}

static void
check(const struct rendered *r)
{
    const char *haproxy[OBJECTS_FILE_CHECKERS];
    size_t count = objects_file_checkers(haproxy);
    char dir[] = "/tmp/prop_render.XXXXXX";
    struct buf CLEANUP(buf_fini) out;
    err_t err;
    struct error e = {0};
    char *config = NULL;

    buf_init(&out, OUT_MAX_BYTES);
    assert_non_null(mkdtemp(dir));
    assert_true(asprintf(&config, "%s/haproxy.cfg", dir) > 0);
    err = objects_file_write(r, dir, &e);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        err = objects_file_check(haproxy[i], config, &out, &e);
    }
    if (err != ERR_OK) {
        print_error(
            "seed %llu: %s\n%s\n%s", (unsigned long long)seed, e.msg, buf_str(&out),
            buf_str(&rendered_find(r, "haproxy.cfg")->bytes));
        fail();
    }
    free(config);
    assert_int_equal(file_remove_tree_at(AT_FDCWD, dir, &e), ERR_OK);
}

static void
haproxy_accepts_what_is_rendered_from_valid_objects(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= ROUNDS; s++) {
        struct world w;
        struct snapshot *shared;

        world_init(&w, s);
        shared = without_names(w.shared);
        HOLDS(render(shared, w.local, &w.rendered));
        check(&w.rendered);
        snapshot_unref(shared);
        world_fini(&w);
    }
}

/* ---- fields ---- */

/* Renders with o in the place of the object of the same id; false when that cannot be. */
static bool
render_with(const struct world *w, struct object *o, struct rendered *r)
{
    bool shared = schema_kind(o->kind)->scope == SCOPE_SHARED;
    struct snapshot_edit *x = snapshot_edit_new(shared ? w->shared : w->local);
    struct snapshot CLEANUP(snapshot_cleanup) *after = NULL;

    snapshot_edit_put(x, o);
    if (snapshot_seal(x, &after, NULL) != ERR_OK) {
        return false;
    }
    return render(shared ? after : w->shared, shared ? w->local : after, r);
}

struct liveness {
    bool field[KIND_COUNT][FIELDS];
    bool inner[KIND_COUNT][FIELDS][FIELDS]; /* of records */
};

/* Whether the value at a field, or in the first record of its list, shows in an artefact. */
static bool
shows(struct world *w, const struct object *o, const struct schema_field *f, json_t *value)
{
    struct snapshot_pair pair = {w->shared, w->local};
    struct rendered other;
    struct object *variant;
    bool differs = false;

    if (value == NULL) {
        return false;
    }
    variant = variant_of(&pair, o, f->name, value);
    json_decref(value);
    if (variant == NULL) {
        return false;
    }
    rendered_init(&other);
    if (render_with(w, variant, &other)) {
        differs = strcmp(other.digest, w->rendered.digest) != 0;
        if (f->effect == EFFECT_NONE && differs) {
            print_error(
                "%s.%s has no effect, but shows\n", schema_kind(o->kind)->name, f->name);
            HOLDS(false);
        }
    }
    rendered_fini(&other);
    return differs;
}

static json_t *
with_inner(
    struct world *w, const struct object *o, const struct schema_field *f, uint32_t inner)
{
    struct snapshot_pair pair = {w->shared, w->local};
    struct object_refs refs = snapshot_refs(&pair);
    json_auto_t *body = object_to_json(o, &refs);
    json_t *list = json_deep_copy(json_object_get(body, f->name));
    json_t *value = gen_value(w->g, &f->fields[inner], &pair);

    if (json_array_size(list) == 0 || value == NULL) {
        json_decref(list);
        json_decref(value);
        return NULL;
    }
    json_object_set_new(json_array_get(list, 0), f->fields[inner].name, value);
    return list;
}

static void
try_fields(struct world *w, const struct object *o, struct liveness *live)
{
    const struct schema_kind *k = schema_kind(o->kind);
    struct snapshot_pair pair = {w->shared, w->local};

    if (o->kind == K_CERTIFICATE) {
        json_decref(gen_body(w->g, o->kind, &pair)); /* what follows is another one */
    }
    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[i];
        bool *is_live = live->field[o->kind];

        assert_true(k->field_count <= FIELDS);
        if (!f->read_only && (!is_live[i] || f->effect == EFFECT_NONE)) {
            is_live[i] = shows(w, o, f, gen_value(w->g, f, &pair)) || is_live[i];
        }
        for (uint32_t j = 0; j < f->field_count; j++) {
            is_live = live->inner[o->kind][i];
            if (!is_live[j]) {
                is_live[j] = shows(w, o, f, with_inner(w, o, f, j));
            }
        }
    }
}

static bool
all_live(const struct liveness *live, bool say)
{
    bool all = true;

    for (size_t k = 0; k < KIND_COUNT; k++) {
        for (uint32_t i = 0; i < schema_kinds[k].field_count; i++) {
            const struct schema_field *f = &schema_kinds[k].fields[i];
            bool dead = f->effect != EFFECT_NONE && !live->field[k][i];

            for (uint32_t j = 0; j < f->field_count; j++) {
                dead = dead || !live->inner[k][i][j];
            }
            if (dead && say) {
                print_error("%s.%s never shows\n", schema_kinds[k].name, f->name);
            }
            all = all && !dead;
        }
    }
    return all;
}

static void
a_field_shows_in_the_files_exactly_when_its_effect_says_so(void **state)
{
    static struct liveness live;

    (void)state;
    for (uint64_t s = 1; s <= LIVE_ROUNDS && !all_live(&live, false); s++) {
        struct world w;

        world_init(&w, s);
        HOLDS(render(w.shared, w.local, &w.rendered));
        for (size_t i = 0; i < snapshot_count(w.shared); i++) {
            try_fields(&w, snapshot_at(w.shared, i), &live);
        }
        for (size_t i = 0; i < snapshot_count(w.local); i++) {
            try_fields(&w, snapshot_at(w.local, i), &live);
        }
        world_fini(&w);
    }
    assert_true(all_live(&live, true));
}

/* ---- hostile text ---- */

static const char *const hostile[] = {"a b",      "a\"b",     "a'b",
                                      "a\\b",     "a#b",      "#",
                                      "$HOME",    "${X}",     "%[src]",
                                      "%%",       "{}",       ";",
                                      "-i",       "\xc3\xbc", "x\n    http-request deny",
                                      "x\r\ny",   "\t",       "\x01",
                                      "*",        "*.x",      "/",
                                      "/a b",     "/$HOME",   "/%[src]",
                                      "/'\"",     "/a;b#c",   "/a%0ab",
                                      "/(a),b",   "[::1]",    "a,b",
                                      "<b>&</b>", "</title>", "lockstep.unknown",
                                      "default",  "",         "200 500",
                                      "!200",     "."};

static size_t
lines_beginning(const struct rendered *r, const char *with)
{
    const char *at = buf_str(&rendered_find(r, "haproxy.cfg")->bytes);
    size_t lines = 0;

    while ((at = strstr(at, with)) != NULL) {
        lines++;
        at += strlen(with);
    }
    return lines;
}

/* Lists that now have one item may have had more, or none. */
static size_t
lines_without_binds(const struct rendered *r)
{
    return r->line_count - lines_beginning(r, "\n    bind ");
}

static void
text_of_users_never_adds_a_line_and_haproxy_takes_it(void **state)
{
    size_t count = 0;

    (void)state;
    for (size_t first = 0; first < HOSTILE_WORLDS; first++) {
        struct snapshot_pair pair;
        struct rendered other;
        struct snapshot *s;
        struct world w;

        world_init(&w, first + 1);
        s = without_names(w.shared);
        snapshot_unref(w.shared);
        w.shared = s;
        pair = (struct snapshot_pair){w.shared, w.local};
        rendered_init(&other);
        HOLDS(render(w.shared, w.local, &w.rendered));
        for (size_t i = first; i < ARRAY_LEN(hostile); i += HOSTILE_WORLDS) {
            s = variant_poisoned(&pair, hostile[i], NOW_S, &count);
            HOLDS(render(s, w.local, &other));
            HOLDS(lines_without_binds(&other) == lines_without_binds(&w.rendered));
            HOLDS(other.count == w.rendered.count);
            check(&other);
            snapshot_unref(s);
        }
        rendered_fini(&other);
        world_fini(&w);
    }
    assert_true(count > 100);
}

static int
make_placeholder(void **state)
{
    static const char *const names[] = {"placeholder.invalid", NULL};
    struct buf CLEANUP(buf_fini) key;
    err_t err;

    (void)state;
    buf_init(&placeholder, OUT_MAX_BYTES);
    buf_init(&key, OUT_MAX_BYTES);
    err = x509_selfsigned(names, NOW_S, 30, &placeholder, &key, NULL);
    buf_put(&placeholder, buf_str(&key), key.len);
    return err == ERR_OK ? 0 : -1;
}

static int
drop_placeholder(void **state)
{
    (void)state;
    buf_fini(&placeholder);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_insertion_does_not_matter),
        cmocka_unit_test(every_line_belongs_to_an_object_of_the_input_or_is_fixed),
        cmocka_unit_test(names_of_files_are_sorted_and_stay_below_their_folder),
        cmocka_unit_test(haproxy_accepts_what_is_rendered_from_valid_objects),
        cmocka_unit_test(a_field_shows_in_the_files_exactly_when_its_effect_says_so),
        cmocka_unit_test(text_of_users_never_adds_a_line_and_haproxy_takes_it),
    };

    return cmocka_run_group_tests(tests, make_placeholder, drop_placeholder);
}

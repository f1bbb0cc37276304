/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/objects_file.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"

#define FILE_MAX_BYTES  ((size_t)256 << 20)
#define CHECK_MS        60000
#define TEXTS_MAX_BYTES ((size_t)64 << 20)
#define HAPROXY30       "/var/cache/lockstep/haproxy30/haproxy"

struct entry {
    enum kind kind;
    const char *name;
    char id[OBJECT_ID_BYTES];
    json_t *body;
};

struct entries {
    struct entry *items;
    size_t count;
};

static int
compare(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;

    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind)
                              : strcmp(x->name, y->name);
}

static const char *
id_of_name(void *ctx, enum kind kind, const char *name)
{
    const struct entries *all = ctx;
    struct entry key = {.kind = kind, .name = name};
    const struct entry *found =
        all->count == 0 ? NULL : bsearch(&key, all->items, all->count, sizeof key, compare);

    return found == NULL ? NULL : found->id;
}

static const char *
name_of_id(void *ctx, enum kind kind, const char *id)
{
    const struct entries *all = ctx;

    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].kind == kind && strcmp(all->items[i].id, id) == 0) {
            return all->items[i].name;
        }
    }
    return NULL;
}

static void
make_id(struct entry *x, const char *given)
{
    char hex[SHA256_HEX + 1];
    struct hash h = sha256(x->name, strlen(x->name));

    hash_hex(&h, hex);
    if (schema_kind(x->kind)->singleton) {
        given = schema_kind(x->kind)->name;
    } else if (given == NULL) {
        hex[16] = '\0';
        given = hex;
    }
    ASSERT(strlen(given) < sizeof x->id);
    memcpy(x->id, given, strlen(given) + 1);
}

static err_t
take_entry(json_t *item, struct entry *x, struct error *e)
{
    const char *kind = NULL;
    const char *id = NULL;
    err_t err = json_get_str(item, "kind", &kind, e);

    if (err == ERR_OK) {
        err = json_opt_str(item, "id", &id, e);
    }
    if (err == ERR_OK && !schema_kind_by_name(kind, &x->kind)) {
        err = error_set(e, ERR_INVALID, "no kind %s", kind);
    }
    if (err != ERR_OK) {
        return err;
    }
    x->name = schema_kind(x->kind)->name;
    err = json_opt_str(item, "name", &x->name, e);
    make_id(x, id);
    x->body = json_copy(item);
    (void)json_object_del(x->body, "kind");
    (void)json_object_del(x->body, "id");
    return err;
}

static void
entries_fini(struct entries *all)
{
    for (size_t i = 0; i < all->count; i++) {
        json_decref(all->items[i].body);
    }
    free(all->items);
}

static err_t
read_list(const json_t *list, struct entries *all, struct error *e)
{
    size_t count = json_array_size(list);
    err_t err = ERR_OK;

    all->items = xrealloc(all->items, (all->count + count + 1) * sizeof *all->items);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        all->items[all->count] = (struct entry){0};
        err = take_entry(json_array_get(list, i), &all->items[all->count], e);
        all->count += err == ERR_OK ? 1 : 0;
    }
    return err;
}

static err_t
seal_scope(const struct entries *all, enum scope scope, struct snapshot **ret, struct error *e)
{
    struct snapshot *initial = snapshot_initial(scope);
    struct snapshot_edit *edit = snapshot_edit_new(initial);
    struct object_refs refs = {id_of_name, name_of_id, (void *)(uintptr_t)all};
    struct arena *arena = arena_new(TEXTS_MAX_BYTES);
    struct problems p;

    problems_init(&p, arena);
    for (size_t i = 0; i < all->count; i++) {
        const struct entry *x = &all->items[i];
        struct object *o;

        if (schema_kind(x->kind)->scope != scope) {
            continue;
        }
        o = object_parse(x->kind, x->id, x->body, NULL, &refs, &p);
        if (o == NULL) {
            (void)error_set(
                e, ERR_INVALID, "%s %s%s: %s", schema_kind(x->kind)->name, x->name,
                p.items[0].pointer, p.items[0].message);
            snapshot_edit_free(edit);
            snapshot_unref(initial);
            arena_free(arena);
            return ERR_INVALID;
        }
        snapshot_edit_put(edit, o);
    }
    snapshot_unref(initial);
    arena_free(arena);
    return snapshot_seal(edit, ret, e);
}

err_t
objects_file_parse(
    const json_t *root, struct snapshot **ret_shared, struct snapshot **ret_local,
    struct error *e)
{
    struct entries CLEANUP(entries_fini) all = {0};
    struct snapshot CLEANUP(snapshot_cleanup) *shared = NULL;
    err_t err = read_list(json_object_get(root, "shared"), &all, e);

    if (err == ERR_OK) {
        err = read_list(json_object_get(root, "local"), &all, e);
    }
    if (err == ERR_OK) {
        qsort(all.items, all.count, sizeof *all.items, compare);
        err = seal_scope(&all, SCOPE_SHARED, &shared, e);
    }
    if (err == ERR_OK) {
        err = seal_scope(&all, SCOPE_LOCAL, ret_local, e);
    }
    if (err == ERR_OK) {
        *ret_shared = TAKE(shared);
    }
    return err;
}

err_t
objects_file_read(
    const char *path, struct snapshot **ret_shared, struct snapshot **ret_local,
    struct error *e)
{
    struct buf CLEANUP(buf_fini) text;
    json_auto_t *root = NULL;
    err_t err;

    buf_init(&text, FILE_MAX_BYTES);
    err = file_read_at(AT_FDCWD, path, &text, e);
    if (err == ERR_OK) {
        err = json_parse(buf_str(&text), text.len, &root, e);
    }
    if (err == ERR_OK) {
        err = objects_file_parse(root, ret_shared, ret_local, e);
    }
    return err == ERR_OK ? ERR_OK : error_wrap(e, "%s", path);
}

static err_t
write_one(int dir, const struct artefact *a, struct error *e)
{
    const char *slash = strchr(a->name, '/');

    if (slash != NULL) {
        char folder[32] = "";
        err_t err;

        ASSERT((size_t)(slash - a->name) < sizeof folder);
        memcpy(folder, a->name, (size_t)(slash - a->name));
        err = file_mkdir_at(dir, folder, 0750, e);
        if (err != ERR_OK) {
            return err;
        }
    }
    return file_create_at(dir, a->name, buf_str(&a->bytes), a->bytes.len, 0640, e);
}

err_t
objects_file_write(const struct rendered *r, const char *path, struct error *e)
{
    int CLEANUP(fd_cleanup) dir = -1;
    err_t err = file_open_dir_at(AT_FDCWD, path, &dir, e);

    for (size_t i = 0; i < r->count && err == ERR_OK; i++) {
        err = write_one(dir, &r->items[i], e);
    }
    return err;
}

static void
drop_line(struct buf *out, size_t from, const char *text)
{
    char *known = strstr(out->data + from, text);
    char *line = known;
    char *end = known != NULL ? strchr(known, '\n') : NULL;

    if (end == NULL) {
        return;
    }
    while (line > out->data + from && line[-1] != '\n') {
        line--;
    }
    memmove(line, end + 1, out->len - (size_t)(end + 1 - out->data) + 1);
    out->len -= (size_t)(end + 1 - line);
}

/* What HAProxy says of the machine and not of the file. */
static void
drop_expected(struct buf *out, size_t from)
{
    /* Where no daemon runs there is no file of server states either. */
    drop_line(out, from, "Can't open global server state file");
    /* Version 3.0, when nbthread is more than the machine has. */
    drop_line(out, from, "some threads will compete for the same CPU");
}

size_t
objects_file_checkers(const char *ret[OBJECTS_FILE_CHECKERS])
{
    ret[0] = OBJECTS_FILE_HAPROXY;
    ret[1] = HAPROXY30;
    return file_exists_at(AT_FDCWD, HAPROXY30) ? 2 : 1;
}

err_t
objects_file_check(const char *haproxy, const char *config, struct buf *out, struct error *e)
{
    const char *const argv[] = {haproxy, "-c", "-f", config, NULL};
    struct proc_result result = {0};
    size_t before = out->len;
    err_t err = proc_run(argv, CHECK_MS, out, &result, e);

    if (err != ERR_OK) {
        return err;
    }
    if (out->len > before) {
        drop_expected(out, before);
    }
    if (result.exit_status != 0) {
        return error_set(e, ERR_INVALID, "%s -c ended with %d", haproxy, result.exit_status);
    }
    if (strstr(buf_str(out) + before, "[WARNING]") != NULL) {
        return error_set(e, ERR_INVALID, "%s -c warned", haproxy);
    }
    return ERR_OK;
}

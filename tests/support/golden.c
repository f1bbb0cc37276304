/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/golden.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

#define TEXTS_MAX_BYTES ((size_t)1 << 20)
#define PEERS_MAX       8

static NORETURN void
give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    abort();
}

char *
golden_path(const char *folder, const char *name)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        give_up(folder, "no memory");
    }
    return path;
}

char *
golden_folder(const char *name)
{
    const char *source = getenv("LOCKSTEP_SOURCE");
    char *golden = golden_path(source != NULL ? source : ".", "tests/golden");
    char *folder = golden_path(golden, name);

    free(golden);
    return folder;
}

void
golden_read(const char *folder, const char *name, struct buf *out)
{
    char *path = golden_path(folder, name);
    struct error e = {0};

    if (file_read_at(AT_FDCWD, path, out, &e) != ERR_OK) {
        give_up(path, e.msg);
    }
    free(path);
}

static int
is_visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

size_t
golden_list(const char *folder, char ***ret)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_visible, alphasort);

    if (count < 0) {
        give_up(folder, "cannot be listed");
    }
    *ret = xcalloc((size_t)count + 1, sizeof(**ret));
    for (int i = 0; i < count; i++) {
        (*ret)[i] = xstrdup(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return (size_t)count;
}

void
golden_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

bool
golden_is_folder(const char *folder, const char *name)
{
    char *path = golden_path(folder, name);
    struct stat st;
    bool is = lstat(path, &st) == 0 && S_ISDIR(st.st_mode);

    free(path);
    return is;
}

static void
read_peers(struct golden *g)
{
    char *path = golden_path(g->folder, "peers.json");

    if (access(path, F_OK) == 0) {
        struct buf CLEANUP(buf_fini) text;
        struct error e = {0};

        buf_init(&text, GOLDEN_FILE_MAX_BYTES);
        golden_read(g->folder, "peers.json", &text);
        if (json_parse(buf_str(&text), text.len, &g->peers, &e) != ERR_OK) {
            give_up(path, e.msg);
        }
    }
    free(path);
}

static size_t
take_peers(const struct golden *g, struct render_peer ret[PEERS_MAX])
{
    const json_t *list = json_object_get(g->peers, "peers");
    size_t count = json_array_size(list);

    ASSERT(count <= PEERS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, i);

        ret[i] = (struct render_peer){
            json_string_value(json_object_get(one, "name")),
            json_string_value(json_object_get(one, "address")),
            (int)json_integer_value(json_object_get(one, "port")),
        };
    }
    return count;
}

void
golden_again(struct golden *g)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(TEXTS_MAX_BYTES);
    struct render_peer peers[PEERS_MAX];
    struct render_input in = {
        .objects = {g->shared, g->local},
        .run_dir = "/run/lockstep",
        .socket_group = OBJECTS_FILE_GROUP,
        .placeholder_pem = buf_str(&g->placeholder),
        .url = json_string_value(json_object_get(g->peers, "url")),
        .peers = peers,
        .peer_count = take_peers(g, peers),
        .api_address = "127.0.0.1",
        .api_port = 8443,
        .api_pem = buf_str(&g->placeholder),
    };
    struct problems p;
    struct error e = {0};

    problems_init(&p, arena);
    if (render_haproxy(&in, &g->rendered, &p, &e) != ERR_OK) {
        give_up(g->folder, p.count > 0 ? p.items[0].message : e.msg);
    }
    ASSERT(p.count == 0);
}

void
golden_open(struct golden *g, const char *name)
{
    char *all = golden_folder("render");
    char *objects;
    struct error e = {0};

    *g = (struct golden){.folder = golden_path(all, name)};
    buf_init(&g->placeholder, GOLDEN_FILE_MAX_BYTES);
    golden_read(all, "placeholder.pem", &g->placeholder);
    rendered_init(&g->rendered);
    objects = golden_path(g->folder, "objects.json");
    if (objects_file_read(objects, &g->shared, &g->local, &e) != ERR_OK) {
        give_up(name, e.msg);
    }
    free(objects);
    free(all);
    read_peers(g);
    golden_again(g);
}

void
golden_close(struct golden *g)
{
    rendered_fini(&g->rendered);
    snapshot_unref(g->shared);
    snapshot_unref(g->local);
    buf_fini(&g->placeholder);
    json_decref(g->peers);
    free(g->folder);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tunables.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/json.h"

#define TUNABLES_FILE_BYTES ((size_t)64 << 10)

void
tunables_default(struct tunables *t)
{
#define TUNABLES_DEFAULT(name, def, min, max) .name = (def),
    *t = (struct tunables){TUNABLES_LIST(TUNABLES_DEFAULT)};
#undef TUNABLES_DEFAULT
}

#define TUNABLES_NAME(name, def, min, max) #name,
static const char *const tunable_names[] = {TUNABLES_LIST(TUNABLES_NAME) NULL};
#undef TUNABLES_NAME

static void
json_cleanup(json_t **v)
{
    json_decref(*v);
}

struct range {
    int64_t min, max;
};

#define TUNABLES_RANGE(name, def, min, max) {min, max},
static const struct range ranges[] = {TUNABLES_LIST(TUNABLES_RANGE)};
#undef TUNABLES_RANGE

static err_t
read_values(const json_t *obj, struct tunables *t, struct error *e)
{
#define TUNABLES_PLACE(name, def, min, max) &t->name,
    int64_t *const places[] = {TUNABLES_LIST(TUNABLES_PLACE)};
#undef TUNABLES_PLACE
    err_t code = json_only_keys(obj, tunable_names, e);

    for (size_t i = 0; code == ERR_OK && i < ARRAY_LEN(places); i++) {
        code = json_opt_int(obj, tunable_names[i], ranges[i].min, ranges[i].max, places[i], e);
    }
    return code;
}

err_t
tunables_load(struct tunables *t, const char *path, struct error *e)
{
    CLEANUP(buf_fini) struct buf text;
    CLEANUP(json_cleanup) json_t *obj = NULL;
    struct tunables loaded;
    struct error local = {.code = ERR_OK};
    err_t code;

    e = e != NULL ? e : &local;
    buf_init(&text, TUNABLES_FILE_BYTES);
    code = file_read_at(AT_FDCWD, path, &text, e);
    if (code != ERR_OK) {
        return code;
    }
    tunables_default(&loaded);
    code = json_parse(buf_str(&text), text.len, &obj, e);
    if (code == ERR_OK) {
        code = read_values(obj, &loaded, e);
    }
    if (code != ERR_OK) {
        (void)error_wrap(e, "%s", path);
        e->code = ERR_INVALID;
        return ERR_INVALID;
    }
    *t = loaded;
    return ERR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A case of tests/golden/render, rendered. Everything here aborts, saying why, when a file is
 * missing or cannot be rendered. */
#ifndef LOCKSTEP_SUPPORT_GOLDEN_H
#define LOCKSTEP_SUPPORT_GOLDEN_H

#include "tests/support/objects_file.h"

#define GOLDEN_FILE_MAX_BYTES ((size_t)1 << 20)

struct golden {
    char *folder; /* of the case */
    struct snapshot *shared, *local;
    struct buf placeholder;
    json_t *peers; /* of peers.json, where there is one: {"url", "peers": [{name, ...}]} */
    struct rendered rendered;
};

/* "<folder>/<name>"; the caller frees it. */
char *golden_path(const char *folder, const char *name);
/* A folder below tests/golden of the source; the caller frees it. */
char *golden_folder(const char *name);
void golden_read(const char *folder, const char *name, struct buf *out);
/* Visible names in a folder, sorted; *ret and each of its items are freed by golden_free. */
size_t golden_list(const char *folder, char ***ret);
void golden_free(char **names, size_t count);
bool golden_is_folder(const char *folder, const char *name);

void golden_open(struct golden *g, const char *name);
/* Renders once more, into the memory of the first time. */
void golden_again(struct golden *g);
void golden_close(struct golden *g);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define PAGE "1000"

const struct schema_kind *
cli_kind(const char *word)
{
    enum kind k;

    if (schema_kind_by_name(word, &k) || schema_kind_by_plural(word, &k)) {
        return schema_kind(k);
    }
    fprintf(stderr, "lockstep: there is no kind \"%s\"; kinds are:", word);
    for (int i = 0; i < KIND_COUNT; i++) {
        fprintf(stderr, " %s", schema_kinds[i].name);
    }
    (void)fputc('\n', stderr);
    return NULL;
}

const char *
cli_object_path(struct cli *c, const struct schema_kind *kind, const char *name)
{
    return kind->singleton ? cli_path(c, kind->plural, NULL)
                           : cli_path(c, kind->plural, name, NULL);
}

int
cli_fetch(struct cli *c, const struct schema_kind *kind, const char *match, json_t **ret)
{
    json_t *items = json_array();
    const char *after = NULL;
    int status = 0;

    do {
        json_t *page = NULL;
        const char *path = cli_path(c, kind->plural, NULL);
        if (!kind->singleton) {
            path = cli_query(c, path, "limit", PAGE);
            path = cli_query(c, path, "q", match);
            path = cli_query(c, path, "after", after);
        }
        status = cli_get(c, path, &page);
        if (status != 0) {
            break;
        }
        if (kind->singleton) {
            json_array_append(items, page);
        } else {
            json_array_extend(items, json_object_get(page, "items"));
        }
        after = arena_strdup(c->arena, cli_str(page, "next"));
        json_decref(page);
    } while (after[0] != '\0');
    if (status == 0) {
        *ret = items;
    } else {
        json_decref(items);
    }
    return status;
}

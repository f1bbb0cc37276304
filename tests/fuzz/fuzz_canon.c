/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses a kind, the rest is taken for the canonical bytes of an object of a
 * peer. What is accepted is byte for byte canonical and survives the form of the API. */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "model/object.h"

#define ID "0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names are ids, so that every reference resolves. */
static const char *
same_text(void *ctx, enum kind kind, const char *text)
{
    (void)ctx;
    (void)kind;
    return text;
}

static const struct object_refs refs = {same_text, same_text, NULL};

static void
check_form_of_the_api(const struct object *o)
{
    json_auto_t *shown = object_to_json(o, &refs);
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct problems p;
    struct object *back;

    problems_init(&p, arena);
    ASSERT(json_is_object(shown));
    back = object_parse(o->kind, o->id, shown, o, &refs, &p);
    ASSERT(back != NULL && p.errors == 0);
    ASSERT(memcmp(&back->objhash, &o->objhash, sizeof o->objhash) == 0);
    ASSERT(object_effect(o, back) == EFFECT_NONE);
    object_unref(back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct object *o = NULL;
    struct error e = {.code = ERR_OK};
    const char *bytes;
    const char *id;
    enum kind kind;

    if (size == 0) {
        return 0;
    }
    kind = (enum kind)(data[0] % KIND_COUNT);
    id = schema_kind(kind)->singleton ? schema_kind(kind)->name : ID;
    bytes = (const char *)data + 1;
    if (object_from_canonical(kind, id, bytes, size - 1, &o, &e) != ERR_OK) {
        ASSERT(o == NULL && e.code == ERR_CORRUPT && e.msg[0] != '\0');
        return 0;
    }
    ASSERT(o->kind == kind && strcmp(o->id, id) == 0);
    ASSERT(o->canonical_len == size - 1 && memcmp(o->canonical, bytes, size - 1) == 0);
    check_form_of_the_api(o);
    object_unref(o);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAGIC       0x4172656eu
#define ARENA_ALIGN       alignof(max_align_t)
#define ARENA_FIRST_BYTES ((size_t)4 << 10)
#define ARENA_CHUNK_BYTES ((size_t)256 << 10)

struct chunk {
    struct chunk *next;
    size_t bytes;
    size_t used;
    alignas(max_align_t) unsigned char mem[];
};

struct arena {
    uint32_t magic;
    size_t cap;
    size_t used;
    size_t next_bytes;
    struct chunk *chunks;
};

struct arena *
arena_new(size_t cap_bytes)
{
    struct arena *a = xcalloc(1, sizeof *a);

    a->magic = ARENA_MAGIC;
    a->cap = cap_bytes;
    a->next_bytes = ARENA_FIRST_BYTES;
    return a;
}

void
arena_free(struct arena *a)
{
    struct chunk *c;

    if (a == NULL) {
        return;
    }
    ASSERT(a->magic == ARENA_MAGIC);
    a->magic = 0;
    c = a->chunks;
    while (c != NULL) {
        struct chunk *next = c->next;

        free(c);
        c = next;
    }
    free(a);
}

void
arena_cleanup(struct arena **a)
{
    arena_free(*a);
}

static struct chunk *
chunk_add(struct arena *a, size_t bytes)
{
    struct chunk *c;
    bool own = bytes > a->next_bytes / 4;
    size_t room = own ? bytes : a->next_bytes;

    c = xmalloc(sizeof *c + room);
    c->bytes = room;
    c->used = 0;
    if (own && a->chunks != NULL) {
        /* The current chunk stays in front, so that its rest is not wasted. */
        c->next = a->chunks->next;
        a->chunks->next = c;
    } else {
        c->next = a->chunks;
        a->chunks = c;
    }
    if (!own && a->next_bytes < ARENA_CHUNK_BYTES) {
        a->next_bytes *= 2;
    }
    return c;
}

void *
arena_try_alloc(struct arena *a, size_t bytes)
{
    struct chunk *c;
    size_t rounded;
    void *p;

    ASSERT(a != NULL && a->magic == ARENA_MAGIC);
    if (bytes > a->cap) {
        return NULL;
    }
    /* A zero-sized object still gets an address of its own. */
    rounded = ((bytes == 0 ? 1 : bytes) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (rounded > a->cap - a->used) {
        return NULL;
    }
    c = a->chunks;
    if (c == NULL || rounded > c->bytes - c->used) {
        c = chunk_add(a, rounded);
    }
    p = c->mem + c->used;
    c->used += rounded;
    a->used += rounded;
    memset(p, 0, rounded);
    return p;
}

void *
arena_alloc(struct arena *a, size_t bytes)
{
    void *p = arena_try_alloc(a, bytes);

    ASSERT(p != NULL);
    return p;
}

char *
arena_memdup0(struct arena *a, const void *p, size_t bytes)
{
    char *copy;

    ASSERT(bytes < SIZE_MAX);
    copy = arena_alloc(a, bytes + 1);
    if (bytes > 0) {
        memcpy(copy, p, bytes);
    }
    return copy;
}

char *
arena_strdup(struct arena *a, const char *s)
{
    return arena_memdup0(a, s, strlen(s));
}

char *
arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    char *text;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    ASSERT(n >= 0);
    text = arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    n = vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    ASSERT(n >= 0);
    return text;
}

size_t
arena_used_bytes(const struct arena *a)
{
    ASSERT(a != NULL && a->magic == ARENA_MAGIC);
    return a->used;
}

static void *
checked(void *p)
{
    if (p == NULL) {
        /* Nothing that allocates, as a log call might. */
        (void)dprintf(2, "out of memory\n");
        abort();
    }
    return p;
}

void *
xmalloc(size_t bytes)
{
    return checked(malloc(bytes == 0 ? 1 : bytes));
}

void *
xcalloc(size_t count, size_t bytes)
{
    bool none = count == 0 || bytes == 0;

    return checked(calloc(none ? 1 : count, none ? 1 : bytes));
}

void *
xrealloc(void *p, size_t bytes)
{
    return checked(realloc(p, bytes == 0 ? 1 : bytes));
}

char *
xstrdup(const char *s)
{
    return checked(strdup(s));
}

void
xfree_cleanup(void *pp)
{
    void *p;

    memcpy(&p, pp, sizeof p);
    free(p);
}

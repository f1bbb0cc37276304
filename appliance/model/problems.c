/* SPDX-License-Identifier: Apache-2.0 */
#include "model/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* The texts come from outside: without a limit a hundred of them could fill the arena. */
#define TEXT_BYTES 512
#define KIND_SHOWN 64 /* bytes */

void
problems_init(struct problems *p, struct arena *arena)
{
    ASSERT(arena != NULL);
    memset(p, 0, sizeof *p);
    p->arena = arena;
}

int
problems_cut(const char *s, size_t max)
{
    size_t len = strnlen(s, max);
    size_t last = len;
    uint32_t c;

    while (last > 0 && len - last < 4) {
        last--;
        if (((unsigned char)s[last] & 0xc0u) != 0x80u) {
            break;
        }
    }
    if (last < len && utf8_decode(s + last, len - last, &c) == 0) {
        len = last;
    }
    return (int)len;
}

/* False when the arena is full. */
static bool
keep(struct arena *arena, const char *s, const char **ret)
{
    size_t len;
    char *copy;

    if (s == NULL) {
        *ret = NULL;
        return true;
    }
    len = (size_t)problems_cut(s, TEXT_BYTES - 1);
    copy = arena_try_alloc(arena, len + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, s, len);
    *ret = copy;
    return true;
}

void
problems_add(
    struct problems *p, enum severity severity, const char *code, const struct problem *where,
    const char *fmt, ...)
{
    static const struct problem nowhere;
    struct problem item = {.severity = severity, .code = code};
    char message[TEXT_BYTES + 1];
    va_list ap;

    ASSERT(p->arena != NULL);
    if (severity == SEVERITY_ERROR) {
        p->errors++;
    } else if (p->errors_only) {
        return;
    }
    if (p->count == PROBLEMS_MAX) {
        p->dropped++;
        return;
    }
    if (where == NULL) {
        where = &nowhere;
    }
    va_start(ap, fmt);
    message[0] = '\0';
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    if (!keep(p->arena, where->kind, &item.kind) || !keep(p->arena, where->name, &item.name) ||
        !keep(p->arena, where->node, &item.node) ||
        !keep(p->arena, where->pointer != NULL ? where->pointer : "", &item.pointer) ||
        !keep(p->arena, message, &item.message)) {
        p->dropped++;
        return;
    }
    p->items[p->count++] = item;
}

void
problems_in_use(
    struct problems *p, const struct problem *where, const char *kind, const char *name)
{
    problems_add(
        p, SEVERITY_ERROR, "in_use", where,
        "The %s \"%s\" uses the %s \"%s\": take it out there first.", where->kind, where->name,
        kind, name);
}

const char *
problems_no_kind(struct arena *arena, const char *word)
{
    return arena_printf(
        arena, "There is no kind \"%.*s\".", problems_cut(word, KIND_SHOWN), word);
}

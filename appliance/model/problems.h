/* SPDX-License-Identifier: Apache-2.0 */
/* Results of validation are data: a bounded list, each with a JSON pointer (RFC 6901). */
#ifndef LOCKSTEP_MODEL_PROBLEMS_H
#define LOCKSTEP_MODEL_PROBLEMS_H

#include "base/arena.h"
#include "model/schema.h"

#define PROBLEMS_MAX 100

enum severity { SEVERITY_ERROR, SEVERITY_WARNING };

struct problem {
    enum severity severity;
    const char *code;    /* machine-readable, static: "range", "in_use", "port_clash", ... */
    const char *kind;    /* "pool", or NULL when it concerns no object */
    const char *name;    /* object's name */
    const char *pointer; /* "/members/0/server" inside the object; "" = the whole */
    const char *node;    /* the other node that found it, or NULL: this one */
    const char *message; /* a sentence for people: what is wrong and what to do */
};

struct problems {
    struct arena *arena; /* owns the texts */
    struct problem items[PROBLEMS_MAX];
    size_t count;
    size_t dropped;   /* further ones that did not fit */
    size_t errors;    /* of severity error, dropped ones included */
    bool errors_only; /* set by whoever wants no warnings: they take no place then */
};

void problems_init(struct problems *p, struct arena *arena);
/* kind, name, pointer, node may be NULL; all texts but code are copied, cut at 511 bytes. */
void problems_add(
    struct problems *p, enum severity severity, const char *code, const struct problem *where,
    const char *fmt, ...) PRINTF_LIKE(5, 6);

/* At the place of a reference that stands in the way: to an object that is to go. */
void problems_in_use(
    struct problems *p, const struct problem *where, const char *kind, const char *name);

/* For "%.*s" with text from outside: its length, at most max bytes, cut at a character. */
int problems_cut(const char *s, size_t max);
/* The message about a word from outside that is no kind. */
const char *problems_no_kind(struct arena *arena, const char *word);

#endif

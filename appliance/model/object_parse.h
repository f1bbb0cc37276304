/* SPDX-License-Identifier: Apache-2.0 */
/* Reading values from JSON, the half of object_parse that knows no objects. Depth is that of
 * the schema, whose records stand in lists and hold neither lists nor records. */
#ifndef LOCKSTEP_MODEL_OBJECT_PARSE_H
#define LOCKSTEP_MODEL_OBJECT_PARSE_H

#include "model/object_build.h"

#define PARSE_SECRETS 8

struct parse_secret {
    char *bytes;
    size_t len;
};

struct parse {
    const struct schema_kind *kind;
    const struct object *base;      /* NULL: none */
    const struct object_refs *refs; /* NULL: the canonical form is read */
    struct problems *problems;
    struct arena *arena; /* owns the values until the object is built */
    struct buf text;
    struct parse_secret secrets[PARSE_SECRETS]; /* in the arena, to be wiped */
    size_t secret_count;
    const char *name; /* the object's, for problems; may be NULL */
    /* Where the reader stands. */
    const char *field;
    int64_t item; /* -1: not in a list */
    const char *sub;
};

void parse_init(struct parse *p, enum kind kind);
void parse_fini(struct parse *p); /* wipes secrets; for CLEANUP() */

/* Adds an error at the field, item and sub where p stands, or at a pointer. parse_refuse
 * returns false, so that "return parse_refuse(...)" works. */
bool parse_refuse(struct parse *p, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void
parse_refuse_at(struct parse *p, const char *pointer, const char *code, const char *message);
void parse_refuse_key(struct parse *p, const char *key);

/* Each returns false after adding an error. *ret is zeroed before. */
bool parse_text(
    struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret);
bool parse_value(
    struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret);
void parse_default(struct parse *p, const struct schema_field *f, struct value *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The one schema as const tables. The tables and the enums K_*, F_<KIND>_<FIELD>,
 * V_<KIND>_<FIELD>_<VALUE>, TT_* are generated from schema/ (schema_gen.h). */
#ifndef LOCKSTEP_MODEL_SCHEMA_H
#define LOCKSTEP_MODEL_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema_gen.h" /* enum kind, enum text_type, KIND_COUNT, TEXT_TYPE_COUNT */

/* Raised when a release adds kinds, fields or values. */
#define SCHEMA_VERSION 2

enum scope { SCOPE_SHARED, SCOPE_LOCAL };

enum field_type { FT_BOOL, FT_INT, FT_TEXT, FT_ENUM, FT_REF, FT_RECORD };

struct value; /* model/value.h */

/* What a change of a field touches. */
#define EFFECT_NONE            0u
#define EFFECT_HAPROXY_RUNTIME 1u /* the admin socket can do it */
#define EFFECT_HAPROXY_RELOAD  2u

struct schema_field {
    const char *name;
    const char *label;
    const char *help;
    const char *unit; /* "ms", "s", "bytes" or NULL */
    enum field_type type;
    enum text_type text_type; /* FT_TEXT: how it is checked */
    bool list;                /* an array of this type */
    bool ordered;             /* list: order has meaning; else the canonical form sorts it */
    bool required;            /* no default: must be given */
    bool nullable;            /* null allowed (and then the default) */
    bool secret;              /* never leaves through the API */
    bool read_only;           /* set by the product, refused from callers */
    int since;                /* SCHEMA_VERSION that brought it */
    bool protective;          /* its default protects nothing: no PUT may just leave it out */
    unsigned effect;
    int64_t min, max; /* FT_INT: value; FT_TEXT: length in bytes */
    uint32_t min_items, max_items;
    int64_t default_int;       /* FT_INT, FT_BOOL (0/1), FT_ENUM (index); lists default to
                                  default_text parsed as JSON */
    const char *default_text;  /* FT_TEXT; for lists a JSON array; NULL = none */
    const char *const *values; /* FT_ENUM */
    const int *values_since;   /* as since, of each of them; NULL: all came with the field */
    uint32_t value_count;
    enum kind ref_kind; /* FT_REF */
    uint64_t refs; /* bit set of the kinds to which it leads, also those of a record's fields */
    const struct schema_field *fields; /* FT_RECORD */
    uint32_t field_count;
    const uint16_t *sorted; /* indexes of fields by name */
    int when_field;         /* index in the same object of an enum or bool field, or -1 */
    uint64_t when_values;   /* bit set of its values for which this field has meaning */
    const char *haproxy;    /* HAProxy's keyword, or NULL */
};

/* What stands behind a keyword of HAProxy: nothing, a whole number, a time, some of the words,
 * any words, ciphers of TLS 1.2 or suites of TLS 1.3. */
enum keyword_type { KT_FLAG, KT_INT, KT_TIME, KT_WORDS, KT_TEXT, KT_CIPHERS, KT_CIPHERSUITES };

struct schema_keyword {
    const char *word; /* or several: "option tcpka" */
    enum keyword_type type;
    int64_t min, max; /* KT_INT; KT_TIME: ms; KT_WORDS, KT_TEXT: how many */
    const char *unit; /* KT_TIME: of a number without one, "ms" or "s"; KT_INT: or NULL */
    const char *const *words; /* KT_WORDS; KT_TIME: in place of a time; NULL at the end */
    const char *alone;        /* KT_WORDS: the one that goes with no other, or NULL */
    bool http_frontend, http_backend; /* HAProxy warns of it in such a section of tcp mode */
};

struct schema_kind {
    const char *name;   /* "pool" */
    const char *plural; /* "pools": the path of the API */
    const char *title;
    const char *help;
    enum scope scope;
    int since;      /* SCHEMA_VERSION that brought it */
    bool singleton; /* id and name are the kind's name; always there */
    bool direct;    /* an edit commits at once instead of going to the draft */
    bool has_secret;
    bool manage; /* who may only edit may not change it */
    uint32_t field_count;
    const struct schema_field *fields; /* field 0 is always "name" (FT_TEXT) */
    const struct value *defaults;      /* of the fields; of a required one, or of a list whose
                                          default is not empty, it means nothing */
    uint64_t refs;                     /* of all fields */
    const uint16_t *sorted;            /* indexes of fields by name */
    const uint16_t *columns;           /* indexes of the fields that a list shows */
    uint32_t column_count;
    /* The reference by which an object is part of another one (model/belong.h), or -1. */
    int belongs;
};

extern const struct schema_kind schema_kinds[KIND_COUNT];
extern const char *const schema_text_type_names[TEXT_TYPE_COUNT];
/* With what a text of the type begins, a word of NULL at the end; NULL: with anything. */
extern const struct schema_keyword *const schema_text_type_keywords[TEXT_TYPE_COUNT];
/* The generated schema.json and openapi.json, as served. */
extern const char schema_json[];
extern const char schema_openapi_json[];

_Static_assert(KIND_COUNT <= 64, "a bit per kind, in refs");

const struct schema_kind *schema_kind(enum kind k);
/* By "pool" or by "pools"; false when there is none. */
bool schema_kind_by_name(const char *name, enum kind *ret);
bool schema_kind_by_plural(const char *plural, enum kind *ret);
/* Index of a field in a table, -1 when there is none. */
int schema_field_index(const struct schema_field *fields, uint32_t count, const char *name);

#endif

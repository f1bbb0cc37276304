/* SPDX-License-Identifier: Apache-2.0 */
/* Typed values and the checks of text types (addresses, names, paths, PEM). Pure. */
#ifndef LOCKSTEP_MODEL_VALUE_H
#define LOCKSTEP_MODEL_VALUE_H

#include "base/error.h"
#include "model/schema.h"

/* What is called like this in HAProxy is the appliance's own. */
#define VALUE_RESERVED_PREFIX "lockstep"

struct text {
    const char *s; /* NUL-terminated */
    uint32_t len;
};

/* Null is is_null = true; lists have items and count, elements by the field's type. A
 * record element has its fields as items in the order of the schema. */
struct value {
    bool is_null;
    uint32_t count;

    union {
        int64_t i;        /* FT_BOOL, FT_INT, FT_ENUM (index) */
        struct text text; /* FT_TEXT; FT_REF (the id) */
        const struct value *items;
    } u;
};

/* Checks one text of a type and appends its normal form to out: host names lower case
 * without final dot, IPv6 as RFC 5952, PEM as x509_normalize; other texts byte for byte.
 * Lengths are the field's business (schema_field.min and max). ERR_INVALID with the reason,
 * a clause that fits behind "Address: "; out is then unspecified.
 *
 * Every type refuses NUL, what is not UTF-8, and (PEM and body apart) control characters.
 * Equality of texts is by bytes: they are not brought into NFC, since that needs Unicode's
 * tables. Instead note and title refuse the combining marks of U+0300-036F, 1AB0-1AFF,
 * 1DC0-1DFF, 20D0-20FF and FE20-FE2F, which covers what keyboards and file systems produce. */
struct buf;
MUST_USE err_t value_check_text(
    enum text_type type, const char *s, size_t len, struct buf *out, struct error *e);

/* The keyword with which a text of the type begins, or NULL. What stands behind it is looked at
 * by validate_directives, when somebody writes it: the form alone is the text type's. */
const struct schema_keyword *value_keyword(enum text_type type, const char *s, size_t len);

/* True when text is a literal IPv4 or IPv6 address (an IPv6 zone is refused). */
bool value_is_ip(const char *s);

/* True when the status is in a set that passed value_check_text (TT_STATUS_SET). */
bool value_status_in(struct text set, unsigned status);

/* True when both values of a field are the same, in records and lists too. */
bool value_equal(const struct schema_field *f, const struct value *a, const struct value *b);

/* A hash for tables in memory; seed chains several parts. */
uint32_t value_hash(uint32_t seed, const char *s, size_t len);

#endif

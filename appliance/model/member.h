/* SPDX-License-Identifier: Apache-2.0 */
/* What a node says of itself to the other nodes: its member record. Only the node itself
 * changes it, and raises seq with each change. Pure. */
#ifndef LOCKSTEP_MODEL_MEMBER_H
#define LOCKSTEP_MODEL_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

#define MEMBER_ID_BYTES    33 /* 32 lower-case hex digits and the NUL */
#define MEMBER_KEY_BYTES   65 /* up to 64 characters; one made here: 43, 32 random bytes */
#define MEMBER_IP_BYTES    46
#define MEMBER_URL_BYTES   256
#define MEMBER_PRINT_BYTES 9

/* Another machine that is the same node, as with a copy of its disk. Monotonic times. */
struct member_twin {
    char url[MEMBER_URL_BYTES]; /* where it says that it is */
    int count;                  /* how often it was heard of since from_ms */
    int64_t from_ms;
    int64_t sure_ms; /* when it was no chance any more, last; 0: never */
};

struct member {
    char id[MEMBER_ID_BYTES];
    int64_t seq;                /* 1 or more */
    bool gone;                  /* a tombstone */
    int64_t gone_at_ms;         /* since when, by the clock of who made it; 0: not known */
    char name[65];              /* text type name */
    char url[MEMBER_URL_BYTES]; /* https://ADDRESS[:PORT]; "" only of a node alone */
    char pin[56]; /* "sha256//" and 44 characters of base64, as curl takes it; "" without URL */
    char release[32];
    int schema_version;
    char tables_address[MEMBER_IP_BYTES]; /* where HAProxy takes stick tables; "": nowhere */
    int tables_port;                      /* 0 without an address */
    char key[MEMBER_KEY_BYTES]; /* by which its peers call it; "": not known. Not in the JSON */
    bool key_refused; /* by itself, when it was called with it last. Neither in the JSON */
    struct member_twin twin; /* nor this */
};

/* The record without the key: {gone, id, name, pin, release, schema_version, seq, url}, and
 * {tables_address, tables_port} where there is one; gone_at_ms of a tombstone. New reference.
 */
json_t *member_to_json(const struct member *m);
/* Fields that are not known are passed over: a newer release has more. ERR_INVALID names the
 * field. *ret has no key. */
MUST_USE err_t member_from_json(const json_t *j, struct member *ret, struct error *e);
bool member_id_valid(const char *id);
bool member_release_valid(const char *release);
/* It goes into a header of HTTP. */
bool member_key_valid(const char *key);
/* Keys are compared by people by this: 8 hex digits; "" of "". */
void member_key_print(const char *key, char ret[MEMBER_PRINT_BYTES]);
/* The address, in its one spelling, at which a node takes stick tables: own, else that in its
 * URL. "" where this is a name, or an address of no text type machine_ip. */
void member_tables_address(const char *own, const char *url, char ret[MEMBER_IP_BYTES]);
/* Whether a record that came in takes the place of the one of the same node that is held: the
 * higher seq does, and of two with the same a tombstone. */
bool member_replaces(const struct member *offered, const struct member *held);
/* Makes the record newer by so many steps, but no newer than any that is accepted: another node
 * may have said that it is there already. */
void member_raise(struct member *m, int64_t steps);

#endif

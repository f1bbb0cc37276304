/* SPDX-License-Identifier: Apache-2.0 */
/* Objects for a unit test, without snapshots: "<kind><n>", n from 0 to 3, is the name of the
 * object of that kind with id 000000000000000<n>. Fails the cmocka test it is used in. */
#ifndef LOCKSTEP_SUPPORT_OBJECT_LAB_H
#define LOCKSTEP_SUPPORT_OBJECT_LAB_H

#include "base/arena.h"
#include "model/object.h"

#define LAB_ID "0123456789abcdef" /* of what is parsed */

struct object_lab {
    struct problems p; /* of the last parse */
};

extern const struct object_refs lab_refs;

/* A test of cmocka whose *state is such a lab. */
int object_lab_setup(void **state);
int object_lab_teardown(void **state);
#define OBJECT_LAB_TEST(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, object_lab_setup, object_lab_teardown)

/* In all of these texts single quotes stand for double ones. */
json_t *lab_json(const char *text);
struct object *lab_parse(struct object_lab *w, enum kind kind, const char *body);
/* NULL when it is refused. */
struct object *lab_parse_over(
    struct object_lab *w, enum kind kind, const char *body, const struct object *base);
/* Refused with exactly these problems: "code pointer", one a line. */
void lab_refused(struct object_lab *w, enum kind kind, const char *body, const char *problems);
void lab_refused_over(
    struct object_lab *w, enum kind kind, const char *body, const struct object *base,
    const char *problems);
/* The first problem has these words. */
void lab_says(const struct object_lab *w, const char *words);
void lab_canonical(const struct object *o, const char *want);

#endif

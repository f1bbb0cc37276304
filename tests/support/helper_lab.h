/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's folders in a temporary place, and its verbs called without a socket. What
 * fails here fails the test. */
#ifndef LOCKSTEP_TESTS_SUPPORT_HELPER_LAB_H
#define LOCKSTEP_TESTS_SUPPORT_HELPER_LAB_H

#include <jansson.h>

#include "helper/context.h"

#define LAB_PATH_BYTES 256

struct helper_lab {
    struct helper_context context;
    char top[LAB_PATH_BYTES]; /* state and run below it */
    char state_dir[LAB_PATH_BYTES];
    char run_dir[LAB_PATH_BYTES];
    json_t *answer; /* of the last request */
};

/* haproxy: the program that checks. */
void helper_lab_open(struct helper_lab *l, const char *haproxy);
void helper_lab_close(struct helper_lab *l);
/* A test of cmocka whose *state is such a lab; this program checks, as its main() says. */
int helper_lab_setup(void **state);
int helper_lab_teardown(void **state);
#define HELPER_LAB_TEST(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, helper_lab_setup, helper_lab_teardown)

/* Path below the top; valid until the next call. */
const char *helper_lab_path(struct helper_lab *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Writes a file below stage/N, making its folders. */
void helper_lab_put(struct helper_lab *l, int64_t n, const char *name, const char *text);
/* Sends a request (single quotes stand for double ones); the answer is kept. */
void helper_lab_ask(struct helper_lab *l, const char *request);
/* The same, and the answer must be ok. */
void helper_lab_ok(struct helper_lab *l, const char *request);
/* The same, and the answer must be a refusal with that code, whose message holds part. */
void helper_lab_refused(
    struct helper_lab *l, const char *request, const char *code, const char *part);
const char *helper_lab_text(const struct helper_lab *l, const char *key);
int64_t helper_lab_int(const struct helper_lab *l, const char *key);

#endif

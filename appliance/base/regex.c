/* SPDX-License-Identifier: Apache-2.0 */
#include "base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define REASON_BYTES 128
#define STEPS_MAX    1000000 /* of one search */

/* PCRE2's own limit begins anew at each character of the text: this one counts over all. */
static int
count_step(pcre2_callout_block *block, void *ctx)
{
    unsigned *steps = ctx;

    (void)block;
    return ++*steps > STEPS_MAX ? PCRE2_ERROR_CALLOUT : 0;
}

err_t
regex_check(const char *pattern, size_t len, struct error *e)
{
    PCRE2_UCHAR reason[REASON_BYTES] = "";
    PCRE2_SIZE at = 0;
    int fault = 0;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, len, PCRE2_NO_AUTO_CAPTURE, &fault, &at, NULL);

    if (code != NULL) {
        /* HAProxy takes no expression that its compiler to machine code does not take. */
        fault = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
        pcre2_code_free(code);
        if (fault == 0 || fault == PCRE2_ERROR_JIT_BADOPTION) {
            return ERR_OK;
        }
        return error_set(e, ERR_INVALID, "this regular expression is too complex");
    }
    (void)pcre2_get_error_message(fault, reason, sizeof reason);
    return error_set(
        e, ERR_INVALID, "this is no regular expression: %s at character %zu", (char *)reason,
        at + 1);
}

bool
regex_found(const char *pattern, size_t len, const char *text, size_t text_len)
{
    PCRE2_SIZE at = 0;
    int fault = 0;
    unsigned steps = 0;
    bool found = false;
    pcre2_code *code = pcre2_compile(
        (PCRE2_SPTR)pattern, len, PCRE2_NO_AUTO_CAPTURE | PCRE2_AUTO_CALLOUT, &fault, &at,
        NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);

    if (code != NULL && limits != NULL && data != NULL) {
        (void)pcre2_set_match_limit(limits, STEPS_MAX);
        (void)pcre2_set_callout(limits, count_step, &steps);
        found = pcre2_match(code, (PCRE2_SPTR)text, text_len, 0, 0, data, limits) >= 0;
    }
    pcre2_match_data_free(data);
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
    return found;
}

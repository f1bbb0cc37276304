/* SPDX-License-Identifier: Apache-2.0 */
/* The keywords that refuse.c allows, by section, and the checks of those that need one. */
#ifndef LOCKSTEP_HELPER_REFUSE_TABLES_H
#define LOCKSTEP_HELPER_REFUSE_TABLES_H

#include <stdbool.h>

#include "helper/refuse.h"

/* A line as words, without a leading "no" or "default". */
struct refuse_line {
    const struct refuse *in;
    const char *const *words;
    size_t count;
    bool rooted; /* behind "default-path config": file names are the generation's */
};

/* ERR_DENIED with the word at fault and the reason, without the line's number. */
typedef err_t (*refuse_check_fn)(const struct refuse_line *l, struct error *e);

struct refuse_section {
    const char *name;
    const char *const *keywords; /* sorted */
    size_t keyword_count;
};

struct refuse_check {
    const char *keyword;
    refuse_check_fn check;
};

/* NULL: no section of that name may be used. */
const struct refuse_section *refuse_section_find(const char *name);
bool refuse_section_allows(const struct refuse_section *s, const char *keyword);
/* Why a well-known keyword is refused, or NULL. */
const char *refuse_reason(const char *keyword);
/* Of the keyword in that section; NULL: nothing to check. */
refuse_check_fn refuse_check_find(const struct refuse_section *s, const char *keyword);

/* ERR_DENIED, quoting word with whatever is not printable replaced. */
MUST_USE err_t refuse_word(const char *word, const char *reason, struct error *e);
/* Why RUNNING_MAP is no file for this line. */
#define REFUSE_MAP_ALONE "is for the converter \"map\" alone"
/* Checks used by the tables, in refuse_checks.c. */
MUST_USE err_t refuse_check_every(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_bind(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_chroot(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_default_path(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_errorfile(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_file(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_filter(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_health(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_identity(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_log(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_option(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_rule(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_server(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_state_file(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_state_name(const struct refuse_line *l, struct error *e);
MUST_USE err_t refuse_check_stats(const struct refuse_line *l, struct error *e);

#endif

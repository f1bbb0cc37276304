/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/refuse.h"

#include <string.h>

#include "base/running.h"
#include "helper/refuse_tables.h"
#include "helper/words.h"

#define CRT_NAME_BYTES 300

static err_t
check_line(const struct refuse_line *l, const struct refuse_section **section, struct error *e)
{
    const char *keyword = l->words[0];
    const struct refuse_section *next = refuse_section_find(keyword);
    refuse_check_fn check;
    err_t code;

    if (next != NULL) {
        *section = next;
        return ERR_OK;
    }
    if (*section == NULL || !refuse_section_allows(*section, keyword)) {
        const char *why = refuse_reason(keyword);

        return refuse_word(keyword, why != NULL ? why : "is not allowed here", e);
    }
    check = refuse_check_find(*section, keyword);
    code = check != NULL ? check(l, e) : ERR_OK;
    return code == ERR_OK ? refuse_check_every(l, e) : code;
}

static bool
is_modifier(const char *word)
{
    return strcmp(word, "no") == 0 || strcmp(word, "default") == 0;
}

err_t
refuse_config(const struct refuse *r, const char *text, size_t bytes, struct error *e)
{
    CLEANUP(words_fini) struct words words;
    struct span rest = {text, bytes};
    const struct refuse_section *section = NULL;
    bool rooted = false;
    struct span line;
    struct error reason = {.code = ERR_OK};
    size_t number = 0;
    err_t code = ERR_OK;

    words_init(&words);
    while (code == ERR_OK && span_line(&rest, &line)) {
        number++;
        code = words_parse(&words, line, &reason);
        if (code == ERR_OK && words.count > 0) {
            size_t skip = words.count > 1 && is_modifier(words.at[0]) ? 1 : 0;
            struct refuse_line l = {r, words.at + skip, words.count - skip, rooted};

            code = check_line(&l, &section, &reason);
            rooted = rooted || strcmp(l.words[0], "default-path") == 0;
        }
    }
    if (code != ERR_OK) {
        return error_set(
            e, ERR_DENIED, STAGED_CONFIG " line %zu: %s%s", number, reason.msg,
            reason.msg[0] == '"' ? "" : " is not allowed");
    }
    if (rest.n > 0) {
        return error_set(
            e, ERR_DENIED, STAGED_CONFIG " line %zu: the line does not end", number + 1);
    }
    return ERR_OK;
}

/* FILE [[OPTION ...]] [SNI ...]: no quotes, no escapes and no comment behind them, which
 * none of ours needs. The brackets are taken for spaces. */
static err_t
read_crt_line(struct span line, struct buf *out, struct error *e)
{
    for (size_t i = 0; i < line.n; i++) {
        char c = line.p[i];

        if (strchr("\\\"'$", c) != NULL || (c == '#' && i > 0) || (c < ' ' && c != '\t')) {
            return refuse_word((const char[]){c, '\0'}, "is not allowed here", e);
        }
        buf_putc(out, c == '[' || c == ']' ? ' ' : c);
    }
    return buf_status(out, e);
}

static bool
names_file(struct span option)
{
    static const char *const options[] = {
        "ca-file", "ca-sign-file", "ca-verify-file", "crl-file", "crt",
        "issuer",  "key",          "ocsp",           "sctl",
    };

    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (span_is(option, options[i])) {
            return true;
        }
    }
    return false;
}

static err_t
check_crt_line(const struct refuse *r, struct span line, struct error *e)
{
    CLEANUP(buf_fini) struct buf plain = {0};
    struct span rest;
    struct span word;
    char name[CRT_NAME_BYTES];
    bool named = true;
    err_t code;

    if (line.n > 0 && line.p[0] == '#') {
        return ERR_OK;
    }
    buf_init(&plain, WORDS_LINE_MAX_BYTES);
    code = read_crt_line(line, &plain, e);
    rest = (struct span){buf_str(&plain), plain.len};
    while (code == ERR_OK && span_word(&rest, &word)) {
        span_copy(word, name, sizeof name);
        if (named && (word.n >= sizeof name || !staged_has(r->files, name))) {
            code = refuse_word(name, "is no file of this generation", e);
        } else if (named && strcmp(name, RUNNING_MAP) == 0) {
            code = refuse_word(name, REFUSE_MAP_ALONE, e);
        }
        named = names_file(word);
    }
    return code;
}

err_t
refuse_crt_list(
    const struct refuse *r, const char *name, const char *text, size_t bytes, struct error *e)
{
    struct span rest = {text, bytes};
    struct span line;
    struct error reason = {.code = ERR_OK};
    size_t number = 0;
    err_t code = ERR_OK;

    while (code == ERR_OK && span_line(&rest, &line)) {
        number++;
        code = check_crt_line(r, line, &reason);
    }
    if (code != ERR_OK) {
        return error_set(e, ERR_DENIED, "%s line %zu: %s", name, number, reason.msg);
    }
    if (rest.n > 0) {
        return error_set(e, ERR_DENIED, "%s line %zu: the line does not end", name, number + 1);
    }
    return ERR_OK;
}

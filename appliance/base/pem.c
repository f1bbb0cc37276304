/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pem.h"

#include <string.h>

#define PEM_LINE_CHARS 64
#define PEM_LABEL_MAX  64

static const char pem_begin[] = "-----BEGIN ";
static const char pem_end[] = "-----END ";
static const char pem_dashes[] = "-----";

/* The label of a line "prefix LABEL-----"; false when it is not such a line. */
static bool
pem_label(
    const char *line, size_t len, const char *prefix, const char **ret_label, size_t *ret_len)
{
    size_t prefix_len = strlen(prefix);
    size_t dashes_len = sizeof pem_dashes - 1;
    size_t label_len;

    if (len <= prefix_len + dashes_len || memcmp(line, prefix, prefix_len) != 0 ||
        memcmp(line + len - dashes_len, pem_dashes, dashes_len) != 0) {
        return false;
    }
    label_len = len - prefix_len - dashes_len;
    if (label_len > PEM_LABEL_MAX) {
        return false;
    }
    for (size_t i = 0; i < label_len; i++) {
        char c = line[prefix_len + i];

        if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ' ')) {
            return false;
        }
    }
    *ret_label = line + prefix_len;
    *ret_len = label_len;
    return true;
}

static bool
label_is(const struct pem *p, const char *label)
{
    return strlen(label) == p->label_len && memcmp(p->label, label, p->label_len) == 0;
}

static err_t
pem_open(struct pem *p, const char *line, size_t len, struct error *e)
{
    static const char key[] = "PRIVATE KEY";
    size_t key_len = sizeof key - 1;

    if (!pem_label(line, len, pem_begin, &p->label, &p->label_len)) {
        if (len >= sizeof pem_dashes - 1 &&
            memcmp(line, pem_dashes, sizeof pem_dashes - 1) == 0) {
            return error_set(
                e, ERR_INVALID, "PEM block %zu has no proper beginning", p->blocks + 1);
        }
        if (p->strict) {
            return error_set(e, ERR_INVALID, "text outside the PEM blocks");
        }
        return ERR_OK;
    }
    p->blocks++;
    p->chars = 0;
    p->pads = 0;
    if (p->label_len >= key_len &&
        memcmp(p->label + p->label_len - key_len, key, key_len) == 0) {
        p->keys++;
    }
    if (p->only != NULL && !label_is(p, p->only)) {
        return error_set(
            e, ERR_INVALID, "PEM block %zu is %.*s, not %s", p->blocks, (int)p->label_len,
            p->label, p->only);
    }
    buf_put(p->out, line, len);
    buf_putc(p->out, '\n');
    return ERR_OK;
}

static err_t
pem_close(struct pem *p, const char *label, size_t label_len, struct error *e)
{
    if (label_len != p->label_len || memcmp(label, p->label, label_len) != 0) {
        return error_set(
            e, ERR_INVALID, "PEM block %zu begins as %.*s and ends as %.*s", p->blocks,
            (int)p->label_len, p->label, (int)label_len, label);
    }
    if (p->chars == 0 || p->chars % 4 != 0 || p->pads > 2) {
        return error_set(e, ERR_INVALID, "PEM block %zu is cut off", p->blocks);
    }
    if (p->chars % PEM_LINE_CHARS != 0) {
        buf_putc(p->out, '\n');
    }
    buf_puts(p->out, pem_end);
    buf_put(p->out, label, label_len);
    buf_puts(p->out, pem_dashes);
    buf_putc(p->out, '\n');
    p->label_len = 0;
    return ERR_OK;
}

static bool
is_base64(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           c == '+' || c == '/';
}

static err_t
pem_content(struct pem *p, const char *line, size_t len, struct error *e)
{
    const char *label;
    size_t label_len;

    if (pem_label(line, len, pem_end, &label, &label_len)) {
        return pem_close(p, label, label_len, e);
    }
    for (size_t i = 0; i < len; i++) {
        bool pad = line[i] == '=';

        if ((!pad && !is_base64(line[i])) || (!pad && p->pads > 0)) {
            return error_set(
                e, ERR_INVALID, "PEM block %zu holds what is not base64", p->blocks);
        }
        p->pads += pad ? 1 : 0;
        p->chars++;
        buf_putc(p->out, line[i]);
        if (p->chars % PEM_LINE_CHARS == 0) {
            buf_putc(p->out, '\n');
        }
    }
    return ERR_OK;
}

err_t
pem_normalize(struct pem *p, const char *pem, size_t bytes, struct error *e)
{
    const char *end = pem + bytes;

    while (pem < end) {
        const char *newline = memchr(pem, '\n', (size_t)(end - pem));
        const char *line_end = newline != NULL ? newline : end;
        size_t len = (size_t)(line_end - pem);
        err_t code = ERR_OK;

        while (len > 0 &&
               (pem[len - 1] == '\r' || pem[len - 1] == ' ' || pem[len - 1] == '\t')) {
            len--;
        }
        if (len > 0) {
            code = p->label_len > 0 ? pem_content(p, pem, len, e) : pem_open(p, pem, len, e);
        }
        if (code != ERR_OK) {
            return code;
        }
        pem = newline != NULL ? newline + 1 : end;
    }
    if (p->label_len > 0) {
        return error_set(e, ERR_INVALID, "PEM block %zu has no end", p->blocks);
    }
    if (p->blocks == 0) {
        return error_set(e, ERR_INVALID, "no PEM block");
    }
    return buf_status(p->out, e);
}

size_t
pem_normal_max(size_t bytes)
{
    /* A line end behind each 64 characters and behind the last line. */
    return bytes + bytes / PEM_LINE_CHARS + bytes / sizeof pem_end + 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/weights.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/running.h"
#include "helper/refuse_tables.h"
#include "helper/words.h"

#define DESCRIPTION "    description \"" RUNNING_DESCRIPTION

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
same_bytes(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static struct span
head(struct span s, size_t bytes)
{
    return (struct span){s.p, bytes};
}

static struct span
behind(struct span s, size_t bytes)
{
    return (struct span){s.p + bytes, s.n - bytes};
}

/* ---- a server's weight ---- */

/* Takes the number at the start of *rest off: a word of its own. */
static bool
take_weight(struct span *rest)
{
    size_t n = 0;
    int64_t weight;

    while (n < rest->n && is_digit(rest->p[n])) {
        n++;
    }
    if ((n < rest->n && rest->p[n] != ' ') || (n > 1 && rest->p[0] == '0') ||
        !span_number(head(*rest, n), WEIGHT_MAX, &weight)) {
        return false;
    }
    *rest = behind(*rest, n);
    return true;
}

/* Read as HAProxy reads it: not inside of quotes, and nothing that is escaped. */
static bool
is_before_weight(struct span line)
{
    CLEANUP(words_fini) struct words words;
    struct error unused;

    words_init(&words);
    return line.n > 0 && line.p[line.n - 1] == ' ' &&
           words_parse(&words, line, &unused) == ERR_OK && words.count == 4 &&
           strcmp(words.at[0], "server") == 0 && strcmp(words.at[3], "weight") == 0;
}

static bool
is_other_weight(struct span before, struct span after)
{
    size_t n = 0;
    struct span a;
    struct span b;

    while (n < before.n && n < after.n && before.p[n] == after.p[n]) {
        n++;
    }
    while (n > 0 && is_digit(before.p[n - 1])) {
        n--;
    }
    a = behind(before, n);
    b = behind(after, n);
    return take_weight(&a) && take_weight(&b) && same_bytes(a, b) &&
           is_before_weight(head(before, n));
}

/* ---- the digest ---- */

static bool
is_digest(struct span s)
{
    size_t n = 0;

    while (n < s.n && (is_digit(s.p[n]) || (s.p[n] >= 'a' && s.p[n] <= 'f'))) {
        n++;
    }
    return n == s.n && n == RUNNING_HEX;
}

/* prefix, digest, end, and nothing else. */
static bool
holds_digest(struct span s, const char *prefix, char end)
{
    size_t n = strlen(prefix);

    return span_starts(s, prefix) && s.n == n + RUNNING_HEX + 1 && s.p[s.n - 1] == end &&
           is_digest((struct span){s.p + n, RUNNING_HEX});
}

/* So is what follows these lines. */
static bool
is_in_global(struct span lines)
{
    CLEANUP(words_fini) struct words words;
    const struct refuse_section *section = NULL;
    struct error unused;
    struct span line;

    words_init(&words);
    while (span_line(&lines, &line)) {
        const struct refuse_section *next;

        if (words_parse(&words, line, &unused) != ERR_OK) {
            return false;
        }
        next = words.count > 0 ? refuse_section_find(words.at[0]) : NULL;
        section = next != NULL ? next : section;
    }
    return section != NULL && strcmp(section->name, "global") == 0;
}

bool
weights_running(struct span before, struct span after)
{
    return holds_digest(before, RUNNING_KEY " ", '\n') &&
           holds_digest(after, RUNNING_KEY " ", '\n');
}

/* ---- files ---- */

bool
weights_config(struct span before, struct span after)
{
    struct span all = after;
    size_t weights = 0;
    size_t digests = 0;
    struct span a;
    struct span b;

    while (span_line(&before, &a)) {
        if (!span_line(&after, &b)) {
            return false;
        }
        if (same_bytes(a, b)) {
            continue;
        }
        if (is_other_weight(a, b)) {
            weights++;
        } else if (
            digests++ > 0 || !holds_digest(a, DESCRIPTION, '"') ||
            !holds_digest(b, DESCRIPTION, '"') ||
            !is_in_global(head(all, (size_t)(b.p - all.p)))) {
            return false;
        }
    }
    return before.n == 0 && after.n == 0 && weights > 0;
}

static err_t
read_both(
    int before_fd, int after_fd, const char *name, struct buf *before, struct buf *after,
    struct error *e)
{
    err_t code;

    buf_init(before, (size_t)STAGED_MAX_BYTES);
    buf_init(after, (size_t)STAGED_MAX_BYTES);
    code = file_read_at(before_fd, name, before, e);
    return code == ERR_OK ? file_read_at(after_fd, name, after, e) : code;
}

static err_t
compare(int before_fd, int after_fd, const char *name, bool *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf x = {0};
    CLEANUP(buf_fini) struct buf y = {0};
    struct span before;
    struct span after;
    err_t code;

    if (strcmp(name, STAGED_CONFIG) != 0 && strcmp(name, RUNNING_MAP) != 0) {
        return staged_file_equal(before_fd, after_fd, name, ret, e);
    }
    code = read_both(before_fd, after_fd, name, &x, &y, e);
    if (code != ERR_OK) {
        return code;
    }
    before = (struct span){buf_str(&x), x.len};
    after = (struct span){buf_str(&y), y.len};
    *ret = strcmp(name, STAGED_CONFIG) == 0
               ? weights_config(before, after)
               : same_bytes(before, after) || weights_running(before, after);
    return ERR_OK;
}

err_t
weights_only(
    const struct staged *after, int before_fd, int after_fd, bool *ret, struct error *e)
{
    CLEANUP(staged_fini) struct staged before;
    bool same;
    err_t code;

    staged_init(&before);
    code = staged_list(before_fd, true, &before, e);
    same = code == ERR_OK && staged_same_names(&before, after);
    for (size_t i = 0; code == ERR_OK && same && i < after->count; i++) {
        code = compare(before_fd, after_fd, after->names[i], &same, e);
    }
    if (code == ERR_OK) {
        *ret = same;
    }
    return code;
}

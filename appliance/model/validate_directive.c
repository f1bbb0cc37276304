/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that people add to HAProxy's sections: whether a keyword has what it takes. HAProxy
 * reads many a wrong number as 0, or fails at another place than the line. */
#include <stdio.h>
#include <string.h>

#include "base/x509.h"
#include "model/validate_checks.h"

#define LINE_BYTES    256
#define WANTED_BYTES  400
#define POINTER_BYTES 48
#define NUMBER_DIGITS 12

/* The words behind the keyword, each ended by a NUL. */
struct line {
    char text[LINE_BYTES];
    const char *words[LINE_BYTES / 2];
    size_t count;
};

static void
split_line(struct line *l, struct text value, const struct schema_keyword *k)
{
    char *at = NULL;

    (void)snprintf(l->text, sizeof l->text, "%s", value.s + strlen(k->word));
    l->count = 0;
    for (char *word = strtok_r(l->text, " ", &at); word != NULL;
         word = strtok_r(NULL, " ", &at)) {
        l->words[l->count++] = word;
    }
}

static bool
is_among(const char *const *words, const char *word)
{
    for (; words != NULL && *words != NULL; words++) {
        if (strcmp(*words, word) == 0) {
            return true;
        }
    }
    return false;
}

/* What follows the digits, which are there and not too many; or NULL. */
static const char *
read_number(const char *word, int64_t *ret)
{
    bool minus = word[0] == '-';
    const char *digits = word + (minus ? 1 : 0);
    size_t n = strspn(digits, "0123456789");
    int64_t number = 0;

    if (n == 0 || n > NUMBER_DIGITS) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        number = number * 10 + (digits[i] - '0');
    }
    *ret = minus ? -number : number;
    return digits + n;
}

static bool
is_int(const char *word, const struct schema_keyword *k)
{
    int64_t number = 0;
    const char *end = read_number(word, &number);

    return end != NULL && *end == '\0' && number >= k->min && number <= k->max;
}

static bool
is_time(const char *word, const struct schema_keyword *k)
{
    static const struct {
        const char *unit;
        int64_t us;
    } units[] = {
        {"us", 1},       {"ms", 1000},      {"s", 1000000},
        {"m", 60000000}, {"h", 3600000000}, {"d", 86400000000},
    };

    int64_t number = 0;
    const char *unit = read_number(word, &number);

    if (unit == NULL || number < 0) {
        return false;
    }
    if (*unit == '\0') {
        unit = k->unit;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(units[i].unit, unit) == 0) {
            return number <= k->max * 1000 / units[i].us &&
                   number * units[i].us >= k->min * 1000;
        }
    }
    return false;
}

static bool
are_words(const struct line *l, const struct schema_keyword *k)
{
    for (size_t i = 0; i < l->count; i++) {
        bool alone = k->alone != NULL && strcmp(l->words[i], k->alone) == 0;

        if (!is_among(k->words, l->words[i]) || (alone && l->count > 1)) {
            return false;
        }
    }
    return true;
}

static bool
fits(const struct line *l, const struct schema_keyword *k)
{
    const char *first = l->count > 0 ? l->words[0] : "";
    bool many = k->type == KT_WORDS || k->type == KT_TEXT;
    int64_t most = many ? k->max : 1;

    if (k->type == KT_FLAG) {
        return l->count == 0;
    }
    if ((int64_t)l->count < (many ? k->min : 1) || (int64_t)l->count > most) {
        return false;
    }
    switch (k->type) {
    case KT_INT: return is_int(first, k);
    case KT_TIME: return is_among(k->words, first) || is_time(first, k);
    case KT_WORDS: return are_words(l, k);
    case KT_CIPHERS: return x509_knows_ciphers(first, false);
    case KT_CIPHERSUITES: return x509_knows_ciphers(first, true);
    case KT_FLAG:
    case KT_TEXT: break;
    }
    return true;
}

static void
put_words(struct buf *out, const struct schema_keyword *k)
{
    for (const char *const *word = k->words; word != NULL && *word != NULL; word++) {
        buf_printf(out, "%s%s", word == k->words ? "" : ", ", *word);
    }
}

static void
put_wanted(struct buf *out, const struct schema_keyword *k)
{
    switch (k->type) {
    case KT_FLAG: buf_puts(out, "nothing"); return;
    case KT_INT:
        buf_printf(
            out, "a whole number from %lld to %lld", (long long)k->min, (long long)k->max);
        return;
    case KT_TIME:
        buf_printf(
            out, "a time from %lld to %lld ms, such as 30s (a number alone is in %s)",
            (long long)k->min, (long long)k->max, k->unit);
        if (k->words != NULL) {
            buf_puts(out, ", or ");
            put_words(out, k);
        }
        return;
    case KT_WORDS:
        buf_puts(out, k->max == 1 ? "one of " : "some of ");
        put_words(out, k);
        if (k->alone != NULL) {
            buf_printf(out, " (%s only alone)", k->alone);
        }
        return;
    case KT_TEXT: buf_puts(out, k->min == 0 ? "one word or nothing" : "one word"); return;
    case KT_CIPHERS: buf_puts(out, "ciphers of TLS 1.2 that OpenSSL knows"); return;
    case KT_CIPHERSUITES: buf_puts(out, "cipher suites of TLS 1.3 that OpenSSL knows"); return;
    }
}

static bool
is_tcp(const struct object *o)
{
    return o->kind == K_LISTENER && object_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_TCP;
}

static void
check_line(
    const struct object *o, const char *pointer, struct text value,
    const struct schema_keyword *k, struct problems *p)
{
    CLEANUP(buf_fini) struct buf wanted = {0};
    struct line l;

    const struct problem where = checks_at(o, pointer);
    if (k->http_frontend && is_tcp(o)) {
        problems_add(
            p, SEVERITY_ERROR, "not_applicable", &where,
            "A listener in tcp mode sees no requests: leave \"%s\" out.", k->word);
        return;
    }
    split_line(&l, value, k);
    if (fits(&l, k)) {
        return;
    }
    buf_init(&wanted, WANTED_BYTES);
    put_wanted(&wanted, k);
    problems_add(
        p, SEVERITY_ERROR, "directive", &where, "%s takes %s, not \"%.*s\".", k->word,
        buf_str(&wanted), problems_cut(value.s, 60), value.s);
}

void
validate_directives(const struct object *before, const struct object *after, struct problems *p)
{
    const struct schema_kind *kind = schema_kind(after->kind);

    for (uint32_t i = 0; i < kind->field_count; i++) {
        const struct schema_field *f = &kind->fields[i];
        const struct value *lines = object_field(after, i);
        bool same = before != NULL && value_equal(f, object_field(before, i), lines) &&
                    is_tcp(before) == is_tcp(after);

        if (f->type != FT_TEXT || !f->list || same ||
            schema_text_type_keywords[f->text_type] == NULL) {
            continue;
        }
        for (uint32_t j = 0; j < lines->count; j++) {
            struct text value = lines->u.items[j].u.text;
            const struct schema_keyword *k = value_keyword(f->text_type, value.s, value.len);
            char pointer[POINTER_BYTES];

            (void)snprintf(pointer, sizeof pointer, "/%s/%u", f->name, j);
            ASSERT(k != NULL);
            check_line(after, pointer, value, k, p);
        }
    }
}

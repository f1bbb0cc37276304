/* SPDX-License-Identifier: Apache-2.0 */
#include "model/value.h"

#include <string.h>

#include "base/buf.h"
#include "base/crypt.h"
#include "base/pem.h"
#include "base/utf8.h"
#include "base/x509.h"
#include "model/value_checks.h"

#define HASHED_PREFIX "scrypt$"
#define HASHED_PARTS  6

/* ---- names ---- */

static err_t
check_name(const char *s, size_t len, struct buf *out, struct error *e)
{
    if (len == 0 || !is_alnum(s[0])) {
        return error_set(e, ERR_INVALID, "a name starts with a letter or a digit");
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(s[i]) && strchr("_.:-", s[i]) == NULL) {
            return error_set(
                e, ERR_INVALID,
                "a name has only letters, digits, \"_\", \".\", \":\" and \"-\"");
        }
    }
    if (starts_with(s, len, VALUE_RESERVED_PREFIX)) {
        return error_set(
            e, ERR_INVALID, "names that start with \"" VALUE_RESERVED_PREFIX "\" are reserved");
    }
    buf_put(out, s, len);
    return ERR_OK;
}

/* ---- HTTP statuses ---- */

/* A status of three digits at s, or 0. */
static unsigned
status_at(const char *s, size_t len)
{
    if (len < 3 || s[0] < '1' || s[0] > '5' || !is_digit(s[1]) || !is_digit(s[2])) {
        return 0;
    }
    return (unsigned)(s[0] - '0') * 100 + (unsigned)(s[1] - '0') * 10 + (unsigned)(s[2] - '0');
}

static err_t
check_status_set(const char *s, size_t len, struct buf *out, struct error *e)
{
    size_t i = 0;

    while (true) {
        unsigned low = status_at(s + i, len - i);
        unsigned high = low;

        i += 3;
        if (low != 0 && i < len && s[i] == '-') {
            high = status_at(s + i + 1, len - i - 1);
            i += 4;
        }
        if (low == 0 || high == 0 || (i < len && s[i] != ',')) {
            return error_set(
                e, ERR_INVALID,
                "give statuses from 100 to 599 and ranges of them, separated by commas "
                "without spaces, as in 200,204,300-399");
        }
        if (low > high) {
            return error_set(
                e, ERR_INVALID, "the range %u-%u is the wrong way round", low, high);
        }
        if (i >= len) {
            break;
        }
        i++;
    }
    buf_put(out, s, len);
    return ERR_OK;
}

bool
value_status_in(struct text set, unsigned status)
{
    for (size_t i = 0; i < set.len; i++) {
        unsigned low = status_at(set.s + i, set.len - i);
        unsigned high = low;

        i += 3;
        if (i < set.len && set.s[i] == '-') {
            high = status_at(set.s + i + 1, set.len - i - 1);
            i += 4;
        }
        if (status >= low && status <= high) {
            return true;
        }
    }
    return false;
}

/* ---- free text ---- */

struct char_range {
    uint32_t first, last;
};

/* Unicode's blocks of combining marks: composed letters are written without them. */
static const struct char_range combining[] = {
    {0x0300, 0x036f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe20, 0xfe2f},
};

static err_t
check_free_text(const char *s, size_t len, struct buf *out, struct error *e)
{
    for (size_t i = 0; i < len;) {
        uint32_t c = 0;
        size_t n = utf8_decode(s + i, len - i, &c);

        ASSERT(n > 0);
        for (size_t r = 0; r < ARRAY_LEN(combining); r++) {
            if (c >= combining[r].first && c <= combining[r].last) {
                return error_set(
                    e, ERR_INVALID,
                    "character U+%04X combines with the one before it; write the composed "
                    "form (NFC)",
                    (unsigned)c);
            }
        }
        i += n;
    }
    buf_put(out, s, len);
    return ERR_OK;
}

/* ---- words for HAProxy ---- */

static err_t
check_word(const char *s, size_t len, struct buf *out, struct error *e)
{
    if (len > 0 && !is_alnum(s[0]) && s[0] != '_') {
        return error_set(e, ERR_INVALID, "it starts with a letter, a digit or \"_\"");
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(s[i]) && strchr("_.-", s[i]) == NULL) {
            return error_set(
                e, ERR_INVALID, "only letters, digits, \"_\", \".\" and \"-\" are allowed");
        }
    }
    buf_put(out, s, len);
    return ERR_OK;
}

static err_t
check_mime_type(const char *s, size_t len, struct buf *out, struct error *e)
{
    size_t parts = 1;
    size_t part_bytes = 0;

    for (size_t i = 0; i < len; i++) {
        if (s[i] == '/' && part_bytes > 0) {
            parts++;
            part_bytes = 0;
        } else if (is_alnum(s[i]) || (part_bytes > 0 && strchr("!#$&^_.+-", s[i]) != NULL)) {
            part_bytes++;
        } else {
            parts = 0;
            break;
        }
    }
    if (parts != 2 || part_bytes == 0) {
        return error_set(
            e, ERR_INVALID, "give a media type without parameters, such as text/html");
    }
    buf_put(out, s, len);
    return ERR_OK;
}

/* Compared with what a server sends, byte for byte. */
static err_t
check_probe_text(const char *s, size_t len, struct buf *out, struct error *e)
{
    (void)e;
    buf_put(out, s, len);
    return ERR_OK;
}

/* ---- certificates and keys ---- */

static err_t
check_pem_chain(const char *s, size_t len, struct buf *out, struct error *e)
{
    struct x509_info info;
    size_t before = out->len;
    err_t code = x509_normalize(s, len, out, e);

    if (code == ERR_OK) {
        code = buf_status(out, e);
    }
    if (code == ERR_OK) {
        code = x509_read(buf_str(out) + before, out->len - before, &info, e);
    }
    return code == ERR_OK ? ERR_OK : ERR_INVALID;
}

static err_t
check_pem_chain_or_none(const char *s, size_t len, struct buf *out, struct error *e)
{
    return len == 0 ? ERR_OK : check_pem_chain(s, len, out, e);
}

/* Bytes of the first block of normalised PEM when that is its label, else 0. */
static size_t
block_of(const char *pem, size_t len, const char *label)
{
    static const char begin[] = "-----BEGIN ";
    static const char end[] = "\n-----END ";
    size_t skip = sizeof begin - 1;
    size_t n = strlen(label);
    const char *last;

    if (len < skip + n || memcmp(pem + skip, label, n) != 0 || pem[skip + n] != '-') {
        return 0;
    }
    last = memmem(pem, len, end, sizeof end - 1);
    ASSERT(last != NULL);
    return (size_t)(last - pem) + sizeof end - 1 + n + strlen("-----\n");
}

static err_t
check_pem_key(const char *s, size_t len, struct buf *out, struct error *e)
{
    static const char *const labels[] = {"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"};
    static const char locked[] = "the key is protected by a passphrase; remove it first, as "
                                 "with \"openssl pkey\"";
    CLEANUP(buf_wipe_fini) struct buf pem = {0};
    const char *key;
    size_t rest;
    size_t block;
    bool room;

    /* A header, which makes it no PEM for what follows. */
    if (memmem(s, len, "Proc-Type: 4,ENCRYPTED", 22) != NULL) {
        return error_set(e, ERR_INVALID, "%s", locked);
    }
    /* All room at once: growing would leave copies of the key behind. */
    buf_init(&pem, pem_normal_max(len));
    room = buf_reserve(&pem, pem_normal_max(len));
    ASSERT(room);
    if (x509_normalize(s, len, &pem, e) != ERR_OK) {
        return ERR_INVALID;
    }
    key = pem.data;
    rest = pem.len;
    /* "openssl ecparam -genkey" puts this in front; the key itself names its curve. */
    block = block_of(key, rest, "EC PARAMETERS");
    key += block;
    rest -= block;
    if (block_of(key, rest, "ENCRYPTED PRIVATE KEY") > 0) {
        return error_set(e, ERR_INVALID, "%s", locked);
    }
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        if (rest > 0 && block_of(key, rest, labels[i]) == rest) {
            buf_put(out, key, rest);
            return ERR_OK;
        }
    }
    return error_set(
        e, ERR_INVALID, "exactly one private key in PEM form is wanted, and nothing else");
}

static err_t
check_pem_key_or_none(const char *s, size_t len, struct buf *out, struct error *e)
{
    return len == 0 ? ERR_OK : check_pem_key(s, len, out, e);
}

static err_t
check_body(const char *s, size_t len, struct buf *out, struct error *e)
{
    (void)e;
    buf_put(out, s, len);
    return ERR_OK;
}

/* ---- passwords and hashes ---- */

static err_t
check_password(const char *s, size_t len, struct buf *out, struct error *e)
{
    size_t parts = 1;
    size_t part_bytes = 0;

    if (starts_with(s, len, HASHED_PREFIX)) {
        for (size_t i = 0; i < len; i++) {
            if (s[i] == '$' && part_bytes > 0) {
                parts++;
                part_bytes = 0;
            } else if (is_alnum(s[i]) || s[i] == '-' || s[i] == '_') {
                part_bytes++;
            } else {
                parts = HASHED_PARTS + 1;
            }
        }
        if (parts != HASHED_PARTS || part_bytes == 0) {
            return error_set(
                e, ERR_INVALID,
                "a password cannot start with \"" HASHED_PREFIX "\", as stored hashes do");
        }
    }
    buf_put(out, s, len);
    return ERR_OK;
}

static err_t
check_hex64(const char *s, size_t len, struct buf *out, struct error *e)
{
    bool good = len == 0 || len == SHA256_HEX;

    for (size_t i = 0; i < len; i++) {
        good = good && (is_digit(s[i]) || (s[i] >= 'a' && s[i] <= 'f'));
    }
    if (!good) {
        return error_set(
            e, ERR_INVALID, "64 lower-case hexadecimal digits are wanted, or nothing");
    }
    buf_put(out, s, len);
    return ERR_OK;
}

/* ---- all types ---- */

static const value_check_fn checks[] = {
    [TT_NAME] = check_name,
    [TT_HOST] = value_check_host,
    [TT_IP] = value_check_ip,
    [TT_MACHINE_IP] = value_check_machine_ip,
    [TT_HOST_PATTERN] = value_check_host_pattern,
    [TT_PATH] = value_check_path,
    [TT_PATH_QUERY] = value_check_path_query,
    [TT_DNS_NAME] = value_check_dns_name,
    [TT_WORD] = check_word,
    [TT_MIME_TYPE] = check_mime_type,
    [TT_PROBE_TEXT] = check_probe_text,
    [TT_HEADER_HOST] = value_check_header_host,
    [TT_STATUS_SET] = check_status_set,
    [TT_NOTE] = check_free_text,
    [TT_TITLE] = check_free_text,
    [TT_URL] = value_check_url,
    [TT_PEM_CHAIN] = check_pem_chain,
    [TT_PEM_CA] = check_pem_chain_or_none,
    [TT_PEM_CHAIN_OR_NONE] = check_pem_chain_or_none,
    [TT_PEM_KEY] = check_pem_key,
    [TT_PEM_KEY_OR_NONE] = check_pem_key_or_none,
    [TT_NETWORK] = value_check_network,
    [TT_VIP] = value_check_vip,
    [TT_ENDPOINT] = value_check_endpoint,
    [TT_TOKEN] = value_check_token,
    [TT_HEADER_VALUE] = value_check_line,
    [TT_MATCH_VALUE] = value_check_line,
    [TT_TARGET] = value_check_target,
    [TT_MEDIA_TYPE] = value_check_media_type,
    [TT_BODY] = check_body,
    [TT_GLOBAL_DIRECTIVE] = value_check_global_directive,
    [TT_DEFAULTS_DIRECTIVE] = value_check_defaults_directive,
    [TT_LISTENER_DIRECTIVE] = value_check_listener_directive,
    [TT_PASSWORD] = check_password,
    [TT_HEX64] = check_hex64,
};
_Static_assert(ARRAY_LEN(checks) == TEXT_TYPE_COUNT, "a text type without a check");

err_t
value_check_text(
    enum text_type type, const char *s, size_t len, struct buf *out, struct error *e)
{
    const char *allowed = "";

    if (type == TT_PEM_CHAIN || type == TT_PEM_CA || type == TT_PEM_CHAIN_OR_NONE ||
        type == TT_PEM_KEY || type == TT_PEM_KEY_OR_NONE) {
        allowed = "\t\n\r";
    } else if (type == TT_BODY) {
        allowed = "\t\n";
    }
    ASSERT((size_t)type < ARRAY_LEN(checks) && checks[type] != NULL);
    if (!utf8_valid(s, len)) {
        return error_set(e, ERR_INVALID, "this is not UTF-8");
    }
    if (utf8_has_control(s, len, allowed)) {
        return error_set(
            e, ERR_INVALID, "line breaks and other control characters are not allowed");
    }
    return checks[type](s, len, out, e);
}

static bool
scalar_equal(enum field_type type, const struct value *a, const struct value *b)
{
    if (a->is_null || b->is_null) {
        return a->is_null == b->is_null;
    }
    if (type == FT_TEXT || type == FT_REF) {
        return a->u.text.len == b->u.text.len &&
               memcmp(a->u.text.s, b->u.text.s, a->u.text.len) == 0;
    }
    return a->u.i == b->u.i;
}

/* The schema has records in lists only, and none inside a record. */
static bool
item_equal(const struct schema_field *f, const struct value *a, const struct value *b)
{
    if (f->type != FT_RECORD) {
        return scalar_equal(f->type, a, b);
    }
    for (uint32_t i = 0; i < f->field_count; i++) {
        if (!scalar_equal(f->fields[i].type, &a->u.items[i], &b->u.items[i])) {
            return false;
        }
    }
    return true;
}

bool
value_equal(const struct schema_field *f, const struct value *a, const struct value *b)
{
    if (!f->list) {
        return scalar_equal(f->type, a, b);
    }
    if (a->count != b->count) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (!item_equal(f, &a->u.items[i], &b->u.items[i])) {
            return false;
        }
    }
    return true;
}

uint32_t
value_hash(uint32_t seed, const char *s, size_t len)
{
    uint64_t h = (uint64_t)seed + len * UINT64_C(0x9e3779b97f4a7c15);
    for (; len >= 8; s += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, s, 8);
        h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    uint64_t rest = 0;
    memcpy(&rest, s, len);
    h = (h ^ rest) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(h ^ (h >> 32));
}

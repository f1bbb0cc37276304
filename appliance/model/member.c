/* SPDX-License-Identifier: Apache-2.0 */
#include "model/member.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypt.h"
#include "base/json.h"
#include "model/value.h"

#define SEQ_MAX     ((int64_t)9007199254740991)
#define TIME_MAX_MS ((int64_t)253402300799999) /* the end of the year 9999 */

#define ALNUM      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define PIN_PREFIX "sha256//"
#define PIN_CHARS  43 /* of base64; one '=' follows */
#define URL_PREFIX "https://"

json_t *
member_to_json(const struct member *m)
{
    json_t *j = json_pack(
        "{s:s, s:I, s:b, s:s, s:s, s:s, s:s, s:i}", "id", m->id, "seq", (json_int_t)m->seq,
        "gone", m->gone, "name", m->name, "url", m->url, "pin", m->pin, "release", m->release,
        "schema_version", m->schema_version);

    ASSERT(j != NULL);
    if (m->gone && m->gone_at_ms > 0) {
        json_object_set_new(j, "gone_at_ms", json_integer(m->gone_at_ms));
    }
    if (m->tables_address[0] != '\0') {
        json_object_set_new(j, "tables_address", json_string(m->tables_address));
        json_object_set_new(j, "tables_port", json_integer(m->tables_port));
    }
    return j;
}

/* ---- addresses ---- */

/* The host of a URL, without brackets; "" where it is longer than any address. */
static void
host_of(const char *url, char ret[MEMBER_IP_BYTES])
{
    const char *host = strstr(url, "://");
    bool bracket;
    size_t n;

    *ret = '\0';
    if (host == NULL) {
        return;
    }
    host += strlen("://");
    bracket = *host == '[';
    host += bracket ? 1 : 0;
    n = strcspn(host, bracket ? "]" : ":/?#");
    if (n < MEMBER_IP_BYTES) {
        memcpy(ret, host, n);
        ret[n] = '\0';
    }
}

void
member_tables_address(const char *own, const char *url, char ret[MEMBER_IP_BYTES])
{
    CLEANUP(buf_fini) struct buf spelled = {.max = MEMBER_IP_BYTES - 1};
    char host[MEMBER_IP_BYTES];
    struct error unused;

    host_of(url, host);
    own = *own != '\0' ? own : host;
    *ret = '\0';
    if (value_check_text(TT_MACHINE_IP, own, strlen(own), &spelled, &unused) == ERR_OK &&
        spelled.len > 0) {
        memcpy(ret, buf_str(&spelled), spelled.len + 1);
    }
}

void
member_key_print(const char *key, char ret[MEMBER_PRINT_BYTES])
{
    struct hash h = sha256(key, strlen(key));
    char hex[SHA256_HEX + 1];

    hash_hex(&h, hex);
    (void)snprintf(ret, MEMBER_PRINT_BYTES, "%.8s", *key != '\0' ? hex : "");
}

/* ---- from JSON ---- */

bool
member_id_valid(const char *id)
{
    return strlen(id) == MEMBER_ID_BYTES - 1 &&
           strspn(id, "0123456789abcdef") == MEMBER_ID_BYTES - 1;
}

bool
member_release_valid(const char *release)
{
    return *release != '\0' && release[strspn(release, ALNUM ".+~-")] == '\0';
}

bool
member_key_valid(const char *key)
{
    size_t len = strlen(key);

    return len > 0 && len < MEMBER_KEY_BYTES && strspn(key, ALNUM "_-") == len;
}

static err_t
wrong(const char *field, const char *wanted, struct error *e)
{
    return error_set(e, ERR_INVALID, "%s of a member: %s", field, wanted);
}

static err_t
read_text(const json_t *j, const char *field, char *ret, size_t bytes, struct error *e)
{
    const char *s = NULL;
    size_t n;

    if (json_get_str(j, field, &s, NULL) != ERR_OK) {
        return wrong(field, "a text is wanted", e);
    }
    n = strlen(s);
    if (n >= bytes) {
        return wrong(field, "it is too long", e);
    }
    memcpy(ret, s, n + 1);
    return ERR_OK;
}

/* In the form that the schema gives a text of the type. */
static err_t
check_type(enum text_type type, const char *field, const char *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf normal = {.max = 1024};
    struct error why = {0};

    if (value_check_text(type, s, strlen(s), &normal, &why) != ERR_OK) {
        return wrong(field, why.msg, e);
    }
    return ERR_OK;
}

static err_t
check_url(const char *url, struct error *e)
{
    if (*url == '\0') {
        return ERR_OK;
    }
    if (strncmp(url, URL_PREFIX, strlen(URL_PREFIX)) != 0 ||
        strpbrk(url + strlen(URL_PREFIX), "/?#") != NULL) {
        return wrong("url", "https://ADDRESS:PORT is wanted", e);
    }
    return check_type(TT_URL, "url", url, e);
}

static err_t
check_pin(const struct member *m, struct error *e)
{
    const char *hash = m->pin + strlen(PIN_PREFIX);

    if (*m->pin == '\0' && *m->url == '\0') {
        return ERR_OK;
    }
    if (strncmp(m->pin, PIN_PREFIX, strlen(PIN_PREFIX)) != 0 ||
        strspn(hash, ALNUM "+/") != PIN_CHARS || strcmp(hash + PIN_CHARS, "=") != 0) {
        return wrong("pin", PIN_PREFIX " and a SHA-256 in base64 are wanted", e);
    }
    return ERR_OK;
}

static err_t
read_texts(const json_t *j, struct member *m, struct error *e)
{
    err_t code = read_text(j, "id", m->id, sizeof m->id, e);

    if (code == ERR_OK && !member_id_valid(m->id)) {
        code = wrong("id", "32 lower-case hex digits are wanted", e);
    }
    if (code == ERR_OK) {
        code = read_text(j, "name", m->name, sizeof m->name, e);
    }
    if (code == ERR_OK) {
        code = *m->name != '\0' ? check_type(TT_NAME, "name", m->name, e)
                                : wrong("name", "it is empty", e);
    }
    if (code == ERR_OK) {
        code = read_text(j, "url", m->url, sizeof m->url, e);
    }
    if (code == ERR_OK) {
        code = check_url(m->url, e);
    }
    if (code == ERR_OK) {
        code = read_text(j, "pin", m->pin, sizeof m->pin, e);
    }
    if (code == ERR_OK) {
        code = check_pin(m, e);
    }
    if (code == ERR_OK) {
        code = read_text(j, "release", m->release, sizeof m->release, e);
    }
    if (code == ERR_OK && !member_release_valid(m->release)) {
        code = wrong("release", "letters, digits, . + ~ and - are wanted", e);
    }
    return code;
}

/* A node of an older release says nothing of its tables. */
static err_t
read_tables(const json_t *j, struct member *m, struct error *e)
{
    char spelled[MEMBER_IP_BYTES];
    int64_t port = 0;
    err_t code;

    if (json_object_get(j, "tables_address") == NULL) {
        return ERR_OK;
    }
    code = read_text(j, "tables_address", m->tables_address, sizeof m->tables_address, e);
    if (code == ERR_OK) {
        member_tables_address(m->tables_address, "", spelled);
        if (*spelled == '\0' || strcmp(spelled, m->tables_address) != 0) {
            return wrong("tables_address", "the address of one machine is wanted", e);
        }
    }
    if (code == ERR_OK &&
        json_get_int(j, "tables_port", 1, UINT16_MAX, &port, NULL) != ERR_OK) {
        code = wrong("tables_port", "a number from 1 to 65535 is wanted", e);
    }
    m->tables_port = (int)port;
    return code;
}

/* An older release says nothing of the time, and a node that is there has none. */
static err_t
read_gone(const json_t *j, struct member *m, struct error *e)
{
    if (json_get_bool(j, "gone", &m->gone, NULL) != ERR_OK) {
        return wrong("gone", "true or false is wanted", e);
    }
    if (m->gone && json_object_get(j, "gone_at_ms") != NULL &&
        json_get_int(j, "gone_at_ms", 1, TIME_MAX_MS, &m->gone_at_ms, NULL) != ERR_OK) {
        return wrong("gone_at_ms", "milliseconds since 1970 are wanted", e);
    }
    return ERR_OK;
}

err_t
member_from_json(const json_t *j, struct member *ret, struct error *e)
{
    struct member m = {.seq = 0};
    int64_t schema_version = 0;
    err_t code;

    if (!json_is_object(j)) {
        return error_set(e, ERR_INVALID, "a member is a JSON object");
    }
    code = read_texts(j, &m, e);
    if (code == ERR_OK && json_get_int(j, "seq", 1, SEQ_MAX, &m.seq, NULL) != ERR_OK) {
        code = wrong("seq", "a number from 1 is wanted", e);
    }
    if (code == ERR_OK) {
        code = read_gone(j, &m, e);
    }
    if (code == ERR_OK &&
        json_get_int(j, "schema_version", 1, INT_MAX, &schema_version, NULL) != ERR_OK) {
        code = wrong("schema_version", "a number from 1 is wanted", e);
    }
    if (code == ERR_OK) {
        code = read_tables(j, &m, e);
    }
    if (code == ERR_OK) {
        m.schema_version = (int)schema_version;
        *ret = m;
    }
    return code;
}

bool
member_replaces(const struct member *offered, const struct member *held)
{
    return offered->seq > held->seq ||
           (offered->seq == held->seq && offered->gone && !held->gone);
}

void
member_raise(struct member *m, int64_t steps)
{
    m->seq = m->seq < SEQ_MAX - steps ? m->seq + steps : SEQ_MAX;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/member.h"

#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "model/value.h"

#define SEQ_MAX ((int64_t)9007199254740991)

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
    return j;
}

bool
member_id_valid(const char *id)
{
    return strlen(id) == MEMBER_ID_BYTES - 1 &&
           strspn(id, "0123456789abcdef") == MEMBER_ID_BYTES - 1;
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
    if (code == ERR_OK &&
        (*m->release == '\0' || m->release[strspn(m->release, ALNUM ".+~-")] != '\0')) {
        code = wrong("release", "letters, digits, . + ~ and - are wanted", e);
    }
    return code;
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
    if (code == ERR_OK && json_get_bool(j, "gone", &m.gone, NULL) != ERR_OK) {
        code = wrong("gone", "true or false is wanted", e);
    }
    if (code == ERR_OK &&
        json_get_int(j, "schema_version", 1, INT_MAX, &schema_version, NULL) != ERR_OK) {
        code = wrong("schema_version", "a number from 1 is wanted", e);
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

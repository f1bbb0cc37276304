/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "model/value.h"
#include "model/value_checks.h"

#define DNS_NAME_BYTES  253 /* RFC 1035: 255 on the wire */
#define DNS_LABEL_BYTES 63
#define PORT_DIGITS     5
#define PORT_MAX        65535

static bool
is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void
put_lower(struct buf *out, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        buf_putc(out, s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i]);
    }
}

static bool
is_port(const char *s, size_t len)
{
    unsigned port = 0;

    if (len == 0 || len > PORT_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(s[i])) {
            return false;
        }
        port = port * 10 + (unsigned)(s[i] - '0');
    }
    return port >= 1 && port <= PORT_MAX;
}

/* ---- addresses ---- */

bool
value_is_ip(const char *s)
{
    unsigned char addr[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, s, addr) == 1 || inet_pton(AF_INET6, s, addr) == 1;
}

static err_t
put_ip(const char *s, size_t len, struct buf *out, struct error *e)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    struct in_addr v4;

    if (memchr(s, '%', len) != NULL) {
        return error_set(e, ERR_INVALID, "an IPv6 address with a zone cannot be used");
    }
    if (len < sizeof text) {
        memcpy(text, s, len);
        text[len] = '\0';
        if (inet_pton(AF_INET, text, &v4) == 1) {
            buf_put(out, s, len);
            return ERR_OK;
        }
        if (inet_pton(AF_INET6, text, &v6) == 1) {
            if (IN6_IS_ADDR_V4MAPPED(&v6)) {
                return error_set(
                    e, ERR_INVALID, "write an IPv4 address without \"::ffff:\" in front");
            }
            /* What this writes is the form of RFC 5952. */
            buf_puts(out, inet_ntop(AF_INET6, &v6, text, sizeof text));
            return ERR_OK;
        }
    }
    return error_set(e, ERR_INVALID, "this is not an IP address");
}

err_t
value_check_ip(const char *s, size_t len, struct buf *out, struct error *e)
{
    if (len > 0 && s[0] == '[') {
        return error_set(e, ERR_INVALID, "write an IPv6 address without brackets");
    }
    return put_ip(s, len, out, e);
}

static bool
is_machines_v4(struct in_addr a)
{
    uint32_t n = ntohl(a.s_addr);

    return n >> 24 != 0 && n >> 24 != 127 && n >> 16 != 0xa9fe && n >> 28 < 0xe;
}

static bool
is_machines_v6(const struct in6_addr *a)
{
    return !IN6_IS_ADDR_UNSPECIFIED(a) && !IN6_IS_ADDR_LOOPBACK(a) &&
           !IN6_IS_ADDR_LINKLOCAL(a) && !IN6_IS_ADDR_MULTICAST(a);
}

err_t
value_check_machine_ip(const char *s, size_t len, struct buf *out, struct error *e)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    struct in_addr v4;

    if (len == 0) {
        return ERR_OK;
    }
    if (value_check_ip(s, len, out, e) != ERR_OK) {
        return ERR_INVALID;
    }
    memcpy(text, s, len);
    text[len] = '\0';
    if (inet_pton(AF_INET, text, &v4) == 1
            ? is_machines_v4(v4)
            : inet_pton(AF_INET6, text, &v6) == 1 && is_machines_v6(&v6)) {
        return ERR_OK;
    }
    return error_set(e, ERR_INVALID, "other machines cannot reach this one at that address");
}

/* ---- DNS names ---- */

/* Reason why these bytes cannot be a label, or NULL. */
static const char *
label_fault(const char *s, size_t len)
{
    if (len == 0) {
        return "a name in it has two dots in a row, or one in front";
    }
    if (len > DNS_LABEL_BYTES) {
        return "one part between dots is longer than 63 characters";
    }
    if (s[0] == '-' || s[len - 1] == '-') {
        return "no part between dots starts or ends with \"-\"";
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(s[i]) && s[i] != '-' && s[i] != '_') {
            return "a DNS name has only letters, digits, \"-\", \"_\" and dots";
        }
    }
    return NULL;
}

/* Resolvers take such a last label for a part of an IPv4 address ("10.0.0.300", "0x7f"). */
static bool
is_number(const char *s, size_t len)
{
    bool hex = len >= 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    size_t i = hex ? 2 : 0;

    while (i < len && (hex ? is_hex(s[i]) : is_digit(s[i]))) {
        i++;
    }
    return i == len;
}

static err_t
put_dns(const char *s, size_t len, struct buf *out, struct error *e)
{
    size_t start = 0;

    if (len > 0 && s[len - 1] == '.') {
        len--;
    }
    if (len == 0) {
        return error_set(e, ERR_INVALID, "a name is missing");
    }
    if (len > DNS_NAME_BYTES) {
        return error_set(e, ERR_INVALID, "a DNS name has at most 253 characters");
    }
    for (size_t i = 0; i <= len; i++) {
        const char *fault;

        if (i < len && s[i] != '.') {
            continue;
        }
        fault = label_fault(s + start, i - start);
        if (fault != NULL) {
            return error_set(e, ERR_INVALID, "%s", fault);
        }
        if (i == len && is_number(s + start, i - start)) {
            return error_set(
                e, ERR_INVALID,
                "this is neither an IP address nor a DNS name, whose last part is no number");
        }
        start = i + 1;
    }
    put_lower(out, s, len);
    return ERR_OK;
}

/* True for what can only be meant as an address: digits and dots, or with a colon. */
static bool
looks_like_ip(const char *s, size_t len)
{
    size_t i = 0;

    if (memchr(s, ':', len) != NULL) {
        return true;
    }
    while (i < len && (is_digit(s[i]) || s[i] == '.')) {
        i++;
    }
    return i == len && len > 0 && s[len - 1] != '.';
}

err_t
value_check_host(const char *s, size_t len, struct buf *out, struct error *e)
{
    const char *colon = memchr(s, ':', len);

    if (len > 0 && s[0] == '[') {
        return error_set(e, ERR_INVALID, "write an IPv6 address without brackets");
    }
    if (colon != NULL && is_port(colon + 1, len - (size_t)(colon - s) - 1)) {
        return error_set(e, ERR_INVALID, "only a host is wanted here, without a port");
    }
    if (looks_like_ip(s, len)) {
        return put_ip(s, len, out, e);
    }
    return put_dns(s, len, out, e);
}

err_t
value_check_dns_name(const char *s, size_t len, struct buf *out, struct error *e)
{
    return len == 0 ? ERR_OK : put_dns(s, len, out, e);
}

err_t
value_check_host_pattern(const char *s, size_t len, struct buf *out, struct error *e)
{
    bool wildcard = len >= 2 && s[0] == '*' && s[1] == '.';
    size_t before = out->len;
    err_t code;

    if (wildcard) {
        buf_puts(out, "*.");
        s += 2;
        len -= 2;
    }
    if (memchr(s, '*', len) != NULL) {
        return error_set(e, ERR_INVALID, "\"*\" stands only in front, as in *.example.test");
    }
    code = put_dns(s, len, out, e);
    if (code == ERR_OK && out->len - before > DNS_NAME_BYTES) {
        return error_set(e, ERR_INVALID, "a DNS name has at most 253 characters");
    }
    return code;
}

/* ---- host and port ---- */

/* "host", "host:port", "[v6]", "[v6]:port". */
static err_t
put_authority(const char *s, size_t len, struct buf *out, struct error *e)
{
    const char *end = s + len;
    const char *host_end;
    err_t code;

    if (len > 0 && s[0] == '[') {
        const char *close = memchr(s, ']', len);

        if (close == NULL || memchr(s, ':', (size_t)(close - s)) == NULL) {
            return error_set(e, ERR_INVALID, "brackets hold an IPv6 address");
        }
        buf_putc(out, '[');
        code = put_ip(s + 1, (size_t)(close - s - 1), out, e);
        buf_putc(out, ']');
        host_end = close + 1;
    } else {
        const char *colon = memchr(s, ':', len);

        host_end = colon != NULL ? colon : end;
        code = value_check_host(s, (size_t)(host_end - s), out, e);
    }
    if (code != ERR_OK || host_end == end) {
        return code;
    }
    if (*host_end != ':' || !is_port(host_end + 1, (size_t)(end - host_end - 1))) {
        return error_set(
            e, ERR_INVALID, "behind the host stands nothing, or \":\" and a port (1-65535)");
    }
    buf_put(out, host_end, (size_t)(end - host_end));
    return ERR_OK;
}

err_t
value_check_header_host(const char *s, size_t len, struct buf *out, struct error *e)
{
    return len == 0 ? ERR_OK : put_authority(s, len, out, e);
}

/* ---- paths and URLs ---- */

/* RFC 3986: unreserved, sub-delims, ":" and "@", "/". */
static bool
is_path_char(char c)
{
    return is_alnum(c) || strchr("._~!$&'()*+,;=:@/-", c) != NULL;
}

/* Length of the escape at s, 0 when "%" is not followed by two hexadecimal digits. */
static size_t
escape_length(const char *s, size_t len)
{
    return len >= 3 && s[0] == '%' && is_hex(s[1]) && is_hex(s[2]) ? 3 : 0;
}

static const char *
path_chars_fault(const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = is_path_char(s[i]) ? 1 : escape_length(s + i, len - i);

        if (s[i] == '?' || s[i] == '#') {
            return "a path has no query (\"?\") and no fragment (\"#\")";
        }
        if (n == 0) {
            return "a path has only what a URL allows; write other characters as %XX";
        }
        if (n == 3 && ((s[i + 1] == '0' && s[i + 2] == '0') ||
                       (s[i + 1] == '2' && (s[i + 2] == 'f' || s[i + 2] == 'F')))) {
            return "a path has no encoded slash (%2F) and no encoded NUL (%00)";
        }
        i += n;
    }
    return NULL;
}

static const char *
path_segments_fault(const char *s, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        const char *slash = memchr(s + i, '/', len - i);
        size_t n = slash != NULL ? (size_t)(slash - s) - i : len - i;

        if (slash != NULL && n == 0) {
            return "a path has no \"//\"";
        }
        if ((n == 1 || n == 2) && memcmp(s + i, "..", n) == 0) {
            return "a path has no part \".\" or \"..\"";
        }
        i += n;
    }
    return NULL;
}

static err_t
put_path(const char *s, size_t len, struct buf *out, struct error *e)
{
    const char *fault = NULL;

    if (len == 0 || s[0] != '/') {
        fault = "a path starts with \"/\"";
    }
    if (fault == NULL) {
        fault = path_chars_fault(s, len);
    }
    if (fault == NULL) {
        fault = path_segments_fault(s, len);
    }
    if (fault != NULL) {
        return error_set(e, ERR_INVALID, "%s", fault);
    }
    buf_put(out, s, len);
    return ERR_OK;
}

err_t
value_check_path(const char *s, size_t len, struct buf *out, struct error *e)
{
    return put_path(s, len, out, e);
}

err_t
value_check_path_query(const char *s, size_t len, struct buf *out, struct error *e)
{
    const char *query = memchr(s, '?', len);
    size_t path = query != NULL ? (size_t)(query - s) : len;
    err_t code = put_path(s, path, out, e);

    for (size_t i = path; code == ERR_OK && i < len;) {
        size_t n = is_path_char(s[i]) || s[i] == '?' ? 1 : escape_length(s + i, len - i);

        if (n == 0) {
            return error_set(
                e, ERR_INVALID,
                "a query has only what a URL allows, and no fragment (\"#\"); write other "
                "characters as %%XX");
        }
        i += n;
    }
    buf_put(out, s + path, len - path);
    return code;
}

err_t
value_check_url(const char *s, size_t len, struct buf *out, struct error *e)
{
    size_t scheme = starts_with(s, len, "https://") ? 8 : 7;
    size_t host = 0;
    size_t before = out->len;

    if (len == 0) {
        return ERR_OK;
    }
    if (scheme == 7 && !starts_with(s, len, "http://")) {
        return error_set(e, ERR_INVALID, "a URL starts with http:// or https://");
    }
    while (scheme + host < len && strchr("/?#", s[scheme + host]) == NULL) {
        host++;
    }
    if (put_authority(s + scheme, host, out, e) != ERR_OK) {
        return ERR_INVALID;
    }
    for (size_t i = scheme + host; i < len;) {
        size_t n = is_path_char(s[i]) || strchr("?#[]", s[i]) != NULL
                       ? 1
                       : escape_length(s + i, len - i);

        if (n == 0) {
            return error_set(
                e, ERR_INVALID,
                "a URL has only letters, digits and the punctuation that URLs allow; write "
                "other characters as %%XX");
        }
        i += n;
    }
    /* Stored as given: the host was written only to check it. */
    out->len = before;
    buf_put(out, s, len);
    return ERR_OK;
}

/* ---- networks and endpoints ---- */

/* Length of a prefix, from 0 to most; -1 when it is none. */
static int
prefix_length(const char *s, size_t len, int most)
{
    int length = 0;

    if (len == 0 || len > 3 || (len > 1 && s[0] == '0')) {
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(s[i])) {
            return -1;
        }
        length = length * 10 + (s[i] - '0');
    }
    return length <= most ? length : -1;
}

struct network {
    int family;
    int prefix; /* -1: none was given */
    unsigned char address[sizeof(struct in6_addr)];
};

static err_t
read_network(const char *s, size_t len, struct network *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf address;
    const char *slash = memchr(s, '/', len);
    size_t end = slash != NULL ? (size_t)(slash - s) : len;

    buf_init(&address, INET6_ADDRSTRLEN);
    if (value_check_ip(s, end, &address, e) != ERR_OK) {
        return ERR_INVALID;
    }
    ret->family = inet_pton(AF_INET, buf_str(&address), ret->address) == 1 ? AF_INET : AF_INET6;
    if (ret->family == AF_INET6) {
        int parsed = inet_pton(AF_INET6, buf_str(&address), ret->address);

        ASSERT(parsed == 1);
    }
    ret->prefix = -1;
    if (slash != NULL) {
        int most = ret->family == AF_INET ? 32 : 128;

        ret->prefix = prefix_length(slash + 1, len - end - 1, most);
        if (ret->prefix < 0) {
            return error_set(
                e, ERR_INVALID, "behind the / stands a length of the prefix from 0 to %d",
                most);
        }
    }
    return ERR_OK;
}

static void
put_network(const struct network *n, struct buf *out)
{
    char text[INET6_ADDRSTRLEN];

    buf_puts(out, inet_ntop(n->family, n->address, text, sizeof text));
    if (n->prefix >= 0) {
        buf_printf(out, "/%d", n->prefix);
    }
}

err_t
value_check_network(const char *s, size_t len, struct buf *out, struct error *e)
{
    struct network n = {.family = AF_UNSPEC};
    int bits;

    if (read_network(s, len, &n, e) != ERR_OK) {
        return ERR_INVALID;
    }
    bits = n.family == AF_INET ? 32 : 128;
    for (int i = n.prefix < 0 ? bits : n.prefix; i < bits; i++) {
        n.address[i / 8] &= (unsigned char)~(0x80u >> (i % 8));
    }
    if (n.prefix == bits) {
        n.prefix = -1;
    }
    put_network(&n, out);
    return ERR_OK;
}

err_t
value_check_vip(const char *s, size_t len, struct buf *out, struct error *e)
{
    static const unsigned char zero[sizeof(struct in6_addr)];
    struct network n = {.family = AF_UNSPEC};

    if (read_network(s, len, &n, e) != ERR_OK) {
        return ERR_INVALID;
    }
    if (n.prefix <= 0) {
        return error_set(
            e, ERR_INVALID,
            "write the prefix length of its network behind the address, as in 192.0.2.10/24");
    }
    if (memcmp(n.address, zero, n.family == AF_INET ? 4 : 16) == 0) {
        return error_set(e, ERR_INVALID, "this is no single address");
    }
    put_network(&n, out);
    return ERR_OK;
}

err_t
value_check_endpoint(const char *s, size_t len, struct buf *out, struct error *e)
{
    static const char form[] = "write an address, \":\" and a port, as in 192.0.2.9:514 or "
                               "[2001:db8::9]:514";
    const char *colon = memrchr(s, ':', len);
    size_t host = colon != NULL ? (size_t)(colon - s) : 0;
    bool v6 = host > 2 && s[0] == '[' && s[host - 1] == ']';

    if (len == 0) {
        return ERR_OK;
    }
    if (host == 0 || !is_port(colon + 1, len - host - 1) || colon[1] == '0' ||
        (!v6 && memchr(s, ':', host) != NULL)) {
        return error_set(e, ERR_INVALID, "%s", form);
    }
    if (v6) {
        buf_putc(out, '[');
        if (put_ip(s + 1, host - 2, out, e) != ERR_OK) {
            return ERR_INVALID;
        }
        buf_putc(out, ']');
    } else if (put_ip(s, host, out, e) != ERR_OK) {
        return ERR_INVALID;
    }
    buf_put(out, colon, len - host);
    return ERR_OK;
}

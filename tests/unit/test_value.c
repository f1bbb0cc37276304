/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/x509.h"
#include "tests/support/text_rows.h"

#define TEXT_BYTES ((size_t)1 << 20)
#define NOW_S      1800000000

#define LABEL63 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"
#define NAME253                                                                                \
    LABEL63 "." LABEL63 "." LABEL63                                                            \
            ".abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghi"

/* Why C077 cannot be: a name holds only what HAProxy takes, and is written as it is. None is
 * made of another, so that no two become one; files of certificates have the object's id. */
static void
name_has_few_characters_and_no_reserved_start(void **state)
{
    (void)state;
    CHECK(
        TT_NAME, SAME("a"), SAME("9"), SAME("Web_1.x:y-Z"), SAME("lock"),
        REFUSED("", "starts with a letter"), REFUSED("-i", "starts with a letter"),
        REFUSED(".a", "starts with a letter"), REFUSED("a b", "only letters"),
        REFUSED("a/b", "only letters"), REFUSED("a\xc3\xbc", "only letters"),
        REFUSED("lockstep", "reserved"), REFUSED("lockstep-x", "reserved"));
}

static void
host_is_an_address_or_a_dns_name(void **state)
{
    (void)state;
    CHECK(
        TT_HOST, SAME("10.0.0.5"), SAME("web1"), SAME("_x.my_app.lan"), SAME("1a.2b"),
        BECOMES("Web1.Example.TEST.", "web1.example.test"), BECOMES("AZ.az", "az.az"),
        SAME(LABEL63 ".x"), SAME(NAME253), BECOMES(NAME253 ".", NAME253),
        BECOMES("2001:DB8:0:0::5", "2001:db8::5"), SAME("::1"), SAME("0x7g"), SAME("x0x7f"),
        SAME("3com.example"), REFUSED("", "missing"), REFUSED(".", "missing"),
        REFUSED("a..b", "two dots"), REFUSED(".a", "two dots"), REFUSED("a..", "two dots"),
        REFUSED(LABEL63 "x", "63 characters"), REFUSED("a" NAME253, "253 characters"),
        REFUSED("-a.b", "starts or ends"), REFUSED("a-.b", "starts or ends"),
        REFUSED("a b", "only letters"), REFUSED("a/b", "only letters"),
        REFUSED("1.2.3", "not an IP address"), REFUSED("10.0.0.300", "not an IP address"),
        REFUSED("7", "not an IP address"), REFUSED("010.0.0.1", "not an IP address"),
        REFUSED("1.2.3.4.", "no number"), REFUSED("a.0x7f", "no number"),
        REFUSED("0X7F", "no number"), REFUSED("0x", "no number"),
        REFUSED("[::1]", "without brackets"), REFUSED("web1:8080", "without a port"),
        REFUSED("10.0.0.1:80", "without a port"), REFUSED("fe80::1%eth0", "zone"),
        REFUSED("::ffff:10.0.0.1", "IPv4 address without"), REFUSED("1:2", "without a port"),
        REFUSED("1:x", "not an IP address"), REFUSED("m\xc3\xbcller.example", "only letters"));
}

static void
ip_is_written_in_its_one_form(void **state)
{
    (void)state;
    CHECK(
        TT_IP, SAME("0.0.0.0"), SAME("255.255.255.255"), SAME("::"),
        BECOMES("2001:0DB8:0:0:0:0:0:1", "2001:db8::1"),
        BECOMES("1:0:0:2:0:0:0:3", "1:0:0:2::3"), BECOMES("0:0:1:2:3:4:5:6", "::1:2:3:4:5:6"),
        SAME("1:0:2:3:4:5:6:7"), REFUSED("", "not an IP"), REFUSED("web1", "not an IP"),
        REFUSED("1.2.3", "not an IP"), REFUSED("[::1]", "without brackets"),
        REFUSED("::1%lo", "zone"), REFUSED("::FFFF:1.2.3.4", "IPv4 address without"),
        REFUSED("1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:0:1:2:3:4:5:6:7:8:9", "not an IP"));
}

static void
machine_ip_is_one_at_which_others_reach_this_machine(void **state)
{
    (void)state;
    CHECK(
        TT_MACHINE_IP, SAME(""), SAME("192.0.2.11"), SAME("10.0.0.1"), SAME("223.255.255.255"),
        BECOMES("2001:DB8:0::11", "2001:db8::11"), SAME("fd00::1"), SAME("128.0.0.1"),
        REFUSED("127.0.0.1", "cannot reach"), REFUSED("127.9.9.9", "cannot reach"),
        REFUSED("0.0.0.0", "cannot reach"), REFUSED("0.1.2.3", "cannot reach"),
        REFUSED("169.254.1.1", "cannot reach"), REFUSED("224.0.0.18", "cannot reach"),
        REFUSED("255.255.255.255", "cannot reach"), REFUSED("::", "cannot reach"),
        REFUSED("::1", "cannot reach"), REFUSED("fe80::1", "cannot reach"),
        REFUSED("ff02::12", "cannot reach"), REFUSED("::ffff:10.0.0.1", "IPv4 address without"),
        REFUSED("web1", "not an IP"), REFUSED("[2001:db8::1]", "without brackets"));
}

static void
tells_literal_addresses(void **state)
{
    (void)state;
    assert_true(value_is_ip("10.0.0.1"));
    assert_true(value_is_ip("2001:db8::1"));
    assert_false(value_is_ip("fe80::1%eth0"));
    assert_false(value_is_ip("web1"));
    assert_false(value_is_ip("10.0.0"));
    assert_false(value_is_ip("[::1]"));
    assert_false(value_is_ip(""));
}

static void
host_pattern_has_a_wildcard_only_in_front(void **state)
{
    (void)state;
    CHECK(
        TT_HOST_PATTERN, SAME("app.example.test"), SAME("*.example.test"), SAME("localhost"),
        BECOMES("*.Example.test.", "*.example.test"), SAME("*." LABEL63),
        REFUSED("*", "only in front"), REFUSED("*a.b", "only in front"),
        REFUSED("a.*.b", "only in front"), REFUSED("*.*.b", "only in front"),
        REFUSED("*.", "missing"), REFUSED("", "missing"), REFUSED("10.0.0.1", "no number"),
        REFUSED("*.1", "no number"), REFUSED("*." NAME253, "253"),
        REFUSED("a:80", "only letters"), REFUSED("::1", "only letters"));
}

static void
path_is_that_of_a_url(void **state)
{
    (void)state;
    CHECK(
        TT_PATH, SAME("/"), SAME("/a"), SAME("/a/"), SAME("/a/b.c/..d/e../..."),
        SAME("/~u/!$&'()*+,;=:@-_"), SAME("/%c3%BC"), SAME("/%20"), SAME("/%0a"),
        REFUSED("", "starts with"), REFUSED("a", "starts with"), REFUSED("//", "\"//\""),
        REFUSED("/a//b", "\"//\""), REFUSED("/.", "\"..\""), REFUSED("/a/../b", "\"..\""),
        REFUSED("/a/./b", "\"..\""), REFUSED("/..", "\"..\""), REFUSED("/a?b", "query"),
        REFUSED("/a#b", "query"), REFUSED("/a b", "%XX"), REFUSED("/%", "%XX"),
        REFUSED("/%2", "%XX"), REFUSED("/%zz", "%XX"), REFUSED("/%2z", "%XX"),
        REFUSED("/%2f", "slash"), REFUSED("/%2F", "slash"), REFUSED("/%00", "NUL"),
        REFUSED("/\xc3\xbc", "%XX"), REFUSED("/\"", "%XX"), REFUSED("/\\", "%XX"),
        REFUSED("/{x}", "%XX"));
}

static void
header_host_may_have_a_port_or_be_empty(void **state)
{
    (void)state;
    CHECK(
        TT_HEADER_HOST, SAME(""), SAME("app.example.test"), SAME("app:8080"),
        BECOMES("App.Example.Test.:8080", "app.example.test:8080"), SAME("10.0.0.1:80"),
        SAME("[::1]"), BECOMES("[2001:DB8::0:1]:65535", "[2001:db8::1]:65535"), SAME("a:1"),
        REFUSED("a:", "a port (1-65535)"), REFUSED("a:0", "a port (1-65535)"),
        REFUSED("a:65536", "a port (1-65535)"), REFUSED("a:123456", "a port (1-65535)"),
        REFUSED("a:x", "a port (1-65535)"), REFUSED("[::1]x", "a port (1-65535)"),
        REFUSED("[::1", "brackets hold"), REFUSED("[10.0.0.1]", "brackets hold"),
        REFUSED("[:x]", "not an IP"), REFUSED("::1", "missing"), REFUSED(":80", "missing"),
        REFUSED("a b", "only letters"), REFUSED("a/b", "only letters"));
}

static void
statuses_are_in_a_set_or_not(void **state)
{
    static const struct {
        const char *set;
        unsigned status;
        bool in;
    } rows[] = {
        {"200", 200, true},
        {"200", 201, false},
        {"200-399", 200, true},
        {"200-399", 399, true},
        {"200-399", 400, false},
        {"200-399", 199, false},
        {"200,204,300-399", 204, true},
        {"200,204,300-399", 301, true},
        {"200,204,300-399", 203, false},
        {"599,100-100,200-204", 100, true},
        {"599,100-100,200-204", 204, true},
        {"599,100-100,200-204", 0, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text set = {rows[i].set, (uint32_t)strlen(rows[i].set)};

        assert_int_equal(value_status_in(set, rows[i].status), rows[i].in);
    }
}

static void
status_set_lists_statuses_and_ranges(void **state)
{
    (void)state;
    CHECK(
        TT_STATUS_SET, SAME("200"), SAME("200-399"), SAME("599,100-100,200-204"),
        REFUSED("", "from 100 to 599"), REFUSED("2", "from 100 to 599"),
        REFUSED("20", "from 100 to 599"), REFUSED("600", "from 100 to 599"),
        REFUSED("099", "from 100 to 599"), REFUSED("2x0", "from 100 to 599"),
        REFUSED("20x", "from 100 to 599"), REFUSED("2000", "from 100 to 599"),
        REFUSED("200,", "from 100 to 599"), REFUSED("200, 201", "from 100 to 599"),
        REFUSED("200-", "from 100 to 599"), REFUSED("200-2", "from 100 to 599"),
        REFUSED("200-600", "from 100 to 599"), REFUSED("200-300-400", "from 100 to 599"),
        REFUSED(",200", "from 100 to 599"), REFUSED("300-200", "wrong way round"));
}

static void
free_text_is_composed_utf8_in_one_line(void **state)
{
    (void)state;
    CHECK(
        TT_NOTE, SAME(""), SAME(" a  b "), SAME("\"\\'#$HOME ${X} %[src] {} ; -i <b>"),
        SAME("\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80"),
        /* U+02FF, U+0370, U+1AAF, U+1B00, U+20CF, U+2100, U+FE1F, U+FE30: beside the blocks. */
        SAME("\xcb\xbf\xcd\xb0"), SAME("\xe1\xaa\xaf\xe1\xac\x80"),
        SAME("\xe2\x83\x8f\xe2\x84\x80"), SAME("\xef\xb8\x9f\xef\xb8\xb0"),
        REFUSED("u\xcc\x88", "U+0308"), REFUSED("\xcc\x80", "composed form (NFC)"),
        REFUSED("\xcd\xaf", "U+036F"), REFUSED("\xe1\xaa\xb0", "U+1AB0"),
        REFUSED("\xe1\xab\xbf", "U+1AFF"), REFUSED("\xe1\xb7\x80", "U+1DC0"),
        REFUSED("\xe1\xb7\xbf", "U+1DFF"), REFUSED("\xe2\x83\x90", "U+20D0"),
        REFUSED("\xe2\x83\xbf", "U+20FF"), REFUSED("\xef\xb8\xa0", "U+FE20"),
        REFUSED("\xef\xb8\xaf", "U+FE2F"));
    CHECK(TT_TITLE, SAME("x"), REFUSED("u\xcc\x88", "U+0308"));
}

static void
url_is_http_or_https_without_login(void **state)
{
    (void)state;
    CHECK(
        TT_URL, SAME(""), SAME("http://a"), SAME("https://A.example:8443/x?y=%20&z#f"),
        SAME("http://[2001:DB8::1]:80/"), SAME("https://10.0.0.1?x"), SAME("https://a#b/c"),
        REFUSED("ftp://a", "starts with http"), REFUSED("HTTP://a", "starts with http"),
        REFUSED("http:/", "starts with http"), REFUSED("https:", "starts with http"),
        REFUSED("http://", "missing"), REFUSED("http:///x", "missing"),
        REFUSED("https://u@a", "only letters"), REFUSED("https://u:p@a/", "a port"),
        REFUSED("http://a:0", "a port"), REFUSED("http://a/ b", "punctuation"),
        REFUSED("http://a/\"", "punctuation"), REFUSED("http://a/%", "punctuation"),
        REFUSED("http://a/%g0", "punctuation"), REFUSED("http://a/\xc3\xbc", "punctuation"));
}

#define HASHED "scrypt$15$8$1$c2FsdA$aGFzaC1fX19f"

static void
password_is_free_but_for_the_look_of_a_hash(void **state)
{
    (void)state;
    CHECK(
        TT_PASSWORD, SAME("correct horse \xc3\xbc \"'$"), SAME("scrypt"), SAME(HASHED),
        SAME("u\xcc\x88 combines"), REFUSED("scrypt$", "stored hashes"),
        REFUSED("scrypt$15$8$1$x", "stored hashes"), REFUSED(HASHED "$x", "stored hashes"),
        REFUSED(HASHED "$", "stored hashes"), REFUSED("scrypt$15$$1$a$b", "stored hashes"),
        REFUSED("scrypt$15$8$1$a b$c", "stored hashes"), REFUSED("a\nb", "line breaks"),
        REFUSED("a\x7f", "control"));
}

static void
hex64_is_empty_or_complete(void **state)
{
    (void)state;
    CHECK(
        TT_HEX64, SAME(""),
        SAME("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
        REFUSED("0", "64 lower-case"),
        REFUSED("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeF", "64 lower"),
        REFUSED("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde", "64 lower"),
        REFUSED("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg", "64 lower"),
        REFUSED(
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0", "64 lower"));
}

/* ---- every type ---- */

static void
no_type_takes_broken_or_control_characters(void **state)
{
    (void)state;
    static const struct text_row rows[] = {
        REFUSED("\xff", "UTF-8"),         REFUSED("\xc3", "UTF-8"),
        REFUSED("\xed\xa0\x80", "UTF-8"), REFUSED("\xc0\x80", "UTF-8"),
        REFUSED("\x01", "control"),       REFUSED("\x1b", "control"),
        REFUSED("\x7f", "control"),       REFUSED("\xc2\x85", "control"),
    };
    static const struct text_row breaks[] = {
        REFUSED("/a\n", "line breaks"),
        REFUSED("a\r", "line breaks"),
        REFUSED("\t", "line breaks"),
    };

    for (unsigned type = 0; type < TEXT_TYPE_COUNT; type++) {
        struct buf b;
        struct error e;
        bool pem = strncmp(schema_text_type_names[type], "pem_", 4) == 0;

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            text_row_check((enum text_type)type, &rows[i]);
        }
        for (size_t i = 0; i < ARRAY_LEN(breaks) && !pem && type != TT_BODY; i++) {
            text_row_check((enum text_type)type, &breaks[i]);
        }
        buf_init(&b, TEXT_BYTES);
        assert_int_equal(
            value_check_text((enum text_type)type, "a\0b", 3, &b, &e), ERR_INVALID);
        buf_fini(&b);
    }
}

static void
reason_fits_behind_a_label(void **state)
{
    (void)state;
    for (unsigned type = 0; type < TEXT_TYPE_COUNT; type++) {
        struct error e = {ERR_OK, ""};
        struct buf b;

        buf_init(&b, TEXT_BYTES);
        if (value_check_text((enum text_type)type, "\xc3\xbc ?", 4, &b, &e) != ERR_OK) {
            assert_true(strlen(e.msg) > 10);
            assert_true(e.msg[strlen(e.msg) - 1] != '.');
        }
        buf_fini(&b);
    }
}

/* ---- PEM ---- */

struct pem {
    struct buf chain, key, chain2, key2;
};

static void
cert(const char *name, struct buf *chain, struct buf *key)
{
    const char *const names[] = {name, NULL};

    buf_init(chain, TEXT_BYTES);
    buf_init(key, TEXT_BYTES);
    assert_int_equal(x509_selfsigned(names, NOW_S, 30, chain, key, NULL), ERR_OK);
}

static int
make_pem(void **state)
{
    static struct pem p;

    cert("a.example", &p.chain, &p.key);
    cert("b.example", &p.chain2, &p.key2);
    *state = &p;
    return 0;
}

static int
free_pem(void **state)
{
    struct pem *p = *state;

    buf_fini(&p->chain);
    buf_fini(&p->key);
    buf_fini(&p->chain2);
    buf_fini(&p->key2);
    return 0;
}

static void
takes(enum text_type type, const char *in, const char *out)
{
    struct text_row r = {in, out, NULL};

    text_row_check(type, &r);
}

static void
refuses(enum text_type type, const char *in, const char *reason)
{
    struct text_row r = {in, NULL, reason};

    text_row_check(type, &r);
}

/* Lines end in CR LF, and an empty one follows each. */
static char *
windows(struct arena *a, const char *text)
{
    char *out = arena_alloc(a, 4 * strlen(text) + 1);
    char *at = out;

    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            memcpy(at, "\r\n\r\n", 4);
            at += 4;
        } else {
            *at++ = *text;
        }
    }
    return out;
}

static void
pem_chain_is_normalised_and_must_parse(void **state)
{
    const struct pem *p = *state;
    struct arena *a = arena_new(TEXT_BYTES);
    const char *chain = buf_str(&p->chain);
    char *both = arena_printf(a, "%s%s", chain, buf_str(&p->chain2));
    char *broken = arena_strdup(a, chain);

    takes(TT_PEM_CHAIN, chain, chain);
    takes(TT_PEM_CHAIN, both, both);
    takes(TT_PEM_CHAIN, windows(a, both), both);
    takes(TT_PEM_CHAIN, arena_printf(a, "subject=x\n%s", chain), chain);
    refuses(TT_PEM_CHAIN, "", "PEM block");
    takes(TT_PEM_CHAIN_OR_NONE, "", "");
    takes(TT_PEM_CHAIN_OR_NONE, windows(a, both), both);
    refuses(TT_PEM_CHAIN_OR_NONE, "hello", "PEM block");
    refuses(TT_PEM_CHAIN, "hello", "PEM block");
    refuses(TT_PEM_CHAIN, buf_str(&p->key), "PRIVATE KEY");
    broken[strlen("-----BEGIN CERTIFICATE-----\n") + 9] ^= 1;
    refuses(TT_PEM_CHAIN, broken, "certificate");
    broken[strlen("-----BEGIN CERTIFICATE-----\n") + 9] = '*';
    refuses(TT_PEM_CHAIN, broken, "base64");
    arena_free(a);
}

static void
pem_chain_over_the_limit_of_its_buffer_is_refused(void **state)
{
    const struct pem *p = *state;
    struct error e;
    struct buf b;

    buf_init(&b, 20);
    assert_int_equal(
        value_check_text(TT_PEM_CHAIN, p->chain.data, p->chain.len, &b, &e), ERR_INVALID);
    buf_fini(&b);
}

#define CURVE        "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
#define BLOCK(label) "-----BEGIN " label "-----\nMIIB\n-----END " label "-----\n"

static void
pem_key_is_one_key_without_passphrase(void **state)
{
    const struct pem *p = *state;
    struct arena *a = arena_new(TEXT_BYTES);
    const char *key = buf_str(&p->key);

    takes(TT_PEM_KEY, key, key);
    takes(TT_PEM_KEY, windows(a, key), key);
    takes(TT_PEM_KEY, BLOCK("RSA PRIVATE KEY"), BLOCK("RSA PRIVATE KEY"));
    takes(TT_PEM_KEY, CURVE BLOCK("EC PRIVATE KEY"), BLOCK("EC PRIVATE KEY"));
    refuses(TT_PEM_KEY, "", "PEM block");
    takes(TT_PEM_KEY_OR_NONE, "", "");
    takes(TT_PEM_KEY_OR_NONE, windows(a, key), key);
    refuses(TT_PEM_KEY_OR_NONE, CURVE, "exactly one private key");
    refuses(TT_PEM_KEY, CURVE, "exactly one private key");
    refuses(TT_PEM_KEY, buf_str(&p->chain), "exactly one private key");
    refuses(TT_PEM_KEY, arena_printf(a, "%s%s", key, key), "exactly one private key");
    refuses(TT_PEM_KEY, arena_printf(a, "%s%s", key, buf_str(&p->chain)), "exactly one");
    refuses(TT_PEM_KEY, BLOCK("OPENSSH PRIVATE KEY"), "exactly one private key");
    refuses(TT_PEM_KEY, BLOCK("ENCRYPTED PRIVATE KEY"), "passphrase");
    refuses(TT_PEM_KEY, CURVE BLOCK("ENCRYPTED PRIVATE KEY"), "passphrase");
    refuses(
        TT_PEM_KEY,
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
        "DEK-Info: AES-128-CBC,00\n\nMIIB\n-----END RSA PRIVATE KEY-----\n",
        "passphrase");
    refuses(TT_PEM_KEY, BLOCK("X"), "exactly one private key");
    refuses(TT_PEM_KEY, BLOCK("PRIVATE KEYS"), "exactly one private key");
    refuses(TT_PEM_KEY, "-----BEGIN PRIVATE KEY-----\nMIIB\n", "PEM block");
    arena_free(a);
}

/* ---- equality ---- */

static struct value
text(const char *s)
{
    return (struct value){.u.text = {s, (uint32_t)strlen(s)}};
}

static struct value
list(const struct value *items, uint32_t count)
{
    return (struct value){.count = count, .u.items = items};
}

static void
values_are_equal_by_content(void **state)
{
    (void)state;
    const struct schema_field number = {.type = FT_INT};
    const struct schema_field words = {.type = FT_TEXT, .list = true};
    const struct schema_field parts[] = {{.type = FT_REF, .nullable = true}, {.type = FT_INT}};
    const struct schema_field records = {
        .type = FT_RECORD, .list = true, .fields = parts, .field_count = 2};
    const struct value one = {.u.i = 1};
    const struct value two = {.u.i = 2};
    const struct value null = {.is_null = true};
    const struct value ab[] = {text("a"), text("b")};
    const struct value ac[] = {text("a"), text("c")};
    const struct value aab[] = {text("a"), text("ab")};
    const struct value row1[] = {null, one};
    const struct value row2[] = {null, two};
    const struct value row3[] = {text("a"), one};
    const struct value r1 = list(row1, 2);
    const struct value r2 = list(row2, 2);
    const struct value r3 = list(row3, 2);

    assert_true(value_equal(&number, &one, &one));
    assert_false(value_equal(&number, &one, &two));
    assert_false(value_equal(&number, &one, &null));
    assert_false(value_equal(&number, &null, &one));
    assert_true(value_equal(&number, &null, &null));
    assert_false(value_equal(&number, &null, &(struct value){.u.i = 0}));
    assert_true(value_equal(&words, &(struct value){.count = 0}, &(struct value){.count = 0}));
    assert_true(value_equal(
        &words, &(struct value){.count = 2, .u.items = ab},
        &(struct value){.count = 2, .u.items = ab}));
    assert_false(value_equal(
        &words, &(struct value){.count = 2, .u.items = ab},
        &(struct value){.count = 2, .u.items = ac}));
    assert_false(value_equal(
        &words, &(struct value){.count = 2, .u.items = ab},
        &(struct value){.count = 2, .u.items = aab}));
    assert_false(value_equal(
        &words, &(struct value){.count = 2, .u.items = ab},
        &(struct value){.count = 1, .u.items = ab}));
    assert_true(value_equal(
        &records, &(struct value){.count = 1, .u.items = &r1},
        &(struct value){.count = 1, .u.items = &r1}));
    assert_false(value_equal(
        &records, &(struct value){.count = 1, .u.items = &r1},
        &(struct value){.count = 1, .u.items = &r2}));
    assert_false(value_equal(
        &records, &(struct value){.count = 1, .u.items = &r1},
        &(struct value){.count = 1, .u.items = &r3}));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_are_in_a_set_or_not),
        cmocka_unit_test(name_has_few_characters_and_no_reserved_start),
        cmocka_unit_test(host_is_an_address_or_a_dns_name),
        cmocka_unit_test(ip_is_written_in_its_one_form),
        cmocka_unit_test(machine_ip_is_one_at_which_others_reach_this_machine),
        cmocka_unit_test(tells_literal_addresses),
        cmocka_unit_test(host_pattern_has_a_wildcard_only_in_front),
        cmocka_unit_test(path_is_that_of_a_url),
        cmocka_unit_test(header_host_may_have_a_port_or_be_empty),
        cmocka_unit_test(status_set_lists_statuses_and_ranges),
        cmocka_unit_test(free_text_is_composed_utf8_in_one_line),
        cmocka_unit_test(url_is_http_or_https_without_login),
        cmocka_unit_test(password_is_free_but_for_the_look_of_a_hash),
        cmocka_unit_test(hex64_is_empty_or_complete),
        cmocka_unit_test(no_type_takes_broken_or_control_characters),
        cmocka_unit_test(reason_fits_behind_a_label),
        cmocka_unit_test_setup_teardown(
            pem_chain_is_normalised_and_must_parse, make_pem, free_pem),
        cmocka_unit_test_setup_teardown(
            pem_chain_over_the_limit_of_its_buffer_is_refused, make_pem, free_pem),
        cmocka_unit_test_setup_teardown(
            pem_key_is_one_key_without_passphrase, make_pem, free_pem),
        cmocka_unit_test(values_are_equal_by_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

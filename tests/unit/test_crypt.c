/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/crypt.h"

static void
hash_is(const void *p, size_t bytes, const char *want)
{
    struct hash h = sha256(p, bytes);
    char hex[SHA256_HEX + 1];

    hash_hex(&h, hex);
    assert_string_equal(hex, want);
}

/* FIPS 180-4 examples. */
static void
sha256_gives_the_published_values(void **state)
{
    (void)state;
    hash_is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_is("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_is(
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void
running_hash_equals_hash_of_the_whole(void **state)
{
    struct sha256 *h = sha256_new();
    struct hash want = sha256("hello world", 11);
    struct hash got;

    (void)state;
    sha256_add(h, "hello", 5);
    sha256_add(h, "", 0);
    sha256_add(h, " world", 6);
    got = sha256_end(&h);
    assert_null(h);
    assert_true(hash_equal(&got, &want));
    got.b[31] ^= 1;
    assert_false(hash_equal(&got, &want));
}

static void
hash_text_is_read_strictly(void **state)
{
    struct hash want = sha256("abc", 3);
    struct hash got;
    char hex[SHA256_HEX + 2];

    (void)state;
    hash_hex(&want, hex);
    assert_true(hash_from_hex(hex, &got));
    assert_true(hash_equal(&got, &want));
    memset(&got, 7, sizeof got);
    hex[0] = 'B';
    assert_false(hash_from_hex(hex, &got));
    hex[0] = 'b';
    hex[63] = 'g';
    assert_false(hash_from_hex(hex, &got));
    hex[63] = '\0';
    assert_false(hash_from_hex(hex, &got));
    memcpy(hex + 63, "00", 3);
    assert_false(hash_from_hex(hex, &got));
    assert_false(hash_from_hex("", &got));
    assert_int_equal(got.b[0], 7);
}

static void
hex_is_lower_case(void **state)
{
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&b, 100);
    hex_put(&b, "\x00\x0f\xa5\xff", 4);
    assert_string_equal(buf_str(&b), "000fa5ff");
}

static void
tokens_are_base64url_and_differ(void **state)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    CLEANUP(buf_fini) struct buf a;
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&a, 1000);
    buf_init(&b, 1000);
    for (size_t bytes = 0; bytes <= 64; bytes++) {
        buf_reset(&a);
        crypt_token(&a, bytes);
        assert_int_equal(a.len, (bytes * 4 + 2) / 3);
        assert_int_equal(strspn(buf_str(&a), digits), a.len);
    }
    crypt_token(&b, 64);
    assert_string_not_equal(buf_str(&a), buf_str(&b));
}

static void
compares_and_wipes(void **state)
{
    char secret[] = "secret";

    (void)state;
    assert_true(crypt_equal("abc", "abc", 3));
    assert_false(crypt_equal("abc", "abd", 3));
    assert_true(crypt_equal("abc", "abd", 2));
    crypt_wipe(secret, sizeof secret);
    assert_memory_equal(secret, "\0\0\0\0\0\0", sizeof secret);
}

static void
from_hex(const char *hex, uint8_t *out)
{
    for (size_t i = 0; hex[2 * i] != '\0'; i++) {
        unsigned v = 0;

        for (size_t k = 0; k < 2; k++) {
            char c = hex[2 * i + k];

            v = v * 16 + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        out[i] = (uint8_t)v;
    }
}

/* Test case 16 of the GCM specification (McGrew and Viega). */
static void
opens_the_published_gcm_example(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    uint8_t key[SEAL_KEY_BYTES];
    uint8_t aad[20];
    uint8_t sealed[12 + 60 + 16];
    uint8_t plain[60];
    struct error e;

    (void)state;
    buf_init(&out, 100);
    from_hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", key);
    from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2", aad);
    from_hex(
        "cafebabefacedbaddecaf888"
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        "76fc6ece0f4e1768cddf8853bb2d551b",
        sealed);
    from_hex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        plain);
    assert_int_equal(crypt_open(key, aad, sizeof aad, sealed, sizeof sealed, &out, &e), ERR_OK);
    assert_int_equal(out.len, sizeof plain);
    assert_memory_equal(out.data, plain, sizeof plain);
}

static void
sealed_text_opens_to_what_it_was(void **state)
{
    uint8_t key[SEAL_KEY_BYTES];

    (void)state;
    crypt_random(key, sizeof key);
    for (size_t bytes = 0; bytes < 100; bytes++) {
        CLEANUP(buf_fini) struct buf sealed;
        CLEANUP(buf_fini) struct buf out;
        uint8_t plain[100];

        crypt_random(plain, sizeof plain);
        buf_init(&sealed, 200);
        buf_init(&out, 200);
        buf_puts(&out, "before");
        crypt_seal(key, "aad", 3, plain, bytes, &sealed);
        assert_int_equal(sealed.len, bytes + 28);
        assert_int_equal(
            crypt_open(key, "aad", 3, sealed.data, sealed.len, &out, NULL), ERR_OK);
        assert_int_equal(out.len, 6 + bytes);
        assert_memory_equal(out.data + 6, plain, bytes);
        assert_int_equal(out.data[out.len], '\0');
    }
}

static void
sealing_twice_differs(void **state)
{
    static const uint8_t key[SEAL_KEY_BYTES] = {1};
    CLEANUP(buf_fini) struct buf a;
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&a, 100);
    buf_init(&b, 100);
    crypt_seal(key, NULL, 0, "x", 1, &a);
    crypt_seal(key, NULL, 0, "x", 1, &b);
    assert_memory_not_equal(a.data, b.data, a.len);
}

static void
does_not_open(const uint8_t *key, const char *aad, const struct buf *sealed, size_t bytes)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;

    buf_init(&out, 200);
    buf_puts(&out, "kept");
    assert_int_equal(
        crypt_open(key, aad, strlen(aad), sealed->data, bytes, &out, &e), ERR_CORRUPT);
    assert_string_equal(buf_str(&out), "kept");
}

static void
every_changed_bit_is_noticed(void **state)
{
    static const uint8_t key[SEAL_KEY_BYTES] = {1};
    static const uint8_t other[SEAL_KEY_BYTES] = {2};
    CLEANUP(buf_fini) struct buf sealed;

    (void)state;
    buf_init(&sealed, 200);
    crypt_seal(key, "aad", 3, "plain text", 10, &sealed);
    does_not_open(other, "aad", &sealed, sealed.len);
    does_not_open(key, "aax", &sealed, sealed.len);
    does_not_open(key, "aa", &sealed, sealed.len);
    for (size_t i = 0; i < sealed.len; i++) {
        does_not_open(key, "aad", &sealed, i);
        for (unsigned bit = 0; bit < 8; bit++) {
            sealed.data[i] = (char)((unsigned char)sealed.data[i] ^ 1u << bit);
            does_not_open(key, "aad", &sealed, sealed.len);
            sealed.data[i] = (char)((unsigned char)sealed.data[i] ^ 1u << bit);
        }
    }
}

static void
sealing_obeys_the_maximum_of_the_buffer(void **state)
{
    static const uint8_t key[SEAL_KEY_BYTES] = {1};
    CLEANUP(buf_fini) struct buf sealed;
    CLEANUP(buf_fini) struct buf out;

    (void)state;
    buf_init(&sealed, 37);
    crypt_seal(key, NULL, 0, "plain text", 10, &sealed);
    assert_int_equal(buf_status(&sealed, NULL), ERR_LIMIT);
    buf_fini(&sealed);
    buf_init(&sealed, 38);
    crypt_seal(key, NULL, 0, "plain text", 10, &sealed);
    assert_int_equal(buf_status(&sealed, NULL), ERR_OK);
    buf_init(&out, 9);
    assert_int_equal(crypt_open(key, NULL, 0, sealed.data, sealed.len, &out, NULL), ERR_LIMIT);
}

/* RFC 7914, section 12: scrypt("pleaseletmein", "SodiumChloride", 16384, 8, 1); of the 64
 * bytes the first 32, which do not depend on the length asked for. */
#define RFC_SALT "U29kaXVtQ2hsb3JpZGU"
#define RFC_HASH "cCO9yzr9c0hGHAbNgf046_2o-7qQT44-qbVD9lRdofI"

static void
password_check_agrees_with_rfc_7914(void **state)
{
    (void)state;
    assert_true(crypt_password_check("pleaseletmein", "scrypt$14$8$1$" RFC_SALT "$" RFC_HASH));
    assert_false(crypt_password_check("pleaseletmeim", "scrypt$14$8$1$" RFC_SALT "$" RFC_HASH));
    assert_false(crypt_password_check("pleaseletmein", "scrypt$13$8$1$" RFC_SALT "$" RFC_HASH));
}

static void
hashed_password_is_recognised(void **state)
{
    CLEANUP(buf_fini) struct buf a;
    CLEANUP(buf_fini) struct buf b;

    (void)state;
    buf_init(&a, 200);
    buf_init(&b, 200);
    crypt_password_hash("pass \xc3\xa9", &a);
    crypt_password_hash("pass \xc3\xa9", &b);
    assert_memory_equal(buf_str(&a), "scrypt$15$8$1$", 14);
    assert_string_not_equal(buf_str(&a), buf_str(&b));
    assert_true(crypt_password_check("pass \xc3\xa9", buf_str(&a)));
    assert_false(crypt_password_check("pass e", buf_str(&a)));
    assert_false(crypt_password_check("", buf_str(&a)));
    assert_true(crypt_password_is_hash(buf_str(&a)));
    /* One that costs less to guess is none that was made here. */
    assert_false(crypt_password_is_hash("scrypt$14$8$1$" RFC_SALT "$" RFC_HASH));
    assert_true(crypt_password_is_hash("scrypt$15$8$1$" RFC_SALT "$" RFC_HASH));
    assert_false(crypt_password_is_hash("scrypt$15$8$1$" RFC_SALT "$" RFC_HASH "A"));
    assert_false(crypt_password_is_hash("pass"));
    assert_false(crypt_password_is_hash(""));
}

static void
empty_password_is_a_password(void **state)
{
    CLEANUP(buf_fini) struct buf a;

    (void)state;
    buf_init(&a, 200);
    crypt_password_hash("", &a);
    assert_true(crypt_password_check("", buf_str(&a)));
    assert_false(crypt_password_check("x", buf_str(&a)));
    assert_false(crypt_password_check("", NULL));
}

static void
refuses_malformed_and_expensive_hashes(void **state)
{
    static const char *const bad[] = {
        "",
        "scrypt",
        "scrypt$",
        "bcrypt$14$8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$16$8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$63$8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$14$9$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$14$8$2$" RFC_SALT "$" RFC_HASH,
        "scrypt$0$8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$014$8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$-1$8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$18446744073709551617$8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$14 $8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$$8$1$" RFC_SALT "$" RFC_HASH,
        "scrypt$14$8$1$" RFC_SALT,
        "scrypt$14$8$1$" RFC_SALT "$",
        "scrypt$14$8$1$$" RFC_HASH,
        "scrypt$14$8$1$U29kaXVt$" RFC_HASH, /* salt too short */
        "scrypt$14$8$1$" RFC_SALT "=$" RFC_HASH,
        "scrypt$14$8$1$" RFC_SALT "$" RFC_HASH "A",
        "scrypt$14$8$1$" RFC_SALT "$" RFC_HASH "AA",
        "scrypt$14$8$1$" RFC_SALT "$" RFC_HASH "$",
        "scrypt$14$8$1$" RFC_SALT "$cCO9yzr9c0hGHAbNgf046/2o-7qQT44-qbVD9lRdofI",
        "scrypt$14$8$1$" RFC_SALT
        "$cCO9yzr9c0hGHAbNgf046_2o-7qQT44-qbVD9lRdofJ", /* spare bits */
        "scrypt$14$8$1$" RFC_SALT RFC_SALT RFC_SALT RFC_SALT RFC_SALT "$" RFC_HASH,
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(crypt_password_check("pleaseletmein", bad[i]));
        assert_false(crypt_password_is_hash(bad[i]));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_values),
        cmocka_unit_test(running_hash_equals_hash_of_the_whole),
        cmocka_unit_test(hash_text_is_read_strictly),
        cmocka_unit_test(hex_is_lower_case),
        cmocka_unit_test(tokens_are_base64url_and_differ),
        cmocka_unit_test(compares_and_wipes),
        cmocka_unit_test(opens_the_published_gcm_example),
        cmocka_unit_test(sealed_text_opens_to_what_it_was),
        cmocka_unit_test(sealing_twice_differs),
        cmocka_unit_test(every_changed_bit_is_noticed),
        cmocka_unit_test(sealing_obeys_the_maximum_of_the_buffer),
        cmocka_unit_test(password_check_agrees_with_rfc_7914),
        cmocka_unit_test(hashed_password_is_recognised),
        cmocka_unit_test(empty_password_is_a_password),
        cmocka_unit_test(refuses_malformed_and_expensive_hashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/member_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct member
member_lab_of(unsigned n, int64_t seq)
{
    struct member m = {
        .seq = seq,
        .pin = "sha256//AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJ+/0=",
        .release = "0.1.0",
        .schema_version = 2,
        .tables_port = 8444,
    };

    (void)snprintf(m.id, sizeof m.id, "%032x", n);
    (void)snprintf(m.name, sizeof m.name, "proxy%u", n);
    (void)snprintf(m.url, sizeof m.url, "https://192.0.2.%u:8443", n);
    (void)snprintf(m.tables_address, sizeof m.tables_address, "192.0.2.%u", n);
    (void)snprintf(m.key, sizeof m.key, "SENTINEL-key-of-%u", n);
    return m;
}

void
member_lab_assert(struct store_lab *l, const struct member *wanted, size_t count)
{
    struct member *found = NULL;
    size_t found_count = 99;
    struct error e;

    assert_int_equal(store_members(l->store, &found, &found_count, &e), ERR_OK);
    assert_int_equal(found_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(found[i].id, wanted[i].id);
        assert_int_equal(found[i].seq, wanted[i].seq);
        assert_int_equal(found[i].gone, wanted[i].gone);
        assert_string_equal(found[i].name, wanted[i].name);
        assert_string_equal(found[i].url, wanted[i].url);
        assert_string_equal(found[i].pin, wanted[i].pin);
        assert_string_equal(found[i].release, wanted[i].release);
        assert_int_equal(found[i].schema_version, wanted[i].schema_version);
        assert_string_equal(found[i].tables_address, wanted[i].tables_address);
        assert_int_equal(found[i].tables_port, wanted[i].tables_port);
        assert_string_equal(found[i].key, wanted[i].key);
    }
    free(found);
}

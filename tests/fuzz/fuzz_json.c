/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as JSON: what is accepted has a canonical form, and that and the readable
 * form parse back to the same value. */
#include <stdint.h>

#include "base/json.h"
#include "base/utf8.h"

#define TEXT_MAX_BYTES ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
canonical_of(const char *text, size_t len, struct buf *out)
{
    json_auto_t *v = NULL;
    struct error e = {.code = ERR_OK};
    err_t code = json_parse(text, len, &v, &e);

    ASSERT(code == ERR_OK && v != NULL);
    json_canonical(v, out);
    ASSERT(buf_status(out, &e) == ERR_OK);
}

static void
check_same(const char *text, size_t len, const struct buf *canonical)
{
    CLEANUP(buf_fini) struct buf again;

    buf_init(&again, TEXT_MAX_BYTES);
    canonical_of(text, len, &again);
    ASSERT(again.len == canonical->len);
    ASSERT(memcmp(buf_str(&again), buf_str(canonical), again.len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_auto_t *v = NULL;
    CLEANUP(buf_fini) struct buf canonical;
    CLEANUP(buf_fini) struct buf pretty;
    struct error e = {.code = ERR_OK};

    buf_init(&canonical, TEXT_MAX_BYTES);
    buf_init(&pretty, TEXT_MAX_BYTES);
    if (json_parse((const char *)data, size, &v, &e) != ERR_OK) {
        ASSERT(v == NULL && e.code == ERR_SYNTAX);
        ASSERT(utf8_valid(e.msg, strlen(e.msg)) && !utf8_has_control(e.msg, strlen(e.msg), ""));
        return 0;
    }
    json_canonical(v, &canonical);
    ASSERT(buf_status(&canonical, &e) == ERR_OK);
    ASSERT(utf8_valid(buf_str(&canonical), canonical.len));
    ASSERT(strlen(buf_str(&canonical)) == canonical.len);
    json_pretty(v, &pretty);
    ASSERT(buf_status(&pretty, &e) == ERR_OK);
    check_same(buf_str(&canonical), canonical.len, &canonical);
    check_same(buf_str(&pretty), pretty.len, &canonical);
    return 0;
}

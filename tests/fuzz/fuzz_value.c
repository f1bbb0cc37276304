/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses a type, the rest is a text of it. The normal form of what is
 * accepted is accepted again unchanged, and cannot break out of a line. */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "model/value.h"

#define TEXT_MAX_BYTES ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_normal(enum text_type type, const struct buf *normal)
{
    bool pem = type == TT_PEM_CHAIN || type == TT_PEM_CA || type == TT_PEM_KEY;
    const char *allowed = pem ? "\n" : type == TT_BODY ? "\t\n" : "";
    const char *s = buf_str(normal);
    CLEANUP(buf_fini) struct buf again;
    struct error e = {.code = ERR_OK};
    err_t code;

    ASSERT(utf8_valid(s, normal->len));
    ASSERT(!utf8_has_control(s, normal->len, allowed));
    buf_init(&again, TEXT_MAX_BYTES);
    code = value_check_text(type, s, normal->len, &again, &e);
    ASSERT(code == ERR_OK && buf_status(&again, &e) == ERR_OK);
    ASSERT(again.len == normal->len && memcmp(buf_str(&again), s, again.len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(buf_fini) struct buf normal = {0};
    struct error e = {.code = ERR_OK};
    enum text_type type;

    if (size == 0) {
        return 0;
    }
    type = (enum text_type)(data[0] % TEXT_TYPE_COUNT);
    buf_init(&normal, TEXT_MAX_BYTES);
    if (value_check_text(type, (const char *)data + 1, size - 1, &normal, &e) != ERR_OK) {
        ASSERT(e.code == ERR_INVALID && e.msg[0] != '\0');
        ASSERT(utf8_valid(e.msg, strlen(e.msg)));
        return 0;
    }
    check_normal(type, &normal);
    return 0;
}

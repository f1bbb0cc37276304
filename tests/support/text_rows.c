/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/text_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

#define TEXT_BYTES ((size_t)1 << 20)

void
text_row_check(enum text_type type, const struct text_row *r)
{
    struct buf b;
    struct error e = {ERR_OK, ""};
    err_t code;

    buf_init(&b, TEXT_BYTES);
    code = value_check_text(type, r->in, strlen(r->in), &b, &e);
    if (r->out != NULL) {
        if (code != ERR_OK) {
            print_error("%s \"%s\": %s\n", schema_text_type_names[type], r->in, e.msg);
        }
        assert_int_equal(code, ERR_OK);
        assert_string_equal(buf_str(&b), r->out);
    } else {
        if (code == ERR_OK || strstr(e.msg, r->reason) == NULL) {
            print_error(
                "%s \"%s\": %u \"%s\"\n", schema_text_type_names[type], r->in, code, e.msg);
        }
        assert_int_equal(code, ERR_INVALID);
        assert_int_equal(e.code, ERR_INVALID);
        assert_non_null(strstr(e.msg, r->reason));
    }
    buf_fini(&b);
}

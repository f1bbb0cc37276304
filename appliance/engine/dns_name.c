/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/dns_name.h"

#include <string.h>

#include "base/buf.h"
#include "model/value.h"

#define NORMAL_BYTES ((size_t)512)

bool
is_dns_name(const char *name)
{
    CLEANUP(buf_fini) struct buf normal;
    struct error unused;

    buf_init(&normal, NORMAL_BYTES);
    return !value_is_ip(name) &&
           value_check_text(TT_HOST, name, strlen(name), &normal, &unused) == ERR_OK;
}

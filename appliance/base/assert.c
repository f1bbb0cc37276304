/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"

void
assert_failed(const char *expr, const char *file, int line)
{
    (void)dprintf(2, "assertion failed: %s (%s:%d)\n", expr, file, line);
    abort();
}

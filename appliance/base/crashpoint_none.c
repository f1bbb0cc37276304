/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crashpoint.h"

void
crashpoint(const char *name)
{
    (void)name;
}

void
crashpoint_arm(const char *spec)
{
    (void)spec;
}

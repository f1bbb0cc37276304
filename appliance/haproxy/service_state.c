/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/service_state.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {
    [SERVICE_STOPPED] = "stopped",
    [SERVICE_STARTING] = "starting",
    [SERVICE_RUNNING] = "running",
    [SERVICE_WAITING] = "waiting",
};

const char *
service_state_name(enum service_state state)
{
    return names[state];
}

bool
service_state_parse(const char *name, enum service_state *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = (enum service_state)i;
            return true;
        }
    }
    return false;
}

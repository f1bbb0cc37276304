/* SPDX-License-Identifier: Apache-2.0 */
#include "model/schema.h"

#include <string.h>

#include "base/attr.h"

const struct schema_kind *
schema_kind(enum kind k)
{
    ASSERT((unsigned)k < KIND_COUNT);
    return &schema_kinds[k];
}

bool
schema_kind_by_name(const char *name, enum kind *ret)
{
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        if (strcmp(schema_kinds[i].name, name) == 0) {
            *ret = (enum kind)i;
            return true;
        }
    }
    return false;
}

bool
schema_kind_by_plural(const char *plural, enum kind *ret)
{
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        if (strcmp(schema_kinds[i].plural, plural) == 0) {
            *ret = (enum kind)i;
            return true;
        }
    }
    return false;
}

int
schema_field_index(const struct schema_field *fields, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

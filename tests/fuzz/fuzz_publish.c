/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary publish requests: a plan without an error applies, asked again it has nothing to
 * do, nor without its check, and the service can be removed. */
#include <stdint.h>

#include "model/validate.h"
#include "tests/support/fuzz_lab.h"
#include "tests/support/publishing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_valid(struct pair *x)
{
    fuzz_check_pair(&x->objects);
    validate_all(&x->objects, PUBLISH_NOW_S, pair_clear(x));
    fuzz_check_problems(&x->problems);
    ASSERT(x->problems.errors == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_auto_t *request = fuzz_json(data, size);
    struct pair CLEANUP(pair_fini) x;
    const char *service;
    const char *again;
    size_t ops = 0;

    fuzz_pair_init(&x);
    if (request == NULL) {
        return 0;
    }
    service = publish_to(&x, request, &ops);
    fuzz_check_problems(&x.problems);
    ASSERT((service == NULL) == (x.problems.errors > 0));
    if (service == NULL) {
        ASSERT(ops == 0);
        return 0;
    }
    ASSERT(pair_find(&x, K_SERVICE, service) != NULL);
    check_valid(&x);
    again = publish_to(&x, request, &ops);
    ASSERT(again != NULL && strcmp(again, service) == 0 && ops == 0);
    (void)json_object_del(request, "check"); /* then it stays */
    again = publish_to(&x, request, &ops);
    ASSERT(again != NULL && strcmp(again, service) == 0 && ops == 0);
    publish_remove(&x, service);
    ASSERT(pair_find(&x, K_SERVICE, service) == NULL);
    check_valid(&x);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/generation.h"
#include "helper/verbs.h"

static err_t
read_checked(struct helper_context *c, const json_t *request, int64_t *ret, struct error *e)
{
    err_t code = json_get_int(request, "generation", 1, GENERATION_MAX, ret, e);

    return code == ERR_OK ? generation_require_checked(c->generation_fd, *ret, e) : code;
}

err_t
verb_install(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    int64_t n = 0;
    err_t code = read_checked(c, request, &n, e);

    (void)answer;
    return code == ERR_OK ? generation_set_link(c->generation_fd, "current", n, e) : code;
}

err_t
verb_settle(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    int64_t n = 0;
    int64_t keep = 0;
    err_t code = read_checked(c, request, &n, e);

    (void)answer;
    if (code == ERR_OK && json_object_get(request, "keep") != NULL) {
        code = json_get_int(request, "keep", 0, GENERATION_MAX, &keep, e);
    }
    if (code == ERR_OK) {
        code = generation_mark_served(c->generation_fd, n, e);
    }
    if (code == ERR_OK) {
        code = generation_set_link(c->generation_fd, "good", n, e);
    }
    if (code == ERR_OK) {
        code = generation_prune(c->generation_fd, keep, e);
    }
    return code == ERR_OK ? generation_wipe_former(c->generation_fd, keep, e) : code;
}

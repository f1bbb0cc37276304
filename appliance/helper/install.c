/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/generation.h"
#include "helper/verbs.h"

static err_t
switch_link(struct helper_context *c, const json_t *request, const char *link, struct error *e)
{
    int64_t n = 0;
    err_t code = json_get_int(request, "generation", 1, GENERATION_MAX, &n, e);

    if (code == ERR_OK) {
        code = generation_require_checked(c->generation_fd, n, e);
    }
    if (code == ERR_OK) {
        code = generation_set_link(c->generation_fd, link, n, e);
    }
    return code;
}

err_t
verb_install(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    (void)answer;
    return switch_link(c, request, "current", e);
}

err_t
verb_settle(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    err_t code = switch_link(c, request, "good", e);

    (void)answer;
    return code == ERR_OK ? generation_prune(c->generation_fd, 0, e) : code;
}

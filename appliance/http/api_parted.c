/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_parted.h"
#include "http/api.h"
#include "http/reply.h"
#include "routes_gen.h"

void
http_peer_config_parted(struct request *r)
{
    json_t *answer = NULL;
    struct error e;

    if (sync_parted_answer(r->http->config.engine, r->json, &answer, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, answer);
}

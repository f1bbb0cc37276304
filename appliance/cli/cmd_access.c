/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/show.h"

int
cmd_password(struct cli *c, int argc, char **argv)
{
    const char *file = cli_option(c, "--file");
    const char *path = cli_path(c, "admins", argv[1], NULL);
    const char *password, *etag = NULL;
    json_t *now = NULL;
    int status = cli_read_line(c, file != NULL ? file : "-", &password);

    (void)argc;
    if (status == 0) {
        status = cli_etag(c, path, &etag, NULL);
    }
    if (status != 0) {
        return status;
    }
    json_auto_t *body = json_pack("{s:s}", "password", password);
    const struct call q = {.method = "PATCH", .path = path, .body = body, .if_match = etag};
    status = cli_call(c, &q, &now, NULL);
    if (status == 0 && !cli_printed_json(c, now)) {
        puts("The password is changed, and the administrator's sessions have ended.");
    }
    json_decref(now);
    return status;
}

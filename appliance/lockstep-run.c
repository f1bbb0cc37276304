/* SPDX-License-Identifier: Apache-2.0 */
/* Direct mode: starts HAProxy, lockstep-helper and lockstepd and keeps them running, where no
 * systemd does it: in containers, network namespaces, the quick start and the tests. */
#include <unistd.h>

#include "base/log.h"
#include "run/options.h"
#include "run/supervisor.h"

int
main(int argc, char **argv)
{
    struct run_options o;
    struct error e;

    log_open("lockstep-run", LOG_LEVEL_INFO);
    switch (run_options_parse(argc, argv, &o)) {
    case RUN_OPTIONS_OK: break;
    case RUN_OPTIONS_DONE: return 0;
    case RUN_OPTIONS_WRONG: return 2;
    }
    if (geteuid() != 0) {
        log_error("must be started by root");
        return 1;
    }
    if (run_options_resolve(&o, &e) != ERR_OK || supervise(&o, &e) != ERR_OK) {
        log_error("%s", e.msg);
        return 1;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCKSTEP_ENGINE_DNS_NAME_H
#define LOCKSTEP_ENGINE_DNS_NAME_H

#include <stdbool.h>

/* True for what may stand as a DNS name in a certificate. */
bool is_dns_name(const char *name);

#endif

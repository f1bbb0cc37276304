/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing into a test's configuration, with real placeholders. */
#ifndef LOCKSTEP_SUPPORT_PUBLISHING_H
#define LOCKSTEP_SUPPORT_PUBLISHING_H

#include "model/publish.h"
#include "tests/support/pair.h"

#define PUBLISH_NOW_S ((int64_t)1800000000)

/* Plans and, when there is no error, applies. *ret_ops: how many operations; may be NULL.
 * The service's name in x->arena, or NULL; problems are in x->problems. */
const char *publish_to(struct pair *x, const json_t *request, size_t *ret_ops);
/* The same from text in quotes as pair_json takes it; aborts when there is an error. */
const char *publish_text(struct pair *x, const char *request, size_t *ret_ops);
/* Removes a service as publish_remove_plan says. */
void publish_remove(struct pair *x, const char *service);
/* A certificate as the API would create it, NULL-terminated names, valid for days from
 * PUBLISH_NOW_S - 100 days. */
json_t *publish_certificate(const char *name, const char *const *names, int days);
/* "kind:name kind:name ..." of all shared objects but singletons, sorted by kind and name. */
const char *publish_inventory(const struct pair *x);
/* A field of an object as the API shows it, as compact JSON. In x->arena. */
const char *
publish_shown(const struct pair *x, enum kind kind, const char *name, const char *field);

#endif

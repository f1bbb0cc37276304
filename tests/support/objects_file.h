/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots from a JSON file, and rendered files into a folder, for tests and tools. */
#ifndef LOCKSTEP_SUPPORT_OBJECTS_FILE_H
#define LOCKSTEP_SUPPORT_OBJECTS_FILE_H

#include "render/haproxy.h"

/* The file: {"shared": [{"kind": "server", "id": "...", "name": "web1", ...}], "local": [...]}.
 * References are names. Without "id" one is made of kind and name, the same each time. The
 * caller unrefs both snapshots. Problems go into the error's text. */
MUST_USE err_t objects_file_read(
    const char *path, struct snapshot **ret_shared, struct snapshot **ret_local,
    struct error *e);
MUST_USE err_t objects_file_parse(
    const json_t *root, struct snapshot **ret_shared, struct snapshot **ret_local,
    struct error *e);
/* Writes every artefact below dir, which exists; makes the folders. */
MUST_USE err_t objects_file_write(const struct rendered *r, const char *dir, struct error *e);
#define OBJECTS_FILE_HAPROXY  "/usr/sbin/haproxy"
#define OBJECTS_FILE_CHECKERS 2
/* The programs that must accept what is rendered: this system's HAProxy and, where
 * packaging/install-haproxy30 made it, that of Debian 13. How many. */
size_t objects_file_checkers(const char *ret[OBJECTS_FILE_CHECKERS]);
/* Runs "HAPROXY -c -f FILE". ERR_OK when the file is valid and there was no warning, else
 * ERR_INVALID; out has what HAProxy printed in either case. */
MUST_USE err_t
objects_file_check(const char *haproxy, const char *config, struct buf *out, struct error *e);
/* An unprivileged group that exists wherever HAProxy is installed. */
#define OBJECTS_FILE_GROUP "haproxy"

#endif

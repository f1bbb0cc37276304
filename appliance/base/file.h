/* SPDX-License-Identifier: Apache-2.0 */
/* Files: whole-file reads with a cap, atomic writes, directories. */
#ifndef LOCKSTEP_BASE_FILE_H
#define LOCKSTEP_BASE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* Reads the file behind path (regular files only, O_NOFOLLOW on the last part) into out, up
 * to out's maximum. ERR_NOT_FOUND, ERR_LIMIT, ERR_IO, ERR_DENIED (also when it is not a
 * regular file). On failure out is unchanged. dir_fd as in openat(2). */
MUST_USE err_t file_read_at(int dir_fd, const char *path, struct buf *out, struct error *e);
/* How the names of temporary files begin, one of which stays when its writer is killed. */
#define FILE_TEMPORARY ".tmp-"
/* Atomic: temporary file in the same directory (O_EXCL, mode), write, fsync, rename, fsync
 * of the directory. On failure the old file is untouched and the temporary one removed; only
 * when that last fsync fails the new file is there already, perhaps not for good. */
MUST_USE err_t file_write_at(
    int dir_fd, const char *path, const void *p, size_t bytes, mode_t mode, struct error *e);
/* Plain new file (O_EXCL), no fsync: for directories that are synced as a whole. */
MUST_USE err_t file_create_at(
    int dir_fd, const char *path, const void *p, size_t bytes, mode_t mode, struct error *e);
/* fsync of every file below dir_fd and of the directories: one syncfs(2). */
MUST_USE err_t file_sync_tree(int dir_fd, struct error *e);
/* Makes one directory; an existing directory is success (its mode is left alone). */
MUST_USE err_t file_mkdir_at(int dir_fd, const char *path, mode_t mode, struct error *e);
/* Removes a tree of directories and files, never following links. Absent = success. Depth
 * at most 8. */
MUST_USE err_t file_remove_tree_at(int dir_fd, const char *path, struct error *e);
/* The same with all that the directory holds; it stays itself. */
MUST_USE err_t file_empty_dir_at(int dir_fd, const char *path, struct error *e);
/* Opens a directory O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC. */
MUST_USE err_t file_open_dir_at(int dir_fd, const char *path, int *ret_fd, struct error *e);
/* Atomic switch of a symbolic link to target (a name), with fsync of the directory. */
MUST_USE err_t
file_symlink_at(int dir_fd, const char *target, const char *link, struct error *e);
bool file_exists_at(int dir_fd, const char *path); /* lstat(2) */
void fd_cleanup(int *fd);                          /* for CLEANUP(): closes when >= 0 */

#endif

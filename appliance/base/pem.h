/* SPDX-License-Identifier: Apache-2.0 */
/* PEM text (RFC 7468) in normal form: LF line ends, 64 characters a line, no blank lines and
 * no text outside the blocks. */
#ifndef LOCKSTEP_BASE_PEM_H
#define LOCKSTEP_BASE_PEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

struct pem {
    struct buf *out;
    bool strict;      /* text outside blocks is refused, not dropped */
    const char *only; /* the one label that is allowed; NULL = any */
    size_t blocks;    /* found */
    size_t keys;      /* of these, private keys */
    /* The block that is being read. */
    const char *label;
    size_t label_len; /* 0 outside a block */
    size_t chars;     /* base64 characters, with padding */
    size_t pads;
};

/* Appends the normal form of pem to p->out, which on failure holds a part of it. The caller
 * sets out, strict and only. ERR_INVALID names the block; ERR_LIMIT. */
MUST_USE err_t pem_normalize(struct pem *p, const char *pem, size_t bytes, struct error *e);
/* A maximum for out that suffices for the normal form of bytes. */
size_t pem_normal_max(size_t bytes);

#endif

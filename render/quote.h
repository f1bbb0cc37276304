/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where text from objects becomes text for HAProxy. Whatever the text holds,
 * it stays one word on its line: no line, word, variable or expression comes of it. Pure. */
#ifndef LOCKSTEP_RENDER_QUOTE_H
#define LOCKSTEP_RENDER_QUOTE_H

#include "base/buf.h"
#include "model/value.h"

/* One argument of a configuration line. */
void quote_word(struct buf *out, struct text t);
/* One argument that HAProxy reads as a log-format string: shown as it is, never evaluated. */
void quote_format(struct buf *out, struct text t);
/* Text and attribute values of an HTML page. */
void quote_html(struct buf *out, struct text t);
/* Whether t may stand as a part of a key or value in a map or list file, whose lines know no
 * quoting: not empty, printable ASCII without space. */
MUST_USE bool quote_is_plain(struct text t);
struct text quote_text(const char *s); /* of a C string */

#endif

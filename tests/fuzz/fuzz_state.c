/* SPDX-License-Identifier: Apache-2.0 */
/* An arbitrary answer to "show servers state", an arbitrary configuration and an arbitrary
 * request with renames, a NUL between them: whatever comes of it is a file that HAProxy reads.
 */
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "helper/state_filter.h"

#define FIELDS 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_line(struct span line)
{
    struct span word;
    size_t words = 0;

    while (span_word(&line, &word)) {
        words++;
    }
    ASSERT(words == FIELDS);
}

/* The next part of the input, up to a NUL or the end. */
static struct span
next_part(struct span *rest)
{
    const char *end = rest->n > 0 ? memchr(rest->p, '\0', rest->n) : NULL;
    struct span part = {rest->p, end != NULL ? (size_t)(end - rest->p) : rest->n};
    size_t taken = end != NULL ? part.n + 1 : part.n;

    *rest = (struct span){rest->p + taken, rest->n - taken};
    return part;
}

static void
check_file(struct span text)
{
    struct span line;

    ASSERT(span_line(&text, &line) && span_is(line, "1"));
    while (span_line(&text, &line)) {
        check_line(line);
    }
    ASSERT(text.n == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = {(const char *)data, size};
    struct span shown = next_part(&rest);
    struct span config = next_part(&rest);
    struct span asked = next_part(&rest);
    struct renames CLEANUP(renames_fini) renames = {.backends = {NULL, NULL, 0}};
    json_auto_t *request = NULL;
    struct buf CLEANUP(buf_fini) out;
    struct error e;

    buf_init(&out, STATE_MAX_BYTES);
    if (json_parse(asked.p, asked.n, &request, &e) == ERR_OK &&
        renames_read(request, &renames, &e) != ERR_OK) {
        return 0;
    }
    if (state_filter(shown, config, &renames, size % 2 == 0, &out, &e) == ERR_OK) {
        check_file((struct span){buf_str(&out), out.len});
    }
    return 0;
}

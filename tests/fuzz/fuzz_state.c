/* SPDX-License-Identifier: Apache-2.0 */
/* An arbitrary answer to "show servers state" and an arbitrary configuration, NUL between
 * them: whatever comes of it is a file that HAProxy reads. */
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size > 0 ? memchr(text, '\0', size) : NULL;
    struct span shown = {text, end != NULL ? (size_t)(end - text) : size};
    struct span config = {"", 0};
    struct buf CLEANUP(buf_fini) out;
    struct error e;

    if (end != NULL) {
        config = (struct span){end + 1, size - shown.n - 1};
    }
    buf_init(&out, STATE_MAX_BYTES);
    if (state_filter(shown, config, size % 2 == 0, &out, &e) == ERR_OK) {
        struct span rest = {buf_str(&out), out.len};
        struct span line;

        ASSERT(span_line(&rest, &line) && span_is(line, "1"));
        while (span_line(&rest, &line)) {
            check_line(line);
        }
        ASSERT(rest.n == 0);
    }
    return 0;
}

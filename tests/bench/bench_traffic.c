/* SPDX-License-Identifier: Apache-2.0 */
/* bench_traffic PORT PORT: two servers that answer at once, and visitors of what is in front
 * of them. Each line "PORT HOSTS MS" of the input: requests to 127.0.0.1:PORT for the hosts
 * svc00000.test to HOSTS - 1 in turn, for so long; prints how many were answered a second. */
#include <stdio.h>

#include "base/arena.h"
#include "haproxy/span.h"
#include "tests/bench/bare.h"
#include "tests/bench/load.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define LINE_BYTES  128
#define NUMBER_MAX  1000000
#define SERVERS     2

static const char *const *
make_requests(struct arena *arena, size_t count)
{
    const char **requests = arena_alloc(arena, count * sizeof *requests);

    for (size_t i = 0; i < count; i++) {
        requests[i] =
            arena_printf(arena, "GET /index.html HTTP/1.1\r\nHost: svc%05zu.test\r\n\r\n", i);
    }
    return requests;
}

static bool
read_numbers(struct span line, int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct span word;

        if (!span_word(&line, &word) || !span_number(word, NUMBER_MAX, &numbers[i])) {
            return false;
        }
    }
    return true;
}

static bool
run_line(const char *text)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(ARENA_BYTES);
    struct span rest = span_of(text);
    int64_t numbers[3];
    struct span line;
    struct load load;

    if (!span_line(&rest, &line) || !read_numbers(line, numbers, ARRAY_LEN(numbers))) {
        return false;
    }
    load = (struct load){
        .port = (int)numbers[0],
        .count = (size_t)numbers[1],
        .ms = numbers[2],
        .requests = make_requests(arena, (size_t)numbers[1]),
    };
    (void)printf("%.0f\n", load_run(&load));
    (void)fflush(stdout);
    return true;
}

int
main(int argc, char **argv)
{
    struct bare_config config = {.head = "\r\n\r\n", .body = "hello\n"};
    char line[LINE_BYTES];
    struct bare *bare[SERVERS];
    int64_t port;
    bool good = argc == 1 + SERVERS;

    for (size_t i = 0; good && i < SERVERS; i++) {
        good = span_number(span_of(argv[i + 1]), 65535, &port);
        config.port = good ? (int)port : 0;
        bare[i] = bare_open(&config);
    }
    while (good && fgets(line, sizeof line, stdin) != NULL) {
        good = run_line(line);
    }
    for (size_t i = 0; good && i < SERVERS; i++) {
        bare_close(bare[i]);
    }
    return good ? 0 : 2;
}

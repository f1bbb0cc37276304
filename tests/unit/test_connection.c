/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "http/connection.h"

struct lab {
    struct tunables tunables;
    struct connections table;
    struct sockaddr_storage address;
    struct connection *made[CONNECTIONS_MAX + 8];
    int fds[CONNECTIONS_MAX + 8][2];
    size_t count;
};

static int
lab_open(void **state)
{
    struct lab *l = xcalloc(1, sizeof *l);

    l->tunables = (struct tunables){
        .header_ms = 100,
        .request_ms = 200,
        .answer_ms = 300,
        .idle_ms = 400,
        .event_ping_ms = 500};
    connections_init(&l->table, &l->tunables);
    *state = l;
    return 0;
}

static void
remove_one(struct lab *l, size_t i)
{
    connection_remove(&l->table, l->made[i]);
    l->made[i] = NULL;
}

static int
lab_close(void **state)
{
    struct lab *l = *state;

    for (size_t i = 0; i < l->count; i++) {
        if (l->made[i] != NULL) {
            remove_one(l, i);
        }
        (void)close(l->fds[i][0]);
        (void)close(l->fds[i][1]);
    }
    connections_fini(&l->table);
    free(l);
    return 0;
}

static const struct sockaddr *
address(struct lab *l, const char *text)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
        memcpy(&l->address, &in, sizeof in);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
        memcpy(&l->address, &in6, sizeof in6);
    }
    return (const struct sockaddr *)&l->address;
}

/* At time 0. */
static size_t
add(struct lab *l, const char *text)
{
    size_t i = l->count++;

    assert_true(i < ARRAY_LEN(l->made));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, l->fds[i]), 0);
    l->made[i] = connection_add(&l->table, l->fds[i][0], address(l, text), 0);
    return i;
}

static bool
is_open(const struct lab *l, size_t i)
{
    char c;

    return recv(l->fds[i][1], &c, 1, MSG_DONTWAIT) != 0;
}

static void
counts_each_address(void **state)
{
    struct lab *l = *state;

    for (int i = 0; i < CONNECTIONS_MAX_ADDRESS; i++) {
        assert_true(connections_admit(&l->table, address(l, "192.0.2.1")));
        assert_true(is_open(l, add(l, "192.0.2.1")));
    }
    assert_false(connections_admit(&l->table, address(l, "192.0.2.1")));
    assert_false(connections_admit(&l->table, address(l, "::ffff:192.0.2.1")));
    assert_true(connections_admit(&l->table, address(l, "192.0.2.2")));
    remove_one(l, 7);
    assert_true(connections_admit(&l->table, address(l, "192.0.2.1")));
}

static void
counts_an_ipv6_network_as_one(void **state)
{
    struct lab *l = *state;

    for (int i = 0; i < CONNECTIONS_MAX_ADDRESS; i++) {
        (void)add(l, i % 2 == 0 ? "2001:db8::1" : "2001:db8::2:3:4:5");
    }
    assert_false(connections_admit(&l->table, address(l, "2001:db8::6")));
    assert_true(connections_admit(&l->table, address(l, "2001:db8:0:1::6")));
    assert_true(connections_admit(&l->table, address(l, "0.0.0.1")));
}

static void
has_a_limit_for_all(void **state)
{
    struct lab *l = *state;

    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        assert_true(connections_admit(&l->table, address(l, "127.0.0.1")));
        (void)add(l, i % 2 == 0 ? "127.0.0.1" : "::1");
    }
    assert_false(connections_admit(&l->table, address(l, "127.0.0.1")));
    assert_false(connections_admit(&l->table, address(l, "192.0.2.1")));
}

static void
shuts_down_one_too_many_at_once(void **state)
{
    struct lab *l = *state;
    size_t last;

    for (int i = 0; i < CONNECTIONS_MAX_ADDRESS; i++) {
        (void)add(l, "192.0.2.1");
    }
    last = add(l, "192.0.2.1");
    assert_false(is_open(l, last));
    assert_true(is_open(l, 0));
}

static void
shuts_down_who_is_late(void **state)
{
    struct lab *l = *state;
    size_t early = add(l, "192.0.2.1");
    size_t late = add(l, "192.0.2.2");

    connection_enter(&l->table, l->made[late], CONNECTION_BODY, 50);
    connections_scan(&l->table, 99);
    assert_true(is_open(l, early));
    connections_scan(&l->table, 100);
    assert_false(is_open(l, early));
    assert_true(is_open(l, late));
    connections_scan(&l->table, 249);
    assert_true(is_open(l, late));
    connections_scan(&l->table, 250);
    assert_false(is_open(l, late));
}

static void
each_phase_has_its_time(void **state)
{
    static const struct {
        enum connection_phase phase;
        int64_t ms;
    } phases[] = {
        {CONNECTION_HEADER, 100},
        {CONNECTION_BODY, 200},
        {CONNECTION_ANSWER, 300},
        {CONNECTION_IDLE, 400},
        {CONNECTION_STREAM, 4000}};
    struct lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        size_t at = add(l, "192.0.2.1");

        connection_enter(&l->table, l->made[at], phases[i].phase, 1000);
        connections_scan(&l->table, 1000 + phases[i].ms - 1);
        assert_true(is_open(l, at));
        connections_scan(&l->table, 1000 + phases[i].ms);
        assert_false(is_open(l, at));
    }
}

static void
writes_addresses(void **state)
{
    static const char *const texts[][2] = {
        {"192.0.2.1", "192.0.2.1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"2001:db8::1", "2001:db8::1"},
        {"::1", "::1"}};
    const struct sockaddr other = {.sa_family = AF_UNIX};
    char text[CONNECTION_PEER_BYTES];
    struct lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        connection_peer_text(address(l, texts[i][0]), text);
        assert_string_equal(text, texts[i][1]);
    }
    connection_peer_text(&other, text);
    assert_string_equal(text, "");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, lab_open, lab_close)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(counts_each_address),    CASE(counts_an_ipv6_network_as_one),
        CASE(has_a_limit_for_all),    CASE(shuts_down_one_too_many_at_once),
        CASE(shuts_down_who_is_late), CASE(each_phase_has_its_time),
        CASE(writes_addresses),
    };

    /* Each connection of the test has two ends, and a login shell may open 1024 files. */
    struct rlimit files;
    ASSERT(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    ASSERT(setrlimit(RLIMIT_NOFILE, &files) == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

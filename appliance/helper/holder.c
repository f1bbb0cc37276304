/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/holder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "haproxy/span.h"
#include "helper/listing.h"

#define TABLE_MAX_BYTES ((size_t)64 << 20)
#define STATE_LISTEN    0x0a
#define STATE_TIME_WAIT 0x06
#define STAT_PARENT     4  /* the parent's field of /proc/PID/stat */
#define COMM_BYTES      17 /* 15 characters, a newline, a NUL */

/* A socket that stands in the way of a claim. */
struct blocker {
    int64_t inode;
    size_t claim;
    bool listens;
    bool same_family;
    pid_t pid; /* 0: not found */
    bool ours;
};

struct blockers {
    struct blocker *items;
    size_t count, cap;
};

/* A line of /proc/net/tcp or tcp6. */
struct row {
    uint8_t address[16];
    uint64_t port;
    uint64_t state;
    int64_t inode;
};

static void
blockers_cleanup(struct blockers *b)
{
    free(b->items);
}

static const char hex_digits[16] = {
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
};

static bool
parse_hex(struct span s, uint64_t *ret)
{
    uint64_t v = 0;

    if (s.n == 0 || s.n > 16) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        const char *at = memchr(hex_digits, s.p[i], sizeof hex_digits);

        if (at == NULL) {
            return false;
        }
        v = v * 16 + (uint64_t)(at - hex_digits);
    }
    *ret = v;
    return true;
}

/* "0100007F:1F90": the kernel prints each 32 bits of the address as a number of the
 * machine's byte order. */
static bool
parse_local(struct span s, int family, struct row *row)
{
    size_t parts = family == AF_INET6 ? 4 : 1;

    if (s.n < parts * 8 + 2 || s.p[parts * 8] != ':') {
        return false;
    }
    for (size_t i = 0; i < parts; i++) {
        uint64_t v = 0;
        uint32_t part;

        if (!parse_hex((struct span){s.p + i * 8, 8}, &v)) {
            return false;
        }
        part = (uint32_t)v;
        memcpy(row->address + i * 4, &part, 4);
    }
    return parse_hex((struct span){s.p + parts * 8 + 1, s.n - parts * 8 - 1}, &row->port);
}

/* sl local_address rem_address st queues timers retransmits uid timeout inode ... */
static bool
parse_row(struct span line, int family, struct row *row)
{
    struct span words[10];

    *row = (struct row){.port = 0};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (!span_word(&line, &words[i])) {
            return false;
        }
    }
    return parse_local(words[1], family, row) && parse_hex(words[3], &row->state) &&
           span_number(words[9], INT64_MAX, &row->inode);
}

static bool
is_any(const uint8_t address[16])
{
    static const uint8_t zero[16];

    return memcmp(address, zero, sizeof zero) == 0;
}

/* A socket of IPv6 on any address may stand in the way of IPv4, too. */
static bool
overlaps(const struct claim *c, const struct row *row, int family)
{
    if (c->port != row->port || row->state == STATE_TIME_WAIT || row->inode == 0) {
        return false;
    }
    if (c->family != family) {
        return family == AF_INET6 && is_any(row->address);
    }
    return is_any(c->address) || is_any(row->address) ||
           memcmp(c->address, row->address, sizeof row->address) == 0;
}

static void
blockers_add(struct blockers *b, struct blocker item)
{
    if (b->count == b->cap) {
        b->cap = b->cap == 0 ? 64 : b->cap * 2;
        b->items = xrealloc(b->items, b->cap * sizeof *b->items);
    }
    b->items[b->count++] = item;
}

static err_t
read_table(
    const char *path, int family, const struct claim *claims, size_t count, struct blockers *b,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf text;
    struct span rest;
    struct span line;
    struct row row;
    err_t code;

    buf_init(&text, TABLE_MAX_BYTES);
    code = file_read_at(AT_FDCWD, path, &text, e);
    if (code == ERR_NOT_FOUND) {
        return ERR_OK; /* no IPv6 */
    }
    rest = (struct span){buf_str(&text), text.len};
    while (code == ERR_OK && span_line(&rest, &line)) {
        if (!parse_row(line, family, &row)) {
            continue; /* the heading */
        }
        for (size_t i = 0; i < count; i++) {
            if (overlaps(&claims[i], &row, family)) {
                blockers_add(
                    b, (struct blocker){
                           .inode = row.inode,
                           .claim = i,
                           .listens = row.state == STATE_LISTEN,
                           .same_family = claims[i].family == family,
                       });
            }
        }
    }
    return code;
}

static int
by_inode(const void *a, const void *b)
{
    const struct blocker *x = a;
    const struct blocker *y = b;

    return (x->inode > y->inode) - (x->inode < y->inode);
}

static size_t
first_of(const struct blockers *b, int64_t inode)
{
    size_t low = 0;
    size_t high = b->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (b->items[middle].inode < inode) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void
found(struct blockers *b, int64_t inode, pid_t pid, bool ours)
{
    for (size_t i = first_of(b, inode); i < b->count && b->items[i].inode == inode; i++) {
        /* Shared by several processes: it is ours only when all are. */
        if (b->items[i].pid == 0 || !ours) {
            b->items[i].pid = pid;
            b->items[i].ours = ours;
        }
    }
}

/* "socket:[12345]" */
static bool
socket_inode(int dir_fd, const char *name, int64_t *ret)
{
    static const char prefix[] = "socket:[";
    char target[64];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof target);
    size_t skip = sizeof prefix - 1;

    return n > (ssize_t)skip && target[n - 1] == ']' && memcmp(target, prefix, skip) == 0 &&
           span_number((struct span){target + skip, (size_t)n - skip - 1}, INT64_MAX, ret);
}

/* /proc/PID/stat: PID (NAME) STATE PPID ...; the name may hold anything. */
static pid_t
parent_of(int proc_fd, pid_t pid)
{
    CLEANUP(buf_fini) struct buf text;
    char path[64];
    struct span rest;
    struct span word = {.p = NULL};
    const char *end;
    int64_t parent = 0;

    buf_init(&text, 4096);
    (void)snprintf(path, sizeof path, "%d/stat", pid);
    if (file_read_at(proc_fd, path, &text, NULL) != ERR_OK) {
        return 0;
    }
    end = strrchr(buf_str(&text), ')');
    if (end == NULL) {
        return 0;
    }
    rest = span_of(end + 1);
    for (int field = 3; field <= STAT_PARENT; field++) {
        if (!span_word(&rest, &word)) {
            return 0;
        }
    }
    return span_number(word, INT32_MAX, &parent) ? (pid_t)parent : 0;
}

static void
scan_process(int proc_fd, const char *name, pid_t master, struct blockers *b)
{
    CLEANUP(listing_close) struct listing l = {0};
    int64_t pid = 0;
    char path[64];
    const char *entry;
    bool ours;

    if (!span_number(span_of(name), INT32_MAX, &pid) || pid == getpid()) {
        return;
    }
    (void)snprintf(path, sizeof path, "%d/fd", (pid_t)pid);
    if (listing_open(&l, proc_fd, path, NULL) != ERR_OK) {
        return; /* ended meanwhile */
    }
    ours = master != 0 && (pid == master || parent_of(proc_fd, (pid_t)pid) == master);
    while ((entry = listing_next(&l)) != NULL) {
        int64_t inode;

        if (socket_inode(listing_fd(&l), entry, &inode)) {
            found(b, inode, (pid_t)pid, ours);
        }
    }
}

static err_t
scan_processes(pid_t master, struct blockers *b, struct error *e)
{
    CLEANUP(listing_close) struct listing l;
    err_t code = listing_open(&l, AT_FDCWD, "/proc", e);
    const char *name;

    while (code == ERR_OK && (name = listing_next(&l)) != NULL) {
        scan_process(listing_fd(&l), name, master, b);
    }
    return code;
}

static void
describe(pid_t pid, char out[HOLDER_BYTES])
{
    CLEANUP(buf_fini) struct buf comm;
    char path[64];

    buf_init(&comm, COMM_BYTES);
    (void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
    if (file_read_at(AT_FDCWD, path, &comm, NULL) != ERR_OK || comm.len < 2) {
        buf_reset(&comm);
        buf_puts(&comm, "process\n");
    }
    (void)snprintf(out, HOLDER_BYTES, "%.*s (pid %d)", (int)comm.len - 1, comm.data, pid);
    for (char *p = out; *p != '\0'; p++) {
        if (*p < ' ' || *p > '~') {
            *p = '?';
        }
    }
}

/* Listening sockets of the claim's own family decide: another kind stands in the way only
 * when there is none of them. */
static int
rank_of(const struct blocker *b)
{
    return (b->listens ? 2 : 0) + (b->same_family ? 1 : 0);
}

static void
judge(struct claim *claims, size_t count, const struct blockers *b)
{
    int *best = xcalloc(count, sizeof *best);

    for (size_t i = 0; i < b->count; i++) {
        const struct blocker *item = &b->items[i];

        if (rank_of(item) > best[item->claim]) {
            best[item->claim] = rank_of(item);
        }
        claims[item->claim].ours = true;
    }
    for (size_t i = 0; i < b->count; i++) {
        const struct blocker *item = &b->items[i];
        struct claim *c = &claims[item->claim];

        if (rank_of(item) == best[item->claim] && !item->ours) {
            c->ours = false;
            if (item->pid != 0 && c->holder[0] == '\0') {
                describe(item->pid, c->holder);
            }
        }
    }
    free(best);
}

err_t
holder_find(struct claim *claims, size_t count, pid_t master, struct error *e)
{
    CLEANUP(blockers_cleanup) struct blockers b = {.items = NULL};
    err_t code;

    for (size_t i = 0; i < count; i++) {
        claims[i].ours = false;
        claims[i].holder[0] = '\0';
    }
    code = read_table("/proc/net/tcp", AF_INET, claims, count, &b, e);
    if (code == ERR_OK) {
        code = read_table("/proc/net/tcp6", AF_INET6, claims, count, &b, e);
    }
    if (code != ERR_OK || b.count == 0) {
        return code;
    }
    qsort(b.items, b.count, sizeof *b.items, by_inode);
    code = scan_processes(master, &b, e);
    if (code == ERR_OK) {
        judge(claims, count, &b);
    }
    return code;
}

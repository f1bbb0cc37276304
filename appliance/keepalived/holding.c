/* SPDX-License-Identifier: Apache-2.0 */
#include "keepalived/holding.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/lock.h"

#define NEWS_BYTES 8192

struct holding {
    pthread_mutex_t lock;
    int news; /* socket on which the kernel tells of changes */
    struct ifaddrs *list;
    bool known;
};

err_t
holding_open(struct holding **ret, struct error *e)
{
    struct sockaddr_nl sa = {
        .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    struct holding *h = xcalloc(1, sizeof *h);

    lock_init(&h->lock);
    h->news = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (h->news < 0 || bind(h->news, (const struct sockaddr *)&sa, sizeof sa) != 0) {
        int number = errno;

        holding_close(h);
        return error_errno(e, ERR_UNAVAILABLE, number, "cannot follow the addresses");
    }
    *ret = h;
    return ERR_OK;
}

void
holding_close(struct holding *h)
{
    if (h == NULL) {
        return;
    }
    freeifaddrs(h->list);
    fd_cleanup(&h->news);
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}

/* Whether there was news; what it says is asked for anew, also when some was lost (ENOBUFS). */
static bool
take_news(struct holding *h)
{
    char bytes[NEWS_BYTES];
    bool news = false;
    ssize_t n;

    do {
        n = recv(h->news, bytes, sizeof bytes, 0);
        news = news || n > 0 || (n < 0 && errno == ENOBUFS);
    } while (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)));
    return news;
}

static void
refresh(struct holding *h)
{
    bool news = take_news(h);

    if (h->known && !news) {
        return;
    }
    freeifaddrs(h->list);
    h->list = NULL;
    h->known = getifaddrs(&h->list) == 0;
}

static bool
is_same(const struct sockaddr *sa, int family, const void *wanted)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (sa == NULL || sa->sa_family != family) {
        return false;
    }
    if (family == AF_INET) {
        memcpy(&in, sa, sizeof in);
        return memcmp(&in.sin_addr, wanted, sizeof in.sin_addr) == 0;
    }
    memcpy(&in6, sa, sizeof in6);
    return memcmp(&in6.sin6_addr, wanted, sizeof in6.sin6_addr) == 0;
}

/* A literal, perhaps with "/prefix" behind. */
static bool
parse(const char *address, int *ret_family, struct in6_addr *ret)
{
    char text[INET6_ADDRSTRLEN];
    size_t len = strcspn(address, "/");

    if (len >= sizeof text) {
        return false;
    }
    memcpy(text, address, len);
    text[len] = '\0';
    *ret_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    return inet_pton(*ret_family, text, ret) == 1;
}

bool
holding_has(struct holding *h, const char *address)
{
    struct in6_addr wanted;
    int family;
    bool found = false;

    if (!parse(address, &family, &wanted)) {
        return false;
    }
    lock_take(&h->lock);
    refresh(h);
    for (const struct ifaddrs *i = h->list; i != NULL && !found; i = i->ifa_next) {
        found = is_same(i->ifa_addr, family, &wanted);
    }
    lock_give(&h->lock);
    return found;
}

/* The bytes of an address, or none. */
static size_t
bytes_of(const struct sockaddr *sa, struct in6_addr *ret)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (sa == NULL) {
        return 0;
    }
    if (sa->sa_family == AF_INET) {
        memcpy(&in, sa, sizeof in);
        memcpy(ret, &in.sin_addr, sizeof in.sin_addr);
        return sizeof in.sin_addr;
    }
    memcpy(&in6, sa, sizeof in6);
    *ret = in6.sin6_addr;
    return sizeof *ret;
}

/* i has an address of the same family. */
static bool
is_in_network(const struct ifaddrs *i, const struct in6_addr *other)
{
    struct in6_addr own, mask;
    size_t bytes = bytes_of(i->ifa_addr, &own);

    if (bytes != bytes_of(i->ifa_netmask, &mask)) {
        return false;
    }
    for (size_t k = 0; k < bytes; k++) {
        if (((own.s6_addr[k] ^ other->s6_addr[k]) & mask.s6_addr[k]) != 0) {
            return false;
        }
    }
    return true;
}

enum holding_place
holding_place_of(struct holding *h, const char *own, const char *other)
{
    enum holding_place place = HOLDING_ELSEWHERE;
    struct in6_addr a, b;
    int family, other_family;

    if (h == NULL || !parse(own, &family, &a) || !parse(other, &other_family, &b)) {
        return HOLDING_ELSEWHERE;
    }
    lock_take(&h->lock);
    refresh(h);
    for (const struct ifaddrs *i = h->list; i != NULL; i = i->ifa_next) {
        if (place != HOLDING_TOGETHER && is_same(i->ifa_addr, family, &a)) {
            place = family == other_family && is_in_network(i, &b) ? HOLDING_TOGETHER
                                                                   : HOLDING_APART;
        }
    }
    lock_give(&h->lock);
    return place;
}

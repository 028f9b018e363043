/* SPDX-License-Identifier: GPL-3.0-or-later */
/* metrics_address.c - only local addresses are allowed.  For other machines there must be a proxy,
 * which can authenticate its clients. */
#define _GNU_SOURCE
#include "rmd/config/metrics_address.h"
#include "libinvasive/table/socket.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static bool is_host(const char *where, const char *colon, const char *host)
{
    return colon == where + strlen(host) && !strncmp(where, host, strlen(host));
}

socklen_t rmd_metrics_address(const char *where, union rmd_metrics_address *a)
{
    memset(a, 0, sizeof *a);
    if (*where == '/' || *where == '@')
        return inv_socket_address(&a->local, where);
    const char *colon = strrchr(where, ':');
    char *end;
    unsigned long port = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10)
                                                                     : 0;
    if (port < 1 || port > 65535 || *end)
        return 0;
    if (is_host(where, colon, "127.0.0.1")) {
        a->ipv4 = (struct sockaddr_in){.sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        return sizeof a->ipv4;
    }
    if (is_host(where, colon, "[::1]")) {
        a->ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                        .sin6_port = htons((uint16_t)port),
                                        .sin6_addr = in6addr_loopback};
        return sizeof a->ipv6;
    }
    return 0;
}

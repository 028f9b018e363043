/* SPDX-License-Identifier: GPL-3.0-or-later */
/* metrics_address.h - where metrics may be served: a path from / on, @NAME, 127.0.0.1:PORT or
 * [::1]:PORT. */
#ifndef RMD_METRICS_ADDRESS_H
#define RMD_METRICS_ADDRESS_H

#include <netinet/in.h>
#include <sys/un.h>

union rmd_metrics_address {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* Sets *address to that of `where`, and returns its size in bytes; 0: `where` is none of these. */
socklen_t rmd_metrics_address(const char *where, union rmd_metrics_address *address);

#endif

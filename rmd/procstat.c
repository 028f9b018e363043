/* SPDX-License-Identifier: GPL-3.0-or-later */
/* procstat.c - "PID (NAME) STATE ...", the start time being the 22nd word. */
#define _GNU_SOURCE
#include "procstat.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool rmd_procstat(pid_t pid, struct rmd_procstat *stat)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    char *rest = strrchr(text, ')'); /* the name may have any other character, even that one */
    return rest && sscanf(rest, ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                "%*s %*s %*s %" SCNu64,
                          &stat->state, &stat->parent, &stat->start_ticks) == 3;
}

bool rmd_owner(pid_t pid, uid_t *uid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &st))
        return false;
    *uid = st.st_uid;
    return true;
}

bool rmd_alive(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

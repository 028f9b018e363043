/* SPDX-License-Identifier: GPL-3.0-or-later */
/* socket_path.c - see socket_path.h. */
#define _GNU_SOURCE
#include "rmd/config/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_PAUSE_MS = 10 };

/* NULL: the address is no path. */
static const char *path_of(const struct sockaddr *address)
{
    const struct sockaddr_un *local = (const struct sockaddr_un *)(const void *)address;
    return address->sa_family == AF_UNIX && local->sun_path[0] != '\0' ? local->sun_path : NULL;
}

/* Locks the directory of a path; an address that is no path has none.  The result is for
 * unlock_directory. */
static int lock_directory(const struct sockaddr *address, unsigned *tries)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000};
    const char *path = path_of(address);
    char directory[sizeof((struct sockaddr_un *)0)->sun_path + 1];
    if (!path)
        return -1;
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = '\0'; /* "/" is one, too */
    int fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (; fd >= 0 && *tries; --*tries) {
        if (!flock(fd, LOCK_EX | LOCK_NB) || (errno != EWOULDBLOCK && errno != EINTR))
            break;
        nanosleep(&pause, NULL);
    }
    return fd;
}

static void unlock_directory(int lock)
{
    int saved = errno;
    if (lock >= 0) {
        flock(lock, LOCK_UN); /* also where a child has a copy */
        close(lock);
    }
    errno = saved;
}

static bool is_stale(int fd, const struct sockaddr *address, socklen_t size)
{
    int type = 0;
    socklen_t type_size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size))
        return false;
    int probe = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool nobody = probe >= 0 && connect(probe, address, size) && errno == ECONNREFUSED;
    if (probe >= 0)
        close(probe);
    return nobody;
}

static int bind_path(int fd, const struct sockaddr *address, socklen_t size)
{
    const char *path = path_of(address);
    if (!bind(fd, address, size))
        return 0;
    if (errno != EADDRINUSE || !path)
        return -1;
    struct stat st;
    if (lstat(path, &st))
        return bind(fd, address, size); /* it has just gone */
    if (!S_ISSOCK(st.st_mode)) {
        errno = ENOTSOCK;
        return -1;
    }
    if (!is_stale(fd, address, size) || unlink(path)) {
        errno = EADDRINUSE;
        return -1;
    }
    return bind(fd, address, size);
}

int rmd_path_listen(int fd, const struct sockaddr *address, socklen_t size, int backlog,
                    unsigned *lock_tries)
{
    int lock = lock_directory(address, lock_tries);
    int failed = bind_path(fd, address, size);
    if (!failed && listen(fd, backlog)) {
        int saved = errno;
        if (path_of(address))
            rmd_path_remove(path_of(address));
        errno = saved;
        failed = -1;
    }
    unlock_directory(lock);
    return failed;
}

const char *rmd_path_error(int error)
{
    return error == ENOTSOCK ? "something is there that is no socket: remove it or choose another"
                             : strerror(error);
}

void rmd_path_remove(const char *path)
{
    struct stat st;
    if (!lstat(path, &st) && S_ISSOCK(st.st_mode))
        unlink(path);
}

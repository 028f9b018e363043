/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_join_fork.c - a child that is forked while another thread of its parent joins a domain can
 * make claims.  The resource manager is a socket of our own that never answers: so we know that
 * the other thread is in the middle of joining, and end that by hanging up.
 */
#define _GNU_SOURCE
#include "invasive.h"
#include "libinvasive/table/protocol.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_LIMIT_S = 30 };

static void need(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static int listen_as_manager(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                          "invasive-test-join-fork-%d", (int)getpid());
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    address.sun_path[0] = '@';
    need(setenv("INVASIVE_SOCKET", address.sun_path, 1) == 0, "setenv");
    address.sun_path[0] = '\0';
    need(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0, "bind");
    need(listen(fd, 8) == 0, "listen");
    return fd;
}

/* The connection that asks to join; others only look whether there is a manager. */
static int accept_join(int listener)
{
    for (;;) {
        struct inv_request request;
        int fd = accept(listener, NULL, NULL);
        need(fd >= 0, "accept");
        if (recv(fd, &request, sizeof request, 0) == (ssize_t)sizeof request)
            return fd;
        close(fd);
    }
}

static void *make_claim(void *unused)
{
    (void)unused;
    struct inv_claim claim;
    need(inv_invade(NULL, INV_NONBLOCKING, &claim) == 0 && !claim.managed, "claim in a thread");
    return NULL;
}

static void *hang_up(void *listener)
{
    for (;;)
        close(accept_join(*(int *)listener));
    return NULL;
}

int main(void)
{
    pthread_t joining, server;
    struct inv_claim claim;
    int status, listener = listen_as_manager();
    need(pthread_create(&joining, NULL, make_claim, NULL) == 0, "pthread_create");
    int connection = accept_join(listener);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_LIMIT_S);
        close(connection);
        _exit(inv_invade(NULL, INV_NONBLOCKING, &claim) == 0 && !claim.managed ? 0 : 2);
    }
    need(child > 0, "fork");
    close(connection);
    need(pthread_create(&server, NULL, hang_up, &listener) == 0, "pthread_create");
    need(waitpid(child, &status, 0) == child, "waitpid");
    if (status)
        fprintf(stderr, "the child ended with wait status %#x\n", (unsigned)status);
    need(pthread_join(joining, NULL) == 0, "pthread_join");
    printf("claims in parent and child: %s\n", status ? "none" : "made");
    return status != 0;
}

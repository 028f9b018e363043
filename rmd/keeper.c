/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * keeper.c - a table is memory without a name, so that nothing is left of it when nobody has it;
 * when rmd is killed somebody must have it who can hand it to the next one.
 *
 * The keeper listens beside rmd's socket, on its name and ".keep", has one rmd at a time for a
 * client, and trusts its own user only.  When it has no client it looks every second whether the
 * processes in what it keeps (state.h) are there, and ends with the last one.  It is forked from
 * rmd, has no other descriptor of it, and writes nothing.
 */
#define _GNU_SOURCE
#include "keeper.h"
#include "log.h"
#include "socket.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS_MAX = 2048, LOOK_MS = 1000, PATIENCE_MS = 1000, BUSY_TRIES = 50, BUSY_MS = 20 };

enum kind {
    KEEP = 1, /* rmd: this descriptor.  keeper: I have this one */
    DROP,     /* rmd: not any more */
    END,      /* rmd: I end.  keeper: I stay */
    ALL,      /* keeper: you have them all */
    BUSY      /* keeper: another rmd is my client */
};

struct message {
    uint32_t kind, uid, state;
};

static bool put(int to, enum kind kind, uid_t uid, bool state, int fd)
{
    struct message text = {kind, uid, state};
    struct iovec iov = {&text, sizeof text};
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = control.room;
        m.msg_controllen = sizeof control.room;
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &fd, sizeof(int));
    }
    return sendmsg(to, &m, MSG_NOSIGNAL) == sizeof text;
}

/* False when the other end is gone, or is silent for longer than the socket's patience. */
static bool get(int from, struct message *text, int *fd)
{
    struct iovec iov = {text, sizeof *text};
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    *fd = -1;
    ssize_t n;
    do
        n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return false;
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(h), sizeof(int));
    if (n == sizeof *text)
        return true;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return false;
}

static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid();
}

/* --- the keeper */

static struct item {
    uid_t uid;
    bool state;
    int fd;
} items[ITEMS_MAX];
static unsigned nitems;

static void drop(unsigned i)
{
    close(items[i].fd);
    items[i] = items[--nitems];
}

static void drop_of(uid_t uid, bool state)
{
    for (unsigned i = nitems; i-- > 0;)
        if (items[i].uid == uid && items[i].state == state)
            drop(i);
}

static void drop_all_of(uid_t uid)
{
    drop_of(uid, false);
    drop_of(uid, true);
}

static bool somebody_lives_in(const struct item *item)
{
    struct rmd_state *state = item->state ? rmd_state_map(item->fd) : NULL;
    bool lives = state && rmd_state_living(state);
    rmd_state_unmap(state);
    return lives;
}

/* Tables without processes, and without notes of them, are of no use. */
static void drop_the_dead(void)
{
    for (unsigned i = 0; i < nitems;) {
        bool useful = false;
        for (unsigned k = 0; k < nitems; k++)
            useful |= items[k].uid == items[i].uid && somebody_lives_in(&items[k]);
        if (useful) {
            i++;
        } else {
            drop_all_of(items[i].uid);
            i = 0;
        }
    }
}

static void client_says(int *client)
{
    struct message text;
    int fd;
    if (!get(*client, &text, &fd)) {
        close(*client);
        *client = -1;
        return;
    }
    if (text.kind == KEEP || text.kind == DROP)
        drop_of(text.uid, text.state);
    if (text.kind == KEEP && fd >= 0 && nitems < ITEMS_MAX) {
        items[nitems++] = (struct item){text.uid, text.state, fd};
        return;
    }
    if (fd >= 0)
        close(fd);
    if (text.kind != END)
        return;
    drop_the_dead();
    if (nitems)
        put(*client, END, 0, false, -1);
    close(*client);
    *client = -1;
}

/* A new rmd.  One that has been killed is gone before the next one comes, but its end of the
 * connection may be closed a little later. */
static void accept_client(int listener, int *client)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (*client >= 0 || !is_ours(fd)) {
        put(fd, BUSY, 0, false, -1);
        close(fd);
        return;
    }
    bool good = true;
    for (unsigned i = 0; good && i < nitems; i++)
        good = put(fd, KEEP, items[i].uid, items[i].state, items[i].fd);
    if (good && put(fd, ALL, 0, false, -1))
        *client = fd;
    else
        close(fd);
}

static _Noreturn void keep_until_the_end(int listener, int client, const char *path)
{
    while (client >= 0 || nitems) {
        struct pollfd ready[] = {{.fd = client, .events = POLLIN},
                                 {.fd = listener, .events = POLLIN}};
        if (poll(ready, 2, client >= 0 ? -1 : LOOK_MS) < 0 && errno != EINTR)
            break;
        if (ready[0].revents)
            client_says(&client);
        else if (ready[1].revents)
            accept_client(listener, &client);
        if (client < 0)
            drop_the_dead();
    }
    if (path[0] == '/')
        unlink(path); /* first: nobody binds it while we listen */
    _exit(0);
}

/* Everything that rmd has open but these two, which become 3 and 4. */
static void close_others(int listener, int client)
{
    int a = fcntl(listener, F_DUPFD, 5), b = fcntl(client, F_DUPFD, 5);
    dup2(a, 3);
    dup2(b, 4);
    struct rlimit files = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &files);
    if (close_range(5, ~0U, 0))
        for (int fd = 5; fd < (int)files.rlim_cur; fd++)
            close(fd);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (null > 4)
        close(null);
}

static _Noreturn void be_the_keeper(int listener, int client, const char *name)
{
    sigset_t none;
    setsid();
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "rmd-keeper");
    close_others(listener, client);
    if (chdir("/"))
        _exit(1);
    keep_until_the_end(3, 4, name);
}

/* --- rmd's side */

static int keeper = -1;

static int listen_as(const struct sockaddr_un *address, socklen_t size)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    mode_t mask = umask(0177);
    bool good = fd >= 0 && !bind(fd, (const struct sockaddr *)address, size) && !listen(fd, 8);
    int saved = errno;
    umask(mask);
    if (!good && fd >= 0)
        close(fd);
    errno = saved;
    return good ? fd : -1;
}

static int start_keeper(const struct sockaddr_un *address, socklen_t size, const char *name)
{
    int ends[2] = {-1, -1};
    int listener = listen_as(address, size);
    pid_t pid = -1;
    if (listener >= 0 && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        pid = fork();
    if (pid == 0)
        be_the_keeper(listener, ends[1], name);
    int saved = errno;
    if (listener >= 0)
        close(listener);
    if (ends[1] >= 0)
        close(ends[1]);
    if (pid < 0 && ends[0] >= 0)
        close(ends[0]);
    errno = saved;
    return pid < 0 ? -1 : ends[0];
}

/* Take what it has.  -1: it has another client, or is gone. */
static int take_all(int fd, void (*kept)(uid_t, bool, int), bool *busy)
{
    struct message text;
    int passed;
    *busy = false;
    while (get(fd, &text, &passed)) {
        if (text.kind == KEEP && passed >= 0) {
            kept(text.uid, text.state, passed);
            continue;
        }
        if (passed >= 0)
            close(passed);
        *busy = text.kind == BUSY;
        if (text.kind == ALL)
            return fd;
        break;
    }
    close(fd);
    return -1;
}

static int find_keeper(const struct sockaddr_un *address, socklen_t size,
                       void (*kept)(uid_t, bool, int))
{
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    const struct timespec pause = {.tv_nsec = BUSY_MS * 1000000};
    for (int tries = 0; tries < BUSY_TRIES; tries++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        bool busy;
        if (fd < 0 || connect(fd, (const struct sockaddr *)address, size) || !is_ours(fd)) {
            int saved = errno;
            if (fd >= 0)
                close(fd);
            errno = saved;
            return -1;
        }
        fd = take_all(fd, kept, &busy);
        if (fd >= 0)
            return fd;
        if (busy)
            nanosleep(&pause, NULL); /* else it is about to end, and so is its socket */
    }
    errno = EBUSY;
    return -1;
}

void rmd_keeper_open(const char *socket_name, void (*kept)(uid_t uid, bool state, int fd))
{
    char name[sizeof((struct sockaddr_un *)0)->sun_path];
    struct sockaddr_un address;
    int n = snprintf(name, sizeof name, "%s.keep", socket_name);
    socklen_t size = n < (int)sizeof name ? inv_socket_address(&address, name) : 0;
    if (getpid() == 1)
        return; /* the first process of a container: with it all others end */
    if (!size)
        errno = ENAMETOOLONG;
    else
        keeper = find_keeper(&address, size, kept);
    if (keeper < 0 && size && errno != EBUSY) {
        if (name[0] == '/' && errno == ECONNREFUSED)
            unlink(name); /* of a keeper that was killed */
        keeper = start_keeper(&address, size, name);
    }
    if (keeper < 0)
        rmd_log(RMD_WARNING, "core tables are not kept for a restart: %s: %s", name,
                strerror(errno));
}

static void tell(uid_t uid, bool state, int fd)
{
    if (keeper < 0 || put(keeper, fd >= 0 ? KEEP : DROP, uid, state, fd))
        return;
    rmd_log(RMD_WARNING, "core tables are not kept for a restart any more: %s", strerror(errno));
    close(keeper);
    keeper = -1;
}

void rmd_keeper_keep(uid_t uid, int table_fd, int state_fd)
{
    tell(uid, true, state_fd);
    tell(uid, false, table_fd);
}

void rmd_keeper_close(void)
{
    struct message text;
    int passed;
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    if (keeper < 0)
        return;
    setsockopt(keeper, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (put(keeper, END, 0, false, -1) && get(keeper, &text, &passed) && passed >= 0)
        close(passed);
    close(keeper);
    keeper = -1;
}

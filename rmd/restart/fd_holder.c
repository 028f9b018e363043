/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fd_holder.c - a core table is a memory file without a name: the kernel frees it with its last
 * descriptor.  So another process must have one when rmd is killed.
 *
 * The descriptor holder listens on the name of rmd's socket followed by ".keep" and the version.
 * It serves one rmd at a time, of its own user only.  Without a client it checks once a second that
 * a process of each stored table lives (state.h), and ends with the last one.  It stores persisted
 * orders for some minutes more, for an rmd that is started again.  It is forked from rmd, has no
 * other descriptor of it, and writes nothing.
 */
#define _GNU_SOURCE
#include "rmd/restart/fd_holder.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"
#include "libinvasive/table/socket.h"
#include "rmd/config/socket_path.h"
#include "rmd/domain/state.h"

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

enum { ITEMS_MAX = 2 * RMD_STORED_USERS + 1 /* orders */ };
/* CHECK_MS: between two checks without a client.  TIMEOUT_MS: of a send or receive.  While the
 * holder serves another rmd, the next one tries BUSY_TRIES times: one second. */
enum { CHECK_MS = 1000, TIMEOUT_MS = 1000, BUSY_TRIES = 50, BUSY_MS = 20 };
/* ORDERS_S: how long orders are stored without rmd.  VERSIONS: more than there have been. */
enum { ORDERS_S = 600, VERSIONS = 16 };
/* The holder reads state.h, so its version is the same. */
enum { HOLDER_VERSION = RMD_STATE_VERSION };

static bool send_message(int to, enum rmd_holder_kind kind, uid_t uid, enum rmd_stored_kind what,
                         int fd)
{
    struct rmd_holder_message text = {kind, uid, what};
    return inv_socket_send(to, &text, sizeof text, fd, 0) == (ssize_t)sizeof text;
}

/* option: SO_SNDTIMEO or SO_RCVTIMEO. */
static void set_timeout(int fd, int option)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_MS / 1000};
    setsockopt(fd, SOL_SOCKET, option, &timeout, sizeof timeout);
}

/* False: the other end has closed the connection, or sends nothing within the timeout. */
static bool receive_message(int from, struct rmd_holder_message *text, int *fd)
{
    ssize_t n = inv_socket_receive(from, text, sizeof *text, fd, MSG_TRUNC);
    if (n == (ssize_t)sizeof *text)
        return true;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return false;
}

static bool is_own_user(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid();
}

/* --- the holder's side */

struct item {
    uid_t uid;
    enum rmd_stored_kind what;
    int fd;
};

/* The descriptor holder reads and writes the first three members; rmd, its parent, the others. */
static struct {
    struct item items[ITEMS_MAX];
    unsigned nitems;
    uint64_t alone_since_ns; /* without a client */

    int fd;    /* rmd's connection to the holder; -1 none */
    bool busy; /* it serves another rmd */
} holder = {.fd = -1};

static void drop_item(unsigned i)
{
    inv_assert(i < holder.nitems && holder.items[i].fd >= 0);
    close(holder.items[i].fd);
    holder.items[i] = holder.items[--holder.nitems];
}

static void drop_items(uid_t uid, enum rmd_stored_kind what)
{
    for (unsigned i = holder.nitems; i-- > 0;)
        if (holder.items[i].uid == uid && holder.items[i].what == what)
            drop_item(i);
}

/* One entry is reserved for orders. */
static bool has_room(enum rmd_stored_kind what)
{
    bool ordered = false;
    for (unsigned i = 0; i < holder.nitems; i++)
        ordered |= holder.items[i].what == RMD_STORED_ORDERS;
    return holder.nitems + (what != RMD_STORED_ORDERS && !ordered) < ITEMS_MAX;
}

static void drop_user(uid_t uid)
{
    drop_items(uid, RMD_STORED_TABLE);
    drop_items(uid, RMD_STORED_STATE);
}

static bool has_living_process(const struct item *item)
{
    bool is_state = item->what == RMD_STORED_STATE;
    struct rmd_state *state = is_state ? rmd_state_map(item->fd) : NULL;
    bool lives = state && rmd_state_living(state);
    rmd_state_unmap(state);
    return lives;
}

static bool user_has_living_process(uid_t uid)
{
    for (unsigned k = 0; k < holder.nitems; k++)
        if (holder.items[k].uid == uid && has_living_process(&holder.items[k]))
            return true;
    return false;
}

/* Drops tables without a living process, or without their state, and at last the orders. */
static void drop_unused(void)
{
    unsigned tables = 0;
    for (unsigned i = 0; i < holder.nitems;) {
        if (holder.items[i].what == RMD_STORED_ORDERS ||
            user_has_living_process(holder.items[i].uid)) {
            tables += holder.items[i].what != RMD_STORED_ORDERS;
            i++;
        } else {
            drop_user(holder.items[i].uid);
            tables = i = 0;
        }
    }
    if (!tables && inv_now_ns() - holder.alone_since_ns > ORDERS_S * UINT64_C(1000000000))
        drop_items(0, RMD_STORED_ORDERS);
}

static void disconnect_client(int *client)
{
    inv_assert(*client >= 0);
    close(*client);
    *client = -1;
    holder.alone_since_ns = inv_now_ns();
}

/* False: rmd ends, and nothing is left to store.  The connection stays open then, since rmd waits
 * until the holder has removed its path. */
static bool handle_message(int *client)
{
    struct rmd_holder_message text;
    int fd;
    if (!receive_message(*client, &text, &fd)) {
        disconnect_client(client);
        return true;
    }
    if (text.kind == RMD_HOLDER_STORE || text.kind == RMD_HOLDER_DROP)
        drop_items(text.uid, text.what);
    if (text.kind == RMD_HOLDER_STORE && fd >= 0 && text.what < RMD_STORED_KINDS && has_room(text.what)) {
        inv_assert(holder.nitems < ITEMS_MAX);
        holder.items[holder.nitems++] = (struct item){text.uid, text.what, fd};
        return true;
    }
    if (fd >= 0)
        close(fd);
    if (text.kind != RMD_HOLDER_END)
        return true;
    holder.alone_since_ns = inv_now_ns();
    drop_unused();
    if (!holder.nitems)
        return false;
    send_message(*client, RMD_HOLDER_END, 0, 0, -1);
    disconnect_client(client);
    return true;
}

/* A new rmd connects.  A killed rmd has ended before the next one starts, but the kernel may close
 * its end of the connection a little later. */
static void accept_client(int listener, int *client)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    set_timeout(fd, SO_SNDTIMEO);
    if (*client >= 0 || !is_own_user(fd)) {
        send_message(fd, RMD_HOLDER_BUSY, 0, 0, -1);
        close(fd);
        return;
    }
    bool good = true;
    for (const struct item *i = holder.items; good && i < holder.items + holder.nitems; i++)
        good = send_message(fd, RMD_HOLDER_STORE, i->uid, i->what, i->fd);
    if (good && send_message(fd, RMD_HOLDER_ALL, 0, 0, -1))
        *client = fd;
    else
        close(fd);
}

static _Noreturn void serve_until_unused(int listener, int client, const char *path)
{
    bool needed = true;
    while (needed && (client >= 0 || holder.nitems)) {
        struct pollfd ready[] = {{.fd = client, .events = POLLIN},
                                 {.fd = listener, .events = POLLIN}};
        if (poll(ready, 2, client >= 0 ? -1 : CHECK_MS) < 0 && errno != EINTR)
            break;
        if (ready[0].revents)
            needed = handle_message(&client);
        else if (ready[1].revents)
            accept_client(listener, &client);
        if (client < 0)
            drop_unused();
    }
    if (path[0] == '/')
        rmd_path_remove(path);
    _exit(0);
}

/* Closes all descriptors of rmd but these two, which become 3 and 4. */
static void close_other_fds(int listener, int client)
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

static _Noreturn void run_holder(int listener, int client, const char *name)
{
    sigset_t none;
    setsid();
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "rmd-fd-holder");
    close_other_fds(listener, client);
    if (chdir("/"))
        _exit(1);
    serve_until_unused(3, 4, name);
}

/* --- rmd's side */

static int listen_as(const struct sockaddr_un *address, socklen_t size, unsigned *lock_tries)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    mode_t mask = umask(0177);
    bool good =
        fd >= 0 && !rmd_path_listen(fd, (const struct sockaddr *)address, size, 8, lock_tries);
    int saved = errno;
    umask(mask);
    if (!good && fd >= 0)
        close(fd);
    errno = saved;
    return good ? fd : -1;
}

static int fork_holder(const struct sockaddr_un *address, socklen_t size, const char *name,
                       unsigned *lock_tries)
{
    int ends[2] = {-1, -1};
    int listener = listen_as(address, size, lock_tries);
    pid_t pid = -1;
    if (listener >= 0 && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        pid = fork();
    if (pid == 0)
        run_holder(listener, ends[1], name);
    if (pid > 0) /* do not wait for a holder that hangs */
        set_timeout(ends[0], SO_SNDTIMEO);
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

/* Receives all stored descriptors.  -1: the holder has another client, or has ended. */
static int receive_all(int fd, rmd_stored_callback *stored, bool *busy)
{
    struct rmd_holder_message text;
    int passed;
    *busy = false;
    while (receive_message(fd, &text, &passed)) {
        if (text.kind == RMD_HOLDER_STORE && passed >= 0 && text.what < RMD_STORED_KINDS) {
            stored(text.uid, text.what, passed);
            continue;
        }
        if (passed >= 0)
            close(passed);
        *busy = text.kind == RMD_HOLDER_BUSY;
        if (text.kind == RMD_HOLDER_ALL)
            return fd;
        break;
    }
    close(fd);
    return -1;
}

static int find_holder(const struct sockaddr_un *address, socklen_t size,
                       rmd_stored_callback *stored)
{
    const struct timespec pause = {.tv_nsec = BUSY_MS * 1000000};
    for (int tries = 0; tries < BUSY_TRIES; tries++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        set_timeout(fd, SO_RCVTIMEO);
        set_timeout(fd, SO_SNDTIMEO);
        bool busy;
        if (fd < 0 || connect(fd, (const struct sockaddr *)address, size) || !is_own_user(fd)) {
            int saved = errno;
            if (fd >= 0)
                close(fd);
            errno = saved;
            return -1;
        }
        fd = receive_all(fd, stored, &busy);
        if (fd >= 0)
            return fd;
        if (busy)
            nanosleep(&pause, NULL); /* else it is about to end, and to remove its socket */
    }
    errno = EBUSY;
    return -1;
}

enum { NAME_BYTES = sizeof((struct sockaddr_un *)0)->sun_path + sizeof ".keep" + 10 };

/* 0 with errno: the name does not fit. */
static socklen_t name_holder(char name[NAME_BYTES], struct sockaddr_un *address,
                             const char *socket_name, unsigned version)
{
    snprintf(name, NAME_BYTES, "%s.keep%u", socket_name, version);
    return inv_socket_address(address, name);
}

/* This rmd cannot read what holders of other versions store. */
static void warn_of_other_versions(const char *socket_name)
{
    char name[NAME_BYTES];
    struct sockaddr_un address;
    for (unsigned version = 1; version <= VERSIONS; version++) {
        socklen_t size = name_holder(name, &address, socket_name, version);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (version != HOLDER_VERSION && size && fd >= 0 &&
            !connect(fd, (const struct sockaddr *)&address, size))
            rmd_log(RMD_WARNING,
                    "%s keeps core tables of another version of rmd: their processes go on "
                    "by themselves until they end",
                    name);
        if (fd >= 0)
            close(fd);
    }
}

/* The first process of a container has no holder: when it ends, the kernel ends all others. */
static bool can_have_holder(void) { return getpid() != 1; }

void rmd_fd_holder_find(const char *socket_name, rmd_stored_callback *stored)
{
    char name[NAME_BYTES];
    struct sockaddr_un address;
    socklen_t size = name_holder(name, &address, socket_name, HOLDER_VERSION);
    if (!can_have_holder() || !size)
        return;
    holder.fd = find_holder(&address, size, stored);
    holder.busy = holder.fd < 0 && errno == EBUSY;
}

void rmd_fd_holder_start(const char *socket_name, unsigned *lock_tries)
{
    char name[NAME_BYTES];
    struct sockaddr_un address;
    socklen_t size = name_holder(name, &address, socket_name, HOLDER_VERSION);
    if (!can_have_holder())
        return;
    inv_assert(holder.fd < 0 || !holder.busy);
    if (holder.fd < 0 && size && !holder.busy)
        holder.fd = fork_holder(&address, size, name, lock_tries);
    else if (holder.busy)
        errno = EBUSY;
    char unfit[INV_SOCKET_UNFIT];
    if (inv_socket_unfit(name, unfit))
        rmd_log(RMD_WARNING, "core tables are not kept for a restart: %s: use a shorter --socket",
                unfit);
    else if (holder.fd < 0)
        rmd_log(RMD_WARNING, "core tables are not kept for a restart: %s: %s", name,
                rmd_path_error(errno));
    warn_of_other_versions(socket_name);
}

static void store_fd(uid_t uid, enum rmd_stored_kind what, int fd)
{
    if (holder.fd < 0 || send_message(holder.fd, fd >= 0 ? RMD_HOLDER_STORE : RMD_HOLDER_DROP, uid, what, fd))
        return;
    rmd_log(RMD_WARNING, "core tables are not kept for a restart any more: %s", strerror(errno));
    close(holder.fd);
    holder.fd = -1;
}

void rmd_fd_holder_store(uid_t uid, int table_fd, int state_fd)
{
    inv_assert((table_fd < 0) == (state_fd < 0)); /* a table without its state is of no use to the next rmd */
    store_fd(uid, RMD_STORED_STATE, state_fd);
    store_fd(uid, RMD_STORED_TABLE, table_fd);
}

void rmd_fd_holder_store_orders(int fd) { store_fd(0, RMD_STORED_ORDERS, fd); }

void rmd_fd_holder_close(void)
{
    struct rmd_holder_message text;
    int passed;
    if (holder.fd < 0)
        return;
    set_timeout(holder.fd, SO_RCVTIMEO);
    if (send_message(holder.fd, RMD_HOLDER_END, 0, 0, -1) && receive_message(holder.fd, &text, &passed) &&
        passed >= 0)
        close(passed);
    close(holder.fd);
    holder.fd = -1;
}

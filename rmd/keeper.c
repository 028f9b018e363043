/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * keeper.c - a table is memory without a name, so that nothing is left of it when nobody has it;
 * when rmd is killed somebody must have it who can hand it to the next one.
 *
 * The keeper listens beside rmd's socket, on its name, ".keep" and the version, has one rmd at a
 * time for a client, and trusts its own user only.  When it has no client it looks every second
 * whether the processes in what it keeps (state.h) are there, and ends with the last one; but
 * persisted orders it keeps for some minutes, for an rmd that is started again.  It is forked from
 * rmd, has no other descriptor of it, and writes nothing.
 */
#define _GNU_SOURCE
#include "keeper.h"
#include "log.h"
#include "now.h"
#include "socket.h"
#include "socket_path.h"
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

enum { ITEMS_MAX = 2 * RMD_KEPT_USERS + 1 /* orders */ };
enum { LOOK_MS = 1000, PATIENCE_MS = 1000, BUSY_TRIES = 50, BUSY_MS = 20 };
enum { ORDERS_S = 600, VERSIONS = 16 };
/* It reads state.h too. */
enum { KEEPER_VERSION = RMD_STATE_VERSION };

enum kind {
    KEEP = 1, /* rmd: this descriptor.  keeper: I have this one */
    DROP,     /* rmd: not any more */
    END,      /* rmd: I end.  keeper: I stay; or it hangs up when its path is gone */
    ALL,      /* keeper: you have them all */
    BUSY      /* keeper: another rmd is my client */
};

struct message {
    uint32_t kind, uid, what; /* enum kind; of whom; enum rmd_kept */
};

static bool put(int to, enum kind kind, uid_t uid, enum rmd_kept what, int fd)
{
    struct message text = {kind, uid, what};
    return inv_socket_send(to, &text, sizeof text, fd, 0) == (ssize_t)sizeof text;
}

/* Nobody waits for the other end for longer, to send (SO_SNDTIMEO) or to receive (SO_RCVTIMEO). */
static void be_patient(int fd, int option)
{
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    setsockopt(fd, SOL_SOCKET, option, &patience, sizeof patience);
}

/* False when the other end is gone, or is silent for longer than the socket's patience. */
static bool get(int from, struct message *text, int *fd)
{
    ssize_t n = inv_socket_receive(from, text, sizeof *text, fd, MSG_TRUNC);
    if (n == (ssize_t)sizeof *text)
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
    enum rmd_kept what;
    int fd;
} items[ITEMS_MAX];
static unsigned nitems;
static uint64_t alone_since_ns; /* without a client */

static void drop(unsigned i)
{
    close(items[i].fd);
    items[i] = items[--nitems];
}

static void drop_of(uid_t uid, enum rmd_kept what)
{
    for (unsigned i = nitems; i-- > 0;)
        if (items[i].uid == uid && items[i].what == what)
            drop(i);
}

/* However many tables there are, orders have a place. */
static bool has_room(enum rmd_kept what)
{
    bool ordered = false;
    for (unsigned i = 0; i < nitems; i++)
        ordered |= items[i].what == RMD_KEPT_ORDERS;
    return nitems + (what != RMD_KEPT_ORDERS && !ordered) < ITEMS_MAX;
}

static void drop_all_of(uid_t uid)
{
    drop_of(uid, RMD_KEPT_TABLE);
    drop_of(uid, RMD_KEPT_STATE);
}

static bool somebody_lives_in(const struct item *item)
{
    bool is_state = item->what == RMD_KEPT_STATE;
    struct rmd_state *state = is_state ? rmd_state_map(item->fd) : NULL;
    bool lives = state && rmd_state_living(state);
    rmd_state_unmap(state);
    return lives;
}

static bool somebody_lives_with(uid_t uid)
{
    for (unsigned k = 0; k < nitems; k++)
        if (items[k].uid == uid && somebody_lives_in(&items[k]))
            return true;
    return false;
}

/* Tables without processes, and without notes of them, are of no use; nor are in the end orders of
 * which nobody takes notice. */
static void drop_the_dead(void)
{
    unsigned tables = 0;
    for (unsigned i = 0; i < nitems;) {
        if (items[i].what == RMD_KEPT_ORDERS || somebody_lives_with(items[i].uid)) {
            tables += items[i].what != RMD_KEPT_ORDERS;
            i++;
        } else {
            drop_all_of(items[i].uid);
            tables = i = 0;
        }
    }
    if (!tables && inv_now_ns() - alone_since_ns > ORDERS_S * UINT64_C(1000000000))
        drop_of(0, RMD_KEPT_ORDERS);
}

static void part(int *client)
{
    close(*client);
    *client = -1;
    alone_since_ns = inv_now_ns();
}

/* False: rmd ends, and nothing is left to keep; it stays connected, since it waits until our path
 * is gone. */
static bool client_says(int *client)
{
    struct message text;
    int fd;
    if (!get(*client, &text, &fd)) {
        part(client);
        return true;
    }
    if (text.kind == KEEP || text.kind == DROP)
        drop_of(text.uid, text.what);
    if (text.kind == KEEP && fd >= 0 && text.what < RMD_KEPT_KINDS && has_room(text.what)) {
        items[nitems++] = (struct item){text.uid, text.what, fd};
        return true;
    }
    if (fd >= 0)
        close(fd);
    if (text.kind != END)
        return true;
    alone_since_ns = inv_now_ns();
    drop_the_dead();
    if (!nitems)
        return false;
    put(*client, END, 0, 0, -1);
    part(client);
    return true;
}

/* A new rmd.  One that has been killed is gone before the next one comes, but its end of the
 * connection may be closed a little later. */
static void accept_client(int listener, int *client)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    be_patient(fd, SO_SNDTIMEO);
    if (*client >= 0 || !is_ours(fd)) {
        put(fd, BUSY, 0, 0, -1);
        close(fd);
        return;
    }
    bool good = true;
    for (unsigned i = 0; good && i < nitems; i++)
        good = put(fd, KEEP, items[i].uid, items[i].what, items[i].fd);
    if (good && put(fd, ALL, 0, 0, -1))
        *client = fd;
    else
        close(fd);
}

static _Noreturn void keep_until_the_end(int listener, int client, const char *path)
{
    bool needed = true;
    while (needed && (client >= 0 || nitems)) {
        struct pollfd ready[] = {{.fd = client, .events = POLLIN},
                                 {.fd = listener, .events = POLLIN}};
        if (poll(ready, 2, client >= 0 ? -1 : LOOK_MS) < 0 && errno != EINTR)
            break;
        if (ready[0].revents)
            needed = client_says(&client);
        else if (ready[1].revents)
            accept_client(listener, &client);
        if (client < 0)
            drop_the_dead();
    }
    if (path[0] == '/')
        rmd_path_remove(path);
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
static bool is_busy; /* the one that is there, with another rmd */

static int listen_as(const struct sockaddr_un *address, socklen_t size)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    mode_t mask = umask(0177);
    bool good = fd >= 0 && !rmd_path_listen(fd, (const struct sockaddr *)address, size, 8);
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
    if (pid > 0) /* one that does nothing is not waited for, as with one that was found */
        be_patient(ends[0], SO_SNDTIMEO);
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
static int take_all(int fd, rmd_kept_callback *kept, bool *busy)
{
    struct message text;
    int passed;
    *busy = false;
    while (get(fd, &text, &passed)) {
        if (text.kind == KEEP && passed >= 0 && text.what < RMD_KEPT_KINDS) {
            kept(text.uid, text.what, passed);
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

static int find_keeper(const struct sockaddr_un *address, socklen_t size, rmd_kept_callback *kept)
{
    const struct timespec pause = {.tv_nsec = BUSY_MS * 1000000};
    for (int tries = 0; tries < BUSY_TRIES; tries++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        be_patient(fd, SO_RCVTIMEO);
        be_patient(fd, SO_SNDTIMEO);
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

enum { NAME_BYTES = sizeof((struct sockaddr_un *)0)->sun_path + sizeof ".keep" + 10 };

/* 0 with errno: the name does not fit. */
static socklen_t name_keeper(char name[NAME_BYTES], struct sockaddr_un *address,
                             const char *socket_name, unsigned version)
{
    snprintf(name, NAME_BYTES, "%s.keep%u", socket_name, version);
    return inv_socket_address(address, name);
}

/* Those of other versions keep what we cannot read. */
static void say_others(const char *socket_name)
{
    char name[NAME_BYTES];
    struct sockaddr_un address;
    for (unsigned version = 1; version <= VERSIONS; version++) {
        socklen_t size = name_keeper(name, &address, socket_name, version);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (version != KEEPER_VERSION && size && fd >= 0 &&
            !connect(fd, (const struct sockaddr *)&address, size))
            rmd_log(RMD_WARNING,
                    "%s keeps core tables of another version of rmd: their processes go on "
                    "by themselves until they end",
                    name);
        if (fd >= 0)
            close(fd);
    }
}

/* The first process of a container has none: with it all others end. */
static bool can_be(void) { return getpid() != 1; }

void rmd_keeper_find(const char *socket_name, rmd_kept_callback *kept)
{
    char name[NAME_BYTES];
    struct sockaddr_un address;
    socklen_t size = name_keeper(name, &address, socket_name, KEEPER_VERSION);
    if (!can_be() || !size)
        return;
    keeper = find_keeper(&address, size, kept);
    is_busy = keeper < 0 && errno == EBUSY;
}

void rmd_keeper_open(const char *socket_name)
{
    char name[NAME_BYTES];
    struct sockaddr_un address;
    socklen_t size = name_keeper(name, &address, socket_name, KEEPER_VERSION);
    if (!can_be())
        return;
    if (keeper < 0 && size && !is_busy)
        keeper = start_keeper(&address, size, name);
    else if (is_busy)
        errno = EBUSY;
    char unfit[INV_SOCKET_UNFIT];
    if (inv_socket_unfit(name, unfit))
        rmd_log(RMD_WARNING, "core tables are not kept for a restart: %s: use a shorter --socket",
                unfit);
    else if (keeper < 0)
        rmd_log(RMD_WARNING, "core tables are not kept for a restart: %s: %s", name,
                rmd_path_error(errno));
    say_others(socket_name);
}

static void tell(uid_t uid, enum rmd_kept what, int fd)
{
    if (keeper < 0 || put(keeper, fd >= 0 ? KEEP : DROP, uid, what, fd))
        return;
    rmd_log(RMD_WARNING, "core tables are not kept for a restart any more: %s", strerror(errno));
    close(keeper);
    keeper = -1;
}

void rmd_keeper_keep(uid_t uid, int table_fd, int state_fd)
{
    tell(uid, RMD_KEPT_STATE, state_fd);
    tell(uid, RMD_KEPT_TABLE, table_fd);
}

void rmd_keeper_keep_orders(int fd) { tell(0, RMD_KEPT_ORDERS, fd); }

void rmd_keeper_close(void)
{
    struct message text;
    int passed;
    if (keeper < 0)
        return;
    be_patient(keeper, SO_RCVTIMEO);
    if (put(keeper, END, 0, 0, -1) && get(keeper, &text, &passed) && passed >= 0)
        close(passed);
    close(keeper);
    keeper = -1;
}

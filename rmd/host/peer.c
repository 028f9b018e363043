/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * peer.c - see peer.h.
 *
 * The kernel closes unread descriptors with their socket, and that may block.  So a child process
 * reads a socket that is not empty.  The child ends after rmd has closed the socket, too: whatever
 * blocks, blocks in the child.  That costs a fork, but rmctl and programs never cause one.
 *
 * A child closes all other descriptors first.  When rmd is killed its listener and its connections
 * must end with it, also while a child is blocked.
 *
 * The first CHILDREN_EARLY children are made at once.  If none of them ends, rmd parks sockets: up
 * to PARKED_MAX for the next child, of CHILDREN_MAX in all.  Then it accepts no client for a while.
 */
#define _GNU_SOURCE
#include "rmd/host/peer.h"
#include "libinvasive/base/futex.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_EARLY = 16, CHILDREN_MAX = 64, PARKED_MAX = 256 };
enum { LINGER_US = 100000, SKIPPED_MAX = 4 };

/* Only the loop's thread reads and writes it. */
static struct {
    int spare_fd;
    pid_t child[CHILDREN_MAX];
    int parked[PARKED_MAX];
    unsigned nparked;
    uint32_t forks;
    /* Futex, shared with the children: rmd has closed the sockets of children up to this number. */
    _Atomic uint32_t *closed;
    bool said_slow, said_full; /* warnings that are logged once */
} peers = {.spare_fd = -1};

void rmd_peer_begin(void)
{
    if (peers.spare_fd < 0)
        peers.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!peers.closed)
        peers.closed = mmap(NULL, sizeof *peers.closed, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* --- to hear, and to close */

ssize_t rmd_peer_receive(int fd, void *buffer, size_t size, int flags, bool *carries)
{
    struct iovec iov = {buffer, size};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n = recvmsg(fd, &m, flags | MSG_PEEK | MSG_DONTWAIT);
    *carries = n >= 0 && m.msg_flags & MSG_CTRUNC;
    if (n < 0 || *carries)
        return n;
    return recv(fd, buffer, (size_t)n < size ? (size_t)n : size, flags | MSG_DONTWAIT);
}

/* Is there anything?  It is taken, or (MSG_PEEK) left there. */
static bool discard_message(int fd, int flags)
{
    char bytes[4096];
    struct iovec iov = {bytes, sizeof bytes};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    return recvmsg(fd, &m, flags | MSG_DONTWAIT) > 0 || m.msg_flags & MSG_CTRUNC;
}

/* Shuts the socket down, so that no message is added, and the other end sees the end after the
 * messages that it was sent, also while a child has a copy of the socket.  Then discards messages
 * without descriptors.  With SO_PASSCRED the kernel marks every message as truncated, which tells
 * an empty message from none. */
static bool has_unread_data(int fd)
{
    int type = 0, one = 1;
    socklen_t size = sizeof type;
    char byte;
    bool carries;
    shutdown(fd, SHUT_RDWR);
    for (int i = 0; i < SKIPPED_MAX; i++)
        if (rmd_peer_receive(fd, &byte, 1, 0, &carries) <= 0 || carries)
            break;
    if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET)
        setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
    return discard_message(fd, MSG_PEEK);
}

static void ignore_signal(int signal) { (void)signal; }

/* The first that is parked from this descriptor on; ~0U none. */
static unsigned next_parked(unsigned from)
{
    unsigned least = ~0U;
    for (unsigned i = 0; i < peers.nparked; i++)
        if ((unsigned)peers.parked[i] >= from && (unsigned)peers.parked[i] < least)
            least = (unsigned)peers.parked[i];
    return least;
}

/* Closes all but the first three and the parked ones, in ascending order: the listener and the
 * connection to the descriptor holder are the oldest, and a parked one may take long to close. */
static void close_other_fds(void)
{
    struct rlimit files = {.rlim_cur = 65536};
    unsigned next;
    getrlimit(RLIMIT_NOFILE, &files);
    for (unsigned from = 3; from; from = next + 1) {
        next = next_parked(from);
        if (from == next || !close_range(from, next - 1, 0))
            continue;
        for (unsigned fd = from; fd < next && fd < files.rlim_cur; fd++)
            close((int)fd); /* before Linux 5.9 */
    }
}

/* The child's work.  A connection that lingers does so until the next signal. */
static void run_child(pid_t parent, uint32_t number)
{
    static const struct sigaction on_alarm = {.sa_handler = ignore_signal};
    static const struct itimerval often = {{0, LINGER_US}, {0, LINGER_US}};
    close_other_fds();
    prctl(PR_SET_NAME, "rmd-holder");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGALRM, &on_alarm, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned i = 0; i < peers.nparked; i++)
        while (getppid() == parent && discard_message(peers.parked[i], 0))
            ;
    /* partner: hand_to_child */
    for (uint32_t now;
         (int32_t)((now = atomic_load(peers.closed)) - number) < 0 && getppid() == parent;)
        inv_futex_wait(peers.closed, now, -1, true);
    _exit(0);
}

/* A free entry among the first `of`; NULL: none of these children has ended.  SIGCHLD is ignored,
 * so the kernel reaps the children. */
static pid_t *free_child_entry(unsigned of)
{
    for (unsigned i = 0; i < of; i++)
        if (!peers.child[i] || waitpid(peers.child[i], NULL, WNOHANG))
            return &peers.child[i];
    return NULL;
}

static void hand_to_child(bool at_once)
{
    pid_t *place = free_child_entry(at_once ? CHILDREN_MAX : CHILDREN_EARLY);
    pid_t parent = getpid();
    if (!place && !peers.said_slow)
        rmd_log(RMD_WARNING, "descriptors that clients have sent take long to close");
    peers.said_slow |= !place;
    pid_t pid = place && peers.closed != MAP_FAILED ? fork() : -1;
    if (pid < 0)
        return; /* with the next one */
    if (!pid)
        run_child(parent, peers.forks + 1);
    while (peers.nparked)
        close(peers.parked[--peers.nparked]);
    atomic_store(peers.closed, ++peers.forks); /* seq_cst: partner is run_child */
    inv_futex_wake(peers.closed, INT_MAX, true);
    *place = pid;
}

void rmd_peer_close(int fd)
{
    if (!has_unread_data(fd)) {
        close(fd);
        return;
    }
    if (peers.nparked == PARKED_MAX)
        return; /* no child can be made: better a descriptor less than to wait */
    peers.parked[peers.nparked++] = fd;
    hand_to_child(peers.nparked == PARKED_MAX);
}

/* --- to let in */

/* Accepts the client with the descriptor that is reserved for this, and hangs up. */
static void reject_client(int listening)
{
    if (!peers.said_full)
        rmd_log(RMD_WARNING, "no descriptors are left: clients are turned away");
    peers.said_full = true;
    close(peers.spare_fd);
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        rmd_peer_close(fd);
    if (peers.nparked)
        hand_to_child(true);
    peers.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool rmd_peer_full(void)
{
    if (peers.nparked == PARKED_MAX)
        hand_to_child(true);
    if (peers.spare_fd < 0)
        peers.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return peers.spare_fd < 0 || peers.nparked == PARKED_MAX;
}

int rmd_peer_accept(int listening)
{
    if (rmd_peer_full())
        return -1;
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        reject_client(listening);
    return fd;
}

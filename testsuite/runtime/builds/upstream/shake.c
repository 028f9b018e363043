/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * shake COMMAND [ARGUMENT...] - runs the command in a domain whose cores come and go: a process
 * beside it takes random numbers of cores and gives them back, about every millisecond, in turn
 * politely and late, so that cores are lent, borrowed, asked back and taken by force.
 *
 * To be run by the launcher, with the domain to itself.  Ends as the command does.
 */
#define _GNU_SOURCE
#include <libinvasive/process.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MEAN_NS = 900000, LOOK_NS = 100000 };

static struct {
    int holds[INV_MAX_CORES];
    unsigned count;
} held;

static void sleep_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void take_one(void)
{
    int hold = inv_hold_acquire();
    if (hold != INV_HOLD_NONE)
        held.holds[held.count++] = hold;
}

static void give_one(void)
{
    inv_hold_release(held.holds[--held.count]);
}

/* Hold `target` cores, as far as they can be had, for about a millisecond. */
static void hold(unsigned target, bool polite)
{
    long left = rand() % (2 * MEAN_NS);
    while (held.count > target)
        give_one();
    inv_want(held.count < target); /* asks the holders of our own cores for them */
    for (; left > 0; left -= LOOK_NS) {
        for (unsigned i = held.count; i-- > 0;) {
            enum inv_verdict verdict = inv_hold_check(held.holds[i]);
            if (verdict == INV_GIVE && polite)
                inv_hold_release(held.holds[i]);
            if (verdict == INV_LOST || (verdict == INV_GIVE && polite))
                held.holds[i] = held.holds[--held.count];
        }
        if (held.count < target)
            take_one();
        sleep_ns(left < LOOK_NS ? left : LOOK_NS);
    }
}

static void shake(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "shake");
    if (getppid() != parent)
        _exit(0);
    srand((unsigned)getpid());
    if (!inv_join(-1, -1, -1))
        _exit(0);
    inv_thread_unpin();
    held.holds[held.count++] = inv_hold_detach();
    unsigned n = inv_process.ncores, target = 0; /* of n, so that the command has one */
    for (;; target = n < 3 ? !target && n > 1 : (target + 1 + (unsigned)rand() % (n - 1)) % n)
        hold(target, rand() % 4 > 0);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: shake COMMAND [ARGUMENT...]\n");
        return 125;
    }
    pid_t self = getpid();
    if (fork() == 0)
        shake(self);
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}

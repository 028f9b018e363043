/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * uncancelled.h - pthread_cancel, and signal handlers, wait until we are done.
 *
 * Our functions run in threads of the program, which may cancel them.  If a thread ended at a
 * system call of ours (open, read, connect, nanosleep ... are cancellation points), a lock would
 * stay held for ever, or shared state half changed.  So each of our functions that takes a lock or
 * changes shared state, and comes to a system call before it is done, begins with this line:
 *
 *     INV_UNCANCELLED;
 *
 * The thread cannot be cancelled until the block is left, whatever type of cancellation it has; then
 * it has its former state again.  Costs four atomic operations: not for what runs often.  A sleep
 * on a futex (futex.h) needs none of this: it is no cancellation point.
 *
 *     INV_UNDISTURBED;
 *
 * The same; and the program's signal handlers, which might leave by longjmp or exit, or open a
 * region, do not run in this thread meanwhile.  For the few functions that talk to rmd under a
 * lock.  Signals without a handler, and those of faults, act as ever.  Costs some seventy system
 * calls.
 */
#ifndef INV_UNCANCELLED_H
#define INV_UNCANCELLED_H

#include <pthread.h>
#include <signal.h>

struct inv_cancel {
    int state, type;
};

static inline struct inv_cancel inv_cancel_off(void)
{
    struct inv_cancel before = {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DEFERRED};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before.type);
    return before;
}

/* A thread that was cancelled meanwhile, asynchronously, ends in pthread_testcancel: if it ended in
 * a change of its cancellation type, glibc 2.36 would not report it as cancelled. */
static inline void inv_cancel_as(const struct inv_cancel *before)
{
    pthread_setcancelstate(before->state, NULL);
    if (before->type != PTHREAD_CANCEL_DEFERRED) {
        pthread_testcancel();
        pthread_setcanceltype(before->type, NULL);
    }
}

#define INV_UNCANCELLED                                                                    \
    struct inv_cancel inv_cancel_before __attribute__((cleanup(inv_cancel_as), unused)) = \
        inv_cancel_off()

static inline sigset_t inv_handlers_off(void)
{
    static const int of_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t handled, before;
    struct sigaction action;
    sigemptyset(&handled);
    for (int number = 1; number < NSIG; number++)
        if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_DFL &&
            action.sa_handler != SIG_IGN)
            sigaddset(&handled, number);
    for (size_t i = 0; i < sizeof of_faults / sizeof *of_faults; i++)
        sigdelset(&handled, of_faults[i]);
    sigemptyset(&before);
    pthread_sigmask(SIG_BLOCK, &handled, &before);
    return before;
}

static inline void inv_handlers_as(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* In this order: a thread that leaves by a handler can be cancelled again. */
#define INV_UNDISTURBED                                                                 \
    sigset_t inv_signals_before __attribute__((cleanup(inv_handlers_as), unused)) =    \
        inv_handlers_off();                                                             \
    INV_UNCANCELLED

#endif

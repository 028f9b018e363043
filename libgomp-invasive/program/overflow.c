/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * overflow.c - see overflow.h.
 */
#include "libgomp.h"
#include "overflow.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Handlers of the program with SA_ONSTACK run on this stack, too. */
enum { HANDLER_STACK_BYTES = 65536 };

/* The stack for handlers that this file has given the calling thread, or NULL. */
static __thread void *handler_stack __attribute__((tls_model("initial-exec"), used));
#define handler_stack GOMP_OWN(handler_stack)

/* Written by threads that make stacks. */
static struct {
    /* All guards, the newest first.  Pushed with release, read with acquire, by signal handlers. */
    _Atomic(struct gomp_guard *) guards;
    _Atomic bool handled; /* exchanged by the first thread that makes a stack */
} overflow;

/* --- guards */

void gomp_overflow_guard (struct gomp_guard *guard)
{
    guard->older = atomic_load_explicit(&overflow.guards, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&overflow.guards, &guard->older, guard,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

static const struct gomp_guard *guard_around (const void *addr)
{
    const struct gomp_guard *g = atomic_load_explicit(&overflow.guards, memory_order_acquire);
    while (g && (uintptr_t)addr - (uintptr_t)g->first >= g->bytes)
        g = g->older;
    return g;
}

/* --- the message, by functions that a signal handler may call */

static char *append_text (char *end, const char *text)
{
    while (*text)
        *end++ = *text++;
    return end;
}

static char *append_number (char *end, unsigned long n)
{
    if (n >= 10)
        end = append_number(end, n / 10);
    *end++ = (char)('0' + n % 10);
    return end;
}

static void say_overflow (unsigned number)
{
    char text[200], *end = append_text(text, "\nlibgomp: stack overflow in implicit task ");
    size_t bytes = 0;
    pthread_attr_getstacksize(&gomp_thread_attr, &bytes); /* safe here: only reads the attribute */
    end = append_number(end, number);
    end = append_text(end, " of a parallel region: its stack has ");
    end = append_number(end, bytes / 1024);
    end = append_text(end, " kB, set OMP_STACKSIZE to more\n");
    ssize_t written = write(STDERR_FILENO, text, (size_t)(end - text));
    (void)written;
}

/* Restores the default action, so the process dies: a fault comes again when the handler returns,
 * and a signal that a process has sent is raised again. */
static void on_fault (int signal, siginfo_t *info, void *unused)
{
    int error = errno;
    (void)unused;
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    const struct gomp_guard *guard = info->si_code > 0 ? guard_around(info->si_addr) : NULL;
    if (guard)
        say_overflow(*guard->number);
    sigaction(signal, &by_default, NULL);
    if (info->si_code <= 0)
        raise(signal);
    errno = error;
}

static void handle_faults (void)
{
    struct sigaction old, ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (atomic_load_explicit(&overflow.handled, memory_order_relaxed) ||
        atomic_exchange(&overflow.handled, true))
        return;
    if (sigaction(SIGSEGV, NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
        old.sa_handler == SIG_DFL)
        sigaction(SIGSEGV, &ours, NULL);
}

/* --- stacks for the handler */

static void make_handler_stack (void)
{
    stack_t old, new = {.ss_size = HANDLER_STACK_BYTES};
    if (sigaltstack(NULL, &old) != 0 || !(old.ss_flags & SS_DISABLE))
        return;
    new.ss_sp = mmap(NULL, HANDLER_STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (new.ss_sp == MAP_FAILED)
        return;
    if (sigaltstack(&new, NULL) == 0)
        handler_stack = new.ss_sp;
    else
        munmap(new.ss_sp, HANDLER_STACK_BYTES);
}

void gomp_overflow_watch (void)
{
    int error = errno;
    handle_faults();
    if (!handler_stack)
        make_handler_stack();
    errno = error;
}

void gomp_overflow_leave (void)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};
    if (!handler_stack || sigaltstack(NULL, &now) != 0)
        return;
    /* The stack stays if the thread ends on it, in a handler: it cannot be disabled then. */
    if (now.ss_sp != handler_stack || sigaltstack(&none, NULL) == 0)
        munmap(handler_stack, HANDLER_STACK_BYTES);
    handler_stack = NULL;
}

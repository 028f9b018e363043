/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a program ends that is at fault in an implicit task: by SIGSEGV, or by its own handler.
 * @helper of test_stack_overflow.py
 */
#include "../check.h"
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, CULPRIT = 5, OWN_STATUS = 42, HANDLER_STACK_BYTES = 65536 };

static volatile int depth;

static int __attribute__((noinline)) recurse(int n)
{
    volatile char room[2000];
    room[0] = (char)n;
    depth = n;
    return n > 0 ? recurse(n + 1) + room[0] : 0;
}

static void fault(const char *how)
{
    if (strcmp(how, "pointer") == 0)
        *(volatile int *)(unsigned long)depth = 1;
    else if (strcmp(how, "sent") == 0)
        kill(getpid(), SIGSEGV);
    else
        recurse(1);
}

static void on_fault(int number)
{
    (void)number;
    _exit(OWN_STATUS);
}

static void handle_faults(void)
{
    struct sigaction own = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGSEGV, &own, NULL) == 0, "sigaction");
}

static void give_handlers_a_stack(void)
{
    stack_t stack = {.ss_sp = malloc(HANDLER_STACK_BYTES), .ss_size = HANDLER_STACK_BYTES};
    CHECK(stack.ss_sp && sigaltstack(&stack, NULL) == 0, "sigaltstack");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strncmp(how, "handled", 7) == 0)
        handle_faults();
    int started = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : started)
    started++;
    CHECK(started == THREADS, "%d threads", started);
    if (strcmp(how, "handled-later") == 0)
        handle_faults();
#pragma omp parallel num_threads(THREADS)
    {
#pragma omp barrier
        if (omp_get_thread_num() == CULPRIT) {
            if (strncmp(how, "handled", 7) == 0)
                give_handlers_a_stack();
            fault(how);
        }
#pragma omp barrier
    }
    return check_ok();
}

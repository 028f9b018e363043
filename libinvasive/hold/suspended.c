/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * suspended.c - see suspended.h.
 *
 * While the job is suspended, rmd changes the slot's word at each of its looks.  If the word does
 * not change for long, rmd has ended and no other rmd has taken the tables over.
 */
#define _GNU_SOURCE
#include "libinvasive/hold/suspended.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>

#define NAP_NS INT64_C(2000000000)
#define SILENT_NS UINT64_C(30000000000) /* longer than a service takes to be started again */

/* Ends the suspension, since rmd has been silent.  False: rmd has changed the word meanwhile. */
static bool resume_alone(_Atomic uint32_t *word, uint32_t seen)
{
    if (!atomic_compare_exchange_strong(word, &seen, 0))
        return false;
    inv_futex_wake(word, INT_MAX, true);
    return true;
}

void inv_suspended_wait(void)
{
    _Atomic uint32_t *word = &inv_own_slot()->suspended;
    uint32_t seen, last = 0;
    uint64_t heard = 0;
    /* acquire: partner is rmd's store of 0, after it has put the owners right */
    while ((seen = atomic_load_explicit(word, memory_order_acquire)) != 0) {
        uint64_t now = inv_now_ns();
        if (seen != last)
            heard = now;
        else if (now - heard > SILENT_NS && resume_alone(word, seen))
            return;
        last = seen;
        inv_futex_wait(word, seen, NAP_NS, true);
    }
}

static void wait_in_handler(int signal)
{
    int saved = errno;
    (void)signal;
    if (inv_has_manager()) /* else the program has sent it, or rmd before the process left */
        inv_suspended_wait();
    errno = saved;
}

void inv_suspended_install(void)
{
    struct sigaction old;
    const struct sigaction ours = {.sa_handler = wait_in_handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    bool has = !sigaction(INV_SUSPENDED_SIGNAL, NULL, &old);
    bool free = has && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL;
    bool mine = has && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == wait_in_handler;
    /* relaxed: if rmd reads it late, it sends its signal a little later */
    if (mine || (free && !sigaction(INV_SUSPENDED_SIGNAL, &ours, NULL)))
        atomic_store_explicit(&inv_own_slot()->waits_on_signal, 1, memory_order_relaxed);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * migrate.c - how fast a core goes from one process to another, and back.
 *
 * Run under `invade` on two cores.  The borrower owns the first core and runs parallel regions
 * with more implicit tasks than that; the lender, a second process, owns the other core.  Again
 * and again the lender begins to wait and lends its core, exactly as the MPI shim does, and takes
 * it back when the wait is over:
 *   sleeping     lend, until the borrower's parked worker begins an implicit task there
 *   spinning     lend, until a thread of the borrower's that is awake and looks for a core has it
 *   cooperative  the owner asks for its core, until it computes there, in implicit tasks
 *   forced       the same while the borrower's implicit task does not end (--forced)
 *
 * Beside it, in the same run and with sleeps as long: a bare futex wake of another process, which
 * sleeps on another core or on the same one.
 *
 * It looks at the core table (libinvasive), which a normal program never does.
 */
#define _GNU_SOURCE
#include "libinvasive/process.h"
#include "two.h"

#include <omp.h>

enum { ROUNDS = 300, FORCED_ROUNDS = 60, TASK_US = 1000, LENT_US = 6000, LONG_TASK_US = 20000 };

/* Written by one side and read by the other between two_set and two_await of `turn`. */
struct shared {
    _Atomic uint32_t turn, answer, bell, stop;
    _Atomic int32_t lent; /* core */
    _Atomic uint64_t lent_ns, first_ns, asked_ns;
    _Atomic uint32_t begun_after_asking;
    int task_us;
};
static struct shared *sh;
enum { LENDER_IS_READY = 1, LEND_TO_SLEEPER, LEND_TO_SPINNER };

static double us_of(uint64_t from, uint64_t to)
{
    return ((double)to - (double)from) * 1e-3;
}

/* --- a bare futex wake */

static void futex_sleeper(int cpu)
{
    two_pin(cpu);
    for (uint32_t seen = 0;;) {
        two_set(&sh->answer, seen + 1);
        while (atomic_load(&sh->bell) == seen)
            inv_futex_wait(&sh->bell, seen, -1, true);
        atomic_store(&sh->first_ns, two_now_ns());
        seen++;
    }
}

/* The waker on cpu `from`, the sleeper on cpu `to`; it has slept about as long as a parked worker.
 * On the same core the waker sleeps at once, as a lender does. */
static double futex_wake_us(int fd, int from, int to)
{
    static double us[ROUNDS];
    char role[16];
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    memset(sh, 0, sizeof *sh);
    snprintf(role, sizeof role, "futex%d", to);
    pid_t pid = two_start(role, fd);
    two_pin(from);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        while (atomic_load(&sh->answer) != i + 1)
            two_sleep_ns(50000);
        two_sleep_ns(LENT_US * 100);
        atomic_store(&sh->first_ns, 0);
        uint64_t start = two_now_ns();
        atomic_fetch_add(&sh->bell, 1);
        inv_futex_wake(&sh->bell, 1, true);
        while (atomic_load(&sh->first_ns) == 0)
            if (from == to)
                two_sleep_ns(100000);
        us[i] = us_of(start, atomic_load(&sh->first_ns));
    }
    two_stop(pid);
    sched_setaffinity(0, sizeof before, &before);
    return two_quantile(us, ROUNDS, 0.5);
}

/* --- the lender, which owns a core and lends it while it waits */

static void lend(void)
{
    atomic_store(&sh->first_ns, 0);
    atomic_store(&sh->asked_ns, 0);
    atomic_store(&sh->begun_after_asking, 0);
    atomic_store(&sh->lent, inv_hold);
    atomic_store(&sh->lent_ns, two_now_ns());
    inv_wait_begin();
}

static void take_back(double *us, unsigned *begun)
{
    int core = atomic_load(&sh->lent);
    uint64_t start = two_now_ns();
    atomic_store(&sh->asked_ns, start);
    inv_wait_end();
    *us = us_of(start, two_now_ns());
    if (inv_hold != core)
        *us = -1; /* another core than the one that was lent */
    *begun = atomic_load(&sh->begun_after_asking);
}

/* Until the borrower has a worker parked and work for it. */
static void await_borrower(unsigned borrower)
{
    struct inv_slot *slot = inv_slot_at(inv_process.table, borrower);
    while (!inv_want_get(inv_process.table, borrower) || atomic_load(&slot->parked) == 0)
        inv_cpu_relax();
}

struct samples {
    double sleeping_us[ROUNDS], spinning_us[ROUNDS], reclaim_us[ROUNDS];
    unsigned slept, spun, reclaims, begun_most;
};

static void lend_to_sleeper(struct samples *s, unsigned borrower, unsigned round)
{
    unsigned begun;
    double us;
    await_borrower(borrower);
    lend();
    uint32_t seen = inv_bell_read();
    inv_wait_sleep(seen, (LENT_US + (int64_t)round * 379 % 1000) * 1000);
    uint64_t first = atomic_load(&sh->first_ns);
    take_back(&us, &begun);
    if (first)
        s->sleeping_us[s->slept++] = us_of(atomic_load(&sh->lent_ns), first);
    if (us >= 0 && first)
        s->reclaim_us[s->reclaims++] = us;
    if (begun > s->begun_most)
        s->begun_most = begun;
    two_busy_ns(200000); /* the borrower's worker parks again */
}

static void lend_to_spinner(struct samples *s)
{
    two_set(&sh->turn, LEND_TO_SPINNER);
    two_await(&sh->answer, LEND_TO_SPINNER); /* it looks */
    two_busy_ns(20000);
    lend();
    while (atomic_load(&sh->first_ns) == 0)
        inv_cpu_relax();
    s->spinning_us[s->spun++] =
        us_of(atomic_load(&sh->lent_ns), atomic_load(&sh->first_ns));
    two_await(&sh->answer, LENDER_IS_READY); /* it has given the core back */
    inv_wait_end();
}

static void print_samples(struct samples *s, bool forced)
{
    printf("reclaims %u\nreclaim_median_us %.2f\nreclaim_p95_us %.2f\nreclaim_most_us %.2f\n",
           s->reclaims, two_quantile(s->reclaim_us, s->reclaims, 0.5),
           two_quantile(s->reclaim_us, s->reclaims, 0.95),
           two_quantile(s->reclaim_us, s->reclaims, 1));
    if (forced)
        return;
    printf("task_us %d\nbegun_after_asking %u\n", TASK_US, s->begun_most);
    printf("lends %u\nsleeping_us %.2f\nsleeping_p95_us %.2f\n", s->slept,
           two_quantile(s->sleeping_us, s->slept, 0.5),
           two_quantile(s->sleeping_us, s->slept, 0.95));
    printf("spinning_us %.3f\nspinning_p95_us %.3f\n",
           two_quantile(s->spinning_us, s->spun, 0.5),
           two_quantile(s->spinning_us, s->spun, 0.95));
}

static int lender(bool forced)
{
    static struct samples s;
    unsigned borrower = 0; /* the process that joined first */
    if (!inv_join(-1, -1, -1) || inv_process.slot == borrower)
        return 1;
    while (inv_first_owned_core() == INV_NO_CORE || !inv_hold_is_owned())
        two_sleep_ns(1000000);
    two_set(&sh->turn, LEND_TO_SLEEPER);
    for (unsigned i = 0; i < (forced ? FORCED_ROUNDS : ROUNDS); i++)
        lend_to_sleeper(&s, borrower, i);
    if (!forced) {
        two_set(&sh->stop, 1); /* of the regions */
        two_await(&sh->answer, LENDER_IS_READY);
        for (unsigned i = 0; i < ROUNDS; i++)
            lend_to_spinner(&s);
    }
    two_set(&sh->stop, 2);
    print_samples(&s, forced);
    fflush(stdout);
    return 0;
}

/* --- the borrower */

static void implicit_task(void)
{
    uint64_t now = two_now_ns(), none = 0;
    if (inv_hold >= 0 && inv_hold == atomic_load(&sh->lent)) {
        atomic_compare_exchange_strong(&sh->first_ns, &none, now);
        if (atomic_load(&sh->asked_ns))
            atomic_fetch_add(&sh->begun_after_asking, 1);
    }
    two_busy_ns((uint64_t)sh->task_us * 1000);
}

static void compute_until(uint32_t stop)
{
    while (atomic_load(&sh->stop) < stop) {
#pragma omp parallel
        implicit_task();
    }
}

static void look_for_cores(void)
{
    two_set(&sh->answer, LENDER_IS_READY);
    while (atomic_load(&sh->stop) < 2) {
        if (atomic_load_explicit(&sh->turn, memory_order_acquire) != LEND_TO_SPINNER)
            continue;
        two_set(&sh->turn, 0);
        two_set(&sh->answer, LEND_TO_SPINNER);
        int hold;
        while ((hold = inv_hold_acquire()) == INV_HOLD_NONE)
            inv_cpu_relax();
        atomic_store(&sh->first_ns, two_now_ns());
        inv_hold_release(hold);
        two_set(&sh->answer, LENDER_IS_READY);
    }
}

static int borrower(bool forced)
{
    int fd, status = 1;
    sh = two_share(sizeof *sh, &fd);
    int first = two_cpu(0), second = two_cpu(1);
    if (second < 0) {
        fprintf(stderr, "migrate: this needs two cores\n");
        return 1;
    }
    if (!forced)
        printf("futex_us %.2f\nfutex_same_core_us %.2f\n", futex_wake_us(fd, first, second),
               futex_wake_us(fd, first, first));
    fflush(stdout);
    memset(sh, 0, sizeof *sh);
    sh->task_us = forced ? LONG_TASK_US : TASK_US;
    atomic_store(&sh->lent, INV_NO_CORE);
#pragma omp parallel
    two_busy_ns(1000);
    if (!inv_managed() || inv_process.ncores != 2) {
        fprintf(stderr, "migrate: run me under invade, on two cores\n");
        return 1;
    }
    pid_t pid = two_start(forced ? "forced" : "lend", fd);
    while (atomic_load(&sh->turn) == 0 && waitpid(pid, &status, WNOHANG) == 0)
        two_sleep_ns(1000000);
    compute_until(forced ? 2 : 1);
    if (!forced)
        look_for_cores();
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    bool forced = argc == 2 && strcmp(argv[1], "--forced") == 0;
    if (argc == 1 || forced)
        return borrower(forced);
    if (argc != 3)
        return 2;
    sh = two_attach(argv[2], sizeof *sh);
    if (strncmp(argv[1], "futex", 5) == 0)
        futex_sleeper(atoi(argv[1] + 5));
    return lender(strcmp(argv[1], "forced") == 0);
}

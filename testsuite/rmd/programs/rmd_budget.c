/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd_budget.c - a budget (budget.h) beside a kernel that is only described, for host/test_quota.py: one
 * question per line of stdin, one answer per line of stdout.
 *
 *   QUOTA_US PERIOD_US CORES  PHASE_US RETURN_US OTHERS  N {MS WANTS}*N
 *     -> of 1000 periods: those that were throttled; part of the quota that was used and part of
 * the
 *        work that was done, in thousandths; looks for each period
 *
 * The processes want so many cores for so long, in turn.  A core that is taken back is used
 * RETURN_US longer.  OTHERS: thousandths of a core that processes of the group use which rmd does
 * not know.
 */
#include "rmd/quota/budget.h"

#include <stdio.h>

enum { STEP_NS = 20000, PERIODS = 1000, SETTLE = 100, PARTS = 8 };

struct question {
    unsigned quota_us, period_us, cores, phase_us, return_us, others, n;
    struct {
        unsigned ms, wants;
    } part[PARTS];
};

static unsigned wanted(const struct question *q, uint64_t now_ns)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < q->n; i++)
        all += q->part[i].ms;
    uint64_t ms = now_ns / 1000000 % all;
    unsigned i = 0;
    while (ms >= q->part[i].ms)
        ms -= q->part[i++].ms;
    return q->part[i].wants;
}

static void answer(const struct question *q)
{
    struct rmd_budget b = {0};
    uint64_t period_ns = q->period_us * 1000ull, quota_ns = q->quota_us * 1000ull;
    uint64_t now = 1000000000, next = now, returned_at = 0, periods = 1, throttled = 0;
    uint64_t begin = now - now % period_ns + q->phase_us * 1000ull;
    double left = (double)quota_ns, ran = 0, used = 0, work = 0, done = 0;
    unsigned held = q->cores, looks = 0, stopped = 0;
    rmd_budget_set(&b, quota_ns, period_ns, q->cores, now);
    for (; periods < PERIODS + SETTLE; now += STEP_NS) {
        if (now >= begin + period_ns) {
            begin += period_ns;
            left = (double)quota_ns;
            periods++;
            stopped = 0;
            if (periods == SETTLE)
                used = work = done = looks = throttled = 0;
        }
        if (b.quota_ns && now >= next) {
            struct rmd_budget_seen seen = {now, (uint64_t)ran, true, periods, throttled};
            ran = 0;
            looks++;
            next = rmd_budget_update(&b, &seen);
            if (b.cores < held && !returned_at)
                returned_at = now + q->return_us * 1000ull;
        }
        if (b.cores >= held || now >= returned_at) {
            held = b.cores;
            returned_at = 0;
        }
        double wants = wanted(q, now), runs = wants < held ? wants : held;
        double others = q->others / 1000.0 * STEP_NS;
        if (left < runs * STEP_NS + others) {
            throttled += !stopped;
            stopped = 1;
            runs = others = left = 0;
        }
        left -= runs * STEP_NS + others;
        used += runs * STEP_NS + others;
        ran += runs * STEP_NS;
        work += wants * STEP_NS;
        done += runs * STEP_NS;
    }
    printf("%d %.0f %.0f %.0f\n", (int)throttled, 1000 * used / PERIODS / (double)quota_ns,
           1000 * done / work, (double)looks / PERIODS);
}

int main(void)
{
    struct question q;
    while (scanf("%u %u %u %u %u %u %u", &q.quota_us, &q.period_us, &q.cores, &q.phase_us,
                 &q.return_us, &q.others, &q.n) == 7) {
        if (!q.n || q.n > PARTS)
            return 2;
        for (unsigned i = 0; i < q.n; i++)
            if (scanf("%u %u", &q.part[i].ms, &q.part[i].wants) != 2)
                return 2;
        answer(&q);
        fflush(stdout);
    }
    return 0;
}

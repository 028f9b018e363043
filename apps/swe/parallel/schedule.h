// SPDX-License-Identifier: GPL-3.0-or-later
// schedule.h - work on all clusters of a rank, shared out among the threads.
//
// Four ways: a task each cluster; clusters fixed to threads, in stretches of the curve of equal
// work (owner-compute, papers/…balancing.txt §6.3); a loop in which whoever is free takes the next
// cluster, as with tasks, but nobody has to be woken for each; and, compiled with SWE_TBB,
// a parallel_for of Threading Building Blocks.  An exception of the work is thrown again here.
#ifndef SWE_PARALLEL_SCHEDULE_H
#define SWE_PARALLEL_SCHEDULE_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>
#include "../config.h"
#ifdef SWE_TBB
#include <tbb/parallel_for.h>
#else
#include <omp.h>
#endif

namespace swe {

class Schedule {
public:
    explicit Schedule(Parallel kind_) : kind(kind_) {}

    // Work of each item, in any unit; until the next call.
    void weigh(const std::vector<std::int64_t> &work)
    {
        middle.clear();
        std::int64_t sum = 0;
        for (std::int64_t w : work) {
            middle.push_back(2 * sum + w); // twice where the item's middle is
            sum += w;
        }
        total = std::max<std::int64_t>(2 * sum, 1);
    }

    // use(i) for each i of 0 .. count-1, in any order, at the same time.
    template <class F> void each(int count, F use)
    {
        auto start = std::chrono::steady_clock::now();
        Catch caught;
#ifdef SWE_TBB
        tbb::parallel_for(0, count, [&](int i) { caught.run(use, i); });
#else
        if (kind == Parallel::TASKS)
            tasks(count, use, caught);
        else if (kind == Parallel::LOOP)
            loop(count, use, caught);
        else
            owners(count, use, caught);
#endif
        inside += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        caught.rethrow();
    }

    // Who works on item i is likely to have item i + ahead() next, as far as threads are alike.
    int ahead() const
    {
#ifdef SWE_TBB
        return 1;
#else
        return kind == Parallel::OWNER ? 1 : omp_get_max_threads();
#endif
    }

    // How long each() has taken so far: the rest of a rank's time is serial, or waits.
    double seconds() const { return inside; }

private:
    Parallel kind;
    std::vector<std::int64_t> middle;
    std::int64_t total = 1;
    double inside = 0;

    class Catch {
    public:
        template <class F> void run(F &use, int i) noexcept
        {
            try {
                use(i);
            } catch (...) {
                std::lock_guard<std::mutex> guard(lock);
                if (!first)
                    first = std::current_exception();
            }
        }
        void rethrow()
        {
            if (first)
                std::rethrow_exception(first);
        }

    private:
        std::mutex lock;
        std::exception_ptr first;
    };

#ifndef SWE_TBB
    // All tasks at once, not by a taskloop, which may hold some back for the thread that it has.
    template <class F> static void tasks(int count, F &use, Catch &caught)
    {
#pragma omp parallel default(none) shared(count, use, caught)
#pragma omp single
        for (int i = 0; i < count; i++) {
#pragma omp task default(none) firstprivate(i) shared(use, caught)
            caught.run(use, i);
        }
    }

    template <class F> static void loop(int count, F &use, Catch &caught)
    {
#pragma omp parallel for schedule(dynamic, 1) default(none) shared(count, use, caught)
        for (int i = 0; i < count; i++)
            caught.run(use, i);
    }

    // Who has the middle of an item has the item.
    template <class F> void owners(int count, F &use, Catch &caught)
    {
#pragma omp parallel default(none) shared(count, use, caught)
        {
            std::int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
            for (int i = 0; i < count; i++) {
                std::int64_t owner = i < static_cast<int>(middle.size())
                                         ? middle[i] * threads / total
                                         : static_cast<std::int64_t>(i) * threads / count;
                if (owner == me)
                    caught.run(use, i);
            }
        }
    }
#endif
};

} // namespace swe
#endif

// SPDX-License-Identifier: GPL-3.0-or-later
// schedule.h - work on all clusters of a rank, shared out among the threads.
//
// Four ways: a task each cluster; clusters fixed to threads, in stretches of the curve of equal
// work (owner-compute, Schreiber et al., 6.3); a loop in which a free thread takes the next
// cluster, as with tasks, but no thread has to be woken for each; and, compiled with SWE_TBB,
// a parallel_for of Threading Building Blocks.  But for owners the largest clusters are begun first,
// so that what is left at the end is small.  An exception of the work is thrown again here.
#ifndef SWE_PARALLEL_SCHEDULE_H
#define SWE_PARALLEL_SCHEDULE_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
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

    // Work of each item, in any unit; until the next call.  Of none: all items are alike.
    void weigh(const std::vector<std::int64_t> &work)
    {
        order = has_owners() ? std::vector<int>{} : largest_first(work);
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
        auto item = [&](int nth) { caught.run(use, nth_of(count, nth)); };
#ifdef SWE_TBB
        tbb::parallel_for(0, count, item);
#else
        if (kind == Parallel::TASKS)
            tasks(count, item);
        else if (kind == Parallel::LOOP)
            loop(count, item);
        else
            owners(count, item);
#endif
        inside += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        caught.rethrow();
    }

    // For each item the one that its thread is likely to take next, if threads are alike; -1: none.
    std::vector<int> next_of(int count) const
    {
#ifdef SWE_TBB
        int ahead = 1;
#else
        int ahead = has_owners() ? 1 : omp_get_max_threads();
#endif
        std::vector<int> next(count, -1);
        for (int nth = 0; nth + ahead < count; nth++)
            next[nth_of(count, nth)] = nth_of(count, nth + ahead);
        return next;
    }

    // How long each() has taken so far: the rest of a rank's time is serial, or waits.
    double seconds() const { return inside; }

private:
    Parallel kind;
    std::vector<int> order; // of items, as they are begun; none: as they come
    std::vector<std::int64_t> middle;
    std::int64_t total = 1;
    double inside = 0;

    bool has_owners() const
    {
#ifdef SWE_TBB
        return false;
#else
        return kind == Parallel::OWNER;
#endif
    }

    // Which one of so many items is begun as the nth.
    int nth_of(int count, int nth) const
    {
        return count == static_cast<int>(order.size()) ? order[nth] : nth;
    }

    static std::vector<int> largest_first(const std::vector<std::int64_t> &work)
    {
        std::vector<int> order(work.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return work[a] > work[b]; });
        return order;
    }

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
    template <class F> static void tasks(int count, F &item)
    {
#pragma omp parallel default(none) shared(count, item)
#pragma omp single
        for (int i = 0; i < count; i++) {
#pragma omp task default(none) firstprivate(i) shared(item)
            item(i);
        }
    }

    template <class F> static void loop(int count, F &item)
    {
#pragma omp parallel for schedule(dynamic, 1) default(none) shared(count, item)
        for (int i = 0; i < count; i++)
            item(i);
    }

    // The thread whose stretch of work has the middle of an item has the item.  The middle of an
    // item without work may be at the end of all work.
    template <class F> void owners(int count, F &item)
    {
#pragma omp parallel default(none) shared(count, item)
        {
            std::int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
            for (int i = 0; i < count; i++) {
                std::int64_t owner = i < static_cast<int>(middle.size())
                                         ? middle[i] * threads / total
                                         : static_cast<std::int64_t>(i) * threads / count;
                if (std::min(owner, threads - 1) == me)
                    item(i);
            }
        }
    }
#endif
};

} // namespace swe
#endif

// SPDX-License-Identifier: GPL-3.0-or-later
// schedule.h - work on all clusters of a rank, shared out among the threads.
//
// Four ways: a task each cluster; clusters fixed to threads, in stretches of the curve of equal
// work (owner-compute, Schreiber et al., 6.3); a loop in which a free thread takes the next
// cluster, as with tasks, but no thread has to be woken for each; and, compiled with SWE_TBB,
// a parallel_for of Threading Building Blocks.  But for owners the largest clusters are begun first,
// so that what is left at the end is small.  An exception of the work is thrown again here.
//
// Work may be in parts, the first of which is what others wait for: in_parts().
#ifndef SWE_PARALLEL_SCHEDULE_H
#define SWE_PARALLEL_SCHEDULE_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
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

    static constexpr int REST = 2; // the last part

    // Work of each item, in any unit, and for in_parts() the part that each is in, 0 .. REST; until
    // the next call.  Of no work: all items are alike.
    void weigh(const std::vector<std::int64_t> &work, const std::vector<int> &parts = {})
    {
        order = has_owners() ? std::vector<int>{} : largest_first(work);
        in_turn = by_part(work, parts);
        first = static_cast<int>(std::count_if(parts.begin(), parts.end(),
                                               [](int part) { return part != REST; }));
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
        timed([&](Catch &caught) {
            auto number = [&](int nth) { return nth_of(count, nth); };
            share(0, count, [&](int nth) { caught.run([&] { use(number(nth)); }); }, number);
        });
    }

    // The same of the items that were weighed, part by part: those of the first parts are begun
    // before those of the last one, behind which nothing waits for them.  The calling thread, and
    // no other, calls between() after each item that it has worked on.
    template <class F, class B> void in_parts(F use, B between)
    {
        const auto caller = std::this_thread::get_id();
        auto count = static_cast<int>(in_turn.size());
        timed([&](Catch &caught) {
            auto number = [&](int nth) { return in_turn[nth]; };
            auto item = [&](int nth) {
                caught.run([&] { use(number(nth)); });
                if (std::this_thread::get_id() == caller)
                    caught.run(between);
            };
#ifndef SWE_TBB
            if (kind == Parallel::LOOP) {
                loop(0, count, item);
                return;
            }
            if (kind == Parallel::TASKS) {
                tasks_in_turn(count, item);
                return;
            }
#endif
            share(0, first, item, number);
            caught.run(between);
            share(first, count, item, number);
        });
    }

#ifndef SWE_TBB
    // The same with tasks, where the items readers[k] are begun after event k: await(k, event), which
    // the calling thread calls for each k, says what fulfils it.
    template <class F, class B, class A>
    void in_parts(F use, B between, const std::vector<std::vector<int>> &readers, A await)
    {
        const auto caller = std::this_thread::get_id();
        const std::size_t count = in_turn.size();
        std::vector<std::atomic<int>> missing(count); // events
        for (const auto &items : readers)
            for (int i : items)
                missing[i].fetch_add(1, std::memory_order_relaxed);
        std::vector<int> ready;
        for (int i : in_turn)
            if (missing[i].load(std::memory_order_relaxed) == 0)
                ready.push_back(i);
        timed([&](Catch &caught) {
            auto item = [&](int i) {
                caught.run([&] { use(i); });
                if (std::this_thread::get_id() == caller)
                    caught.run(between);
            };
            tasks_after_events(ready, readers, missing, item, await);
        });
    }
#endif

    // For each item the one that its thread is likely to take next, if threads are alike; -1: none.
    std::vector<int> next_of(int count) const
    {
#ifdef SWE_TBB
        int ahead = 1;
#else
        int ahead = has_owners() ? 1 : omp_get_max_threads();
#endif
        std::vector<int> next(count, -1);
        const bool parts = count == static_cast<int>(in_turn.size());
        for (int nth = 0; nth + ahead < count; nth++)
            if (parts)
                next[in_turn[nth]] = in_turn[nth + ahead];
            else
                next[nth_of(count, nth)] = nth_of(count, nth + ahead);
        return next;
    }

    // How long each() has taken so far: the rest of a rank's time is serial, or waits.
    double seconds() const { return inside; }

private:
    Parallel kind;
    std::vector<int> order; // of items, as they are begun; none: as they come
    std::vector<int> in_turn; // of items in parts, likewise; none: there are no parts
    int first = 0;            // how many of these are not in the last part
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

    // Part by part; in these largest first, or, for owners, as they come.
    std::vector<int> by_part(const std::vector<std::int64_t> &work,
                             const std::vector<int> &parts) const
    {
        std::vector<int> list(parts.size());
        std::iota(list.begin(), list.end(), 0);
        std::stable_sort(list.begin(), list.end(), [&](int a, int b) {
            return parts[a] != parts[b] ? parts[a] < parts[b] : !has_owners() && work[a] > work[b];
        });
        return list;
    }

    class Catch {
    public:
        template <class F> void run(F use) noexcept
        {
            try {
                use();
            } catch (...) {
                std::lock_guard<std::mutex> guard(lock);
                if (!thrown)
                    thrown = std::current_exception();
            }
        }
        void rethrow()
        {
            if (thrown)
                std::rethrow_exception(thrown);
        }

    private:
        std::mutex lock;
        std::exception_ptr thrown;
    };

    template <class F> void timed(F work)
    {
        auto start = std::chrono::steady_clock::now();
        Catch caught;
        work(caught);
        inside += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        caught.rethrow();
    }

    // item(nth) for each nth of begin .. end-1; the item is number(nth).
    template <class F, class N> void share(int begin, int end, F item, [[maybe_unused]] N number)
    {
#ifdef SWE_TBB
        tbb::parallel_for(begin, end, item);
#else
        if (kind == Parallel::TASKS)
            tasks(begin, end, item);
        else if (kind == Parallel::LOOP)
            loop(begin, end, item);
        else
            owners(begin, end, item, number);
#endif
    }

#ifndef SWE_TBB
    // All tasks at once, not by a taskloop, which may hold some back for the thread that it has.
    template <class F> static void tasks(int begin, int end, F &item)
    {
#pragma omp parallel default(none) shared(begin, end, item)
#pragma omp single
        for (int i = begin; i < end; i++) {
#pragma omp task default(none) firstprivate(i) shared(item)
            item(i);
        }
    }

    // A thread begins the newest of its own tasks first, so each task takes the item whose turn it
    // is when it begins.
    template <class F> static void tasks_in_turn(int count, F &item)
    {
        std::atomic<int> next{0};
#pragma omp parallel default(none) shared(count, item, next)
#pragma omp master
        for (int i = 0; i < count; i++) {
#pragma omp task default(none) shared(item, next)
            item(next++);
        }
    }

    template <class F, class A>
    static void tasks_after_events(const std::vector<int> &ready,
                                   const std::vector<std::vector<int>> &readers,
                                   std::vector<std::atomic<int>> &missing, F &item, A &await)
    {
        const auto events = static_cast<int>(readers.size());
        std::vector<char> fulfilled(readers.size());
        std::atomic<int> awaited{0}; // a task that does nothing, compilers leave out
        std::atomic<std::size_t> next{0};
#pragma omp parallel default(none)                                                                 \
    shared(ready, readers, missing, item, await, events, fulfilled, awaited, next)
#pragma omp master
        {
            for (int k = 0; k < events; k++) {
                omp_event_handle_t event;
                char *token = &fulfilled[k];
#pragma omp task default(none) shared(awaited) depend(out : *token) detach(event)
                awaited++;
                await(k, event);
#pragma omp task default(none) firstprivate(k, token) shared(readers, missing, item)               \
    depend(in : *token)
                for (int i : readers[k])
                    if (--missing[i] == 0) { // acq_rel and more: the last event's task begins it
#pragma omp task default(none) firstprivate(i) shared(item)
                        item(i);
                    }
            }
            for (std::size_t i = 0; i < ready.size(); i++) { // as tasks_in_turn
#pragma omp task default(none) shared(ready, item, next)
                item(ready[next++]);
            }
        }
    }

    template <class F> static void loop(int begin, int end, F &item)
    {
#pragma omp parallel for schedule(dynamic, 1) default(none) shared(begin, end, item)
        for (int i = begin; i < end; i++)
            item(i);
    }

    // The thread whose stretch of work has the middle of an item has the item.  The middle of an
    // item without work may be at the end of all work.
    template <class F, class N> void owners(int begin, int end, F &item, N &number)
    {
#pragma omp parallel default(none) shared(begin, end, item, number)
        {
            std::int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
            for (int nth = begin; nth < end; nth++) {
                const int i = number(nth);
                std::int64_t owner = i < static_cast<int>(middle.size())
                                         ? middle[i] * threads / total
                                         : static_cast<std::int64_t>(nth) * threads / end;
                if (std::min(owner, threads - 1) == me)
                    item(nth);
            }
        }
    }
#endif
};

} // namespace swe
#endif

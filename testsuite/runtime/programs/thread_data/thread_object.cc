// SPDX-License-Identifier: GPL-3.0-or-later
// C++: a thread_local object is made once for each kernel thread that uses it and keeps the value
// of its thread number, so is a threadprivate object of a class; copyin calls its assignment; none
// is destroyed twice.
#include "../check.h"
#include <atomic>
#include <omp.h>

static std::atomic<int> alive;

struct counter {
    int number = -1, calls = 0;
    counter *self = this; // the object has not been moved, and is destroyed only once
    counter() { alive++; }
    counter(const counter &) = delete;
    counter &operator=(const counter &other)
    {
        number = other.number;
        return *this;
    }
    ~counter()
    {
        CHECK(self == this, "destroyed twice, or never made");
        self = nullptr;
        alive--;
    }
};

static thread_local counter local;
extern counter kept;
#pragma omp threadprivate(kept)
counter kept;

static void regions(int n)
{
#pragma omp parallel num_threads(n)
    {
        kept.number = local.number = omp_get_thread_num();
        kept.calls = local.calls = 0;
    }
    for (int round = 1; round <= 20; round++) {
        int members = 0;
#pragma omp parallel num_threads(n) reduction(+ : members)
        {
            int me = omp_get_thread_num();
            CHECK(kept.number == me && local.number == me, "thread %d sees objects of %d and %d", me,
                  kept.number, local.number);
            if (round % 2) {
#pragma omp barrier
            }
            CHECK(++kept.calls == round && ++local.calls == round, "thread %d: %d calls", me, kept.calls);
            members++;
        }
        CHECK(members == n, "%d members", members);
    }
    CHECK(alive.load() <= 2 * n, "%d objects of %d threads", alive.load(), n);
}

static void copied()
{
    kept.number = 77;
    int good = 0;
#pragma omp parallel num_threads(8) copyin(kept) reduction(+ : good)
    {
        good += kept.number == 77;
        kept.number = -1;
    }
    CHECK(good == 8, "copyin reached %d threads", good);
}

int main()
{
    omp_set_dynamic(0);
    regions(12);
    copied();
    regions(12);
    return check_ok();
}

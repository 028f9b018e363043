/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implicit tasks that wait while they handle an exception, or are being unwound, have exceptions of
 * their own (test_thread_identity.py). */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <omp.h>
#include <stdexcept>
#include <string>

constexpr int N = 24, ROUNDS = 30;

static void check(bool good, const char *what, int me)
{
    if (good)
        return;
    std::fprintf(stderr, "contexts_exceptions: %s of %d\n", what, me);
    std::_Exit(1);
}

static void meet()
{
#pragma omp barrier
}

struct Meets {
    int me;
    ~Meets()
    {
        check(std::uncaught_exceptions() == me % 2, "uncaught exceptions before", me);
        meet();
        check(std::uncaught_exceptions() == me % 2, "uncaught exceptions after", me);
    }
};

static void handle(int me)
{
    try {
        throw std::runtime_error(std::to_string(me));
    } catch (const std::exception &e) {
        meet();
        check(e.what() == std::to_string(me), "the exception", me);
        try {
            std::rethrow_exception(std::current_exception());
        } catch (const std::exception &again) {
            meet();
            check(again.what() == std::to_string(me), "the exception again", me);
        }
    }
    check(!std::current_exception(), "no exception any more", me);
}

static void unwind(int me)
{
    try {
        Meets meets{me};
        if (me % 2)
            throw me;
    } catch (int caught) {
        check(caught == me, "the number", me);
    }
}

int main()
{
    omp_set_dynamic(0);
#pragma omp parallel num_threads(N)
    for (int round = 0; round < ROUNDS; round++) {
        int me = omp_get_thread_num();
        handle(me);
        unwind(me);
    }
    std::puts("OK");
}

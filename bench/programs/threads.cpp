/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * threads.cpp - threads of C++ that compute without a pause and know neither OpenMP nor MPI: what
 * other programs compute beside.  Each counts its units of work in a file, so that bench/manager/beside.py
 * reads how many there were in a time.
 *
 * Usage: threads FILE [THREADS]: a mapped file of 64 bytes a thread, whose first 8 are the counter.
 * The program ends by a signal.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "program.h"

namespace
{

constexpr int UNIT_ROUNDS = 4096; /* of mix_bits: some 10 µs */

struct alignas(64) Counter {
    std::atomic<uint64_t> units; /* one writer, the thread; relaxed: a count, read by another process */
};
static_assert(sizeof(Counter) == 64 && std::atomic<uint64_t>::is_always_lock_free);

void compute(Counter &counter)
{
    uint64_t x = 1;
    for (uint64_t done = 1;; done++) {
        for (int i = 0; i < UNIT_ROUNDS; i++)
            x = mix_bits(x);
        counter.units.store(x ? done : 0, std::memory_order_relaxed); /* uses x: mix_bits(0) is 0 only */
    }
}

Counter *map_counters(const char *path, int threads)
{
    const size_t size = size_t(threads) * sizeof(Counter);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, off_t(size)) != 0)
        return nullptr;
    void *map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? nullptr : static_cast<Counter *>(map);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s FILE [THREADS]\n", argv[0]);
        return 2;
    }
    const int threads = number_argument(argc, argv, 2, 1);
    Counter *counters = map_counters(argv[1], threads);
    if (!counters) {
        std::perror(argv[1]);
        return 1;
    }
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++)
        all.emplace_back(compute, std::ref(counters[i]));
    for (std::thread &thread : all)
        thread.join();
    return 0;
}

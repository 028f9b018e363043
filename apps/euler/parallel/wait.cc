// SPDX-License-Identifier: GPL-3.0-or-later
// wait.cc - see wait.h.
#include "wait.h"

#include <chrono>
#include <thread>

namespace euler {

void wait_all(std::vector<MPI_Request> &requests, double look_us)
{
    const auto count = static_cast<int>(requests.size());
    int is_done = look_us <= 0;
    if (is_done)
        MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    while (!is_done) {
        MPI_Testall(count, requests.data(), &is_done, MPI_STATUSES_IGNORE);
        if (!is_done)
            std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(look_us));
    }
    requests.clear();
}

} // namespace euler

// SPDX-License-Identifier: GPL-3.0-or-later
// failure.cc - see failure.h.
#include "failure.h"

namespace apps {

void all_together(MPI_Comm comm, const std::function<void()> &work)
{
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    std::string message;
    int failed = ranks;
    try {
        work();
    } catch (const std::exception &error) {
        message = error.what();
        failed = rank;
    }
    int first;
    MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == ranks)
        return;
    int length = static_cast<int>(message.size());
    MPI_Bcast(&length, 1, MPI_INT, first, comm);
    message.resize(static_cast<std::size_t>(length));
    MPI_Bcast(message.data(), length, MPI_CHAR, first, comm);
    throw CommonError(message);
}

void on_rank_0(MPI_Comm comm, const std::function<void()> &work)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    all_together(comm, [&] {
        if (rank == 0)
            work();
    });
}

} // namespace apps

// SPDX-License-Identifier: GPL-3.0-or-later
// program.cc - see program.h.
#include "program.h"
#include "../config/keys.h"

#include <cstdio>
#include <exception>

namespace apps {

void read_together(MPI_Comm comm, const std::function<void()> &read)
{
    try {
        all_together(comm, read);
    } catch (const CommonError &error) {
        throw ConfigError(error.what());
    }
}

// What all ranks find wrong in the same way, one of them says.
static int fail(const std::string &name, const std::exception &error, bool is_first, int code)
{
    if (is_first)
        std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return code;
}

int run_with_mpi(int *argc, char ***argv, const std::string &name,
                 const std::function<int(bool)> &run)
{
    int provided, rank;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int code;
    try {
        code = run(rank == 0);
    } catch (const ConfigError &error) {
        code = fail(name, error, rank == 0, 2);
    } catch (const CommonError &error) {
        code = fail(name, error, rank == 0, 1);
    } catch (const std::exception &error) { // of this rank alone, perhaps: the others may wait for it
        std::fprintf(stderr, "%s: rank %d: %s\n", name.c_str(), rank, error.what());
        std::fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    MPI_Finalize();
    return code;
}

} // namespace apps

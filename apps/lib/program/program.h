// SPDX-License-Identifier: GPL-3.0-or-later
// program.h - how a simulation begins and ends as a program of MPI: its errors become one message and
// an exit code.
#ifndef APPS_LIB_PROGRAM_H
#define APPS_LIB_PROGRAM_H

#include <functional>
#include <string>
#include "../output/failure.h"

namespace apps {

// Between MPI_Init and MPI_Finalize calls run(is this rank 0?), and returns the exit code: run's; 2
// after a ConfigError and 1 after a CommonError, which all ranks throw and rank 0 tells on stderr.
// After any other exception the job is aborted with code 1.  `name` begins each message.
int run_with_mpi(int *argc, char ***argv, const std::string &name,
                 const std::function<int(bool)> &run);

// Collective: all_together for files that the user names, whose CommonError becomes a ConfigError.  Each
// rank reads them, and one may be missing where others have it.
void read_together(MPI_Comm comm, const std::function<void()> &read);

} // namespace apps
#endif

// SPDX-License-Identifier: GPL-3.0-or-later
// failure.h - how reading and writing of files fails: with the file and the reason, on all ranks.
//
// A rank that cannot write must not leave the others waiting in the next collective call.  What
// ranks do on their own is therefore done in all_together(), after which all go on or none does.
#ifndef APPS_LIB_FAILURE_H
#define APPS_LIB_FAILURE_H

// The C++ bindings, which MPI has given up, do not compile without warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace apps {

// what() is a whole message: what was tried, on which file, and why it failed.
class OutputError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// One that all ranks throw, with the same message: the program prints it once (rank 0) and ends
// with exit code 1.
class CommonError : public OutputError {
public:
    using OutputError::OutputError;
};

// Collective.  Calls `work`; if it threw an exception on some ranks, every rank throws a
// CommonError with the message of the first of these.
void all_together(MPI_Comm comm, const std::function<void()> &work);

// The same where only rank 0 has something to do.
void on_rank_0(MPI_Comm comm, const std::function<void()> &work);

} // namespace apps
#endif

/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* guard.c - see guard.h. */
#include "mpi-shim/dispatch/guard.h"

__thread struct shim_thread shim_thread __attribute__((tls_model("initial-exec")));

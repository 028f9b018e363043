/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* launcher.h - how many ranks the launcher has started, if MPI knows of fewer. */
#ifndef SHIM_LAUNCHER_H
#define SHIM_LAUNCHER_H

struct shim_launcher {
    const char *name;
    long ranks, rank; /* 0, 0: no launcher has said that there are several */
};

/* Reads the launcher's variables.  Called before the library's MPI_Init. */
void shim_launcher_read(struct shim_launcher *launcher);
/* Called after MPI_Init.  `ranks` is the size of MPI_COMM_WORLD.  If the launcher has started
 * several ranks, and each of them is alone in MPI_COMM_WORLD, says so on stderr, once a launch, and
 * in the record for `invade --report`. */
void shim_launcher_check(const struct shim_launcher *launcher, int ranks);

#endif

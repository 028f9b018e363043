/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* launcher.h - ranks that the launcher has started, and MPI does not know of. */
#ifndef SHIM_LAUNCHER_H
#define SHIM_LAUNCHER_H

struct shim_launcher {
    const char *name;
    long ranks, rank; /* 0, 0: no launcher has said that there are several */
};

/* Before the library's MPI_Init: reads the launcher's variables. */
void shim_launcher_read(struct shim_launcher *launcher);
/* After it.  `ranks` is the size of MPI_COMM_WORLD.  If the launcher has started several ranks that
 * are alone, says so on stderr, once a launch, and in the record for `invade --report`. */
void shim_launcher_check(const struct shim_launcher *launcher, int ranks);

#endif

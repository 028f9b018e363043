/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* launcher.h - ranks that the launcher has started, and MPI does not know of. */
#ifndef SHIM_LAUNCHER_H
#define SHIM_LAUNCHER_H

/* Before the library's MPI_Init: what the launcher says. */
void shim_launcher_look(void);
/* After it, `ranks` being the size of MPI_COMM_WORLD: if each rank is alone, say so on stderr, once
 * a launch, and in the record for `invade --report`. */
void shim_launcher_check(int ranks);

#endif

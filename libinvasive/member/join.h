/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * join.h - becoming a process of a domain, and leaving it.
 */
#ifndef INV_JOIN_H
#define INV_JOIN_H

#include <stdbool.h>

/*
 * inv_join - become a process of the domain that INVASIVE_SOCKET names.  Idempotent and thread safe;
 * only the first call does anything.  The caller becomes the process's main thread and, on success,
 * holds a core.  Hints (rank, world size, ranks on this node) are -1 when unknown; then they are
 * taken from the launcher's environment.  Returns true when managed.  When a manager was asked for
 * but cannot be had, says so once on stderr and returns false: the process runs as the stock
 * runtime does.
 */
bool inv_join(int rank, int size, int local_size);
/*
 * inv_join_standalone - become the only process of a domain that this process makes itself, where no
 * manager is asked for.
 *   ncores  number of cores of the domain, 1..INV_MAX_CORES
 * Threads of the process take turns on the cores as on those of a resource manager.  They are
 * pinned to none.  The public interface (invasive.h) says that the process is unmanaged.  Returns
 * true when the domain is made; the caller then has a core.  Returns false, and says nothing, when
 * a manager has been asked for or there is no memory.  Thread safe; only the first call does
 * anything.
 */
bool inv_join_standalone(unsigned ncores);
/* The process stays unmanaged: inv_join does nothing from now on.  `reason`, if not NULL, is said
 * on stderr.  Does nothing if the process has tried to join.  Thread safe. */
void inv_join_never(const char *reason);

/* True when the environment asks for management (INVASIVE_SOCKET set, INVASIVE not
 * "off") and this process has not given up.  Cheap; usable before inv_join. */
bool inv_wanted(void);

/* Number of cores of the domain; before joining as INVASIVE_CORES or rmd says.  Where no management
 * is asked for: the number of CPUs of the caller's affinity. */
unsigned inv_domain_cores(void);

/*
 * inv_announce_measured_workload - as inv_announce_workload (invasive.h), of a workload that was
 * measured as time of this process's cores.  rmd converts it to time of whole cores, if the slot
 * says what these cores deliver (delivered_bits of table.h).  Thread safe.
 */
int inv_announce_measured_workload(double workload);

/* For the child of a fork: no thread announces a constraint there (claim.c). */
void inv_claims_forget(void);

/* Leaves the domain: every hold is given up, and the process runs unmanaged from now on.  `reason`,
 * if not NULL, is said once on stderr.  Called by one thread, outside regions. */
void inv_leave(const char *reason);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * join.h - when a process that uses OpenMP becomes managed: at its first region, if the environment
 * asks for that; standalone, in a domain of its own, where its threads are more than the processors.
 */
#ifndef GOMP_JOIN_H
#define GOMP_JOIN_H 1

#pragma GCC visibility push(hidden)

/* Become managed, if the environment asks for it and the process has not been asked yet.  nthreads: the
 * size of the first team. */
extern void gomp_sched_join (unsigned nthreads);
/* The calling thread begins a nested region of so many threads. */
extern void gomp_record_nested (unsigned nthreads);
/* For the child of a fork. */
extern void gomp_join_forget (void);

#pragma GCC visibility pop
#endif

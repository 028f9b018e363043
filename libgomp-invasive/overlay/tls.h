/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tls.h - must implicit task i always run on the same kernel thread?
 */
#ifndef GOMP_TLS_H
#define GOMP_TLS_H 1

#include <stdbool.h>

/* True when the program or a library that is linked with libgomp has thread-local variables (and so
 * may have threadprivate ones, whose values persist from region to region), or when
 * INVASIVE_BIND=strict; false with INVASIVE_BIND=elastic.  Found out once; objects that
 * are loaded later are seen at the next region after dlopen.  */
#pragma GCC visibility push(hidden)
extern bool gomp_strict_threads (void);
#pragma GCC visibility pop
#endif

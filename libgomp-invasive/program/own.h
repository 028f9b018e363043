/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * own.h - thread-local variables in functions that may continue on another kernel thread
 * (context.h).
 *
 * Compilers assume that the thread pointer does not change within a function.  On aarch64 GCC reads
 * it once, and keeps it, or the address of a variable, in a register across calls.  After a call in
 * which the context has moved to another kernel thread that is the wrong thread's variable.  There
 * GOMP_OWN(NAME) reads the thread pointer at each use.  On x86-64 the thread pointer is part of
 * each instruction.  testsuite/lib/building/thread_addresses.py looks in the machine code of both
 * for addresses that are kept all the same.
 *
 * Comes to libgomp.h through bar.h, where all symbols are hidden, so it includes no other header.
 */
#ifndef GOMP_OWN_H
#define GOMP_OWN_H 1

#ifdef __aarch64__
/* `name` is the assembler's name of the variable, so the variable may not be static in a
 * function. */
#define GOMP_OWN(name)                                                                             \
    (*({                                                                                           \
        char *thread_pointer_;                                                                     \
        unsigned long offset_;                                                                     \
        __asm__("adrp %0, :gottprel:" #name "\n\tldr %0, [%0, :gottprel_lo12:" #name "]"           \
                : "=r"(offset_));                                                                  \
        __asm__ volatile("mrs %0, tpidr_el0" : "=r"(thread_pointer_));                             \
        (__typeof__(name) *)(thread_pointer_ + offset_);                                           \
    }))
#else
#define GOMP_OWN(name) name
#endif

#endif

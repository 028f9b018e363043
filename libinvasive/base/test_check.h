/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* test_check.h - what does not hold in a test of several promises is printed and counted, and the test
 * goes on.  One C file of a program includes it. */
#ifndef INV_TEST_CHECK_H
#define INV_TEST_CHECK_H

#include <stdio.h>

static _Atomic int failures;

#define CHECK(cond)                                                                          \
    do {                                                                                     \
        if (!(cond)) {                                                                       \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond);             \
            failures++;                                                                      \
        }                                                                                    \
    } while (0)

#endif

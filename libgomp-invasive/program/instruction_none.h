/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * instruction_none.h - in place of a decoder, on processors that have none here (busy_wait.c).
 */
#ifndef GOMP_INSTRUCTION_NONE_H
#define GOMP_INSTRUCTION_NONE_H 1

#include "instruction.h"

enum { INSTRUCTION_ALIGNMENT = BUSY_WAIT_BYTES };

static ptrdiff_t jump_back (const unsigned char *at, const unsigned char *end)
{
    (void)at;
    (void)end;
    return 0;
}

static void decode (const unsigned char *at, const unsigned char *end, struct instruction *i)
{
    (void)at;
    (void)end;
    (void)i;
}

static inline size_t next_jump (const unsigned char *code, size_t at, size_t bytes)
{
    (void)code;
    (void)at;
    return bytes;
}

#endif

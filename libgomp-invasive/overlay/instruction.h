/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * instruction.h - what busy_wait.c has to know of a machine instruction.  Included by it only, before the file
 * that decodes those of a processor (instruction_x86_64.h, instruction_aarch64.h).
 */
#ifndef GOMP_INSTRUCTION_H
#define GOMP_INSTRUCTION_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Places that an instruction reads and writes are bits of a set: registers from 0 on, the condition flags,
 * and then variables on the stack, by their distance from a register.  Two variables can have one bit. */
#define FLAGS (UINT64_C(1) << 32)
enum { STACK_FIRST = 33, STACK_PLACES = 31 };

enum flow { FLOW_ON, FLOW_JUMP, FLOW_BRANCH };

struct instruction {
    unsigned bytes; /* 0: none of those that a busy-wait loop may have */
    enum flow flow;
    const unsigned char *target; /* of a jump, and of a branch: a jump under a condition */
    uint64_t reads, writes;      /* places */
    bool loads;                  /* from memory other than the stack */
};

static inline uint64_t stack_place (int distance)
{
    return UINT64_C(1) << (STACK_FIRST + (unsigned)distance / 4 % STACK_PLACES);
}

#endif

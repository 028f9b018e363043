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
 * and then variables on the stack, a bit for each four bytes. */
#define FLAGS (UINT64_C(1) << 32)
enum { STACK_FIRST = 33, STACK_PLACES = 31, STACK_PLACE_BYTES = 4 };

enum flow { FLOW_ON, FLOW_JUMP, FLOW_BRANCH };

struct instruction {
    unsigned bytes; /* 0: none of those that a busy-wait loop may have */
    enum flow flow;
    ptrdiff_t target;       /* of a jump, and of a branch, which is a jump under a condition: from this instruction on */
    uint64_t reads, writes; /* places */
    bool loads;             /* from memory other than the stack */
};

/* The place of what is so many bytes beside a register, in the direction of variables.  0: it is too far away to have
 * one; such a variable can be read, as one that does not change, but not written. */
static inline uint64_t stack_place (int distance)
{
    bool near = distance >= 0 && distance < STACK_PLACES * STACK_PLACE_BYTES;
    return near ? UINT64_C(1) << (STACK_FIRST + distance / STACK_PLACE_BYTES) : 0;
}

#endif

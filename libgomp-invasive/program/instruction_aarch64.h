/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * instruction_aarch64.h - the instructions of aarch64 that a busy-wait loop may have (busy_wait.c): loads, stores
 * to the stack, integer arithmetic, comparisons, jumps, barriers, hints.
 *
 * Source: Arm Architecture Reference Manual for A-profile architecture, chapter C4, encoding index by encoding.
 */
#ifndef GOMP_INSTRUCTION_AARCH64_H
#define GOMP_INSTRUCTION_AARCH64_H 1

#include "instruction.h"
#include <string.h>

enum { INSTRUCTION_ALIGNMENT = 4 };

/* Number 31 is the stack pointer or always 0. */
static uint64_t in_register (uint32_t n)
{
    enum { NONE = 31 };
    return (n & NONE) == NONE ? 0 : UINT64_C(1) << (n & NONE);
}

/* The field of so many bits from that one on, as a number with a sign. */
static int32_t field (uint32_t word, unsigned first, unsigned bits)
{
    return (int32_t)(word << (32 - first - bits)) >> (32 - bits);
}

static bool is (uint32_t word, uint32_t mask, uint32_t value)
{
    return (word & mask) == value;
}

static bool branch (uint32_t word, struct instruction *i, int32_t *words)
{
    if (is(word, 0xfc000000, 0x14000000)) { /* b */
        i->flow = FLOW_JUMP;
        *words = field(word, 0, 26);
        return true;
    }
    i->flow = FLOW_BRANCH;
    if (is(word, 0xff000010, 0x54000000)) { /* b.cond */
        i->reads = FLAGS;
        *words = field(word, 5, 19);
        return true;
    }
    i->reads = in_register(word);
    *words = is(word, 0x7e000000, 0x36000000) ? field(word, 5, 14) : field(word, 5, 19);
    return is(word, 0x7e000000, 0x34000000) || is(word, 0x7e000000, 0x36000000); /* cbz, tbz, cbnz, tbnz */
}

/* Loads and stores of a register, by an address of a register and a number or a register. */
static bool load_or_store (uint32_t word, struct instruction *i)
{
    enum { STACK_POINTER = 31, UNSCALED_BITS = 9 };
    uint32_t base = word >> 5 & 31, size = word >> 30;
    bool scaled = is(word, 0x3f000000, 0x39000000), unscaled = is(word, 0x3f200c00, 0x38000000),
         indexed = is(word, 0x3f200c00, 0x38200800);
    bool prefetch = is(word, 0xc0c00000, 0xc0800000), on_stack = base == STACK_POINTER && !indexed;
    if ((!scaled && !unscaled && !indexed) || prefetch)
        return false;
    uint64_t place = 0;
    if (on_stack)
        place = stack_place(scaled ? (int)((word >> 10 & 0xfff) << size) : field(word, 12, UNSCALED_BITS));
    i->reads = in_register(base) | (indexed ? in_register(word >> 16) : 0);
    if (is(word, 0x00c00000, 0)) { /* a store */
        i->reads |= in_register(word);
        i->writes = place;
        return place != 0;
    }
    i->reads |= place;
    i->writes = in_register(word);
    i->loads = !on_stack;
    return true;
}

/* ldar, ldapr */
static bool load_acquire (uint32_t word, struct instruction *i)
{
    if (!is(word, 0x3ffffc00, 0x08dffc00) && !is(word, 0x3ffffc00, 0x38bfc000))
        return false;
    i->reads = in_register(word >> 5);
    i->writes = in_register(word);
    i->loads = true;
    return true;
}

/* Arithmetic on a register and a number, or on two registers.  What sets the flags is known by its code. */
static bool arithmetic (uint32_t word, struct instruction *i)
{
    bool add_number = is(word, 0x1f800000, 0x11000000), and_number = is(word, 0x1f800000, 0x12000000),
         bits = is(word, 0x1f800000, 0x13000000);
    bool add = is(word, 0x1f200000, 0x0b000000) || is(word, 0x1fe00000, 0x0b200000),
         and = is(word, 0x1f000000, 0x0a000000), select = is(word, 0x3fe00000, 0x1a800000);
    if (!add_number && !and_number && !bits && !add && !and && !select)
        return false;
    i->reads = in_register(word >> 5);
    if (add || and || select)
        i->reads |= in_register(word >> 16);
    if (bits && is(word, 0x60000000, 0x20000000)) /* bfm keeps some of the bits that there are */
        i->reads |= in_register(word);
    if (select)
        i->reads |= FLAGS;
    i->writes = in_register(word);
    bool adds = (add_number || add) && (word & 0x20000000), ands = (and_number || and) && (word >> 29 & 3) == 3;
    if (adds || ands)
        i->writes |= FLAGS;
    return true;
}

/* A comparison under a condition. */
static bool compare (uint32_t word, struct instruction *i)
{
    enum { NUMBER = 0x800 };
    if (!is(word, 0x3fe00410, 0x3a400000))
        return false;
    i->reads = FLAGS | in_register(word >> 5) | (word & NUMBER ? 0 : in_register(word >> 16));
    i->writes = FLAGS;
    return true;
}

/* Numbers: movz, movn, movk, and addresses: adr, adrp */
static bool constant (uint32_t word, struct instruction *i)
{
    if (is(word, 0x1f800000, 0x12800000)) {
        i->reads = is(word, 0x60000000, 0x60000000) ? in_register(word) : 0;
        i->writes = in_register(word);
        return true;
    }
    i->writes = in_register(word);
    return is(word, 0x1f000000, 0x10000000);
}

/* nop, yield, wfe; dmb, dsb, isb */
static bool does_nothing (uint32_t word)
{
    return is(word, 0xfffff01f, 0xd503201f) || is(word, 0xfffff01f, 0xd503301f);
}

static bool plain (uint32_t word, struct instruction *i)
{
    *i = (struct instruction){0};
    if (does_nothing(word) || load_or_store(word, i) || load_acquire(word, i) || arithmetic(word, i) ||
        compare(word, i))
        return true;
    *i = (struct instruction){0};
    return constant(word, i);
}

static void decode (const unsigned char *at, const unsigned char *end, struct instruction *i)
{
    enum { LENGTH = 4 };
    uint32_t word;
    int32_t words = 0;
    if (end - at < LENGTH)
        return;
    memcpy(&word, at, LENGTH);
    bool good = branch(word, i, &words);
    i->target = (ptrdiff_t)words * LENGTH;
    if (good || plain(word, i))
        i->bytes = LENGTH;
}

/* How many bytes back the jump or branch at `at` goes; <= 0: there is none. */
static ptrdiff_t jump_back (const unsigned char *at, const unsigned char *end)
{
    struct instruction i = {0};
    decode(at, end, &i);
    return i.bytes > 0 && i.flow != FLOW_ON ? -i.target : 0;
}

/* Where the next jump back may begin, from `at` on: anywhere. */
static inline size_t next_jump (const unsigned char *code, size_t at, size_t bytes)
{
    (void)code;
    (void)bytes;
    return at;
}

#endif

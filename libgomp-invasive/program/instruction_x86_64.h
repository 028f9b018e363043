/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * instruction_x86_64.h - the instructions of x86-64 that a busy-wait loop may have (busy_wait.c): moves to
 * registers and to variables on the stack, integer arithmetic, comparisons, jumps, fences, pauses.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A.
 */
#ifndef GOMP_INSTRUCTION_X86_64_H
#define GOMP_INSTRUCTION_X86_64_H 1

#include "instruction.h"
#include <emmintrin.h>
#include <string.h>

enum { INSTRUCTION_ALIGNMENT = 1 };

enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };
enum { RAX = 0, RCX = 1, RDX = 2, RSP = 4, RBP = 5 };

/* An instruction that is being read. */
struct reader {
    const unsigned char *first, *at, *end; /* at: the next byte */
    struct instruction *i;
    bool bad; /* it is none of those above, or the code ends in it */
    bool lock, wide, repeated, narrow; /* prefixes: F0, REX.W, F3, 66 */
    bool extended;                     /* it has a REX prefix, with these bits: */
    unsigned rex;
    /* the operands that the byte behind the code of the operation names */
    unsigned reg, rm;
    bool in_memory;   /* rm is no register; then: */
    uint64_t address; /* the registers of its address */
    bool on_stack;
    uint64_t slot;    /* then: its place, see stack_place */
};

static unsigned byte (struct reader *r)
{
    if (r->at >= r->end) {
        r->bad = true;
        return 0;
    }
    return *r->at++;
}

static int number (struct reader *r, unsigned bytes)
{
    uint32_t n = 0;
    for (unsigned b = 0; b < bytes; b++)
        n |= byte(r) << 8 * b;
    return bytes == 1 ? (int8_t)n : (int)n;
}

static uint64_t in_register (unsigned n)
{
    return UINT64_C(1) << n;
}

/* The four registers after the first four, as operands of a byte without a REX prefix, are parts of the first four. */
static bool is_high_byte (const struct reader *r, unsigned reg)
{
    enum { FIRST = 4, AFTER = 8 };
    return !r->extended && reg >= FIRST && reg < AFTER;
}

/* An instruction whose operands in registers, rm alone or both, are bytes. */
static void has_bytes (struct reader *r, bool both)
{
    r->bad = r->bad || (!r->in_memory && is_high_byte(r, r->rm)) || (both && is_high_byte(r, r->reg));
}

/* How many bytes operands have. */
static unsigned width (const struct reader *r, bool byte_wide)
{
    return byte_wide ? 1 : r->narrow ? 2 : r->wide ? 8 : 4;
}

/* Operands: registers, or an address of base, index and distance, where there are `bytes`.  An instruction with a
 * distance like none in programs was not read from where an instruction begins. */
static void read_operands (struct reader *r, unsigned bytes)
{
    enum { FARTHEST = 1 << 26, NEAREST = -(1 << 16), FARTHEST_STATIC = 1 << 29 };
    unsigned b = byte(r), mode = b >> 6, low = b & 7;
    r->reg = (b >> 3 & 7) | (r->rex & REX_R ? 8 : 0);
    r->rm = low | (r->rex & REX_B ? 8 : 0);
    r->in_memory = mode != 3;
    if (!r->in_memory)
        return;
    unsigned base = r->rm;
    bool indexed = false, has_base = true;
    if (low == RSP) {
        unsigned sib = byte(r), index = (sib >> 3 & 7) | (r->rex & REX_X ? 8 : 0);
        base = (sib & 7) | (r->rex & REX_B ? 8 : 0);
        indexed = index != RSP;
        r->address = indexed ? in_register(index) : 0;
        has_base = mode != 0 || (sib & 7) != RBP;
    } else if (mode == 0 && low == RBP)
        has_base = false; /* relative to the instruction */
    int distance = mode == 1 ? number(r, 1) : mode == 2 || !has_base ? number(r, 4) : 0;
    if (has_base)
        r->bad = r->bad || distance < NEAREST || distance > FARTHEST || distance % (int)bytes != 0;
    else
        r->bad = r->bad || distance < -FARTHEST_STATIC || distance > FARTHEST_STATIC;
    if (has_base)
        r->address |= in_register(base);
    /* Below the frame pointer are variables; above it may be anything, if it is a register like others. */
    r->on_stack = has_base && !indexed && (base == RSP || (base == RBP && distance < 0));
    if (r->on_stack)
        r->slot = stack_place(base == RSP ? distance : -distance - 1);
}

static void reads (struct reader *r, unsigned reg)
{
    r->i->reads |= in_register(reg);
}

static void writes (struct reader *r, unsigned reg)
{
    r->i->writes |= in_register(reg);
}

static void reads_rm (struct reader *r)
{
    r->i->reads |= r->in_memory ? r->address | r->slot : in_register(r->rm);
    r->i->loads = r->i->loads || (r->in_memory && !r->on_stack);
}

static void writes_rm (struct reader *r)
{
    if (r->in_memory && !r->slot)
        r->bad = true; /* other threads may wait for it */
    r->i->reads |= r->in_memory ? r->address : 0;
    r->i->writes |= r->in_memory ? r->slot : in_register(r->rm);
}

static void sets_flags (struct reader *r)
{
    r->i->writes |= FLAGS;
}

/* The condition of a jump is the low half of its code; it and its opposite are a pair. */
static bool is_of_a_comparison (unsigned code)
{
    enum { OVERFLOW, PARITY = 5 };
    unsigned pair = (code & 0xf) >> 1;
    return pair != OVERFLOW && pair != PARITY;
}

static void jumps (struct reader *r, enum flow flow, unsigned bytes)
{
    int distance = number(r, bytes);
    r->i->flow = flow;
    r->i->target = r->at - r->first + distance;
}

static void branches (struct reader *r, unsigned code, unsigned bytes)
{
    r->bad = r->bad || !is_of_a_comparison(code);
    r->i->reads |= FLAGS;
    jumps(r, FLOW_BRANCH, bytes);
}

/* A number in the instruction, as long as its operands but for eight bytes. */
static int immediate (struct reader *r, bool byte_wide)
{
    return number(r, byte_wide ? 1 : r->narrow ? 2 : 4);
}

/* Of eight operations; those with carry are for other purposes. */
enum { OR = 1, ADC = 2, SBB = 3, CMP = 7 };

/* Of two operands, the first of which is rm or, with to_register, reg.  A register less itself is how programs
 * set it to 0, which none needs to do again in each turn. */
static void arithmetic (struct reader *r, unsigned code)
{
    unsigned operation = code >> 3;
    bool to_register = code & 2;
    read_operands(r, width(r, !(code & 1)));
    if (!(code & 1))
        has_bytes(r, true);
    r->bad = r->bad || operation == ADC || operation == SBB || (!r->in_memory && r->reg == r->rm);
    sets_flags(r);
    reads(r, r->reg);
    reads_rm(r);
    if (operation == CMP)
        return;
    if (to_register)
        writes(r, r->reg);
    else
        writes_rm(r);
}

/* Of rax and a number. */
static void arithmetic_of_rax (struct reader *r, unsigned code)
{
    unsigned operation = code >> 3;
    r->bad = r->bad || operation == ADC || operation == SBB;
    immediate(r, !(code & 1));
    reads(r, RAX);
    sets_flags(r);
    if (operation != CMP)
        writes(r, RAX);
}

/* Of rm and a number. */
static void arithmetic_immediate (struct reader *r, unsigned code)
{
    enum { BYTES = 0x80, SHORT = 0x83 };
    read_operands(r, width(r, code == BYTES));
    if (code == BYTES)
        has_bytes(r, false);
    unsigned operation = r->reg & 7;
    int value = code == SHORT ? number(r, 1) : immediate(r, code == BYTES);
    if (r->lock) { /* `lock or $0, (%rsp)` is a fence */
        r->bad = r->bad || operation != OR || value != 0 || !r->slot;
        return;
    }
    r->bad = r->bad || operation == ADC || operation == SBB;
    sets_flags(r);
    reads_rm(r);
    if (operation != CMP)
        writes_rm(r);
}

/* By a number, by one, or by what is in rcx. */
static void shift (struct reader *r, unsigned code)
{
    enum { ROTATIONS = 4, BY_NUMBER = 0xc1, BY_RCX = 0xd2 };
    read_operands(r, 1);
    r->bad = r->bad || r->in_memory || (r->reg & 7) < ROTATIONS;
    if (code <= BY_NUMBER)
        number(r, 1);
    else if (code >= BY_RCX)
        reads(r, RCX);
    sets_flags(r);
    reads_rm(r);
    writes_rm(r);
}

/* test with a number, not, neg */
static void unary (struct reader *r, bool byte_wide)
{
    enum { TEST, NOT = 2, NEG = 3 };
    read_operands(r, 1);
    unsigned operation = r->reg & 7;
    r->bad = r->bad || (r->in_memory && !byte_wide);
    if (byte_wide)
        has_bytes(r, false);
    reads_rm(r);
    if (operation == TEST)
        immediate(r, byte_wide);
    else if (operation == NOT || operation == NEG)
        writes_rm(r);
    else
        r->bad = true;
    if (operation != NOT)
        sets_flags(r);
}

/* inc, dec; the others of that code are calls, jumps and push */
static void step (struct reader *r, bool byte_wide)
{
    enum { DEC = 1 };
    read_operands(r, 1);
    if (byte_wide)
        has_bytes(r, false);
    r->bad = r->bad || r->in_memory || (r->reg & 7) > DEC;
    sets_flags(r);
    reads_rm(r);
    writes_rm(r);
}

static void load (struct reader *r, unsigned bytes)
{
    read_operands(r, bytes);
    reads_rm(r);
    writes(r, r->reg);
}

static void multiply (struct reader *r)
{
    load(r, 1);
    r->bad = r->bad || r->in_memory;
    sets_flags(r);
}

static void conditional_move (struct reader *r)
{
    load(r, width(r, false));
    reads(r, r->reg);
    r->i->reads |= FLAGS;
}

static void set_by_condition (struct reader *r)
{
    read_operands(r, 1);
    has_bytes(r, false);
    r->i->reads |= FLAGS;
    writes_rm(r);
}

static void fence (struct reader *r)
{
    enum { LFENCE = 5 }; /* mfence, sfence */
    read_operands(r, 1);
    r->bad = r->bad || r->in_memory || (r->reg & 7) < LFENCE;
}

/* Of a register, by another one or by a number. */
static void test_bit (struct reader *r, bool by_number)
{
    enum { ONLY_TEST = 4 };
    read_operands(r, 1);
    r->bad = r->bad || r->in_memory || (by_number && (r->reg & 7) != ONLY_TEST);
    if (by_number)
        number(r, 1);
    else
        reads(r, r->reg);
    reads_rm(r);
    sets_flags(r);
}

/* Those whose code begins with 0F. */
static void two_bytes (struct reader *r)
{
    unsigned code = byte(r);
    if (code >= 0x80 && code <= 0x8f)
        branches(r, code, 4);
    else if (code >= 0x40 && code <= 0x4f)
        conditional_move(r);
    else if (code >= 0x90 && code <= 0x9f)
        set_by_condition(r);
    else if (code == 0xb6 || code == 0xbe) { /* movzx, movsx of a byte */
        load(r, 1);
        has_bytes(r, false);
    } else if (code == 0xb7 || code == 0xbf) /* ... of two */
        load(r, 2);
    else if (code == 0xaf) {
        multiply(r);
        reads(r, r->reg);
    } else if (code == 0x1e || code == 0x1f) /* endbr64, nop */
        read_operands(r, 1);
    else if (code == 0xa3 || code == 0xba)
        test_bit(r, code == 0xba);
    else if (code == 0xae)
        fence(r);
    else
        r->bad = true;
}

static void move_immediate (struct reader *r, bool byte_wide)
{
    read_operands(r, width(r, byte_wide));
    if (byte_wide)
        has_bytes(r, false);
    immediate(r, byte_wide);
    writes_rm(r);
}

static void move_from_register (struct reader *r, bool byte_wide)
{
    read_operands(r, width(r, byte_wide));
    if (byte_wide)
        has_bytes(r, true);
    reads(r, r->reg);
    writes_rm(r);
}

/* test of two registers.  With one in memory it is rare, and often a part of other instructions. */
static void test_registers (struct reader *r, bool byte_wide)
{
    read_operands(r, 1);
    if (byte_wide)
        has_bytes(r, true);
    r->bad = r->bad || r->in_memory;
    reads(r, r->reg);
    reads_rm(r);
    sets_flags(r);
}

static void address (struct reader *r)
{
    read_operands(r, 1);
    r->bad = r->bad || !r->in_memory;
    r->i->reads |= r->address;
    writes(r, r->reg);
}

/* test of rax with a number */
static void test_rax (struct reader *r, bool byte_wide)
{
    immediate(r, byte_wide);
    reads(r, RAX);
    sets_flags(r);
}

/* Sign extension of rax, into it or into rdx. */
static void extend_rax (struct reader *r, unsigned to)
{
    reads(r, RAX);
    writes(r, to);
}

static void one_byte (struct reader *r, unsigned code)
{
    switch (code) {
    case 0x63: load(r, 4); break; /* movslq */
    case 0x69:
    case 0x6b:
        multiply(r);
        code == 0x69 ? immediate(r, false) : number(r, 1);
        break;
    case 0x80:
    case 0x81:
    case 0x83: arithmetic_immediate(r, code); break;
    case 0x84:
    case 0x85: test_registers(r, code == 0x84); break;
    case 0x88:
    case 0x89: move_from_register(r, code == 0x88); break;
    case 0x8a:
        load(r, 1);
        has_bytes(r, true);
        break;
    case 0x8b: load(r, width(r, false)); break;
    case 0x8d: address(r); break; /* lea */
    case 0x90: break;             /* nop, pause */
    case 0x98: extend_rax(r, RAX); break;
    case 0x99: extend_rax(r, RDX); break;
    case 0xa8:
    case 0xa9: test_rax(r, code == 0xa8); break;
    case 0xc0:
    case 0xc1:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: shift(r, code); break;
    case 0xc6:
    case 0xc7: move_immediate(r, code == 0xc6); break;
    case 0xe9:
    case 0xeb: jumps(r, FLOW_JUMP, code == 0xe9 ? 4 : 1); break;
    case 0xf6:
    case 0xf7: unary(r, code == 0xf6); break;
    case 0xfe:
    case 0xff: step(r, code == 0xfe); break;
    default: r->bad = true;
    }
}

/* Read the prefixes and the code of the operation.  Among those of segments fs is that of thread-local data. */
static unsigned prefixes (struct reader *r)
{
    enum { REX = 0x40, NARROW = 0x66, LOCK = 0xf0, REPEATED = 0xf3, CS = 0x2e, DS = 0x3e, FS = 0x64 };
    unsigned code = byte(r);
    for (; code == NARROW || code == LOCK || code == REPEATED || code == CS || code == DS || code == FS; code = byte(r)) {
        r->narrow = r->narrow || code == NARROW;
        r->lock = r->lock || code == LOCK;
        r->repeated = r->repeated || code == REPEATED;
    }
    r->extended = (code & 0xf0) == REX;
    if (!r->extended)
        return code;
    r->rex = code & 0xf;
    r->wide = r->rex & REX_W;
    return byte(r);
}

/* mov of a number, which has eight bytes if operands do. */
static void move_to_register (struct reader *r, unsigned n)
{
    immediate(r, false);
    if (r->wide)
        number(r, 4);
    writes(r, n);
}

static void operation (struct reader *r, unsigned code)
{
    enum { FIRST_OF_ONE = 0x40, IN_MODE = 4, OF_RAX = 6 };
    if (code == 0x0f)
        two_bytes(r);
    else if (code < FIRST_OF_ONE && (code & 7) < IN_MODE)
        arithmetic(r, code);
    else if (code < FIRST_OF_ONE && (code & 7) < OF_RAX)
        arithmetic_of_rax(r, code);
    else if (code >= 0x70 && code <= 0x7f)
        branches(r, code, 1);
    else if (code >= 0xb8 && code <= 0xbf)
        move_to_register(r, (code & 7) | (r->rex & REX_B ? 8 : 0));
    else
        one_byte(r, code);
}

static void decode (const unsigned char *at, const unsigned char *end, struct instruction *i)
{
    struct reader r = {.first = at, .at = at, .end = end, .i = i};
    unsigned code = prefixes(&r);
    /* lock is part of a fence, and F3 of pause and endbr64 */
    if ((r.lock && code != 0x83) || (r.repeated && code != 0x90 && code != 0x0f))
        r.bad = true;
    operation(&r, code);
    i->bytes = r.bad ? 0 : (unsigned)(r.at - at);
}

/* A jump or branch whose distance has four bytes, which begins with so many others; compilers leave some so without
 * optimization. */
static ptrdiff_t long_jump_back (const unsigned char *at, const unsigned char *end, ptrdiff_t before)
{
    int32_t distance = 0;
    ptrdiff_t length = before + (ptrdiff_t)sizeof distance;
    if (end - at >= length)
        memcpy(&distance, at + before, sizeof distance);
    return -((ptrdiff_t)distance + length);
}

/* Are the two bytes at `at` the end of a negative distance of four bytes?  No instruction begins with both, so what
 * looks like a short jump before them is the beginning of that distance. */
static bool ends_distance (const unsigned char *at, const unsigned char *end)
{
    return end - at >= 2 && at[0] == 0xff && at[1] == 0xff;
}

/* How many bytes back the jump or branch at `at` goes, from its first byte on; <= 0: there is none. */
static ptrdiff_t jump_back (const unsigned char *at, const unsigned char *end)
{
    enum { SHORT = 2 };
    if (end - at < SHORT)
        return 0;
    if (at[0] == 0xe9)
        return long_jump_back(at, end, 1);
    if (at[0] == 0x0f && (at[1] & 0xf0) == 0x80)
        return long_jump_back(at, end, 2);
    bool jump = (at[0] & 0xf0) == 0x70 || at[0] == 0xeb;
    return jump && !ends_distance(at + SHORT, end) ? -((int8_t)at[1] + SHORT) : 0;
}

/* For 16 bytes of code, bits: may a jump back over no more than BUSY_WAIT_BYTES begin there?  Reads 20 bytes. */
static inline unsigned possible_jumps (const unsigned char *at)
{
    enum { FARTHEST = 2 + BUSY_WAIT_BYTES };
    __m128i byte[5], high = _mm_set1_epi8((char)0xf0), ones = _mm_set1_epi8((char)0xff);
    for (int b = 0; b < 5; b++)
        byte[b] = _mm_loadu_si128((const __m128i *)(at + b));
    __m128i is_short = _mm_or_si128(_mm_cmpeq_epi8(_mm_and_si128(byte[0], high), _mm_set1_epi8(0x70)),
                                    _mm_cmpeq_epi8(byte[0], _mm_set1_epi8((char)0xeb)));
    /* -FARTHEST <= distance < 0, as a comparison of unsigned numbers */
    __m128i beyond = _mm_add_epi8(byte[1], _mm_set1_epi8(FARTHEST));
    __m128i near = _mm_cmpeq_epi8(_mm_min_epu8(beyond, _mm_set1_epi8(FARTHEST - 1)), beyond);
    __m128i is_long = _mm_or_si128(_mm_cmpeq_epi8(byte[0], _mm_set1_epi8((char)0xe9)),
                                   _mm_cmpeq_epi8(byte[0], _mm_set1_epi8(0x0f)));
    /* the last bytes of a distance that is negative and short */
    __m128i back = _mm_and_si128(_mm_cmpeq_epi8(byte[3], ones), _mm_cmpeq_epi8(byte[4], ones));
    __m128i found = _mm_or_si128(_mm_and_si128(is_short, near), _mm_and_si128(is_long, back));
    return (unsigned)_mm_movemask_epi8(found);
}

/* Where the next jump back over no more than BUSY_WAIT_BYTES may begin, from `at` on; `bytes`: nowhere. */
static inline size_t next_jump (const unsigned char *code, size_t at, size_t bytes)
{
    enum { TOGETHER = 16, READ = 20 };
    for (; at + READ <= bytes; at += TOGETHER) {
        unsigned found = possible_jumps(code + at);
        if (found)
            return at + (unsigned)__builtin_ctz(found);
    }
    return at;
}

#endif

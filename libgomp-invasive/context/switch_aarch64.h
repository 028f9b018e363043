/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * switch_aarch64.h - the switch of stacks for aarch64 (context.c, the only file that includes
 * this).
 *
 * Return addresses may be signed with the stack pointers of the functions that signed them.  They
 * stay valid, since a context keeps its stack.  Of vector registers only the lower halves are
 * preserved, as the base ABI says.
 */
#ifndef GOMP_SWITCH_AARCH64_H
#define GOMP_SWITCH_AARCH64_H 1

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* Saves on the stack the registers that the ABI preserves across calls, and restores them from the
 * other stack.  FPCR, which has the rounding mode, is loaded only if it differs, since that is
 * slow. FPSR has flags, which are not preserved. */
extern void *gomp_context_swap (void **save, void *to, void *carried);
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden gomp_context_swap\n"
        ".globl gomp_context_swap\n"
        ".type gomp_context_swap, %function\n"
        "gomp_context_swap:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* bti c */
        "sub sp, sp, #176\n"
        ".cfi_adjust_cfa_offset 176\n"
        "stp x29, x30, [sp]\n"
        ".cfi_rel_offset x29, 0\n"
        ".cfi_rel_offset x30, 8\n"
        "stp x19, x20, [sp, #16]\n"
        ".cfi_rel_offset x19, 16\n"
        ".cfi_rel_offset x20, 24\n"
        "stp x21, x22, [sp, #32]\n"
        ".cfi_rel_offset x21, 32\n"
        ".cfi_rel_offset x22, 40\n"
        "stp x23, x24, [sp, #48]\n"
        ".cfi_rel_offset x23, 48\n"
        ".cfi_rel_offset x24, 56\n"
        "stp x25, x26, [sp, #64]\n"
        ".cfi_rel_offset x25, 64\n"
        ".cfi_rel_offset x26, 72\n"
        "stp x27, x28, [sp, #80]\n"
        ".cfi_rel_offset x27, 80\n"
        ".cfi_rel_offset x28, 88\n"
        "stp d8, d9, [sp, #96]\n"
        "stp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "mrs x3, fpcr\n"
        "str x3, [sp, #160]\n"
        "mov x4, sp\n"
        "str x4, [x0]\n"
        "mov sp, x1\n"
        "ldr x4, [sp, #160]\n"
        "cmp x3, x4\n"
        "b.eq 1f\n"
        "msr fpcr, x4\n"
        "1: ldp d14, d15, [sp, #144]\n"
        "ldp d12, d13, [sp, #128]\n"
        "ldp d10, d11, [sp, #112]\n"
        "ldp d8, d9, [sp, #96]\n"
        "ldp x27, x28, [sp, #80]\n"
        "ldp x25, x26, [sp, #64]\n"
        "ldp x23, x24, [sp, #48]\n"
        "ldp x21, x22, [sp, #32]\n"
        "ldp x19, x20, [sp, #16]\n"
        "ldp x29, x30, [sp]\n"
        "mov x0, x2\n"
        "add sp, sp, #176\n"
        ".cfi_def_cfa_offset 0\n"
        ".cfi_restore x19\n"
        ".cfi_restore x20\n"
        ".cfi_restore x21\n"
        ".cfi_restore x22\n"
        ".cfi_restore x23\n"
        ".cfi_restore x24\n"
        ".cfi_restore x25\n"
        ".cfi_restore x26\n"
        ".cfi_restore x27\n"
        ".cfi_restore x28\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        /* Mostly the other context was suspended by the same sequence of calls.  So the processor
         * predicts this return and those that follow. */
        "ret\n"
        ".cfi_endproc\n"
        ".size gomp_context_swap, .-gomp_context_swap\n");

/* Where a new context begins, by a return, which needs no landing pad.  A debugger's backtrace ends
 * here, and so do exceptions. */
extern void gomp_context_entry (void);
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden gomp_context_entry\n"
        ".globl gomp_context_entry\n"
        ".type gomp_context_entry, %function\n"
        "gomp_context_entry:\n"
        ".cfi_startproc\n"
        ".cfi_undefined x30\n"
        "mov x1, x19\n" /* the context, after what was carried; and */
        "blr x20\n"     /* its first function, from prepare() */
        "brk #1000\n"
        ".cfi_endproc\n"
        ".size gomp_context_entry, .-gomp_context_entry\n");

static void *prepare (char *top, void (*first) (void *, void *), void *arg)
{
    uint64_t *sp = (uint64_t *)top - 22, fpcr;
    __asm__("mrs %0, fpcr" : "=r"(fpcr));
    memset(sp, 0, 22 * sizeof *sp);
    sp[1] = (uintptr_t)gomp_context_entry; /* x30 */
    sp[2] = (uintptr_t)arg;                /* x19 */
    sp[3] = (uintptr_t)first;              /* x20 */
    sp[20] = fpcr;
    return sp;
}

/* Not with a shadow stack (GCS), the processor's second stack of return addresses: there the
 * instruction, chkfeat, clears the bit, elsewhere it does nothing.  Not with SME: a caller may have
 * left the contents of its matrix register with the kernel thread. */
static const char *unswitchable (void)
{
    enum { CHECK_GCS = 1, HAS_SME = 1 << 23 };
    register uint64_t unchanged __asm__("x16") = pretends_shadow_stack() ? 0 : CHECK_GCS;
    __asm__ volatile("hint #40" : "+r"(unchanged));
    if (unchanged == 0)
        return "shadow stacks";
    return getauxval(AT_HWCAP2) & HAS_SME ? "the processor's SME" : NULL;
}

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * switch_x86_64.h - the switch of stacks for x86-64 (context.c, the only file that includes this).
 */
#ifndef GOMP_SWITCH_X86_64_H
#define GOMP_SWITCH_X86_64_H 1

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Saves on the stack the registers that the ABI preserves across calls, and restores them from the
 * other stack.  Control words are loaded only if they differ, since that is slow. */
extern void *gomp_context_swap (void **save, void *to, void *carried);
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden gomp_context_swap\n"
        ".globl gomp_context_swap\n"
        ".type gomp_context_swap, @function\n"
        "gomp_context_swap:\n"
        ".cfi_startproc\n"
        "pushq %rbp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %r12\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %r13\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %r14\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %r15\n"
        ".cfi_adjust_cfa_offset 8\n"
        "subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "stmxcsr (%rsp)\n"
        "fnstcw 4(%rsp)\n"
        "movl (%rsp), %ecx\n"
        "movzwl 4(%rsp), %r8d\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "xorl (%rsp), %ecx\n"
        "testl $0xffc0, %ecx\n" /* the six lower bits are flags */
        "je 1f\n"
        "ldmxcsr (%rsp)\n"
        "1: cmpw %r8w, 4(%rsp)\n"
        "je 2f\n"
        "fldcw 4(%rsp)\n"
        "2: addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %r15\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %r14\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %r13\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %r12\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rbp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "movq %rdx, %rax\n"
        /* Mostly the other context was suspended by the same sequence of calls.  So the processor
         * predicts this return and those that follow.  A jump would leave its stack of return
         * addresses one off. */
        "retq\n"
        ".cfi_endproc\n"
        ".size gomp_context_swap, .-gomp_context_swap\n");

/* Where a new context begins.  A debugger's backtrace ends here. */
extern void gomp_context_entry (void);
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden gomp_context_entry\n"
        ".globl gomp_context_entry\n"
        ".type gomp_context_entry, @function\n"
        "gomp_context_entry:\n"
        ".cfi_startproc\n"
        ".cfi_undefined %rip\n"
        "movq %rax, %rdi\n" /* what was carried */
        "movq %rbx, %rsi\n" /* the context, and */
        "callq *%r12\n"     /* its first function, from prepare() */
        "ud2\n"
        ".cfi_endproc\n"
        ".size gomp_context_entry, .-gomp_context_entry\n");

static void *prepare (char *top, void (*first) (void *, void *), void *arg)
{
    uint64_t *sp = (uint64_t *)top - 10;
    uint32_t mxcsr;
    uint16_t fpu;
    __asm__("stmxcsr %0" : "=m"(mxcsr));
    __asm__("fnstcw %0" : "=m"(fpu));
    memset(sp, 0, 10 * sizeof *sp);
    sp[0] = mxcsr | (uint64_t)fpu << 32;
    sp[4] = (uintptr_t)first; /* r12 */
    sp[5] = (uintptr_t)arg;   /* rbx */
    sp[7] = (uintptr_t)gomp_context_entry;
    return sp;
}

/* Not with a shadow stack: the processor's second stack of return addresses.  Without one the
 * instruction does nothing. */
static const char *unswitchable (void)
{
    uint64_t pointer = pretends_shadow_stack();
    __asm__("rdsspq %0" : "+r"(pointer));
    return pointer ? "shadow stacks" : NULL;
}

#endif

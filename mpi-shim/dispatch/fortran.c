/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * fortran.c - where in a Fortran program a call is.
 *
 * MPI's Fortran library calls each C function from one place, wherever the program's call is.  So
 * the dispatcher has entries for the Fortran functions too.  An entry notes its return address for
 * this thread and jumps to the library's function.  It leaves all arguments as they are, since
 * their number is not known here.  The guard of the C function takes the address (guard.h).
 *
 * The entries are in shim-fortran.c, which is generated.  At first an entry leads to a function
 * that looks up the library's one.
 */
#define _GNU_SOURCE
#include "libinvasive/base/complain.h"
#include "mpi-shim/dispatch/entry.h"

#ifdef SHIM_FORTRAN
#include <dlfcn.h>
#include <unistd.h>

/* Of the calling thread.  Written by the entries (shim-fortran.c); the guard of the C function
 * takes the address and writes NULL. */
__thread const void *shim_caller __attribute__((tls_model("initial-exec")));

/* Called from the assembly below. */
__attribute__((used)) void *shim_resolve_fortran(unsigned number, const void *caller)
{
    const char *name = shim_fortran_names[number];
    void *function = dlsym(RTLD_NEXT, name);
    Dl_info info;
    if (!function && dladdr(caller, &info) && info.dli_fname) {
        void *object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD); /* stays open, as MPI's */
        function = object ? dlsym(object, name) : NULL;
    }
    if (!function) {
        inv_say_on_stderr("invasive: %s was called but no MPI library that has it is loaded\n",
                          name);
        _exit(127); /* what the dynamic linker does */
    }
    atomic_store_explicit(&shim_fortran_entry[number], function, memory_order_release);
    return function;
}

/* Keeps all registers of arguments; there are no floating-point ones in MPI's Fortran functions. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl shim_fortran_first\n"
        ".hidden shim_fortran_first\n"
        ".type shim_fortran_first, @function\n"
        "shim_fortran_first:\n" /* eax: the entry's number */
        "    push %rdi\n    push %rsi\n    push %rdx\n    push %rcx\n    push %r8\n    push %r9\n"
        "    sub $8, %rsp\n"
        "    mov %eax, %edi\n"
        "    mov 56(%rsp), %rsi\n" /* the caller's return address */
        "    call shim_resolve_fortran\n"
        "    add $8, %rsp\n"
        "    pop %r9\n    pop %r8\n    pop %rcx\n    pop %rdx\n    pop %rsi\n    pop %rdi\n"
        "    jmp *%rax\n"
        ".size shim_fortran_first, . - shim_fortran_first\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl shim_fortran_first\n"
        ".hidden shim_fortran_first\n"
        ".type shim_fortran_first, %function\n"
        "shim_fortran_first:\n" /* w17: the entry's number; x30: the caller's return address */
        "    stp x29, x30, [sp, -96]!\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, 16]\n    stp x2, x3, [sp, 32]\n"
        "    stp x4, x5, [sp, 48]\n    stp x6, x7, [sp, 64]\n    str x8, [sp, 80]\n"
        "    mov w0, w17\n"
        "    mov x1, x30\n"
        "    bl shim_resolve_fortran\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, 16]\n    ldp x2, x3, [sp, 32]\n"
        "    ldp x4, x5, [sp, 48]\n    ldp x6, x7, [sp, 64]\n    ldr x8, [sp, 80]\n"
        "    ldp x29, x30, [sp], 96\n"
        "    br x16\n"
        ".size shim_fortran_first, . - shim_fortran_first\n");
#endif
#endif

/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * context.c - stacks of contexts, and the switch between them (context.h).
 */
#define _GNU_SOURCE
#include "carrier.h"
#include "context.h"
#include "workers.h"
#include <dlfcn.h>
#include <errno.h>
#include <libinvasive/environment.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__thread struct gomp_thread *gomp_current;

/* --- the switch */

#if defined __x86_64__ && defined __LP64__

/* Saves what the ABI says that a function keeps, on the stack, whose address goes to *save; takes the
 * other stack and what lies there.  Returns `carried`, there.  The control words are loaded only where
 * they differ, since that is slow. */
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
        /* Mostly the other context was suspended by the same sequence of calls: so the processor predicts
         * this and all further returns of it.  A jump would leave its stack of predictions one off. */
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

/* A stack that ends at `top`, a multiple of 16, such that a switch to it calls first(carried, arg). */
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

/* Does the processor keep a second stack of return addresses?  The instruction does nothing where
 * it does not. */
static bool has_shadow_stack (void)
{
    uint64_t pointer = 0;
    __asm__("rdsspq %0" : "+r"(pointer));
    return pointer != 0;
}

enum { SWITCHABLE = 1 };

#else

static void *gomp_context_swap (void **save, void *to, void *carried)
{
    (void)save;
    (void)to;
    return carried;
}

static void *prepare (char *top, void (*first) (void *, void *), void *arg)
{
    (void)first;
    (void)arg;
    return top;
}

static bool has_shadow_stack (void)
{
    return false;
}

enum { SWITCHABLE = 0 };

#endif

/* The C++ runtime's record of what is being handled, if it is loaded: two words of each kernel
 * thread, as its ABI says. */
struct exception_globals {
    void *caught;
    unsigned uncaught;
};
/* NULL: not loaded.  Written before a region begins, when objects have been loaded; relaxed: a region
 * that begins later is after it. */
static struct exception_globals *(*_Atomic get_globals) (void);

/* The library may be loaded later than we are, and be visible to some objects only. */
void gomp_contexts_find_exceptions (void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, "__cxa_get_globals") : NULL;
    struct exception_globals *(*function) (void);
    memcpy(&function, &found, sizeof function);
    atomic_store_explicit(&get_globals, function, memory_order_relaxed);
    if (library)
        dlclose(library);
}

/* Where a kernel thread has these, found once: to ask for them takes longer than the switch. */
static __thread struct {
    int *error;
    struct exception_globals *exceptions; /* NULL: no C++ runtime when the thread looked */
    struct exception_globals *(*function) (void);
} state_of_thread __attribute__((tls_model("initial-exec")));

void gomp_contexts_find_state (void)
{
    struct exception_globals *(*function) (void) =
        atomic_load_explicit(&get_globals, memory_order_relaxed);
    if (state_of_thread.error && state_of_thread.function == function)
        return;
    state_of_thread.error = &errno;
    state_of_thread.function = function;
    state_of_thread.exceptions = function ? function() : NULL;
}

/* These are functions of their own, or the compiler would keep addresses of a kernel thread's
 * variables across the switch. */
static void __attribute__((noinline, noclone)) save_thread_state (struct gomp_context *from)
{
    from->error = *state_of_thread.error;
    const struct exception_globals *g = state_of_thread.exceptions;
    if (g) {
        from->exceptions.caught = g->caught;
        from->exceptions.uncaught = g->uncaught;
    }
}

static void __attribute__((noinline, noclone)) restore_thread_state (const struct gomp_context *to)
{
    *state_of_thread.error = to->error;
    struct exception_globals *g = state_of_thread.exceptions;
    if (g) {
        g->caught = to->exceptions.caught;
        g->uncaught = to->exceptions.uncaught;
    }
}

/* The kernel thread has left the stack of `from`, and runs `self`. */
static void arrive (struct gomp_context *from, const struct gomp_context *self)
{
    restore_thread_state(self);
    /* release: partner is the acquire load of a thief (carrier.c), which may run it now */
    atomic_store_explicit(&from->running, false, memory_order_release);
}

void gomp_context_switch (struct gomp_context *from, struct gomp_context *to)
{
    save_thread_state(from);
    atomic_store_explicit(&to->running, true, memory_order_relaxed);
    gomp_current = to->owns_stack ? &to->thread : NULL;
    arrive(gomp_context_swap(&from->sp, to->sp, from), from);
}

/* --- stacks */

/* Those that have ended their implicit tasks. */
static struct gomp_spinlock free_lock;
static struct gomp_context *free_contexts;
static _Atomic unsigned made;

static bool under_tool (void)
{
    const char *preloaded = inv_getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload");
}

extern void __asan_init (void) __attribute__((weak));
extern void __tsan_init (void) __attribute__((weak));

bool gomp_contexts_usable (void)
{
    static _Atomic int answer; /* 0: not looked yet, 1 yes, 2 no */
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (__builtin_expect(known == 0, 0)) {
        const char *wish = inv_getenv("INVASIVE_CONTEXTS");
        const char *tasks = inv_getenv("INVASIVE_MPI_TASKS"); /* taskpoint.c counts by kernel thread */
        bool yes = SWITCHABLE && !has_shadow_stack() && !__asan_init && !__tsan_init &&
                   !under_tool() && !(wish && strcmp(wish, "off") == 0) && !tasks;
        known = yes ? 1 : 2;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == 1 && !gomp_contexts_grounded;
}

static void *map_stack (size_t bytes, size_t guard)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    /* A large page would be cleared as a whole for the few bytes that most stacks need. */
    madvise(base, bytes, MADV_NOHUGEPAGE);
    if (mprotect(base, guard, PROT_NONE) == 0)
        return base;
    munmap(base, bytes);
    return NULL;
}

static size_t stack_bytes (size_t page)
{
    size_t bytes = 0;
    if (pthread_attr_getstacksize(&gomp_thread_attr, &bytes) != 0 || bytes < 16 * page)
        bytes = 16 * page;
    return (bytes + page - 1) / page * page;
}

static void begin (void *from, void *arg)
{
    struct gomp_context *self = arg;
    arrive(from, self);
    self->body(self);
}

/* The struct lies at the upper end of its stack.  Stacks lie whole megabytes apart: where each begins
 * at another offset, what they hold does not compete for the same lines of the caches. */
static struct gomp_context *make_context (void (*body) (struct gomp_context *))
{
    enum { COLOURS = 32, COLOUR_BYTES = 320 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = stack_bytes(page);
    size_t extra = COLOURS * COLOUR_BYTES + sizeof(struct gomp_context);
    bytes += (extra + 2 * page) / page * page;
    char *base = map_stack(bytes, page);
    if (!base)
        return NULL;
    unsigned number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    char *top = base + bytes - number % COLOURS * COLOUR_BYTES;
    struct gomp_context *context =
        (struct gomp_context *)((uintptr_t)(top - sizeof *context) & ~(uintptr_t)63);
    context->owns_stack = true;
    context->body = body;
    context->sp = prepare((char *)context, begin, context);
    return context;
}

struct gomp_context *gomp_context_new (void (*body) (struct gomp_context *))
{
    gomp_spinlock_lock(&free_lock);
    struct gomp_context *context = free_contexts;
    if (context)
        free_contexts = context->next;
    gomp_spinlock_unlock(&free_lock);
    return context ? context : make_context(body);
}

void gomp_context_keep (struct gomp_context *context)
{
    gomp_spinlock_lock(&free_lock);
    context->next = free_contexts;
    free_contexts = context;
    gomp_spinlock_unlock(&free_lock);
}

/* The child of a fork has the memory of the others' stacks, and no use for it. */
void gomp_contexts_forget (void)
{
    atomic_store(&free_lock.held, 0);
    free_contexts = NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * context.c - stacks of contexts, and the switch between them (context.h).
 */
#define _GNU_SOURCE
#include "context.h"
#include "process.h"
#include "spinlock.h"
#include <dlfcn.h>
#include <errno.h>
#include <libinvasive/base/environment.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#undef gomp_current
__thread struct gomp_thread *gomp_current;
#define gomp_current GOMP_OWN(gomp_current)
struct gomp_contexts gomp_contexts;

/* --- the switch
 *
 * The file of the processor, switch_*.h, has
 *   gomp_context_swap(save, to, carried)  saves registers on the current stack and its stack
 *       pointer in *save, changes to the stack at `to`, and returns `carried` there.  A debugger
 *       reads the registers from where it saves them (gdb/libgomp_gdb.py);
 *   prepare(top, first, arg)  makes a stack below `top`, a multiple of 16, such that a swap to it
 *       calls first(carried, arg); returns its stack pointer;
 *   unswitchable()  what keeps this process from changing stacks so, in a few words; NULL: nothing.
 */

/* Few machines have shadow stacks.  So in a build with assertions a variable makes the code behave
 * as if there were one (testsuite/runtime/test_shadow_stacks.py). */
static inline bool pretends_shadow_stack (void)
{
#ifdef INV_ASSERTIONS
    return inv_getenv("INVASIVE_TEST_SHADOW_STACK") != NULL;
#else
    return false;
#endif
}

#if defined __x86_64__ && defined __LP64__
#include "switch_x86_64.h"
#elif defined __aarch64__ && defined __LP64__ && defined __AARCH64EL__
#include "switch_aarch64.h"
#else
#include "switch_none.h"
#endif

/* The exceptions that a kernel thread is handling: __cxa_eh_globals of the Itanium C++ ABI, of
 * which the C++ runtime has one for each kernel thread. */
struct gomp_exceptions {
    void *caught;
    unsigned uncaught;
};

/* By dlopen, since the program may load the C++ runtime later than libgomp, and with RTLD_LOCAL. */
void gomp_contexts_find_exceptions (void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, "__cxa_get_globals") : NULL;
    struct gomp_exceptions *(*function) (void);
    memcpy(&function, &found, sizeof function);
    atomic_store_explicit(&gomp_contexts.get_exceptions, function, memory_order_relaxed);
    if (library)
        dlclose(library);
}

/* Where the calling kernel thread has its errno and its exceptions.  Found once, since a call of
 * the functions that tell takes longer than a switch. */
static __thread struct {
    int *error;
    struct gomp_exceptions *exceptions; /* NULL: no C++ runtime was loaded */
    struct gomp_exceptions *(*function) (void); /* the function that has told */
} state_of_thread __attribute__((tls_model("initial-exec"), used));
#define state_of_thread GOMP_OWN(state_of_thread)

void gomp_contexts_find_state (void)
{
    struct gomp_exceptions *(*function) (void) =
        atomic_load_explicit(&gomp_contexts.get_exceptions, memory_order_relaxed);
    if (state_of_thread.error && state_of_thread.function == function)
        return;
    if (!state_of_thread.error)
        gomp_overflow_watch();
    state_of_thread.error = &errno;
    state_of_thread.function = function;
    state_of_thread.exceptions = function ? function() : NULL;
}

/* Neither this function nor the next one may be inlined: the compiler would keep addresses of a
 * kernel thread's variables across the switch. */
static void __attribute__((noinline, noclone)) save_thread_state (struct gomp_context *from)
{
    from->error = *state_of_thread.error;
    const struct gomp_exceptions *g = state_of_thread.exceptions;
    if (g) {
        from->exceptions.caught = g->caught;
        from->exceptions.uncaught = g->uncaught;
    }
}

static void __attribute__((noinline, noclone)) restore_thread_state (const struct gomp_context *to)
{
    *state_of_thread.error = to->error;
    struct gomp_exceptions *g = state_of_thread.exceptions;
    if (g) {
        g->caught = to->exceptions.caught;
        g->uncaught = to->exceptions.uncaught;
    }
}

/* Called after a switch: the kernel thread has left the stack of `from`, and runs `self`. */
static void finish_switch (struct gomp_context *from, const struct gomp_context *self)
{
    inv_assert(from != self); /* a loop that has never been switched to is not marked as running */
    inv_assert(!from->owns_stack || atomic_load_explicit(&from->running, memory_order_relaxed));
    restore_thread_state(self);
    /* release: partner is the acquire load of a thief (carrier.c), which may run `from` now */
    atomic_store_explicit(&from->running, false, memory_order_release);
}

void gomp_context_switch (struct gomp_context *from, struct gomp_context *to)
{
    inv_assert(from != to && (!to->owns_stack || to->sp != NULL));
    save_thread_state(from);
    atomic_store_explicit(&to->running, true, memory_order_relaxed);
    gomp_current = to->owns_stack ? &to->thread : NULL;
    finish_switch(gomp_context_swap(&from->sp, to->sp, from), from);
}

/* --- stacks */

static bool under_tool (void)
{
    const char *preloaded = inv_getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload");
}

extern void __asan_init (void) __attribute__((weak));
extern void __tsan_init (void) __attribute__((weak));

const char *gomp_contexts_hindrance (void)
{
    const char *setting = inv_getenv("INVASIVE_CONTEXTS");
    if (inv_mpi_tasks_asked())
        return "INVASIVE_MPI_TASKS"; /* taskpoint.c counts by kernel thread */
    if (setting && strcmp(setting, "off") == 0)
        return "INVASIVE_CONTEXTS";
    if (__asan_init || __tsan_init)
        return "a sanitizer";
    return under_tool() ? "valgrind" : unswitchable();
}

bool gomp_contexts_usable (void)
{
    int known = atomic_load_explicit(&gomp_contexts.usable, memory_order_relaxed);
    if (__builtin_expect(known == 0, 0)) {
        known = gomp_contexts_hindrance() ? 2 : 1;
        atomic_store_explicit(&gomp_contexts.usable, known, memory_order_relaxed);
    }
    return known == 1 && !gomp_contexts.forked_in_context;
}

static void *map_stack (size_t bytes, size_t guard)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    /* Most stacks need a few kilobytes, and the kernel would clear a whole large page for them. */
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

static void begin_context (void *from, void *arg)
{
    struct gomp_context *self = arg;
    inv_assert(self->owns_stack && gomp_current == &self->thread);
    finish_switch(from, self);
    self->body(self);
}

/* The struct lies at the upper end of its stack.  Stacks lie whole megabytes apart, so each begins
 * at another offset: else the data of all would compete for the same sets of the caches. */
static struct gomp_context *make_context (void (*body) (struct gomp_context *))
{
    /* The guard is larger than a page, since a function may have variables that are larger. */
    enum { COLOURS = 32, COLOUR_BYTES = 320, GUARD_BYTES = 65536 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = stack_bytes(page);
    size_t extra = COLOURS * COLOUR_BYTES + sizeof(struct gomp_context);
    size_t guard = GUARD_BYTES > page ? GUARD_BYTES : page;
    bytes += guard + (extra + page) / page * page;
    char *base = map_stack(bytes, guard);
    if (!base)
        return NULL;
    unsigned number = atomic_fetch_add_explicit(&gomp_contexts.made, 1, memory_order_relaxed);
    char *top = base + bytes - number % COLOURS * COLOUR_BYTES;
    struct gomp_context *context =
        (struct gomp_context *)((uintptr_t)(top - sizeof *context) & ~(uintptr_t)63);
    context->owns_stack = true;
    context->body = body;
    context->guard = (struct gomp_guard){
        .first = base, .bytes = guard, .number = &context->thread.ts.team_id};
    gomp_overflow_guard(&context->guard);
    inv_assert((char *)context > base + guard && (char *)(context + 1) <= base + bytes);
    context->sp = prepare((char *)context, begin_context, context);
    return context;
}

struct gomp_context *gomp_context_new (void (*body) (struct gomp_context *))
{
    gomp_spinlock_lock(&gomp_contexts.lock);
    struct gomp_context *context = gomp_contexts.unused;
    if (context)
        gomp_contexts.unused = context->next;
    gomp_spinlock_unlock(&gomp_contexts.lock);
    return context ? context : make_context(body);
}

void gomp_context_keep (struct gomp_context *context)
{
    gomp_spinlock_lock(&gomp_contexts.lock);
    inv_assert(context->owns_stack && context != gomp_contexts.unused);
    context->next = gomp_contexts.unused;
    gomp_contexts.unused = context;
    gomp_spinlock_unlock(&gomp_contexts.lock);
}

/* The child of a fork has copies of the parent's unused stacks.  It makes its own when it needs
 * some. */
void gomp_contexts_forget (void)
{
    atomic_store(&gomp_contexts.lock.held, 0);
    gomp_contexts.unused = NULL;
}

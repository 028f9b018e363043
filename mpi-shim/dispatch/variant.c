/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * variant.c - what the dispatcher sees of the wrappers for one binary interface.
 */
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/dispatch/entry.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/dispatch/hook.h"

__thread struct shim_thread shim_thread __attribute__((tls_model("initial-exec")));

/* Set by the dispatcher (resolve.c), which then knows all of shim_symbols. */
static void (*wrap_entries)(bool wrap);
static void (*set_hook)(hook_polled *polled, unsigned every_polls);
ptrdiff_t shim_caller_offset;

bool shim_hooked;

__attribute__((visibility("default"))) extern const struct shim_variant shim_variant;
const struct shim_variant shim_variant = {.symbols = shim_symbols,
                                          .wrap = &wrap_entries,
                                          .hook = &set_hook,
                                          .caller_offset = &shim_caller_offset};

void shim_entries_wrap(bool wrap)
{
    wrap_entries(wrap);
}

void shim_hook_set(hook_polled *polled, unsigned every_polls)
{
    set_hook(polled, every_polls);
}

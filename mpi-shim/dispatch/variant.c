/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * variant.c - what the dispatcher sees of the wrappers for one binary interface.
 */
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/dispatch/entry.h"
#include "mpi-shim/dispatch/hook.h"

struct shim_dispatcher shim_dispatcher;

__attribute__((visibility("default"))) extern const struct shim_variant shim_variant;
const struct shim_variant shim_variant = {.symbols = shim_symbols,
                                          .wrap = &shim_dispatcher.wrap,
                                          .hook = &shim_dispatcher.set_hook,
                                          .caller_offset = &shim_dispatcher.caller_offset};

void shim_entries_wrap(bool wrap)
{
    shim_dispatcher.wrap(wrap);
}

void shim_hook_set(hook_polled *polled, unsigned every_polls)
{
    shim_dispatcher.set_hook(polled, every_polls);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// toml.h - toml++ for what reads configurations.
#ifndef APPS_LIB_TOML_H
#define APPS_LIB_TOML_H

namespace apps {
struct TomlAssertion {};
[[noreturn]] inline void toml_assertion() { throw TomlAssertion(); }
} // namespace apps

// toml++ 3.3 asserts what a text like "[=" breaks, and takes it for granted with NDEBUG: here it
// throws.
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? void() : apps::toml_assertion())
#include <toml++/toml.h>

#endif

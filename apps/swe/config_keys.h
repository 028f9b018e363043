// SPDX-License-Identifier: GPL-3.0-or-later
// config_keys.h - the table of all keys of a scenario's file (lib/config/keys.h).
#ifndef SWE_CONFIG_KEYS_H
#define SWE_CONFIG_KEYS_H

#include <vector>
#include "../lib/config/keys.h"
#include "config.h"

namespace swe {

constexpr double MOST_PARTS = 1 << 24; // of the curve; each rank knows all of them

// The keys with targets in `config`, which must outlive them; in the order of their tables.  Those
// with `state` must be the same when a checkpoint is continued.
std::vector<Key> config_keys(Config &config);

} // namespace swe
#endif

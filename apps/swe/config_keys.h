// SPDX-License-Identifier: GPL-3.0-or-later
// config_keys.h - the table of all keys of a configuration: what reads it, checks it, writes it
// down and explains it goes through this one list.
#ifndef SWE_CONFIG_KEYS_H
#define SWE_CONFIG_KEYS_H

#include <functional>
#include <string>
#include <variant>
#include <vector>
#include "config.h"

namespace swe {

// One of a few words; any enum, its values counted from 0.
struct Choice {
    std::vector<std::string> words;
    std::function<int()> get;
    std::function<void(int)> set;
};

constexpr double MOST_PARTS = 1 << 24; // of the curve; each rank knows all of them

// Integers, each in the key's range; any number of them.
using Integers = std::vector<int>;

// The name of a file that is to be read.
struct InputFile {
    std::string *name;
};

using Target = std::variant<double *, int *, long *, unsigned *, bool *, std::string *, Integers *,
                            InputFile, Choice>;

struct Key {
    std::string name;       // "grid.max_depth"; no dot: at the top of the file
    Target target;          // where its value is in the Config
    double lowest, highest; // of numbers, also those of a list
    bool state;             // must it be the same when a checkpoint is continued?
    std::string meaning;

    std::string range() const; // "an integer from 0 to 47"
};

// The keys with targets in `config`, which must outlive them; in the order of their tables.
std::vector<Key> config_keys(Config &config);

// "grid" of "grid.max_depth"; of a key at the top of the file an empty text.
std::string table_of(const std::string &key);

// The value as TOML.
std::string toml_value(const Target &target);
std::string toml_number(double value);
std::string toml_string(const std::string &text);

} // namespace swe
#endif

// SPDX-License-Identifier: GPL-3.0-or-later
// keys.h - the table of all keys of a program's configuration: what reads it, checks it, writes it
// down and explains it goes through this one list, which each program makes of its own Config.
#ifndef APPS_LIB_KEYS_H
#define APPS_LIB_KEYS_H

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace apps {

// One of a few words; any enum, its values counted from 0.
struct Choice {
    std::vector<std::string> words;
    std::function<int()> get;
    std::function<void(int)> set;
};

// The words of an enum whose values are counted from 0, in their order.  The value must outlive it.
template <class Enum> Choice choice(Enum &value, std::vector<std::string> words)
{
    return {std::move(words), [&value] { return static_cast<int>(value); },
            [&value](int word) { value = static_cast<Enum>(word); }};
}

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
    Target target;          // where its value is, in the program's Config
    double lowest, highest; // of numbers, also those of a list
    bool state;             // may no run that goes on from another one change it?
    std::string meaning;

    std::string range() const; // "an integer from 0 to 47"
};

// "grid" of "grid.max_depth"; of a key at the top of the file an empty text.
std::string table_of(const std::string &key);

// The value as TOML.
std::string toml_value(const Target &target);
std::string toml_number(double value);
std::string toml_string(const std::string &text);

// `[table]` lines where the table changes, and under them NAME = VALUE of each key; the text is a
// configuration.  help_of() adds range and meaning under each key.
std::string describe(const std::vector<Key> &keys);
std::string help_of(const std::vector<Key> &keys);

// The file's name whole; as it is where there is no working directory any more.
std::string absolute_name(const std::string &file);

// One line an error: `FILE:LINE: KEY = VALUE: what is wrong, and what is right`.
class ConfigError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// What came from a file or a command line, made fit for a message: without control characters, and
// "..." in place of what follows after `longest` bytes.
constexpr std::size_t PRINTABLE = 80;
std::string printable(std::string_view text, std::size_t longest = PRINTABLE);

} // namespace apps
#endif

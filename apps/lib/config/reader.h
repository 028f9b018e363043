// SPDX-License-Identifier: GPL-3.0-or-later
// reader.h - reads a configuration: TOML by toml++, then every key by a program's table (keys.h).
// All errors are collected; the first ten are told, each with its place.  A program derives its
// reader, which adds tables that are no keys (other()) and what keys must be to each other.
#ifndef APPS_LIB_READER_H
#define APPS_LIB_READER_H

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include "keys.h"
#include "toml.h"

namespace apps {

constexpr std::size_t LONGEST_NAME = 64; // of a key, or of what it names

// Where keys come from: a place for messages, and the directory of the files that they name.
struct Origin {
    std::string place;
    std::filesystem::path directory;
};

class KeyReader {
public:
    // `keys` say where values go; `file` is for messages, and names that it has of files that are
    // read are relative to its directory.
    KeyReader(std::vector<Key> keys, std::string file);
    virtual ~KeyReader() = default;

    // Reads a whole file, then words of the command line, `grid.max_depth=12`, which count more, and
    // lets the program check the values.  Throws a ConfigError if the file is not TOML, or with all
    // other errors that were found.
    void read(std::string_view toml, const std::vector<std::string> &overrides);

protected:
    // All keys have been read, or good() is false and some have their defaults: what must they be to
    // each other?
    virtual void check() = 0;
    // A name that is no key: does the program know it?  Called with its place in the file.
    virtual bool other(const std::string &, const toml::node &, const std::string &)
    {
        return false;
    }

    const std::vector<Key> &keys() const { return keys_; }
    const std::string &file() const { return file_; }
    const Key *find(const std::string &name) const;
    bool is_given(const std::string &key) const { return places_.count(key) > 0; }
    bool good() const { return errors_.empty(); } // no error so far

    void error(const std::string &place, const std::string &what);
    // About a key that may have a place, or else has its default.
    void error_at(const std::string &key, const std::string &what);
    std::string line(const toml::source_region &source) const; // a place: FILE:LINE

private:
    std::vector<Key> keys_;
    std::string file_;
    std::map<std::string, std::string> places_;        // of keys that were given
    std::vector<std::pair<long, std::string>> errors_; // by line; LONG_MAX: none

    void text(std::string_view toml);
    void word(const std::string &override_word);
    void throw_errors();
    void table(const toml::table &table, const std::string &prefix);
    void value(const Key &key, const toml::node &node, const Origin &origin);
    bool is_table(const std::string &name) const;
    void unknown(const std::string &name, const std::string &place, bool table = false);
};

// A value as messages show it.
std::string shown(const toml::node &node);

// The text of a file, which is at most a little longer than a configuration may be.  Throws
// ConfigError where it cannot be read.
std::string text_of_config(const std::string &file);

} // namespace apps
#endif

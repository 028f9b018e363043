// SPDX-License-Identifier: GPL-3.0-or-later
// reader.cc - see reader.h.
#include "reader.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace apps {
namespace {

constexpr std::size_t LARGEST_FILE = 256 << 10; // bytes
constexpr std::size_t MOST_DOTS = 64;           // a line; toml++ recurses for each
constexpr std::size_t MOST_ERRORS = 10;

std::string type_name(const toml::node &node)
{
    switch (node.type()) {
    case toml::node_type::table:
        return "a table";
    case toml::node_type::array:
        return "an array";
    case toml::node_type::string:
        return "a string";
    case toml::node_type::integer:
        return "an integer";
    case toml::node_type::floating_point:
        return "a number";
    case toml::node_type::boolean:
        return "a truth value";
    default:
        return "a date or time";
    }
}

// Levenshtein's distance: letters put in, taken out or changed.
std::size_t distance(const std::string &a, const std::string &b)
{
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); j++)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); i++) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); j++) {
            std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string after_dot(const std::string &name) { return name.substr(name.rfind('.') + 1); }

// Gives a value to where a key has it; false: its type or range is wrong.
struct Setter {
    const toml::node &node;
    const Key &key;
    const Origin &origin;

    template <class Integer> bool integer(Integer *to) const
    {
        auto *i = node.as_integer();
        if (!i || !(static_cast<double>(i->get()) >= key.lowest &&
                    static_cast<double>(i->get()) <= key.highest))
            return false;
        *to = static_cast<Integer>(i->get());
        return true;
    }
    bool operator()(int *to) const { return integer(to); }
    bool operator()(long *to) const { return integer(to); }
    bool operator()(unsigned *to) const { return integer(to); }
    bool operator()(double *to) const
    {
        if (!node.is_number())
            return false;
        double value = node.value<double>().value_or(NAN);
        if (!(value >= key.lowest && value <= key.highest))
            return false;
        *to = value;
        return true;
    }
    bool operator()(bool *to) const
    {
        if (node.is_boolean())
            *to = node.as_boolean()->get();
        return node.is_boolean();
    }
    bool operator()(std::string *to) const
    {
        auto *s = node.as_string();
        auto control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
        if (!s || std::any_of(s->get().begin(), s->get().end(), control))
            return false;
        *to = s->get();
        return true;
    }
    bool operator()(Integers *to) const
    {
        auto *list = node.as_array();
        if (!list)
            return false;
        Integers numbers(list->size());
        for (std::size_t i = 0; i < numbers.size(); i++)
            if (!Setter{*list->get(i), key, origin}(&numbers[i]))
                return false;
        *to = std::move(numbers);
        return true;
    }
    bool operator()(InputFile to) const
    {
        if (!operator()(to.name))
            return false;
        if (!to.name->empty())
            *to.name = (origin.directory / *to.name).lexically_normal().string();
        return true;
    }
    bool operator()(const Choice &to) const
    {
        auto *s = node.as_string();
        auto word = s ? std::find(to.words.begin(), to.words.end(), s->get()) : to.words.end();
        if (word == to.words.end())
            return false;
        to.set(static_cast<int>(word - to.words.begin()));
        return true;
    }
};

// Long runs of dots make toml++ build, and take down, tables within tables by recursion.
void guard(std::string_view toml, const std::string &file)
{
    if (toml.size() > LARGEST_FILE)
        throw ConfigError(file + ": longer than " + std::to_string(LARGEST_FILE) + " bytes");
    std::size_t number = 1, dots = 0;
    for (char c : toml) {
        dots = c == '\n' ? 0 : dots + (c == '.');
        number += c == '\n';
        if (dots > MOST_DOTS)
            throw ConfigError(file + ':' + std::to_string(number) + ": more than " +
                              std::to_string(MOST_DOTS) + " dots in a line");
    }
}

// The first line that begins a table's name with what no name begins with, or 1.
std::size_t strange_header(std::string_view toml)
{
    std::size_t number = 1;
    for (std::size_t at = 0; at < toml.size(); number++) {
        std::size_t end = std::min(toml.find('\n', at), toml.size());
        std::string_view line = toml.substr(at, end - at);
        std::size_t first = line.find_first_not_of(" \t");
        std::size_t name = first < line.size() ? line.find_first_not_of("[ \t", first) : line.npos;
        if (first < line.size() && line[first] == '[' && name < line.size() &&
            std::strchr("\"'-_]", line[name]) == nullptr &&
            !std::isalnum(static_cast<unsigned char>(line[name])))
            return number;
        at = end + 1;
    }
    return 1;
}

} // namespace

std::string shown(const toml::node &node)
{
    if (auto *s = node.as_string())
        return '"' + printable(s->get()) + '"';
    if (auto *i = node.as_integer())
        return std::to_string(i->get());
    if (auto *f = node.as_floating_point()) {
        std::string text = toml_number(f->get());
        return text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;
    }
    if (auto *b = node.as_boolean())
        return b->get() ? "true" : "false";
    return type_name(node);
}

KeyReader::KeyReader(std::vector<Key> keys, std::string file)
    : keys_(std::move(keys)), file_(std::move(file))
{
}

void KeyReader::error(const std::string &place, const std::string &what)
{
    auto colon = place.rfind(':');
    long number = colon == std::string::npos ? 0 : std::strtol(&place[colon + 1], nullptr, 10);
    errors_.emplace_back(number > 0 ? number : LONG_MAX, place + ": " + what);
}

// About a key that may have a place, or else has its default.
void KeyReader::error_at(const std::string &key, const std::string &what)
{
    auto given = places_.find(key);
    const Key *known = find(key);
    // The name of a file is said whole, however long: its end tells which file it is.
    const std::size_t longest =
        known && std::holds_alternative<InputFile>(known->target) ? std::string::npos : PRINTABLE;
    std::string value = known ? key + " = " + printable(toml_value(known->target), longest) : key;
    error(given == places_.end() ? file_ : given->second,
          value + (given == places_.end() ? " (the default): " : ": ") + what);
}

std::string KeyReader::line(const toml::source_region &source) const
{
    return file_ + ':' + std::to_string(source.begin.line);
}

const Key *KeyReader::find(const std::string &name) const
{
    for (const Key &key : keys_)
        if (key.name == name)
            return &key;
    return nullptr;
}

bool KeyReader::is_table(const std::string &name) const
{
    return std::any_of(keys_.begin(), keys_.end(), [&name](const Key &key) {
        return key.name.compare(0, name.size() + 1, name + '.') == 0;
    });
}

// Of a table only tables are suggested, of a key only keys.
void KeyReader::unknown(const std::string &name, const std::string &place, bool table)
{
    std::string nearest;
    // Half of the letters may be wrong, at most three; more is no help.
    std::size_t least = 1 + std::clamp<std::size_t>(after_dot(name).size() / 2, 1, 3);
    for (const Key &key : keys_) {
        // Long names cannot be near, and would take long.
        if (name.size() > 2 * LONGEST_NAME)
            break;
        std::string known = table ? table_of(key.name) : key.name;
        std::size_t d = distance(name, known);
        if (!table)
            d = std::min(d, 1 + distance(after_dot(name), after_dot(known)));
        if (d < least && !known.empty()) {
            least = d;
            nearest = table ? '[' + known + ']' : known;
        }
    }
    error(place,
          printable(name) + ": no such key" +
              (nearest.empty() ? "; --help-config lists all" : "; did you mean " + nearest + "?"));
}

void KeyReader::value(const Key &key, const toml::node &node, const Origin &origin)
{
    if (std::visit(Setter{node, key, origin}, key.target))
        places_[key.name] = origin.place;
    else
        error(origin.place, key.name + " = " + shown(node) + ": must be " + key.range() + " (" +
                                key.meaning + ")");
}

void KeyReader::table(const toml::table &table, const std::string &prefix)
{
    for (auto &&[key, node] : table) {
        std::string name = prefix + std::string(key.str());
        std::string place = line(key.source());
        if (const Key *known = find(name)) {
            value(*known, node, {place, std::filesystem::path(file_).parent_path()});
        } else if (prefix.empty() && is_table(name)) {
            if (auto *inner = node.as_table())
                this->table(*inner, name + '.');
            else
                error(place, name + " = " + shown(node) + ": must be a table, [" + name + ']');
        } else if (!other(name, node, place)) {
            unknown(name, place, node.is_table());
        }
    }
}

void KeyReader::text(std::string_view toml)
{
    guard(toml, file_);
    try {
        table(toml::parse(toml, file_), "");
    } catch (const toml::parse_error &e) {
        throw ConfigError(line(e.source()) + ": not TOML: " + printable(e.description()));
    } catch (const TomlAssertion &) {
        throw ConfigError(file_ + ':' + std::to_string(strange_header(toml)) +
                          ": not TOML: a table must be [NAME] or [[NAME]]");
    }
}

// KEY=VALUE of the command line.  Words need no quotes there.
void KeyReader::word(const std::string &override_word)
{
    Origin origin{"command line", {}};
    auto equals = override_word.find('=');
    std::string name = override_word.substr(0, equals);
    if (equals == std::string::npos || name.empty())
        return error(origin.place, printable(override_word) + ": must be KEY=VALUE");
    const Key *key = find(name);
    if (!key && is_table(name))
        return error(origin.place, printable(override_word) + ": must be " + name +
                                       ".KEY=VALUE, as " + name + " is a table of keys");
    if (!key)
        return unknown(name, origin.place);
    std::string text = override_word.substr(equals + 1);
    bool words = std::holds_alternative<std::string *>(key->target) ||
                 std::holds_alternative<InputFile>(key->target) ||
                 std::holds_alternative<Choice>(key->target);
    bool plain = words && (text.empty() || (text[0] != '"' && text[0] != '\''));
    try {
        guard(text, origin.place);
        if (plain) {
            value(*key, toml::value<std::string>(text), origin);
        } else if (text.find_first_of("\r\n") != std::string::npos) {
            error(origin.place, name + ": must be one line");
        } else {
            toml::table parsed = toml::parse("v = " + text);
            value(*key, *parsed.get("v"), origin);
        }
    } catch (const TomlAssertion &) {
        error(origin.place, printable(override_word) + ": must be " + key->range());
    } catch (const toml::parse_error &) {
        error(origin.place,
              printable(override_word) + ": must be " + key->range() + " (" + key->meaning + ")");
    }
}

void KeyReader::throw_errors()
{
    if (errors_.empty())
        return;
    std::stable_sort(errors_.begin(), errors_.end(),
                     [](const auto &a, const auto &b) { return a.first < b.first; });
    std::string all = errors_[0].second;
    for (std::size_t i = 1; i < errors_.size() && i < MOST_ERRORS; i++)
        all += '\n' + errors_[i].second;
    if (errors_.size() > MOST_ERRORS)
        all += "\n... and " + std::to_string(errors_.size() - MOST_ERRORS) + " more";
    throw ConfigError(all);
}

void KeyReader::read(std::string_view toml, const std::vector<std::string> &overrides)
{
    text(toml);
    for (const std::string &override_word : overrides)
        word(override_word);
    check();
    throw_errors();
}

std::string text_of_config(const std::string &file)
{
    std::error_code problem;
    auto status = std::filesystem::status(file, problem);
    if (std::filesystem::exists(status) && std::filesystem::is_directory(status))
        throw ConfigError(file + ": a directory; a TOML file is needed");
    std::ifstream in(file, std::ios::binary);
    if (!in)
        throw ConfigError(file + ": " + std::strerror(errno));
    std::string text(LARGEST_FILE + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad())
        throw ConfigError(file + ": cannot be read");
    text.resize(static_cast<std::size_t>(in.gcount()));
    return text;
}

} // namespace apps

// SPDX-License-Identifier: GPL-3.0-or-later
// keys.cc - see keys.h.
#include "keys.h"

#include <charconv>
#include <filesystem>
#include <system_error>

namespace apps {
namespace {

std::string one_of(const std::vector<std::string> &words)
{
    std::string text = "one of";
    for (std::size_t i = 0; i < words.size(); i++)
        text += (i ? ", \"" : " \"") + words[i] + '"';
    return text;
}

std::string last_part(const std::string &key) { return key.substr(key.find('.') + 1); }

std::string written(const std::vector<Key> &keys, bool explained)
{
    std::string text, table;
    for (const Key &key : keys) {
        if (table_of(key.name) != table)
            text += "\n[" + (table = table_of(key.name)) + "]\n";
        text += last_part(key.name) + " = " + toml_value(key.target) + '\n';
        if (explained)
            text += "    " + key.range() + ": " + key.meaning + '\n';
    }
    return text;
}

} // namespace

std::string Key::range() const
{
    if (std::holds_alternative<bool *>(target))
        return "true or false";
    if (std::holds_alternative<std::string *>(target))
        return "a string";
    if (std::holds_alternative<InputFile>(target))
        return "the name of a file, a string";
    if (const Choice *c = std::get_if<Choice>(&target))
        return one_of(c->words);
    if (std::holds_alternative<double *>(target))
        return "a number from " + toml_number(lowest) + " to " + toml_number(highest);
    const bool is_list = std::holds_alternative<Integers *>(target);
    return (is_list ? "a list of integers from " : "an integer from ") +
           std::to_string(static_cast<long>(lowest)) + " to " +
           std::to_string(static_cast<long>(highest));
}

std::string table_of(const std::string &key)
{
    auto dot = key.find('.');
    return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string toml_number(double value)
{
    char text[64];
    auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return std::string(text, end);
}

std::string toml_string(const std::string &text)
{
    std::string quoted = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            quoted += '\\';
        quoted += c;
    }
    return quoted + '"';
}

std::string toml_value(const Target &target)
{
    struct Writer {
        std::string operator()(double *v) const { return toml_number(*v); }
        std::string operator()(int *v) const { return std::to_string(*v); }
        std::string operator()(long *v) const { return std::to_string(*v); }
        std::string operator()(unsigned *v) const { return std::to_string(*v); }
        std::string operator()(bool *v) const { return *v ? "true" : "false"; }
        std::string operator()(std::string *v) const { return toml_string(*v); }
        std::string operator()(Integers *v) const
        {
            std::string text;
            for (int number : *v)
                text += (text.empty() ? "" : ", ") + std::to_string(number);
            return '[' + text + ']';
        }
        std::string operator()(InputFile v) const { return toml_string(*v.name); }
        std::string operator()(const Choice &v) const
        {
            int word = v.get();
            return toml_string(word < 0 ? "" : v.words[static_cast<std::size_t>(word)]);
        }
    };
    return std::visit(Writer(), target);
}

std::string describe(const std::vector<Key> &keys) { return written(keys, false); }
std::string help_of(const std::vector<Key> &keys) { return written(keys, true); }

std::string absolute_name(const std::string &file)
{
    std::error_code none;
    const auto path = std::filesystem::weakly_canonical(file, none); // ".." may be behind a link
    return file.empty() || none ? file : path.string();
}

std::string printable(std::string_view text, std::size_t longest)
{
    std::string shown(text.substr(0, longest));
    for (char &c : shown)
        if (static_cast<unsigned char>(c) < 32 || c == 127)
            c = '?';
    return text.size() > longest ? shown + "..." : shown;
}

} // namespace apps

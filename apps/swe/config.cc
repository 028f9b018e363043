// SPDX-License-Identifier: GPL-3.0-or-later
// config.cc - reads a configuration: TOML by toml++, then every key by the table of
// config_keys.h, then what keys must be to each other.  All errors are collected; the first
// ten are told, each with its place.
#include "config.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include "config_keys.h"
#include "grid/triangle.h"
#include "scenario/projection.h"

// toml++ 3.3 asserts what a text like "[=" breaks, and takes it for granted with NDEBUG: here it
// throws.
namespace {
struct TomlAssertion {};
[[noreturn]] void toml_assertion() { throw TomlAssertion(); }
} // namespace
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? void() : toml_assertion())
#include <toml++/toml.h>

namespace swe {
namespace {

constexpr std::size_t LARGEST_FILE = 256 << 10; // bytes
constexpr std::size_t MOST_DOTS = 64;           // a line; toml++ recurses for each
constexpr std::size_t MOST_ERRORS = 10;
constexpr std::size_t MOST_GAUGES = 500;
constexpr std::size_t LONGEST_NAME = 64;
constexpr const char *GAUGE_PLACES[4] = {"x", "y", "lon", "lat"};
constexpr double MOST_CELLS = INT_MAX; // of the coarsest grid

// Where keys come from: a place for messages, and the directory of the files that they name.
struct Origin {
    std::string place;
    std::filesystem::path directory;
};

class Reader {
public:
    Reader(Config &config, std::string file);

    void text(std::string_view toml);
    void word(const std::string &override_word);
    void finish();

private:
    Config &config_;
    std::string file_;
    std::vector<Key> keys_;
    std::map<std::string, std::string> places_;        // of keys that were given
    std::vector<std::pair<long, std::string>> errors_; // by line; LONG_MAX: none
    struct Degrees {
        std::size_t gauge;
        std::string place;
        double lon, lat;
    };
    struct NoNumber {
        std::size_t name; // of GAUGE_PLACES
        std::string place, shown;
    };
    std::vector<Degrees> degrees_; // gauges whose x, y are not known before the domain is
    std::vector<std::string> gauge_places_;
    std::vector<NoNumber> no_numbers_;

    void error(const std::string &place, const std::string &what);
    void error_at(const std::string &key, const std::string &what);
    std::string line(const toml::source_region &source) const;

    void table(const toml::table &table, const std::string &prefix);
    void gauges(const toml::node &node, const std::string &place);
    void gauge(const toml::table &table, const std::string &place);
    void value(const Key &key, const toml::node &node, const Origin &origin);
    const Key *find(const std::string &name) const;
    bool is_table(const std::string &name) const;
    void unknown(const std::string &name, const std::string &place, bool table = false);

    void set_defaults();
    void check_solver();
    void check_numbers();
    void check_sizes();
    void check_files();
    void check_outputs();
    void check_scenario();
    void check_places(bool is_domain_known);
    void check_gauges();
};

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

bool good_gauge_name(const std::string &name)
{
    auto good = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
    };
    return !name.empty() && name.size() <= LONGEST_NAME &&
           std::all_of(name.begin(), name.end(), good);
}

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

Reader::Reader(Config &config, std::string file)
    : config_(config), file_(std::move(file)), keys_(config_keys(config))
{
}

void Reader::error(const std::string &place, const std::string &what)
{
    auto colon = place.rfind(':');
    long number = colon == std::string::npos ? 0 : std::strtol(&place[colon + 1], nullptr, 10);
    errors_.emplace_back(number > 0 ? number : LONG_MAX, place + ": " + what);
}

// About a key that may have a place, or else has its default.
void Reader::error_at(const std::string &key, const std::string &what)
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

std::string Reader::line(const toml::source_region &source) const
{
    return file_ + ':' + std::to_string(source.begin.line);
}

const Key *Reader::find(const std::string &name) const
{
    for (const Key &key : keys_)
        if (key.name == name)
            return &key;
    return nullptr;
}

bool Reader::is_table(const std::string &name) const
{
    return std::any_of(keys_.begin(), keys_.end(), [&name](const Key &key) {
        return key.name.compare(0, name.size() + 1, name + '.') == 0;
    });
}

// Of a table only tables are suggested, of a key only keys.
void Reader::unknown(const std::string &name, const std::string &place, bool table)
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

void Reader::value(const Key &key, const toml::node &node, const Origin &origin)
{
    if (std::visit(Setter{node, key, origin}, key.target))
        places_[key.name] = origin.place;
    else
        error(origin.place, key.name + " = " + shown(node) + ": must be " + key.range() + " (" +
                                key.meaning + ")");
}

void Reader::table(const toml::table &table, const std::string &prefix)
{
    for (auto &&[key, node] : table) {
        std::string name = prefix + std::string(key.str());
        std::string place = line(key.source());
        if (name == "gauges") {
            gauges(node, place);
        } else if (const Key *known = find(name)) {
            value(*known, node, {place, std::filesystem::path(file_).parent_path()});
        } else if (prefix.empty() && is_table(name)) {
            if (auto *inner = node.as_table())
                this->table(*inner, name + '.');
            else
                error(place, name + " = " + shown(node) + ": must be a table, [" + name + ']');
        } else {
            unknown(name, place, node.is_table());
        }
    }
}

void Reader::gauges(const toml::node &node, const std::string &place)
{
    const toml::array *list = node.as_array();
    if (!list || !list->is_homogeneous<toml::table>()) {
        if (!list || !list->empty())
            error(place, "gauges: must be tables: [[gauges]] with name, x and y");
        return;
    }
    if (list->size() > MOST_GAUGES) {
        error(place, "gauges: at most " + std::to_string(MOST_GAUGES));
        return;
    }
    for (const toml::node &one : *list)
        gauge(*one.as_table(), line(one.source()));
}

void Reader::gauge(const toml::table &table, const std::string &place)
{
    Gauge gauge;
    double number[4] = {}; // x, y, lon, lat
    bool given[4] = {};
    for (auto &&[key, node] : table) {
        std::string at = line(key.source());
        std::size_t i = 0;
        while (i < 4 && key.str() != GAUGE_PLACES[i])
            i++;
        if (i < 4) {
            number[i] = node.is_number() ? node.value<double>().value_or(NAN) : NAN;
            given[i] = true;
            if (!std::isfinite(number[i]))
                no_numbers_.push_back({i, at, shown(node)});
        } else if (key.str() == "name") {
            gauge.name = node.value<std::string>().value_or("");
            if (!good_gauge_name(gauge.name))
                error(at, "gauges.name = " + shown(node) + ": must be a string of up to " +
                              std::to_string(LONGEST_NAME) + " letters, digits, '-' and '_'");
        } else {
            error(at, "gauges." + printable(key.str()) +
                          ": no such key; there are name, x, y, lon, lat");
        }
    }
    bool metres = given[0] && given[1] && !given[2] && !given[3];
    bool degrees = given[2] && given[3] && !given[0] && !given[1];
    if (!table.contains("name") || metres == degrees) {
        error(place, "gauges: each must have a name, and x and y or lon and lat");
        return;
    }
    if (!std::all_of(number, number + 4, [](double n) { return std::isfinite(n); }))
        return; // told when the domain is known
    if (degrees)
        degrees_.push_back({config_.gauges.size(), place, number[2], number[3]});
    else
        gauge.x = number[0], gauge.y = number[1];
    config_.gauges.push_back(gauge);
    gauge_places_.push_back(place);
}

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

void Reader::text(std::string_view toml)
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
void Reader::word(const std::string &override_word)
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

// Those that depend on what was given.
void Reader::set_defaults()
{
    if (config_.solver.order == 1 && places_.count("solver.stepping") == 0)
        config_.solver.stepping = Stepping::SSP_RK2;
}

void Reader::check_solver()
{
    const Config &c = config_;
    if (c.solver.order == 1 && c.solver.stepping == Stepping::EULER)
        error_at("solver.stepping", "solver.order = 1 is unstable with it, at any cfl: set "
                                    "\"ssp_rk2\", or leave it out");
    if (c.solver.local_steps && (c.solver.order != 0 || c.solver.stepping != Stepping::EULER))
        error_at("solver.local_steps",
                 "only with solver.order = 0 and solver.stepping = \"euler\"");
    if (c.solver.local_steps && !c.run.record.empty())
        error_at("run.record", "not with solver.local_steps");
}

void Reader::check_numbers()
{
    const Config &c = config_;
    if (c.grid.min_depth > c.grid.max_depth)
        error_at("grid.min_depth",
                 "must be at most grid.max_depth, " + std::to_string(c.grid.max_depth));
    if (!(c.grid.coarsen <= c.grid.refine))
        error_at("grid.coarsen", "must be at most grid.refine, " + toml_number(c.grid.refine));
    if (c.grid.join > c.grid.split / 2)
        error_at("grid.join",
                 "must be at most half of grid.split, " + std::to_string(c.grid.split));
    if (c.run.cut > c.grid.min_depth)
        error_at("run.cut", "must be at most grid.min_depth, " + std::to_string(c.grid.min_depth));
    if (c.run.blocking && !c.run.announce)
        error_at("run.blocking", "needs run.announce");
    if (c.output.directory.empty())
        for (const char *key : {"vtu_every", "raster_every", "maxima_every", "checkpoint_every"})
            if (const Key *k = find(std::string("output.") + key);
                **std::get_if<double *>(&k->target) > 0)
                error_at(k->name, "needs output.directory");
}

void Reader::check_sizes()
{
    const Config &c = config_;
    const double quarters = 4. * c.domain.nx * c.domain.ny;
    const double cells = std::ldexp(quarters, c.grid.min_depth);
    const double parts = std::ldexp(quarters, c.run.cut);
    const auto check = [&](const char *key, double count, double most, const char *what) {
        if (count > most)
            error_at(key, "makes " + toml_number(count) + what + " of " + toml_number(quarters) +
                              " quarters of base squares; at most " + toml_number(most));
    };
    check("grid.min_depth", cells, MOST_CELLS, " cells at least");
    check("run.cut", parts, MOST_PARTS, " parts");
    const double given = std::accumulate(c.run.parts.begin(), c.run.parts.end(), 0.);
    if (!c.run.parts.empty() && given != parts)
        error_at("run.parts", "are " + toml_number(given) + " parts; there are " +
                                  toml_number(parts) + ", " + toml_number(quarters) +
                                  " quarters of base squares times 2^run.cut, " +
                                  std::to_string(c.run.cut));
}

void Reader::check_files()
{
    for (const Key &key : keys_) {
        const InputFile *file = std::get_if<InputFile>(&key.target);
        if (!file || file->name->empty())
            continue;
        std::error_code problem;
        auto status = std::filesystem::status(*file->name, problem);
        if (config_.name != "tsunami")
            error_at(key.name,
                     "only for the scenario \"tsunami\", and this is \"" + config_.name + '"');
        else if (!std::filesystem::exists(status))
            error_at(key.name, "no such file");
        else if (!std::filesystem::is_regular_file(status))
            error_at(key.name, "not a file");
        else if (!std::ifstream(*file->name).is_open())
            error_at(key.name, std::string("cannot be read: ") + std::strerror(errno));
    }
}

// What the run replaces in output.directory.
std::vector<std::filesystem::path> outputs_of(const Config &c)
{
    const std::filesystem::path directory = c.output.directory;
    std::vector<std::filesystem::path> outputs;
    if (directory.empty())
        return outputs;
    if (c.output.vtu_every > 0)
        outputs.push_back(directory / (c.name + ".pvd"));
    if (c.output.raster_every > 0)
        outputs.push_back(directory / (c.name + ".nc"));
    if (c.output.maxima_every > 0)
        outputs.push_back(directory / (c.name + "-maxima.nc"));
    for (const Gauge &gauge : c.gauges)
        outputs.push_back(directory / ("gauge-" + gauge.name + ".csv"));
    return outputs;
}

// Is the file PREFIX.RANK of run.record, for some rank?
bool is_record(const std::filesystem::path &file, const std::string &prefix)
{
    std::error_code none;
    const std::string rank = std::filesystem::weakly_canonical(file, none).extension().string();
    return !prefix.empty() && rank.size() > 1 &&
           rank.find_first_not_of("0123456789", 1) == rank.npos &&
           std::filesystem::equivalent(prefix + rank, file, none);
}

// An output must not take the place of an input.
void Reader::check_outputs()
{
    const auto outputs = outputs_of(config_);
    const auto replaced_by = [&](const std::string &file) -> std::string {
        std::error_code none;
        for (const auto &output : outputs)
            if (std::filesystem::equivalent(output, file, none))
                return "output.directory";
        return is_record(file, config_.run.record) ? "run.record" : "";
    };
    if (const std::string by = replaced_by(file_); !by.empty())
        error_at(by, "a file of it would take the place of this one, " + file_);
    for (const Key &key : keys_)
        if (auto *input = std::get_if<InputFile>(&key.target); input && !input->name->empty())
            if (const std::string by = replaced_by(*input->name); !by.empty())
                error_at(key.name, by + " would have a file of the same name");
}

void Reader::check_scenario()
{
    const Config &c = config_;
    const auto &s = c.scenario;
    if (c.name.empty())
        error(file_, "name: missing; must be " + find("name")->range());
    if (c.name == "thacker" && !(s.amplitude < 1))
        error_at("scenario.amplitude", "must be less than 1 for \"thacker\"");
    if (c.name != "dam_break" && c.name != "tsunami" && s.depth <= 0)
        error_at("scenario.depth", "must be more than 0 for \"" + c.name + '"');
    if (c.name == "dam_break" && s.depth + s.inside <= 0)
        error_at("scenario.inside", "no water: depth and inside are 0");
    if (c.name == "beach" && s.amplitude <= 0)
        error_at("scenario.amplitude", "must be more than 0 for \"beach\"");
    // Every place must have a meridian and a latitude.
    Projection globe(c);
    if (c.name == "tsunami" && (std::abs(globe.lat(c.domain.y0) - globe.lat0) > 30 ||
                                std::abs(globe.lon(c.domain.x0) - globe.lon0) > 60))
        error_at("domain.square", "a domain of " + toml_number(c.width() / 1000) + " km by " +
                                      toml_number(c.height() / 1000) +
                                      " km is too large for the map: at most 120 degrees by 60");
    else if (double south = globe.lat(c.domain.y0), north = globe.lat(c.domain.y0 + c.height());
             c.name == "tsunami" && (south < -89 || north > 89))
        error_at("scenario.lat0", "the domain would be from " + toml_number(south) + " to " +
                                      toml_number(north) + " degrees north; the map has -89 to 89");
}

// x, y, lon or lat of gauges that are no numbers; which ones the domain has, if that is known.
void Reader::check_places(bool is_domain_known)
{
    const auto &d = config_.domain;
    const Projection globe(config_);
    const double east = d.x0 + config_.width(), north = d.y0 + config_.height();
    const std::pair<double, double> ranges[4] = {{d.x0, east},
                                                 {d.y0, north},
                                                 {globe.lon(d.x0), globe.lon(east)},
                                                 {globe.lat(d.y0), globe.lat(north)}};
    for (const NoNumber &n : no_numbers_) {
        const auto [low, high] = ranges[n.name];
        error(n.place, std::string("gauges.") + GAUGE_PLACES[n.name] + " = " + n.shown +
                           ": must be a number" +
                           (is_domain_known ? " in [" + toml_number(low) + ", " +
                                                  toml_number(high) + "), which the domain has"
                                            : ""));
    }
}

void Reader::check_gauges()
{
    Config &c = config_;
    Projection globe(c);
    double east = c.domain.x0 + c.width(), north = c.domain.y0 + c.height();
    std::vector<std::string> where(c.gauges.size()); // as it was said, and the domain in the same
    auto range = [](double low, double high) {
        return '[' + toml_number(low) + ", " + toml_number(high) + ')';
    };
    for (std::size_t i = 0; i < c.gauges.size(); i++)
        where[i] = "x = " + toml_number(c.gauges[i].x) + ", y = " + toml_number(c.gauges[i].y) +
                   " is not in the domain, " + range(c.domain.x0, east) + " x " +
                   range(c.domain.y0, north);
    for (const Degrees &d : degrees_) {
        if (c.name != "tsunami")
            error(d.place, "gauges: lon and lat are for the scenario \"tsunami\"; use x and y");
        c.gauges[d.gauge].x = globe.x(d.lon);
        c.gauges[d.gauge].y = globe.y(d.lat);
        where[d.gauge] = "lon = " + toml_number(d.lon) + ", lat = " + toml_number(d.lat) +
                         " is not in the domain, " +
                         range(globe.lon(c.domain.x0), globe.lon(east)) + " x " +
                         range(globe.lat(c.domain.y0), globe.lat(north));
    }
    std::map<std::string, std::string> seen;
    for (std::size_t i = 0; i < c.gauges.size(); i++) {
        const Gauge &g = c.gauges[i];
        if (!(g.x >= c.domain.x0 && g.x < east && g.y >= c.domain.y0 && g.y < north))
            error(gauge_places_[i], "gauge " + printable(g.name) + ": " + where[i]);
        auto first = seen.emplace(g.name, gauge_places_[i]);
        if (!first.second)
            error(gauge_places_[i],
                  "gauge " + printable(g.name) + ": the name is taken, at " + first.first->second);
    }
}

void Reader::finish()
{
    if (errors_.empty()) { // else these would be about defaults
        set_defaults();
        check_solver();
        check_numbers();
        check_sizes();
        check_scenario();
        check_files();
        check_outputs();
        check_gauges();
        check_places(true);
    } else {
        check_places(false);
    }
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

} // namespace

Config parse_config(std::string_view text, const std::string &file,
                    const std::vector<std::string> &overrides)
{
    Config config;
    config.file = file;
    Reader reader(config, file);
    reader.text(text);
    for (const std::string &word : overrides)
        reader.word(word);
    reader.finish();
    return config;
}

Config read_config(const std::string &file, const std::vector<std::string> &overrides)
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
    return parse_config(text, file, overrides);
}

} // namespace swe

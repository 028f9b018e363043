// SPDX-License-Identifier: GPL-3.0-or-later
// config_fuzz.cc - COUNT SEED: the readers of configurations and of lists of sub-faults get COUNT
// texts, random ones and good ones with bytes changed, each in memory of exactly its size.  An
// error must name the file, and one about a value that is out of range the key and its range; what
// is taken for good must be in its range, and must come back the same when it is written down and
// read again.  Prints how many were good; 1 when a promise is
// broken.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include "../config_keys.h"
#include "../scenario/faults/faults.h"

using namespace swe;

namespace {

const char *const GOOD_CONFIG =
    "# a comment\nname = \"tsunami\"\n"
    "[domain]\nx0 = -800e3\ny0 = -800_000\nsquare = 1600e3\nnx = 1\nwest = \"open\"\n"
    "[grid]\nmin_depth = 8\nmax_depth = 0x10\nrefine = 0.05\nshore = false\nsplit = 4096\n"
    "[solver]\nflux = 'augmented'\norder = 1\nstepping = \"ssp_rk2\"\nprecision = \"single\"\n"
    "[time]\nend = 7.2e3\nsteps = -1\n[run]\nparallel = \"owner\"\nparts = [3, 1]\n"
    "[output]\ndirectory = \"out\"\nvtu_every = 60\n"
    "[scenario]\nlon0 = 143.0\nlat0 = 38\nseed = 4294967295\ndepth = inf\n"
    "[[gauges]]\nname = \"a\"\nx = 1.5\ny = -2\n[[gauges]]\nname = \"b-2\"\nlon = 143.5\nlat = 37\n"
    "grid.max_depth = 1979-05-27T07:32:00Z\n[a.b.c]\nd = [1, {e = \"\"\"\n\"\"\"}]\n";
const char *const GOOD_FAULTS =
    "# list\nlon lat depth_km strike dip rake slip_m length_km width_km\n"
    "143.25 38.5 20 200 12 90 5 50 40\n143,39,1.5e1,200,12,-90,5,50,40\n";
const char *const GOOD_WORDS[] = {"grid.max_depth=12", "solver.flux=rusanov", "domain.square=1e6",
                                  "scenario.faults=",  "run.announce=true",   "run.parts=[1,3]"};

std::uint64_t state;
const char *broken;

unsigned chance(std::size_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return static_cast<unsigned>((state >> 33) % below);
}

std::string random_text()
{
    static const char likely[] = "=[]{}.\"'#\n \t0123456789-,_einfanxy\\\r";
    std::string text(chance(400), ' ');
    for (char &c : text)
        c = chance(3) ? likely[chance(sizeof likely)] : static_cast<char>(chance(256));
    return text;
}

// Bytes changed, taken out, put twice; numbers and words moved to other places.
std::string changed(std::string text)
{
    for (unsigned k = chance(5); k > 0 && text.size() > 1; k--) {
        std::size_t at = chance(text.size()), many = 1 + chance(30);
        many = std::min(many, text.size() - at);
        switch (chance(4)) {
        case 0:
            text[at] = static_cast<char>(chance(256));
            break;
        case 1:
            text.erase(at, many);
            break;
        case 2:
            text.insert(chance(text.size()), text.substr(at, many));
            break;
        default:
            for (unsigned n = chance(12); n > 0 && text.size() < 20000; n--)
                text.insert(at, text.substr(at, many));
        }
    }
    return text;
}

// The good text is so only without its last lines, which have what no configuration has.
std::string config_text()
{
    switch (chance(4)) {
    case 0:
        return random_text();
    case 1:
        return changed(GOOD_CONFIG);
    default: {
        std::string text = GOOD_CONFIG;
        text.erase(text.find("grid.max_depth = 1979"));
        text.replace(text.find("inf"), 3, "10");
        return chance(4) ? changed(text) : text;
    }
    }
}

bool within(Config config)
{
    for (const Key &key : config_keys(config)) {
        double value = 0;
        if (auto *d = std::get_if<double *>(&key.target))
            value = **d;
        else if (auto *i = std::get_if<int *>(&key.target))
            value = **i;
        else if (auto *l = std::get_if<long *>(&key.target))
            value = static_cast<double>(**l);
        else if (auto *list = std::get_if<Integers *>(&key.target); list && !(*list)->empty())
            value = *std::min_element((*list)->begin(), (*list)->end());
        else
            continue;
        if (!(value >= key.lowest && value <= key.highest))
            return false;
    }
    for (const Gauge &g : config.gauges)
        if (!(g.x >= config.domain.x0 && g.x < config.domain.x0 + config.width()) || g.name.empty())
            return false;
    return config.grid.min_depth <= config.grid.max_depth;
}

// A value that the key cannot have, as TOML: of the wrong kind, or beyond an end of the range.
std::string wrong_value(const Key &key)
{
    const bool is_word = std::holds_alternative<std::string *>(key.target) ||
                         std::holds_alternative<InputFile>(key.target);
    if (is_word || std::holds_alternative<bool *>(key.target))
        return "3";
    if (std::holds_alternative<Choice>(key.target) || chance(4) == 0)
        return "\"no such word\"";
    const double beyond = 1 + chance(1000);
    const bool is_real = std::holds_alternative<double *>(key.target);
    const double value = chance(2) ? key.highest + beyond : key.lowest - beyond;
    const std::string number =
        is_real ? toml_number(value) : std::to_string(static_cast<long>(value));
    return std::holds_alternative<Integers *>(key.target) ? "[1, " + number + "]" : number;
}

// In a file, or on the command line.
void try_out_of_range()
{
    Config config;
    const std::vector<Key> keys = config_keys(config);
    const Key &key = keys[chance(keys.size())];
    std::string text = key.name == "name" ? "" : "name = \"lake\"\n", value = wrong_value(key);
    std::vector<std::string> words;
    const bool in_file = chance(2) || value == "3"; // there 3 may be a string without quotes
    if (in_file)
        text += key.name + " = " + value + '\n';
    else
        words.push_back(key.name + '=' + value);
    try {
        parse_config(text, "f", words);
        broken = "a value out of range was taken";
    } catch (const ConfigError &e) {
        const std::string what = e.what();
        if (what.find(in_file ? "f:" : "command line: ") != 0 ||
            what.find(key.name + " = ") == what.npos ||
            what.find(": must be " + key.range() + " (") == what.npos)
            broken = "an error about a value does not name key and range";
    }
    if (broken)
        std::printf("%s = %s\n", key.name.c_str(), value.c_str());
}

bool try_config(const std::string &text)
{
    std::vector<std::string> words;
    for (unsigned n = chance(3); n > 0; n--) {
        std::string word = GOOD_WORDS[chance(6)];
        words.push_back(chance(2) ? changed(word) : word);
    }
    auto exact = std::make_unique<char[]>(text.size());
    std::memcpy(exact.get(), text.data(), text.size());
    try {
        Config config = parse_config({exact.get(), text.size()}, "f", words);
        if (!within(config))
            broken = "a value out of range was taken";
        std::string written = describe(config);
        if (describe(parse_config(written, "f")) != written)
            broken = "a configuration that was written down is another when read";
        return true;
    } catch (const ConfigError &e) {
        std::string what = e.what();
        if (what.compare(0, 2, "f:") != 0 && what.compare(0, 13, "command line:") != 0)
            broken = "an error does not say where";
        if (what.size() > 8192)
            broken = "an error is too long";
        return false;
    }
}

bool try_faults(const std::string &text)
{
    static const Config config = parse_config("name = \"tsunami\"", "f");
    auto exact = std::make_unique<char[]>(text.size());
    std::memcpy(exact.get(), text.data(), text.size());
    try {
        for (const SubFault &f : parse_faults({exact.get(), text.size()}, "f", config))
            if (!std::isfinite(displacement(f, 1, 2).up))
                broken = "a sub-fault makes a displacement that is no number";
        return true;
    } catch (const ConfigError &e) {
        if (std::strncmp(e.what(), "f:", 2) != 0)
            broken = "an error does not say where";
        return false;
    }
}

} // namespace

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
    unsigned long configs = 0, faults = 0;
    state = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
    for (unsigned long i = 0; i < count && !broken; i++) {
        std::string text = config_text();
        configs += try_config(text);
        std::string list = chance(4) ? changed(GOOD_FAULTS) : random_text();
        faults += try_faults(list);
        try_out_of_range();
        if (broken)
            std::printf("---\n%s\n---\n%s\n---\n", text.c_str(), list.c_str());
    }
    std::printf("%lu configurations and %lu lists good of %lu%s%s\n", configs, faults, count,
                broken ? ": " : "", broken ? broken : "");
    return broken != nullptr;
}

// SPDX-License-Identifier: GPL-3.0-or-later
// config.h - what a scenario's TOML file may say.  Defaults are here; ranges in config_keys.cc.
// All quantities are without units: lengths, times and densities are multiples of any unit that
// the user has in mind, the gas's own only that the ratio of specific heats is 1.4.
#ifndef EULER_CONFIG_H
#define EULER_CONFIG_H

#include <string>
#include <string_view>
#include <vector>

namespace euler {

enum class Border { PERIODIC, WALL };
// How a step's work is shared out (step/step.h).
enum class Variant { NONE, SUBGRIDS, SKELETON_FIRST, ARITHMETIC_AWARE };
enum class Name { VORTEX, WAVE, PULSE };
constexpr const char *NAMES[] = {"vortex", "wave", "pulse"};

struct Config {
    std::string file; // where it was read; for messages
    Name name = Name::PULSE;

    struct {
        int dimensions = 2;
        double side = 1;
        Border border = Border::PERIODIC;
    } domain;

    struct {
        int min_level = 2, max_level = 3;     // the domain is cut into three along each axis
        double refine = 0.05, coarsen = 0.01; // difference of an unknown within a cell
        double wander = 0; // a sphere whose surface is refined goes so far a step, in sides
    } grid;

    struct {
        int order = 3;
        double cfl = 0.8; // of the order's stable step
    } solver;

    struct {
        double end = 0.1;
        long steps = -1; // at most so many, if not negative
    } time;

    struct {
        Variant variant = Variant::SKELETON_FIRST;
        bool announce = false; // tell the resource manager the number of cells, if there is one
    } run;

    struct {
        double predictor_us = 0; // a cell sleeps for so long instead of computing, if not 0
        double corrector_us = 0;
        int cpus = 0;        // of the emulated machine
        std::string machine; // its file; empty: a CPU is always free
        double look_us = 0;  // between looks for messages, in place of a blocking wait
    } emulate;

    struct {
        std::string directory; // empty: nothing is written
        double vtu_every = 0;  // time between frames; 0: none
        bool progress = true;
    } output;

    struct {
        double density = 1, pressure = 1; // far away
        double velocity = 1;              // of the background, along each axis
        double amplitude = 0.2;           // pulse, wave: of the density; vortex: its strength
        double radius = 0.1;              // pulse, vortex: in sides of the domain
        double x = 0.5;                   // centre, along each axis, in sides of the domain
    } scenario;

    bool is_emulated() const { return emulate.predictor_us > 0; }
};

// Reads a TOML file; `overrides` are words of the command line, `grid.max_level=4`, which count
// more than the file.  output.directory and emulate.machine are relative to the working directory.
// Throws apps::ConfigError: unknown keys, wrong types, values out of range, keys that contradict
// each other, files that cannot be read.  The result holds no such error.
Config read_config(const std::string &file, const std::vector<std::string> &overrides = {});

// The same of a text; `file` is for messages.
Config parse_config(std::string_view text, const std::string &file,
                    const std::vector<std::string> &overrides = {});

// The configuration as TOML, all keys in one order; parse_config() takes it.
std::string describe(const Config &config);

// All keys with default, range and meaning, for --help-config.
std::string config_help();

} // namespace euler
#endif

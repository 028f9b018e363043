// SPDX-License-Identifier: GPL-3.0-or-later
// config.h - what a scenario's TOML file may say.  Defaults are here; ranges in config_keys.cc.
#ifndef SWE_CONFIG_H
#define SWE_CONFIG_H

#include <string>
#include <string_view>
#include <vector>
#include "../lib/config/keys.h"

namespace swe {

using namespace apps;

enum class Precision { SINGLE, DOUBLE };
enum class Flux { RUSANOV, AUGMENTED };
enum class Stepping { EULER, SSP_RK2 };
// A task each cluster; clusters fixed to threads; a loop over clusters, each for a free thread.
enum class Parallel { TASKS, OWNER, LOOP };
enum class Enclaves { OFF, ON };
// With enclaves, how messages get on while clusters are worked on: not; the thread that calls MPI
// tests them; tasks become ready by them (invasive-tasks.h); the thread looks for those that have
// come, and receives them only then.
enum class Progression { NONE, TEST, TRIGGER, LATE };
enum class Side4 { WALL, OPEN }; // boundary condition of a side of the domain

// Which point of a sub-fault's rectangle a list of them gives (scenario/faults/faults.h).
enum class FaultReference { CENTRE, TOP_CENTRE, TOP_CORNER };

// A tide gauge.  The file may say `lon` and `lat` instead of x and y (projection.h).
struct Gauge {
    std::string name; // letters, digits, '-' and '_'; it is part of a file's name
    double x = 0, y = 0;
};

struct Config {
    std::string file; // where it was read; for messages
    std::string name; // of the scenario: dam_break, lake, thacker, beach, tsunami

    struct {
        double x0 = 0, y0 = 0; // lower left corner, m
        double square = 1000;  // side of a base square, m
        int nx = 1, ny = 1;    // base squares
        Side4 west = Side4::WALL, east = Side4::WALL, south = Side4::WALL, north = Side4::WALL;
    } domain;

    struct {
        int min_depth = 6, max_depth = 14;     // bisections of a quarter of a base square
        int every = 12;                        // time steps between changes of the grid
        double refine = 0.02, coarsen = 0.005; // displacement of the surface, m
        double dry = 1e-3; // a shore: cells up to this depth, m, and deeper ones
        bool shore = true; // it stays at max_depth wherever it moves
        // Cells of a cluster: more than `split` are split, two of `join` together joined.
        int split = 4096, join = 1024;
        bool wander = false; // a test of the grid: a disc that moves is refined, too
    } grid;

    struct {
        Flux flux = Flux::RUSANOV;
        int order = 0;                       // 0: finite volumes; 1: discontinuous Galerkin
        Stepping stepping = Stepping::EULER; // of order 1: SSP_RK2, if the file says nothing
        Precision precision = Precision::DOUBLE;
        double cfl = 0.45;           // of inradius / wave speed
        bool local_steps = false;    // local time stepping, a cluster its own step
        double dry_tolerance = 1e-6; // m: less water is none
        double gravity = 9.81;       // m/s2
        double manning = 0;          // friction, s/m^(1/3)
    } solver;

    struct {
        double end = 10; // s
        long steps = -1; // at most so many, if not negative
    } time;

    struct {
        Parallel parallel = Parallel::LOOP;
        Enclaves enclaves = Enclaves::OFF; // messages early, work behind them: grid/grid.h
        Progression progress = Progression::NONE;
        int cut = 0; // bisections of the quarters before ranks get their parts of the curve
        std::vector<int> parts; // so many for each rank, in order; empty: equal numbers
        std::string record;     // prefix of files that say what work there was, studies/recording.h
        bool announce = false;  // tell the resource manager the number of cells, if there is one
        bool blocking = false;  // and wait for its answer
    } run;

    struct {
        std::string directory; // empty: nothing is written
        double vtu_every = 0;  // s of the simulation; 0: none
        double raster_every = 0;
        int raster_nx = 256, raster_ny = 256;
        double maxima_every = 0;     // s of the simulation; 0: none
        double arrival = 0.1;        // m from rest: the wave has arrived
        double checkpoint_every = 0; // s of the simulation
        bool progress = true;
    } output;

    struct {
        // Depth of the water at rest; dam_break: `inside` is so much higher.  Radius in parts of
        // the domain's shorter side, the place x, y in parts of the domain.
        double depth = 10, inside = 1, radius = 0.1;
        double x = 0.5, y = 0.5;
        bool planar = false;  // dam_break: a straight dam at x; thacker: planar surface
        double slope_bed = 0; // lake: roughness of the bed, m
        unsigned seed = 1;
        double amplitude = 0.5;       // thacker, beach
        double slope = 0.05;          // beach
        double lon0 = 143, lat0 = 38; // tsunami: of the domain's centre, degrees east and north
        std::string bathymetry;       // tsunami: NetCDF file; empty: the synthetic basin
        std::string faults;           // tsunami: list of sub-faults; empty: the synthetic one
        FaultReference fault_reference = FaultReference::CENTRE;
    } scenario;

    std::vector<Gauge> gauges;

    double width() const { return domain.nx * domain.square; }
    double height() const { return domain.ny * domain.square; }
};

// Reads a TOML file; `overrides` are words of the command line, `grid.max_depth=12`, which count
// more than the file.  Names of files that are read (scenario.bathymetry, scenario.faults) are
// relative to its directory, and those of the command line to the working directory, as are all
// names of what is written (output.directory, run.record).  Throws ConfigError: unknown keys, wrong
// types, values out of range, keys that contradict each other, files that cannot be read.  The
// result holds no such error.
Config read_config(const std::string &file, const std::vector<std::string> &overrides = {});

// The same of a text; `file` is for messages and for the names of files in it.
Config parse_config(std::string_view text, const std::string &file,
                    const std::vector<std::string> &overrides = {});

// The configuration as TOML, all keys in one order: equal texts are equal configurations, and
// parse_config() takes it, wherever the text is put: files that are read have absolute names.
std::string describe(const Config &config);

// What must be the same when a checkpoint is continued: without `output`, `time`, `gauges`, and
// those of `run` that may change.  Files by their last name; what is in them, the scenario says.
std::string describe_state(const Config &config);

// All keys with default, range and meaning, for --help-config.
std::string config_help();

} // namespace swe
#endif

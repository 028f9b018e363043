// SPDX-License-Identifier: GPL-3.0-or-later
// config.h - what a scenario's TOML file may say.  Defaults are here; ranges in config.cc.
#ifndef SWE_CONFIG_H
#define SWE_CONFIG_H

#include <string>
#include <vector>

namespace swe {

enum class Precision { SINGLE, DOUBLE };
enum class Flux { RUSANOV, AUGMENTED };
enum class Stepping { EULER, SSP_RK2 };
enum class Parallel { TASKS, OWNER }; // a task each cluster; or clusters fixed to threads
enum class Side4 { WALL, OPEN };      // boundary condition of a side of the domain

struct Gauge {
    std::string name;
    double x = 0, y = 0;
};

struct Config {
    std::string file; // where it was read; for messages
    std::string name; // of the scenario: dam_break, lake, thacker, beach, tsunami

    struct {
        double x0 = 0, y0 = 0;   // lower left corner, m
        double square = 1000;    // side of a base square, m
        int nx = 1, ny = 1;      // base squares
        Side4 west = Side4::WALL, east = Side4::WALL, south = Side4::WALL, north = Side4::WALL;
    } domain;

    struct {
        int min_depth = 6, max_depth = 14; // bisections of a quarter of a base square
        int every = 4;                     // time steps between changes of the grid
        double refine = 0.02, coarsen = 0.005; // displacement of the surface, m
        double dry = 1e-3;                 // a shore is kept at max_depth: cells with dry neighbours
        bool shore = true;
        int split = 4096, join = 1024;     // cells of a cluster: more are split, two of fewer joined
    } grid;

    struct {
        Flux flux = Flux::RUSANOV;
        int order = 0;                // 0: finite volumes; 1: discontinuous Galerkin
        Stepping stepping = Stepping::EULER;
        Precision precision = Precision::DOUBLE;
        double cfl = 0.45;            // of inradius / wave speed
        bool local_steps = false;     // local time stepping, a cluster its own step
        double dry_tolerance = 1e-6;  // m: less water is none
        double gravity = 9.81;        // m/s2
        double manning = 0;           // friction, s/m^(1/3)
    } solver;

    struct {
        double end = 10;  // s
        long steps = -1;  // at most so many, if not negative
    } time;

    struct {
        Parallel parallel = Parallel::TASKS;
        int cut = 0;            // bisections of the quarters before ranks get their parts of the curve
        bool announce = false;  // tell the resource manager the number of cells, if there is one
    } run;

    struct {
        std::string directory;      // empty: nothing is written
        double vtu_every = 0;       // s of the simulation; 0: none
        double raster_every = 0;
        int raster_nx = 256, raster_ny = 256;
        double checkpoint_every = 0; // s of the simulation
        bool progress = true;
    } output;

    struct {
        double depth = 10, inside = 1, radius = 0.1; // dam_break; radius and centre in parts of the domain
        double x = 0.5, y = 0.5;
        bool planar = false;        // a straight dam at x
        double slope_bed = 0;       // lake: roughness of the bed, m
        unsigned seed = 1;
        double amplitude = 0.5;     // thacker, beach
        double slope = 0.05;        // beach
        std::string bathymetry;     // tsunami: NetCDF file; empty: the synthetic basin
        std::string faults;         // tsunami: list of sub-faults; empty: the synthetic one
    } scenario;

    std::vector<Gauge> gauges;
};

} // namespace swe
#endif

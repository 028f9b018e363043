// SPDX-License-Identifier: GPL-3.0-or-later
// config_keys.cc - the table of all keys; see config_keys.h.
#include "config_keys.h"

#include "grid/triangle.h"

namespace swe {
namespace {

constexpr bool STATE = true, FREE = false; // may it change when a checkpoint is continued?
constexpr double FAR = 1e9;                // m
constexpr double LONG = 1e9;               // s
constexpr int DEEPEST = 2 * LATTICE_BITS - 1;

Choice scenario_name(std::string &name)
{
    std::vector<std::string> words = {"dam_break", "lake", "thacker", "beach", "tsunami"};
    auto get = [&name, words] {
        for (std::size_t i = 0; i < words.size(); i++)
            if (words[i] == name)
                return static_cast<int>(i);
        return -1;
    };
    return {words, get, [&name, words](int word) { name = words[static_cast<std::size_t>(word)]; }};
}

Choice side(Side4 &value) { return choice(value, {"wall", "open"}); }

void domain_keys(std::vector<Key> &k, Config &c)
{
    auto &d = c.domain;
    k.push_back({"domain.x0", &d.x0, -FAR, FAR, STATE, "west end, m"});
    k.push_back({"domain.y0", &d.y0, -FAR, FAR, STATE, "south end, m"});
    k.push_back({"domain.square", &d.square, 1e-3, 1e8, STATE, "side of a base square, m"});
    k.push_back({"domain.nx", &d.nx, 1, 1024, STATE, "base squares from west to east"});
    k.push_back({"domain.ny", &d.ny, 1, 1024, STATE, "base squares from south to north"});
    k.push_back({"domain.west", side(d.west), 0, 0, STATE, "what is at the side"});
    k.push_back({"domain.east", side(d.east), 0, 0, STATE, "what is at the side"});
    k.push_back({"domain.south", side(d.south), 0, 0, STATE, "what is at the side"});
    k.push_back({"domain.north", side(d.north), 0, 0, STATE, "what is at the side"});
}

void grid_keys(std::vector<Key> &k, Config &c)
{
    auto &g = c.grid;
    k.push_back({"grid.min_depth", &g.min_depth, 0, DEEPEST, STATE,
                 "bisections of a quarter of a base square everywhere"});
    k.push_back({"grid.max_depth", &g.max_depth, 0, DEEPEST, STATE, "bisections at most"});
    k.push_back({"grid.every", &g.every, 1, 1e6, STATE,
                 "time steps, of the shortest, between changes of the grid; none of "
                 "solver.local_steps is longer than so many"});
    k.push_back({"grid.refine", &g.refine, 0, 1e6, STATE,
                 "displacement of the surface above which cells are bisected, m"});
    k.push_back({"grid.coarsen", &g.coarsen, 0, 1e6, STATE,
                 "displacement of the surface below which cells are joined, m; 0: none are"});
    k.push_back({"grid.dry", &g.dry, 0, 1e3, STATE,
                 "depth of water up to which a cell is dry, for the shore, m"});
    k.push_back(
        {"grid.shore", &g.shore, 0, 0, STATE, "is the shore kept at max_depth wherever it moves?"});
    k.push_back({"grid.split", &g.split, 2, 1 << 30, STATE, "a cluster of more cells is split"});
    k.push_back(
        {"grid.join", &g.join, 0, 1 << 29, STATE,
         "two clusters of so many cells together at most are joined; at most half of split"});
    k.push_back({"grid.wander", &g.wander, 0, 0, STATE,
                 "is a disc refined that goes round the domain, as a test of the grid?"});
}

void solver_keys(std::vector<Key> &k, Config &c)
{
    auto &s = c.solver;
    k.push_back(
        {"solver.flux", choice(s.flux, {"rusanov", "augmented"}), 0, 0, STATE, "Riemann solver"});
    k.push_back(
        {"solver.order", &s.order, 0, 1, STATE, "0: finite volumes; 1: discontinuous Galerkin"});
    k.push_back({"solver.stepping", choice(s.stepping, {"euler", "ssp_rk2"}), 0, 0, STATE,
                 "time stepping; ssp_rk2 of order 0 needs a cfl well below 0.5, or makes steps of "
                 "Euler's; order 1 has ssp_rk2 by default, and is unstable with euler"});
    k.push_back(
        {"solver.precision", choice(s.precision, {"single", "double"}), 0, 0, STATE, "of numbers"});
    k.push_back({"solver.cfl", &s.cfl, 1e-3, 0.5, STATE,
                 "time step, in inradius / speed of waves; beyond 0.5 water may be made"});
    k.push_back(
        {"solver.local_steps", &s.local_steps, 0, 0, STATE, "has each cluster its own time step?"});
    // Without any, films have velocities that are no numbers.
    k.push_back(
        {"solver.dry_tolerance", &s.dry_tolerance, 1e-12, 1, STATE, "less water is none, m"});
    k.push_back({"solver.gravity", &s.gravity, 1e-3, 1e3, STATE, "m/s2"});
    k.push_back({"solver.manning", &s.manning, 0, 1, STATE, "friction, s/m^(1/3)"});
}

void time_and_run_keys(std::vector<Key> &k, Config &c)
{
    k.push_back({"time.end", &c.time.end, 0, LONG, FREE, "s"});
    k.push_back(
        {"time.steps", &c.time.steps, -1, 1e15, FREE, "time steps at most; -1: any number"});
    auto &r = c.run;
    k.push_back(
        {"run.parallel", choice(r.parallel, {"tasks", "owner", "loop"}), 0, 0, FREE,
         "a task each cluster; clusters fixed to threads; or a loop over clusters, each "
         "for the next free thread"});
    k.push_back({"run.enclaves", choice(r.enclaves, {"off", "on"}), 0, 0, FREE,
                 "on: clusters at the borders of other ranks, or where cells change, are computed "
                 "first, and their messages sent while the rest is computed; and ranks agree on "
                 "changes of the grid at once, not in sweeps"});
    k.push_back({"run.progress", choice(r.progress, {"none", "test", "trigger", "late"}), 0, 0,
                 FREE,
                 "of messages with run.enclaves, while clusters are computed: none; MPI tests "
                 "them; they make tasks ready, with run.parallel = \"tasks\"; or they are received "
                 "only when they have come"});
    k.push_back({"run.cut", &r.cut, 0, 20, FREE,
                 "bisections of the quarters before ranks get their parts of the curve"});
    k.push_back({"run.parts", &r.parts, 1, MOST_PARTS, FREE,
                 "of how many parts each rank is, in the order of the curve: one number a rank, "
                 "all together 4 * domain.nx * domain.ny * 2^run.cut; []: equal numbers"});
    k.push_back(
        {"run.announce", &r.announce, 0, 0, FREE, "tell the resource manager the number of cells"});
    k.push_back(
        {"run.blocking", &r.blocking, 0, 0, FREE,
         "wait for its answer each time, with run.announce; for a study of what that costs"});
    k.push_back({"run.record", &r.record, 0, 0, FREE,
                 "prefix of files that say how many cells each cluster had when, relative to the "
                 "working directory; for studies"});
}

void output_keys(std::vector<Key> &k, Config &c)
{
    auto &o = c.output;
    k.push_back(
        {"output.directory", &o.directory, 0, 0, FREE,
         "for files, relative to the working directory; empty: none is written"});
    k.push_back({"output.vtu_every", &o.vtu_every, 0, LONG, FREE,
                 "between files for ParaView, s of the simulation; 0: none"});
    k.push_back({"output.raster_every", &o.raster_every, 0, LONG, FREE,
                 "between pictures in the NetCDF file, s; 0: none"});
    k.push_back({"output.raster_nx", &o.raster_nx, 1, 16384, FREE, "their width, points"});
    k.push_back({"output.raster_ny", &o.raster_ny, 1, 16384, FREE, "their height, points"});
    k.push_back({"output.maxima_every", &o.maxima_every, 0, LONG, FREE,
                 "between looks for the highest and fastest water on these points, s; 0: none"});
    k.push_back({"output.arrival", &o.arrival, 0, 1e4, FREE,
                 "displacement of the surface from rest at which the wave has arrived, m"});
    k.push_back({"output.checkpoint_every", &o.checkpoint_every, 0, LONG, FREE,
                 "between checkpoints, s of the simulation; 0: none"});
    k.push_back({"output.progress", &o.progress, 0, 0, FREE, "a line about time and speed"});
}

void scenario_keys(std::vector<Key> &k, Config &c)
{
    auto &s = c.scenario;
    k.push_back({"scenario.depth", &s.depth, 0, 12000, STATE, "depth of the water at rest, m"});
    k.push_back({"scenario.inside", &s.inside, 0, 12000, STATE,
                 "dam_break: so much higher is the water behind the dam, m"});
    k.push_back({"scenario.radius", &s.radius, 1e-6, 10, STATE,
                 "dam_break: of the dam; thacker: of the shore; parts of the shorter side"});
    k.push_back({"scenario.x", &s.x, 0, 1, STATE,
                 "centre, or the straight dam, or the foot of the beach; parts of the width"});
    k.push_back({"scenario.y", &s.y, 0, 1, STATE, "centre; parts of the height"});
    k.push_back({"scenario.planar", &s.planar, 0, 0, STATE,
                 "dam_break: a straight dam; thacker: the planar surface"});
    k.push_back(
        {"scenario.slope_bed", &s.slope_bed, 0, 12000, STATE, "lake: roughness of the bed, m"});
    k.push_back({"scenario.seed", &s.seed, 0, 4294967295.0, STATE, "lake: which bed"});
    k.push_back({"scenario.amplitude", &s.amplitude, 0, 12000, STATE,
                 "thacker: parts of depth or radius, less than 1; beach: height of the wave, m"});
    k.push_back({"scenario.slope", &s.slope, 1e-6, 10, STATE, "beach: slope of the beach"});
    k.push_back({"scenario.lon0", &s.lon0, -360, 360, STATE,
                 "tsunami: longitude of the domain's centre, degrees east"});
    k.push_back({"scenario.lat0", &s.lat0, -80, 80, STATE,
                 "tsunami: latitude of the domain's centre, degrees north"});
    k.push_back({"scenario.bathymetry", InputFile{&s.bathymetry}, 0, 0, STATE,
                 "tsunami: NetCDF file, in a file relative to its directory; empty: the synthetic "
                 "basin"});
    k.push_back({"scenario.faults", InputFile{&s.faults}, 0, 0, STATE,
                 "tsunami: list of sub-faults, named likewise; empty: a synthetic one"});
    k.push_back(
        {"scenario.fault_reference",
         choice(s.fault_reference, {"centre", "top_centre", "top_corner"}), 0, 0, STATE,
         "tsunami: of which point of a sub-fault place and depth are: its centre, the middle "
         "of its upper edge, or the end of that from which it goes along the strike"});
}

} // namespace

std::vector<Key> config_keys(Config &config)
{
    std::vector<Key> keys;
    keys.push_back({"name", scenario_name(config.name), 0, 0, STATE, "of the scenario"});
    domain_keys(keys, config);
    grid_keys(keys, config);
    solver_keys(keys, config);
    time_and_run_keys(keys, config);
    output_keys(keys, config);
    scenario_keys(keys, config);
    return keys;
}

} // namespace swe

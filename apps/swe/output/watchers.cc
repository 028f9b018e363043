// SPDX-License-Identifier: GPL-3.0-or-later
// watchers.cc - one Watcher each: it decides when, and takes what the writers need out of the grid.
#include "watchers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include "../scenario/gauges.h"
#include "../studies/record.h"
#include "../studies/recording.h"
#include "checkpoint/checkpoint.h"
#include "../../lib/output/failure.h"
#include "../../lib/output/files.h"
#include "maxima.h"
#include "places.h"
#include "../../lib/output/progress.h"
#include "raster/raster.h"
#include "snapshot.h"
#include "vtu.h"

namespace swe {

using namespace apps;

namespace {

// Every so many seconds of the simulation, and at time 0; of a run that goes on not at once.
class Interval {
public:
    Interval(double every_, double begin) : every(every_), next(begin > 0 ? after(begin) : 0) {}
    bool is_due(double time)
    {
        if (every <= 0 || time < next * (1 - 1e-12))
            return false;
        next = after(time);
        return true;
    }

private:
    double every, next;
    double after(double time) const
    {
        return every > 0 ? every * (std::floor(time / every * (1 + 1e-12)) + 1) : 0;
    }
};

template <class Real> Snapshot take_snapshot(Simulation<Real> &s)
{
    Snapshot shot;
    shot.time = s.time();
    shot.step = s.step();
    MPI_Comm_rank(s.comm(), &shot.rank);
    MPI_Comm_size(s.comm(), &shot.ranks);
    shot.dry = s.config().solver.dry_tolerance;
    const Forest &forest = s.grid().forest();
    auto means = s.scheme().means();
    std::int32_t number = 0;
    for (const auto &c : s.grid().clusters()) {
        for (std::int32_t i = 0; i < c->cells(); i++) {
            Triangle t = s.grid().site(*c, i).where;
            for (Lattice p : {t.entry, t.exit, t.apex})
                shot.corners.insert(shot.corners.end(), {forest.x(p), forest.y(p)});
            shot.h.push_back(static_cast<double>(c->field(means[0])[i]));
            shot.hu.push_back(static_cast<double>(c->field(means[1])[i]));
            shot.hv.push_back(static_cast<double>(c->field(means[2])[i]));
            shot.bed.push_back(static_cast<double>(c->field(means[3])[i]));
            shot.depth.push_back(c->depth[i]);
            shot.cluster.push_back(number);
        }
        number++;
    }
    return shot;
}

// What must be the same when a checkpoint is continued.
template <class Real> std::string state_text(const Simulation<Real> &s)
{
    return describe_state(s.config()) + s.scenario().inputs();
}

template <class Real> using Watcher = typename Simulation<Real>::Watcher;

template <class Real> class VtuWatcher final : public Watcher<Real> {
public:
    VtuWatcher(const Simulation<Real> &s, double begin, bool goes_on)
        : interval(s.config().output.vtu_every, begin),
          series(s.config().output.directory, s.config().name, state_text(s),
                 goes_on ? std::optional<double>(begin) : std::nullopt, s.comm())
    {
    }
    void look(Simulation<Real> &s) override
    {
        if (interval.is_due(s.time()) || s.at_end())
            series.add(take_snapshot(s));
    }

private:
    Interval interval;
    VtuSeries series;
};

RasterShape raster_shape(const Config &config)
{
    const auto &d = config.domain;
    RasterShape shape{
        d.x0, d.y0, d.square, d.nx, d.ny, config.output.raster_nx, config.output.raster_ny};
    if (config.name == "tsunami")
        shape.globe = Projection(config);
    return shape;
}

std::string raster_path(const Config &config)
{
    return config.output.directory + "/" + config.name + ".nc";
}

template <class Real> class RasterWatcher final : public Watcher<Real> {
public:
    RasterWatcher(const Simulation<Real> &s, double begin, bool goes_on)
        : interval(s.config().output.raster_every, begin),
          raster(raster_path(s.config()), raster_shape(s.config()), state_text(s),
                 goes_on ? std::optional<double>(begin) : std::nullopt, s.comm())
    {
    }
    void look(Simulation<Real> &s) override
    {
        if (interval.is_due(s.time()) || s.at_end())
            raster.add(take_snapshot(s));
    }

private:
    Interval interval;
    Raster raster;
};

// Those of checkpoints; there is none at the beginning.
Interval checkpoints(const Config &config, double begin)
{
    return {config.output.checkpoint_every, std::max(begin, 1e-300)};
}

// Writes what it has seen whenever a checkpoint is due, before that is written, and at the end.
template <class Real> class MaximaWatcher final : public Watcher<Real> {
public:
    MaximaWatcher(const Simulation<Real> &s, double begin, bool goes_on)
        : interval(s.config().output.maxima_every, begin),
          checkpoint(checkpoints(s.config(), begin)),
          maxima(s.config().output.directory + "/" + s.config().name + "-maxima.nc",
                 raster_shape(s.config()), state_text(s), s.scenario().rest(),
                 s.config().output.arrival,
                 goes_on ? std::optional<double>(begin) : std::nullopt,
                 s.config().output.maxima_every, s.comm())
    {
    }
    // What is to be said of looks that are missing.
    std::vector<std::string> notes(double begin) const
    {
        std::vector<std::string> said;
        if (const double since = std::min(maxima.since(), begin); since > 0)
            said.push_back("maxima: from " + std::to_string(since) +
                           " s on, not from the beginning of the simulation");
        for (const Maxima::Gap &gap : maxima.gaps())
            said.push_back("maxima: no look is known from " + std::to_string(gap.begin) + " to " +
                           std::to_string(gap.end) + " s");
        return said;
    }
    void look(Simulation<Real> &s) override
    {
        if (interval.is_due(s.time()) || s.at_end())
            maxima.add(take_snapshot(s));
        if (checkpoint.is_due(s.time()) || s.at_end())
            maxima.write();
    }

private:
    Interval interval, checkpoint;
    Maxima maxima;
};

// The rank that has a gauge's cell tells the first one.  Rows are in the files before a checkpoint
// is: a run that goes on from it must find them.
template <class Real> class GaugeWatcher final : public Watcher<Real> {
public:
    GaugeWatcher(const Config &config, double begin, bool goes_on, int rank)
        : interval(checkpoints(config, begin))
    {
        if (rank == 0)
            make_directories(config.output.directory);
        if (rank == 0 && goes_on)
            writer.emplace(config, begin);
        else if (rank == 0)
            writer.emplace(config);
        for (const Gauge &gauge : config.gauges)
            points.push_back(gauge_point(config, gauge));
    }
    void look(Simulation<Real> &s) override
    {
        std::vector<std::array<double, 4>> mine(points.size()), all(points.size());
        auto means = s.scheme().means();
        for (std::size_t g = 0; g < points.size(); g++)
            if (auto [c, cell] = s.grid().find(points[g]); c)
                for (int k = 0; k < 4; k++)
                    mine[g][k] = static_cast<double>(c->field(means[k])[cell]);
        MPI_Reduce(mine.data(), all.data(), static_cast<int>(4 * points.size()), MPI_DOUBLE,
                   MPI_SUM, 0, s.comm());
        for (std::size_t g = 0; writer && g < points.size(); g++)
            writer->append(g, s.time(), {all[g][0], all[g][1], all[g][2]}, all[g][3]);
        bool checkpoint = interval.is_due(s.time());
        if (writer && (checkpoint || s.at_end()))
            writer->flush();
    }

private:
    Interval interval;
    std::vector<Lattice> points;
    std::optional<GaugeWriter> writer;
};

// What a cell has beside its bed, which the scenario gives again.
template <class Real> std::vector<int> fields_kept(const Scheme<Real> &scheme)
{
    std::vector<int> fields;
    for (int f = 0; f < scheme.means()[3]; f++)
        fields.push_back(f);
    return fields;
}

template <class Real> class CheckpointWatcher final : public Watcher<Real> {
public:
    CheckpointWatcher(const Config &config, double begin) : interval(checkpoints(config, begin)) {}
    void look(Simulation<Real> &s) override
    {
        if (interval.is_due(s.time()))
            write_checkpoint(state(s), s.config().output.directory, s.comm());
    }

private:
    Interval interval;

    static RankState state(Simulation<Real> &s)
    {
        RankState state;
        state.time = s.time();
        state.step = s.step();
        state.shortest_steps = s.account().shortest_steps;
        MPI_Comm_rank(s.comm(), &state.rank);
        MPI_Comm_size(s.comm(), &state.ranks);
        state.root_depth = s.grid().forest().root_depth();
        auto fields = fields_kept(s.scheme());
        state.values = static_cast<std::int32_t>(fields.size());
        state.configuration = state_text(s);
        state.gauges = describe_gauges(s.config());
        for (const auto &c : s.grid().clusters()) {
            ClusterState of{c->node.root, c->node.path, c->node.levels, c->depth, {}};
            for (int f : fields)
                of.values.insert(of.values.end(), c->field(f), c->field(f) + c->cells());
            state.clusters.push_back(std::move(of));
        }
        return state;
    }
};

template <class Real> class ProgressWatcher final : public Watcher<Real> {
public:
    ProgressWatcher(const Config &config, int rank)
        : line(rank == 0, config.time.end, config.time.steps)
    {
    }
    void look(Simulation<Real> &s) override
    {
        if (s.step() % 16 == 0 || s.at_end()) // counting the cells is a message
            cells = s.cells();
        line.step(s.step(), s.time(), s.last_step(), static_cast<long>(cells));
    }

private:
    Progress line;
    std::int64_t cells = 0;
};

// The paths of a cluster's cells, from their depths.
void walk_paths(const std::vector<std::uint8_t> &depth, int at, std::uint64_t path,
                std::vector<std::uint64_t> &paths)
{
    if (depth[paths.size()] == at) {
        paths.push_back(path);
        return;
    }
    walk_paths(depth, at + 1, path << 1, paths);
    walk_paths(depth, at + 1, path << 1 | 1, paths);
}

bool writes_files(const Config &config)
{
    const auto &o = config.output;
    return !o.directory.empty() &&
           (o.vtu_every > 0 || o.raster_every > 0 || o.maxima_every > 0 || o.checkpoint_every > 0 ||
            !config.gauges.empty());
}

// Can this rank's file of run.record be written?  It may be in output.directory, which is made
// before it.
template <class Real> void check_record(const Simulation<Real> &s)
{
    namespace fs = std::filesystem;
    const Config &config = s.config();
    int rank;
    MPI_Comm_rank(s.comm(), &rank);
    if (config.run.record.empty())
        return;
    const std::string file = recording_file(config.run.record, rank);
    const fs::path above = fs::absolute(file).parent_path().lexically_normal();
    if (writes_files(config) && !fs::exists(above) &&
        above / "" == fs::absolute(config.output.directory).lexically_normal() / "")
        return;
    try {
        expect_writable(file);
    } catch (const OutputError &error) {
        throw OutputError(std::string("run.record: ") + error.what());
    }
}

// Of a simulation of this name, or, as gauges are, of any; and not of others, by what is in it.
bool is_output(const Config &config, const std::filesystem::path &path)
{
    const std::string name = path.filename().string(), prefix = "gauge-";
    if (name == config.name + ".pvd")
        return is_series(path.string());
    if (name == config.name + ".nc" || name == config.name + "-maxima.nc")
        return is_raster_file(path.string());
    return name.compare(0, prefix.size(), prefix) == 0 && path.extension() == ".csv" &&
           is_gauge_file(path.string());
}

} // namespace

std::vector<std::string> outputs_of(const Config &config)
{
    std::vector<std::string> outputs;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(config.output.directory, error), end;
         !error && entry != end; entry.increment(error))
        if (is_output(config, entry->path()))
            outputs.push_back(entry->path().string());
    if (error && error != std::errc::no_such_file_or_directory)
        throw OutputError("cannot read directory " + config.output.directory + ": " +
                          error.message());
    return outputs;
}

template <class Real>
void check_outputs(Simulation<Real> &s, const std::optional<std::string> &gauges)
{
    const Config &config = s.config();
    all_together(s.comm(), [&] {
        check_record(s);
        if (writes_files(config))
            expect_directory(config.output.directory);
    });
    if (!writes_files(config))
        return;
    on_rank_0(s.comm(), [&] {
        if (config.output.vtu_every > 0 && gauges)
            check_series(config.output.directory, config.name, state_text(s));
        if (config.output.raster_every > 0 && gauges)
            check_raster(raster_path(config), raster_shape(config), state_text(s));
        for (const Gauge &gauge : config.gauges)
            if (std::filesystem::exists(config.output.directory))
                expect_writable(gauge_file(config, gauge));
        if (gauges)
            check_gauges(config, *gauges, s.time());
    });
    if (config.output.maxima_every > 0)
        MaximaWatcher<Real>(s, s.time(), gauges.has_value());
}

template <class Real>
std::vector<std::string> add_watchers(Simulation<Real> &s, bool goes_on, bool quiet)
{
    const Config &config = s.config();
    std::vector<std::string> notes;
    int rank;
    MPI_Comm_rank(s.comm(), &rank);
    double begin = goes_on ? s.time() : 0;
    bool writes = !config.output.directory.empty();
    if (writes && config.output.vtu_every > 0)
        s.add(std::make_unique<VtuWatcher<Real>>(s, begin, goes_on));
    if (writes && config.output.raster_every > 0)
        s.add(std::make_unique<RasterWatcher<Real>>(s, begin, goes_on));
    if (writes && config.output.maxima_every > 0) {
        auto maxima = std::make_unique<MaximaWatcher<Real>>(s, begin, goes_on);
        notes = maxima->notes(s.time());
        s.add(std::move(maxima));
    }
    if (writes && !config.gauges.empty())
        all_together(s.comm(), [&] {
            s.add(std::make_unique<GaugeWatcher<Real>>(config, begin, goes_on, rank));
        });
    if (writes && config.output.checkpoint_every > 0)
        s.add(std::make_unique<CheckpointWatcher<Real>>(config, begin));
    if (!config.run.record.empty())
        add_record(s, config.run.record);
    if (config.output.progress && !quiet)
        s.add(std::make_unique<ProgressWatcher<Real>>(config, rank));
    return notes;
}

template <class Real> std::string restart(Simulation<Real> &s, const std::string &from)
{
    const Forest &forest = s.grid().forest();
    int rank;
    MPI_Comm_rank(s.comm(), &rank);
    auto fields = fields_kept(s.scheme());
    Resume resume{state_text(s), static_cast<std::int32_t>(fields.size()),
                  static_cast<int>(forest.roots().size()), forest.root_depth(),
                  [&](int root) { return forest.roots()[root].rank == rank; }};
    RankState state;
    all_together(s.comm(), [&] { state = read_checkpoint(from, resume); });
    std::vector<Cells<Real>> all;
    for (ClusterState &of : state.clusters) {
        Cells<Real> cells;
        cells.node = {of.root, of.path, of.levels};
        std::size_t n = of.depth.size();
        cells.depth = std::move(of.depth);
        walk_paths(cells.depth, forest.root_depth() + of.levels, of.path, cells.path);
        cells.values.assign(s.scheme().fields(), UnsetVector<Real>(n, 0));
        for (std::size_t v = 0; v < fields.size(); v++)
            for (std::size_t i = 0; i < n; i++)
                cells.values[fields[v]][i] = static_cast<Real>(of.values[v * n + i]);
        all.push_back(std::move(cells));
    }
    s.restore(state.time, state.step, state.shortest_steps, std::move(all));
    return state.gauges;
}

template void check_outputs(Simulation<float> &, const std::optional<std::string> &);
template void check_outputs(Simulation<double> &, const std::optional<std::string> &);
template std::vector<std::string> add_watchers(Simulation<float> &, bool, bool);
template std::vector<std::string> add_watchers(Simulation<double> &, bool, bool);
template std::string restart(Simulation<float> &, const std::string &);
template std::string restart(Simulation<double> &, const std::string &);

} // namespace swe

// SPDX-License-Identifier: GPL-3.0-or-later
// grid.h - a rank's part of the grid: its clusters, and what is common to all of them.
//
// Work goes in phases.  In a phase every cluster is worked on by one thread, reads what its
// neighbours published in the phase before, and publishes for the next; between phases the ranks
// exchange messages.  So no cluster waits for another one, and no order of clusters, number of
// threads or core that comes or goes changes a bit of the result.
//
// With run.enclaves, clusters that other ranks wait for are worked on first, and those where the
// grid is likely to change: the skeleton.  Their messages are sent while the others, the enclaves,
// are worked on, and are waited for in the next phase.  (Charrier, Hazelwood, Weinzierl 2020,
// doi:10.1137/19M1276194, section 3)
#ifndef SWE_GRID_GRID_H
#define SWE_GRID_GRID_H

#include <cstdint>
#include <memory>
#include <mpi.h>
#include <utility>
#include <vector>
#include "../parallel/exchange.h"
#include "../parallel/schedule.h"
#include "../solver/scheme.h"

namespace swe {

// What adaptivity decides for a cluster.
struct Plan {
    static constexpr std::uint8_t CUT = 1, MERGE = 2; // marks at the boundary
    std::vector<std::int8_t> wish;       // [cells] the scheme's marks
    std::vector<std::uint8_t> split;     // [cells] bits: sides to be bisected
    std::vector<std::uint8_t> merge;     // [cells] 1: with the next cell, into their parent
    std::vector<std::uint8_t> agreed;    // [cells] those of `merge` that both neighbours propose
    std::vector<std::uint8_t> incoming;  // [ghosts] what the neighbours told last
    std::vector<std::int32_t> work;      // cells whose hypotenuse was marked and not yet handed on
    bool splits = false, merges = false; // is there any?
    std::int32_t shown = 0;              // cuts that neighbours have been told of
    // Were there new ones when they were told, on each side of the marks?  Neighbours read it.
    bool news[2] = {false, false};
    bool settled = false; // do both sides of the marks say the same?
    bool cut_by_ranks = false; // did another rank cut a side that was not yet cut here?

    bool changes() const { return splits || merges; }
};

template <class Real> class Writer; // adapt.cc

template <class Real> class Grid {
public:
    // Collective over comm, as all members are.  Uniform at min_depth, then refined for time 0.
    // Throws ConfigError where this program has no tasks that wait for messages.
    Grid(const Setting &setting, Scheme<Real> &scheme, Schedule &schedule, MPI_Comm comm);

    // One phase: work(cluster, scratch) for each cluster, with ghosts filled before and the
    // interface published after, and the exchange, which with run.enclaves may end in the next
    // phase.  With a level: for the clusters of this level only.
    template <class F> void phase(F work, int level = ALL_LEVELS);
    static constexpr int ALL_LEVELS = -1;

    // Refines and coarsens as the scheme wishes, after so many time steps; false if nothing changed
    // on any rank.
    bool adapt(long step = 0);

    // In the order of the curve.
    std::vector<std::unique_ptr<Cluster<Real>>> &clusters() { return all; }
    const std::vector<std::unique_ptr<Cluster<Real>>> &clusters() const { return all; }
    std::int64_t cells() const; // of this rank
    int last_sweeps() const { return sweeps; }
    // How often all ranks had to agree, for the latest change of the grid with run.enclaves.
    int last_rounds() const { return rounds; }

    // Tells the neighbours what the clusters are, when something was changed outside of a phase.
    void publish_all();

    // Replaces everything by these clusters' cells (a checkpoint's); they must cover the rank's
    // roots.
    void restore(std::vector<Cells<Real>> &&cells);

    const Forest &forest() const { return set.forest; }
    Site site(const Cluster<Real> &cluster, std::int32_t cell) const;
    // The cell that contains the point (triangle.h), if this rank has it; else no cluster.
    std::pair<const Cluster<Real> *, std::int32_t> find(Lattice point) const;

private:
    Setting set;
    Scheme<Real> &scheme;
    Schedule &schedule;
    MPI_Comm comm;
    int rank;
    std::vector<std::unique_ptr<Cluster<Real>>> all;
    std::vector<Plan> plans;
    std::vector<std::vector<int>> readers; // of each neighbour's message: clusters
    Messages<Real> values;
    Messages<std::uint8_t> marks;
    int side = 0;      // of interfaces, to be read
    int mark_side = 0; // of marks, to be read
    int sweeps = 0;
    int rounds = 0;
    bool ranks_tell = true; // are the marks of other ranks those of this change, and new?
    long step = 0;         // at which it is adapted, for grid.wander
    bool starting = false; // is it made for time 0?

    // Scratch memory goes to the thread that needs some next, the latest used first: it is
    // in a cache then, however many thread numbers take turns on a core.
    std::mutex scratch_lock;
    std::vector<std::unique_ptr<Scratch>> scratch_free;
    std::unique_ptr<Scratch> get_scratch();
    void put_scratch(std::unique_ptr<Scratch> scratch);

    void check_progress() const;
    bool has_enclaves() const { return set.config.run.enclaves == Enclaves::ON; }
    template <class F> void each_and_exchange(F work);
    template <class F> void each_after_messages(F work);
    void list_readers();
    int part_of(const Cluster<Real> &c) const;

    Site site_of(const Node &node) const;
    Site site_in(const Cluster<Real> &c, const Node &node) const;
    void fill_beds(Cells<Real> &cells) const;
    void start();
    void fill_initial();
    int told() const { return scheme.fields() + (set.config.solver.local_steps ? PASSED + 1 : 0); }
    void fill_ghosts(Cluster<Real> &c);
    void publish(Cluster<Real> &c, int to_side);
    void keep_published(Cluster<Real> &c);
    void connect();
    bool any(bool here);

    // adapt.cc
    void mark_hidden_shores(const Cluster<Real> &c, std::int8_t *wish) const;
    bool is_displaced(const Site &at, int depth) const;
    void mark_hidden_sources(const Cluster<Real> &c, std::int8_t *wish) const;
    void mark_disc(const Cluster<Real> &c, std::int8_t *wish) const;
    void wish_and_close(int i);
    void sweep(int i);
    void take_marks(int i);
    bool hears_news(int i) const;
    void mark_side_of(int i, std::int32_t cell, int side_of_cell);
    void hand_on(int i);
    bool cuts(int i, std::int32_t cell_side) const;
    bool would_merge(int i, std::int32_t cell_side) const;
    template <class Marks> std::int32_t publish_marks(int i, Marks marks_of);
    void publish_cuts(int i);
    void close_refinement();
    void propose_merges(int i);
    void agree_merges(int i);
    bool may_merge(int i, std::int32_t cell) const;
    Cells<Real> changed_cells(int i) const;
    void add_split(Writer<Real> &to, const Site &site, const Values<Real> &values,
                   unsigned bits) const;
    bool agree_in_sweeps(std::vector<Cells<Real>> &fresh);
    void replace(std::vector<Cells<Real>> &fresh);
    std::unique_ptr<Cluster<Real>> make(Cells<Real> &&cells) const;

    // adapt_at_once.cc
    void sweep_within_rank();
    void hear_ranks(int i);
    bool agree_at_once(std::vector<Cells<Real>> &fresh);
};

// work(cluster) for each one, which publishes; and the exchange, or the beginning of it.
template <class Real> template <class F> void Grid<Real>::each_and_exchange(F work)
{
    auto count = static_cast<int>(all.size());
    auto of_cluster = [&](int i) { work(*all[i]); };
    if (has_enclaves()) {
        values.begin();
        schedule.in_parts(of_cluster, [&] { values.progress(); });
        values.progress();
    } else {
        schedule.each(count, of_cluster);
        values.swap();
    }
}

// The same, with what the phase before has sent still under way.
template <class Real> template <class F>
void Grid<Real>::each_after_messages([[maybe_unused]] F work)
{
#ifndef SWE_TBB
    if (!values.hand_over()) {
        each_and_exchange(work);
        return;
    }
    values.begin();
    schedule.in_parts([&](int i) { work(*all[i]); }, [&] { values.progress(); }, readers,
                      [&](int k, omp_event_handle_t event) { values.await(k, event); });
    values.progress();
#endif
}

template <class Real> template <class F> void Grid<Real>::phase(F work, int level)
{
    auto of_cluster = [&](Cluster<Real> &c) {
        if (level != ALL_LEVELS && level != c.level) {
            keep_published(c);
            return;
        }
        fill_ghosts(c);
        auto scratch = get_scratch();
        work(c, *scratch);
        put_scratch(std::move(scratch));
        publish(c, side ^ 1);
    };
    if (set.config.run.progress == Progression::TRIGGER) {
        each_after_messages(of_cluster);
    } else {
        values.finish();
        each_and_exchange(of_cluster);
    }
    side ^= 1;
}

} // namespace swe
#endif

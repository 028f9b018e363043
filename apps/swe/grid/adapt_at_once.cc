// SPDX-License-Identifier: GPL-3.0-or-later
// adapt_at_once.cc - how the grid changes with run.enclaves: all ranks agree once, or a few times.
//
// A rank follows its cuts through all of its own clusters before it tells other ranks, and proposes
// what is to be joined as if nothing came from these.  One message to each neighbour has both.  If
// no rank has been told of a cut that it did not know, everything is decided; one reduction says
// so, and while it is under way the rank makes its new cells already.  Else ranks go on from there,
// as many times as a chain of cuts goes from rank to rank: rarely more than twice.
//
// The result is the same as after a sweep at a time (adapt.cc): the cuts are the smallest set that
// is closed, in whatever order they are found, and joins depend on the last cuts alone.
// (Acun et al. 2014, doi:10.1109/SC.2014.58, IV.A: a constant number of collectives for a change)
#include "grid.h"

#include <algorithm>
#include <stdexcept>

namespace swe {

// Until no cluster of this rank has news for another one.  Some have published before.
template <class Real> void Grid<Real>::sweep_within_rank()
{
    auto tells = [&](const Plan &p) { return p.news[mark_side]; };
    ranks_tell = false;
    for (int sweep_ = 0;; sweep_++) {
        mark_side ^= 1;
        if (std::none_of(plans.begin(), plans.end(), tells))
            break;
        if (sweep_ > DEPTHS)
            throw std::logic_error("refinement does not end");
        schedule.each(static_cast<int>(all.size()), [&](int i) { sweep(i); });
        sweeps++;
    }
    ranks_tell = true;
}

// Marks what other ranks have cut, and what follows from that in the cluster.
template <class Real> void Grid<Real>::hear_ranks(int i)
{
    const Cluster<Real> &c = *all[i];
    Plan &plan = plans[i];
    plan.cut_by_ranks = false;
    for (const Run &run : c.runs) {
        if (run.kind != Run::RANK)
            continue;
        const std::uint8_t *incoming = marks.incoming(run.partner, 0);
        for (std::int32_t k = 0; k < run.count; k++) {
            std::int32_t side_ = c.topology.boundary[run.first + k];
            if (!(incoming[run.partner_of(k)] & Plan::CUT) ||
                plan.split[side_ / SIDES] >> side_ % SIDES & 1)
                continue;
            mark_side_of(i, side_ / SIDES, side_ % SIDES);
            plan.cut_by_ranks = true;
        }
    }
    hand_on(i);
}

// As agree_in_sweeps.
template <class Real> bool Grid<Real>::agree_at_once(std::vector<Cells<Real>> &fresh)
{
    auto count = static_cast<int>(all.size());
    int here[2], anywhere[2];
    schedule.each(count, [&](int i) { wish_and_close(i); });
    sweeps = 0;
    for (rounds = 1;; rounds++) {
        sweep_within_rank();
        schedule.each(count, [&](int i) { propose_merges(i); });
        marks.swap();
        mark_side ^= 1;
        schedule.each(count, [&](int i) {
            hear_ranks(i);
            agree_merges(i);
        });
        here[0] = std::any_of(plans.begin(), plans.end(),
                              [](const Plan &p) { return p.cut_by_ranks; });
        here[1] =
            std::any_of(plans.begin(), plans.end(), [](const Plan &p) { return p.changes(); });
        MPI_Request request;
        MPI_Iallreduce(here, anywhere, 2, MPI_INT, MPI_LOR, comm, &request);
        if (!here[0])
            schedule.each(count, [&](int i) {
                if (plans[i].changes())
                    fresh[i] = changed_cells(i);
            });
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (!anywhere[0])
            return anywhere[1];
        if (rounds > DEPTHS)
            throw std::logic_error("refinement does not end between ranks");
        schedule.each(count, [&](int i) {
            fresh[i] = {};
            publish_cuts(i);
            plans[i].settled = false; // this side of the marks only
        });
    }
}

template class Grid<float>;
template class Grid<double>;

} // namespace swe

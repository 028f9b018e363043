// SPDX-License-Identifier: GPL-3.0-or-later
// scheme.h - what the grid and the time loop ask of a discretisation.
//
// A scheme has a number of fields; what they mean is its own affair, but for the means.  A call
// works on one cluster or on one cell; calls on different clusters may be made at the same time.
#ifndef SWE_SOLVER_SCHEME_H
#define SWE_SOLVER_SCHEME_H

#include <array>
#include <memory>
#include "../config.h"
#include "../grid/bed.h"
#include "../grid/cluster.h"
#include "../grid/forest.h"
#include "../scenario/scenario.h"

namespace swe {

// Where a cell is.
struct Site {
    Node node;
    Triangle where;
    int depth;
};

// A cell's fields.
constexpr int MOST_FIELDS = 12;
template <class Real> struct Values {
    Real field[MOST_FIELDS];
};

// Working memory of a thread that advances a cluster; the scheme's.
class Scratch {
public:
    virtual ~Scratch() = default;
};

template <class Real> class Scheme {
public:
    virtual ~Scheme() = default;

    virtual int fields() const = 0;
    // The fields that are a cell's means of h, hu, hv, bed.
    virtual std::array<int, 4> means() const = 0;
    virtual int stages() const = 0; // of a time step

    // A step up to this part of the stable one, of all clusters, leaves no water below 0; of every
    // stage, unless the scheme takes care of the later ones itself.
    static constexpr double SAFE = 0.5;
    virtual bool later_stages_are_safe() const = 0;

    virtual std::unique_ptr<Scratch> make_scratch() const = 0;

    // Once for each cluster that is made: sets its attachment.
    virtual void attach(Cluster<Real> &cluster) const = 0;

    // The water of the scenario at the time, over the cell's bed.
    virtual Values<Real> initial(const Site &site, double time) const = 0;

    // Sets the fields of the bed of a cell whose water is known.
    virtual void fill_bed(const Site &site, Values<Real> &values) const = 0;

    // One stage of a time step of dt, ghosts being filled.  After the last one stable_step is set.
    virtual void advance(Cluster<Real> &cluster, Real dt, int stage, Scratch &scratch) const = 0;

    // The longest stable step / cfl of the cluster as it is; of one of its cells.
    virtual Real stable_step(Cluster<Real> &cluster) const = 0;
    virtual Real stable_step(Cluster<Real> &cluster, std::int32_t cell) const = 0;

    // Local time stepping.  What leaves the cell at ghost g, and what enters the one beyond: h,
    // hu, hv per metre of the edge and second, by the present state.
    virtual void flow(const Cluster<Real> &cluster, std::int32_t g, Real leaves[PASSED],
                      Real enters[PASSED]) const = 0;

    // Of that, so much as the cell beyond can give for a time of dt, whatever else leaves it in a
    // step of dt that is safe for its own cluster.
    virtual void spare(const Cluster<Real> &cluster, std::int32_t g, Real dt, Real leaves[PASSED],
                       Real enters[PASSED]) const = 0;

    // One step of Euler's method, with more[v * ghosts + g] entering at ghost g beside what flows
    // by the present state; units as of flow.
    virtual void advance_with(Cluster<Real> &cluster, Real dt, const Real *more,
                              Scratch &scratch) const = 0;

    // Fields of the interface for ghost g of the partner across: interface[f * ghosts + g].
    virtual void publish(const Cluster<Real> &cluster, Real *interface) const = 0;

    // Ghosts first .. first+count-1, which are at the border of the domain.
    virtual void fill_border(Cluster<Real> &cluster, std::int32_t first, std::int32_t count,
                             Side4 condition) const = 0;

    // What the cells want: +1 finer, 0, -1 coarser.  Ghosts are filled.
    virtual void mark(const Cluster<Real> &cluster, std::int8_t *marks) const = 0;

    // A cell's children, and two siblings' parent; water is conserved.
    virtual void split(const Site &parent, const Values<Real> &of,
                       Values<Real> children[2]) const = 0;
    virtual bool may_merge(const Values<Real> children[2]) const = 0;
    virtual Values<Real> merge(const Site &parent, const Values<Real> children[2]) const = 0;
};

// What schemes are made of; all outlive the scheme.
struct Setting {
    const Config &config;
    const Forest &forest;
    const Scenario &scenario;
    const Bed &bed;
};

template <class Real> std::unique_ptr<Scheme<Real>> make_finite_volumes(const Setting &setting);
template <class Real> std::unique_ptr<Scheme<Real>> make_galerkin(const Setting &setting);

} // namespace swe
#endif

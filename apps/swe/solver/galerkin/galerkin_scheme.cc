// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin_scheme.cc - order 1: a cell has means and slopes; the kernels are in galerkin.h.
#include <algorithm>
#include <stdexcept>
#include "../../grid/orientation.h"
#include "../criterion.h"
#include "galerkin.h"
#include "../scheme.h"

namespace swe {

namespace {

template <class Real> class Galerkin final : public Scheme<Real> {
public:
    explicit Galerkin(const Setting &setting)
        : set(setting), metric(make_metric<Real>(setting.forest)), rules(setting.config)
    {
        options.gravity = static_cast<Real>(rules.solver.gravity);
        options.dry_tolerance = static_cast<Real>(rules.solver.dry_tolerance);
        options.manning = static_cast<Real>(rules.solver.manning);
        double extent = rules.domain.square * std::max(rules.domain.nx, rules.domain.ny);
        options.curvature = static_cast<Real>(10 / (extent * extent));
    }

    int fields() const override { return DOFS; }
    std::array<int, 4> means() const override { return {DEPTH, HU, HV, BED}; }
    int stages() const override { return rules.solver.stepping == Stepping::EULER ? 1 : 2; }
    bool later_stages_are_safe() const override { return true; } // see hold_back(), galerkin.cc
    std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<Memory>(); }
    void attach(Cluster<Real> &c) const override;

    Values<Real> initial(const Site &site, double time) const override;
    void fill_bed(const Site &site, Values<Real> &values) const override
    {
        bed_of(site, values.field + BED);
    }
    void advance(Cluster<Real> &c, Real dt, int stage, Scratch &scratch) const override;
    Real stable_step(Cluster<Real> &c) const override
    {
        return dg_stable_step(patch(c), metric, options);
    }
    Real stable_step(Cluster<Real> &c, std::int32_t cell) const override
    {
        DgPatch<Real> one = patch(c);
        one.cells = 1;
        for (Real *&dof : one.dof)
            dof += cell;
        one.full += cell;
        one.depth += cell;
        one.orientation += cell;
        return dg_stable_step(one, metric, options);
    }

    // The configuration has local steps with order 0 only.
    void flow(const Cluster<Real> &, std::int32_t, Real *, Real *) const override { refuse(); }
    void spare(const Cluster<Real> &, std::int32_t, Real, Real *, Real *) const override
    {
        refuse();
    }
    void advance_with(Cluster<Real> &, Real, const Real *, Scratch &) const override { refuse(); }

    void publish(const Cluster<Real> &c, Real *interface) const override;
    void fill_border(Cluster<Real> &c, std::int32_t first, std::int32_t count,
                     Side4 condition) const override;
    void mark(const Cluster<Real> &c, std::int8_t *marks) const override
    {
        mark_by_displacement(c, c.field(DEPTH), c.field(BED), rules, set.scenario.rest(), marks);
    }

    void split(const Site &parent, const Values<Real> &of, Values<Real> children[2]) const override;
    bool may_merge(const Values<Real> v[2]) const override
    {
        return (v[0].field[DEPTH] > options.dry_tolerance) ==
               (v[1].field[DEPTH] > options.dry_tolerance);
    }
    Values<Real> merge(const Site &parent, const Values<Real> v[2]) const override;

private:
    struct Memory : Scratch {
        AlignedVector<Real> numbers;
    };
    struct Extra : Attachment {
        AlignedVector<Real> full;                            // [cells + ghosts]
        AlignedVector<std::uint8_t> left_place, right_place; // [edges]
        AlignedVector<Real> start;                           // [EVOLVED][cells]
    };

    Setting set;
    Metric<Real> metric;
    const Config &rules;
    DgOptions<Real> options;

    [[noreturn]] static void refuse() { throw std::logic_error("order 1 has no local steps"); }
    DgPatch<Real> patch(Cluster<Real> &c) const;
    DgShape shape(const Site &site) const
    {
        return {orientation(site.where), static_cast<double>(metric.length[site.depth + 1])};
    }
    void bed_of(const Site &site, Real bed[3]) const;
};

Point side_middle(const Forest &forest, const Triangle &t, int side)
{
    Lattice a = side_begin(t, side), b = side_end(t, side);
    return forest.point(static_cast<double>(a.x + b.x) / 2, static_cast<double>(a.y + b.y) / 2);
}

template <class Real> DgPatch<Real> Galerkin<Real>::patch(Cluster<Real> &c) const
{
    auto &extra = static_cast<Extra &>(*c.attachment);
    DgPatch<Real> p{};
    p.cells = c.cells();
    p.ghosts = c.ghosts();
    for (int f = 0; f < DOFS; f++)
        p.dof[f] = c.field(f);
    p.full = extra.full.data();
    p.depth = c.depth.data();
    p.orientation = c.topology.orientation.data();
    p.edges = static_cast<std::int32_t>(c.topology.left.size());
    p.left = c.topology.left.data();
    p.right = c.topology.right.data();
    p.left_place = extra.left_place.data();
    p.right_place = extra.right_place.data();
    p.runs = c.topology.runs.data();
    p.run_count = static_cast<std::int32_t>(c.topology.runs.size());
    return p;
}

template <class Real> void Galerkin<Real>::attach(Cluster<Real> &c) const
{
    add_edges(c.topology, c.depth);
    auto extra = std::make_unique<Extra>();
    extra->full.assign(c.cells() + c.ghosts(), -1);
    for (std::int32_t i = 0; i < c.cells(); i++)
        extra->full[i] = dg_full<Real>({c.topology.orientation[i], metric.length[c.depth[i] + 1]},
                                       c.field(BED_X)[i], c.field(BED_Y)[i], options.dry_tolerance);
    auto place_of = [&](std::int32_t cell, int direction) -> std::uint8_t {
        if (cell >= c.cells())
            return PLACE_GHOST;
        int o = c.topology.orientation[cell], side = 0;
        while (ORIENTATION.direction[o][side] != direction)
            side++;
        return SHAPES<Real>.place[side][o];
    };
    for (const EdgeRun &run : c.topology.runs)
        for (std::int32_t e = run.first; e < run.last; e++) {
            extra->left_place.push_back(place_of(c.topology.left[e], run.direction));
            extra->right_place.push_back(place_of(c.topology.right[e], run.direction));
        }
    c.attachment = std::move(extra);
}

// The mean is the tree's, the slopes those of the line through the middles of the sides.
template <class Real> void Galerkin<Real>::bed_of(const Site &site, Real bed[3]) const
{
    Real middles[SIDES];
    for (int side = 0; side < SIDES; side++) {
        Point p = side_middle(set.forest, site.where, side);
        middles[side] = static_cast<Real>(set.bed.sample(p.x, p.y));
    }
    dg_fit(shape(site), middles, bed);
    bed[0] = static_cast<Real>(set.bed.mean(site.node));
}

template <class Real> Values<Real> Galerkin<Real>::initial(const Site &site, double time) const
{
    Real bed[3], surface[SIDES], hu[SIDES], hv[SIDES];
    bed_of(site, bed);
    for (int side = 0; side < SIDES; side++) {
        Point p = side_middle(set.forest, site.where, side);
        Real at = dg_middle(shape(site), bed, side); // the cell's bed, not the scenario's
        Water w = set.scenario.water(p.x, p.y, static_cast<double>(at), time);
        surface[side] = static_cast<Real>(w.h) + at;
        hu[side] = static_cast<Real>(w.hu);
        hv[side] = static_cast<Real>(w.hv);
    }
    Point c = set.forest.centroid(site.where);
    Water w = set.scenario.water(c.x, c.y, static_cast<double>(bed[0]), time);
    Real water[3] = {static_cast<Real>(w.h), static_cast<Real>(w.hu), static_cast<Real>(w.hv)};
    DgCell<Real> cell = dg_initial(shape(site), bed, surface, hu, hv, water, options.dry_tolerance);
    Values<Real> values;
    std::copy_n(cell.dof, DOFS, values.field);
    return values;
}

template <class Real>
void Galerkin<Real>::advance(Cluster<Real> &c, Real dt, int stage, Scratch &scratch) const
{
    auto &memory = static_cast<Memory &>(scratch).numbers;
    auto &extra = static_cast<Extra &>(*c.attachment);
    DgPatch<Real> p = patch(c);
    std::size_t n = c.cells(), all = c.stride;
    memory.resize((EVOLVED + 6) * all);
    DgScratch<Real> of{};
    for (int f = 0; f < EVOLVED; f++)
        of.rate[f] = memory.data() + f * all;
    for (int k = 0; k < 3; k++) {
        of.low[k] = memory.data() + (EVOLVED + k) * all;
        of.high[k] = memory.data() + (EVOLVED + 3 + k) * all;
    }
    if (stage == 0 && stages() == 2) {
        extra.start.resize(EVOLVED * n);
        for (int f = 0; f < EVOLVED; f++)
            std::copy_n(c.field(f), n, extra.start.data() + f * n);
    }
    const Real *start[EVOLVED];
    for (int f = 0; f < EVOLVED; f++)
        start[f] = extra.start.data() + f * n;
    dg_residual(p, metric, rules.solver.flux, options, of);
    c.stable_step = dg_update(p, metric, options, of, dt, stage == 1 ? start : nullptr);
}

// A ghost has the neighbour's values in the fields where dg_incoming() puts them, so that they are
// copied field by field.
template <class Real> void Galerkin<Real>::publish(const Cluster<Real> &c, Real *interface) const
{
    constexpr int field_of[DG_EXCHANGE] = {SURFACE_X, HU_X,  HV_X,  BED_X, SURFACE_Y, HU_Y,
                                           HV_Y,      BED_Y, DEPTH, HU,    HV,        BED};
    DgPatch<Real> p = patch(const_cast<Cluster<Real> &>(c)); // is read only
    for (std::int32_t g = 0; g < c.ghosts(); g++) {
        Real out[DG_EXCHANGE];
        dg_outgoing(p, metric, c.topology.boundary[g] / 3, c.topology.boundary[g] % 3, out);
        for (int k = 0; k < DG_EXCHANGE; k++)
            interface[static_cast<std::size_t>(field_of[k]) * c.ghosts() + g] = out[k];
    }
}

template <class Real> void Galerkin<Real>::fill_border(Cluster<Real> &c, std::int32_t first,
                                                       std::int32_t count, Side4 condition) const
{
    DgPatch<Real> p = patch(c);
    for (std::int32_t g = first; g < first + count; g++) {
        std::int32_t cell = c.topology.boundary[g] / 3, side = c.topology.boundary[g] % 3;
        Real values[DG_EXCHANGE];
        dg_outgoing(p, metric, cell, side, values);
        if (condition == Side4::WALL)
            dg_wall(values, ORIENTATION.direction[c.topology.orientation[cell]][side]);
        dg_incoming(p, g, values);
    }
}

template <class Real> void Galerkin<Real>::split(const Site &parent, const Values<Real> &of,
                                                 Values<Real> children[2]) const
{
    DgCell<Real> from, to[2];
    std::copy_n(of.field, DOFS, from.dof);
    for (int k = 0; k < 2; k++)
        bed_of({parent.node.child(k), k ? parent.where.second() : parent.where.first(),
                parent.depth + 1},
               to[k].dof + BED);
    dg_split(shape(parent), from, options.dry_tolerance, to[0], to[1]);
    for (int k = 0; k < 2; k++)
        std::copy_n(to[k].dof, DOFS, children[k].field);
}

template <class Real>
Values<Real> Galerkin<Real>::merge(const Site &parent, const Values<Real> v[2]) const
{
    DgCell<Real> from[2], to;
    for (int k = 0; k < 2; k++)
        std::copy_n(v[k].field, DOFS, from[k].dof);
    bed_of(parent, to.dof + BED);
    dg_merge(shape(parent), from[0], from[1], options.dry_tolerance, to);
    Values<Real> values;
    std::copy_n(to.dof, DOFS, values.field);
    return values;
}

} // namespace

template <class Real> std::unique_ptr<Scheme<Real>> make_galerkin(const Setting &setting)
{
    return std::make_unique<Galerkin<Real>>(setting);
}

template std::unique_ptr<Scheme<float>> make_galerkin(const Setting &);
template std::unique_ptr<Scheme<double>> make_galerkin(const Setting &);

} // namespace swe

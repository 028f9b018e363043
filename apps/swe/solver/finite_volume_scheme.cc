// SPDX-License-Identifier: GPL-3.0-or-later
// finite_volume_scheme.cc - order 0: a cell has its means of h, hu, hv and its bed; the kernels are
// in finite_volumes.h.
#include "scheme.h"

#include <algorithm>
#include <cmath>
#include "../grid/orientation.h"
#include "flux/augmented.h"
#include "criterion.h"
#include "flux/rusanov.h"
#include "topology_links.h"

namespace swe {

namespace {

enum : int { H = 0, HU = 1, HV = 2, BED = 3, FIELDS = 4 };

template <class Real> class FiniteVolumes final : public Scheme<Real> {
public:
    explicit FiniteVolumes(const Setting &setting)
        : set(setting), metric(make_metric<Real>(setting.forest)), rules(setting.config)
    {
        options.gravity = static_cast<Real>(rules.solver.gravity);
        options.dry_tolerance = static_cast<Real>(rules.solver.dry_tolerance);
        options.manning = static_cast<Real>(rules.solver.manning);
    }

    int fields() const override { return FIELDS; }
    std::array<int, 4> means() const override { return {H, HU, HV, BED}; }
    int stages() const override { return rules.solver.stepping == Stepping::EULER ? 1 : 2; }
    bool later_stages_are_safe() const override { return false; }
    std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<Memory>(); }

    Values<Real> initial(const Site &site, double time) const override
    {
        double bed = set.bed.mean(site.node);
        Point c = set.forest.centroid(site.where);
        Water w = set.scenario.water(c.x, c.y, bed, time);
        return {{static_cast<Real>(w.h), static_cast<Real>(w.hu), static_cast<Real>(w.hv),
                 static_cast<Real>(bed)}};
    }

    void fill_bed(const Site &site, Values<Real> &values) const override
    {
        values.field[BED] = static_cast<Real>(set.bed.mean(site.node));
    }

    void attach(Cluster<Real> &c) const override
    {
        auto links = std::make_unique<Links>();
        link_cells(c.topology, links->of);
        c.attachment = std::move(links);
    }

    void advance(Cluster<Real> &c, Real dt, int stage, Scratch &scratch) const override;
    Real stable_step(Cluster<Real> &c) const override
    {
        return fv_stable_step(patch_of(c), metric, options);
    }
    Real stable_step(Cluster<Real> &c, std::int32_t cell) const override
    {
        Patch<Real> one{};
        one.cells = 1;
        one.h = c.field(H) + cell;
        one.hu = c.field(HU) + cell;
        one.hv = c.field(HV) + cell;
        one.depth = c.depth.data() + cell;
        return fv_stable_step(one, metric, options);
    }

    void flow(const Cluster<Real> &c, std::int32_t g, Real leaves[PASSED],
              Real enters[PASSED]) const override;
    void spare(const Cluster<Real> &c, std::int32_t g, Real dt, Real leaves[PASSED],
               Real enters[PASSED]) const override;
    void advance_with(Cluster<Real> &c, Real dt, const Real *more, Scratch &scratch) const override;

    void publish(const Cluster<Real> &c, Real *interface) const override
    {
        std::int32_t ghosts = c.ghosts();
        for (std::int32_t g = 0; g < ghosts; g++) {
            std::int32_t cell = c.topology.boundary[g] / SIDES;
            for (int f = 0; f < FIELDS; f++)
                interface[f * ghosts + g] = c.field(f)[cell];
        }
    }

    void fill_border(Cluster<Real> &c, std::int32_t first, std::int32_t count,
                     Side4 condition) const override;
    void mark(const Cluster<Real> &c, std::int8_t *marks) const override
    {
        mark_by_displacement(c, c.field(H), c.field(BED), rules, set.scenario.rest(), marks);
    }
    void split(const Site &parent, const Values<Real> &of, Values<Real> children[2]) const override;

    bool may_merge(const Values<Real> v[2]) const override
    {
        return is_wet(v[0].field[H]) == is_wet(v[1].field[H]);
    }
    Values<Real> merge(const Site &parent, const Values<Real> v[2]) const override
    {
        Values<Real> of;
        for (int f = H; f <= HV; f++)
            of.field[f] = (v[0].field[f] + v[1].field[f]) / 2;
        of.field[BED] = static_cast<Real>(set.bed.mean(parent.node));
        return of;
    }

private:
    struct Memory : Scratch {
        FvScratch<Real> of;
    };
    struct Links : Attachment {
        FvLinks of;
        AlignedVector<Real>
            start; // h, hu, hv of the cells at the beginning of a step of two stages
    };

    Setting set;
    Metric<Real> metric;
    const Config &rules;
    FvOptions<Real> options;

    bool is_wet(Real h) const { return h > options.dry_tolerance; }
    CellState<Real> state(const Cluster<Real> &c, std::int32_t cell) const
    {
        Real h = c.field(H)[cell], over_h = is_wet(h) ? 1 / h : 0;
        return {h, c.field(HU)[cell] * over_h, c.field(HV)[cell] * over_h,
                std::sqrt(options.gravity * h), c.field(BED)[cell]};
    }
};

// A wall mirrors the water; an open side lets it go on as it is.
template <class Real> void FiniteVolumes<Real>::fill_border(Cluster<Real> &c, std::int32_t first,
                                                            std::int32_t count,
                                                            Side4 condition) const
{
    for (std::int32_t g = first; g < first + count; g++) {
        std::int32_t cell = c.topology.boundary[g] / 3, side = c.topology.boundary[g] % 3;
        int direction = ORIENTATION.direction[c.topology.orientation[cell]][side];
        std::int32_t ghost = c.cells() + g;
        for (int f = 0; f < FIELDS; f++)
            c.field(f)[ghost] = c.field(f)[cell];
        if (condition == Side4::WALL) {
            int normal = direction == 0 ? HU : HV; // the border is parallel to an axis
            c.field(normal)[ghost] = -c.field(normal)[cell];
        }
    }
}

// The parent's surface goes on over both beds; if that leaves one dry, all water is in the other.
// Both have the parent's velocity.
template <class Real> void FiniteVolumes<Real>::split(const Site &parent, const Values<Real> &of,
                                                      Values<Real> children[2]) const
{
    Real bed[2], h[2];
    for (int k = 0; k < 2; k++)
        bed[k] = static_cast<Real>(set.bed.mean(parent.node.child(k)));
    Real all = of.field[H], half = (bed[1] - bed[0]) / 2;
    h[0] = std::clamp(all + half, Real(0), 2 * all);
    h[1] = std::clamp(all - half, Real(0), 2 * all);
    for (int k = 0; k < 2; k++) {
        Real share = is_wet(all) ? h[k] / all : Real(1);
        children[k] = {{h[k], of.field[HU] * share, of.field[HV] * share, bed[k]}};
    }
}

template <class Real>
void FiniteVolumes<Real>::advance(Cluster<Real> &c, Real dt, int stage, Scratch &scratch) const
{
    auto &memory = static_cast<Memory &>(scratch).of;
    auto &links = static_cast<Links &>(*c.attachment);
    Patch<Real> patch = patch_of(c);
    std::size_t n = c.cells();
    if (stage == 0 && stages() == 2) {
        links.start.resize(3 * n);
        for (int f = H; f <= HV; f++)
            std::copy_n(c.field(f), n, links.start.data() + f * n);
    }
    const Real *q = links.start.data();
    FvState<Real> start{q, q + n, q + 2 * n};
    Patch<Real> following{};
    if (c.following)
        following = patch_of(*c.following);
    c.stable_step = fv_step(patch, links.of, metric, rules.solver.flux, options, dt, memory,
                            stage == 1 ? &start : nullptr, &following);
}

template <class Real> void FiniteVolumes<Real>::flow(const Cluster<Real> &c, std::int32_t g,
                                                     Real leaves[PASSED], Real enters[PASSED]) const
{
    std::int32_t cell = c.topology.boundary[g] / 3, side = c.topology.boundary[g] % 3;
    int o = c.topology.orientation[cell], direction = ORIENTATION.direction[o][side];
    Real outward = ORIENTATION.is_left[o][side] ? 1 : -1;
    Real nx = outward * static_cast<Real>(NORMAL_X[direction]);
    Real ny = outward * static_cast<Real>(NORMAL_Y[direction]);
    CellState<Real> own = state(c, cell), other = state(c, c.cells() + g);
    EdgeFlux<Real> flux =
        rules.solver.flux == Flux::RUSANOV
            ? rusanov(own, other, nx, ny, options.gravity)
            : augmented(own, other, nx, ny, options.gravity, options.dry_tolerance);
    leaves[0] = enters[0] = flux.mass;
    leaves[1] = flux.lost_x;
    leaves[2] = flux.lost_y;
    enters[1] = flux.gained_x;
    enters[2] = flux.gained_y;
}

// Rusanov's flux takes water with the speed a of the faster cell: of the one beyond, more than is
// there if that makes longer steps.  With a = inradius / dt it gives all that it has (rusanov.h).
// The augmented solver's knows only the speed of the cell that gives.
template <class Real> void FiniteVolumes<Real>::spare(const Cluster<Real> &c, std::int32_t g,
                                                      Real dt, Real leaves[PASSED],
                                                      Real enters[PASSED]) const
{
    if (rules.solver.flux != Flux::RUSANOV)
        return;
    std::int32_t cell = c.topology.boundary[g] / 3, side = c.topology.boundary[g] % 3;
    int o = c.topology.orientation[cell], direction = ORIENTATION.direction[o][side];
    int size = c.depth[cell] + (side == HYPOTENUSE ? 0 : 1); // the depth beyond, or one more
    Real outward = ORIENTATION.is_left[o][side] ? 1 : -1;
    CellState<Real> beyond = state(c, c.cells() + g);
    Real un = -outward * (beyond.u * static_cast<Real>(NORMAL_X[direction]) +
                          beyond.v * static_cast<Real>(NORMAL_Y[direction]));
    Real most = beyond.h / 2 * std::max(metric.inradius[size] / dt + un, Real(0));
    Real excess = std::max(-leaves[0] - most, Real(0));
    const Real per_mass[PASSED] = {1, beyond.u, beyond.v};
    for (int v = 0; v < PASSED; v++) {
        leaves[v] += excess * per_mass[v];
        enters[v] += excess * per_mass[v];
    }
}

template <class Real> void FiniteVolumes<Real>::advance_with(Cluster<Real> &c, Real dt,
                                                             const Real *more,
                                                             Scratch &scratch) const
{
    auto &memory = static_cast<Memory &>(scratch).of;
    Patch<Real> patch = patch_of(c);
    fv_residual(patch, static_cast<Links &>(*c.attachment).of, metric, rules.solver.flux, options,
                memory);
    for (std::int32_t g = 0; g < c.ghosts(); g++) {
        std::int32_t cell = c.topology.boundary[g] / 3, side = c.topology.boundary[g] % 3;
        int depth = c.depth[cell], size = depth + (side == HYPOTENUSE ? 0 : 1);
        Real part = metric.length[size] * metric.over_area[depth];
        memory.rate_h[cell] += part * more[g];
        memory.rate_hu[cell] += part * more[c.ghosts() + g];
        memory.rate_hv[cell] += part * more[2 * c.ghosts() + g];
    }
    c.stable_step = fv_update(patch, metric, options, dt, memory);
}

} // namespace

template <class Real> std::unique_ptr<Scheme<Real>> make_finite_volumes(const Setting &setting)
{
    return std::make_unique<FiniteVolumes<Real>>(setting);
}

template std::unique_ptr<Scheme<float>> make_finite_volumes(const Setting &);
template std::unique_ptr<Scheme<double>> make_finite_volumes(const Setting &);

} // namespace swe

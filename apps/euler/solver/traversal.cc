// SPDX-License-Identifier: GPL-3.0-or-later
// traversal.cc - see traversal.h.
#include "traversal.h"

#include "criterion.h"

namespace euler {

template <int D>
Traversal<D>::Traversal(const Config &config, const Element &element, ScratchPool &pool,
                        const Grid<D> &before, Grid<D> &after, Plan plan)
    : config_(config), element_(element), pool_(pool), before_(before), after_(after),
      plan_(std::move(plan)), parity_(static_cast<int>(plan_.step % 2))
{
}

// What is behind the faces of a cell before.
template <int D> Faces Traversal<D>::faces_of(int cell) const
{
    Faces faces;
    const Mesh<D> &mesh = *before_.mesh;
    const int parity = 1 - parity_;
    for (int f = 0; f < 2 * D; f++) {
        const Link &link = mesh.link(cell, f);
        const Source *sources = mesh.sources(link);
        faces[f].kind = link.kind;
        faces[f].sub_face = link.sub_face;
        auto own = [&](const Source &s) {
            return &before_.cells[s.cell]->traces[parity][s.face * element_.sizes().trace];
        };
        const int count = link.kind == FaceKind::FINER  ? Tree<D>::SUB_FACES
                          : link.kind == FaceKind::WALL ? 0
                                                        : 1;
        for (int i = 0; i < count; i++) {
            const Source &s = sources[i];
            faces[f].other[i] = s.cell < 0 ? before_.halo->ghost(parity, -1 - s.cell) : own(s);
        }
    }
    return faces;
}

template <int D> void Traversal<D>::correct_before(int cell)
{
    Cell &c = *before_.cells[cell];
    ScratchPool::Lease scratch(pool_);
    const double start = seconds_now();
    element_.correct(c.state.data(), c.step, c.volume.data(), c.traces[1 - parity_].data(),
                     faces_of(cell), scratch.memory());
    scratch->corrector_s += seconds_now() - start;
    scratch->correctors++;
}

template <int D> void Traversal<D>::change(int part)
{
    const Part &p = plan_.changed[part];
    for (int i = 0; plan_.corrects && i < p.before_count; i++)
        correct_before(p.before + i);
    if (p.after_count > 1)
        refine(p);
    else
        coarsen(p);
}

template <int D> void Traversal<D>::refine(const Part &part)
{
    ScratchPool::Lease scratch(pool_);
    const Cell &from = *before_.cells[part.before];
    for (int i = part.after; i < part.after + part.after_count; i++) {
        auto cell = std::make_shared<Cell>(element_.sizes());
        element_.refine(from.state.data(), after_.mesh->place(i).number_in_parent(),
                        cell->state.data(), scratch.memory());
        after_.cells[i] = std::move(cell);
    }
}

// Children are added in the order of the curve, the same on all ranks.
template <int D> void Traversal<D>::coarsen(const Part &part)
{
    ScratchPool::Lease scratch(pool_);
    auto cell = std::make_shared<Cell>(element_.sizes());
    for (int i = part.before; i < part.before + part.before_count; i++)
        element_.add_child(before_.cells[i]->state.data(),
                           before_.mesh->place(i).number_in_parent(), cell->state.data(),
                           scratch.memory());
    after_.cells[part.after] = std::move(cell);
}

template <int D> void Traversal<D>::correct(int cell)
{
    if (plan_.corrects && plan_.origin[cell] >= 0)
        correct_before(plan_.origin[cell]);
}

template <int D> void Traversal<D>::examine(int cell)
{
    Cell &c = *after_.cells[cell];
    const Look look = element_.look(c.state.data());
    c.speed = look.speed;
    c.mark = mark_of(config_, after_.mesh->place(cell), look, plan_.step);
}

template <int D> void Traversal<D>::predict(int cell)
{
    if (!predicts())
        return;
    Cell &c = *after_.cells[cell];
    ScratchPool::Lease scratch(pool_);
    const double start = seconds_now();
    c.step = plan_.dt * static_cast<double>(power_of_3(after_.mesh->place(cell).level)) /
             config_.domain.side;
    element_.predict(c.state.data(), c.step, c.volume.data(), c.traces[parity_].data(),
                     scratch.memory());
    scratch->predictor_s += seconds_now() - start;
    scratch->predictors++;
}

template <int D> const double *Traversal<D>::trace(Source source) const
{
    return &after_.cells[source.cell]->traces[parity_][source.face * element_.sizes().trace];
}

template class Traversal<2>;
template class Traversal<3>;

} // namespace euler

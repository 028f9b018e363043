// SPDX-License-Identifier: GPL-3.0-or-later
// schedule.cc - see schedule.h.
#include "schedule.h"

#include <algorithm>

namespace euler {
namespace {

// Larger numbers first; without OMP_MAX_TASK_PRIORITY it is the order in which tasks are made.
enum : int { BORDER_PRIORITY = 2, TRANSITION_PRIORITY = 1 };

template <class F> void loop(int count, F use)
{
#pragma omp parallel for schedule(dynamic, 1) default(none) shared(count, use)
    for (int i = 0; i < count; i++)
        use(i);
}

template <class F> void loop_over(const std::vector<int> &cells, F use)
{
    loop(static_cast<int>(cells.size()), [&](int i) { use(cells[i]); });
}

template <int D> void change_all(Traversal<D> &t)
{
    const auto parts = static_cast<int>(t.plan().changed.size());
    if (parts > 0)
        loop(parts, [&](int part) { t.change(part); });
}

template <int D> std::vector<int> cells_of(const Mesh<D> &mesh, Zone zone)
{
    std::vector<int> cells;
    for (int i = 0; i < mesh.size(); i++)
        if (mesh.zone(i) == zone)
            cells.push_back(i);
    return cells;
}

template <int D> void run_loops(Traversal<D> &t, const Messages &messages)
{
    const int cells = t.mesh().size();
    change_all(t);
    loop(cells, [&](int i) {
        t.correct(i);
        t.examine(i);
    });
    loop(cells, [&](int i) { t.predict(i); });
    messages.send();
    messages.agree();
}

template <int D> void run_subgrids(Traversal<D> &t, const Messages &messages)
{
    const Mesh<D> &mesh = t.mesh();
    std::vector<std::vector<int>> levels(mesh.tree().finest() + 1);
    std::vector<int> between;
    for (int i = 0; i < mesh.size(); i++)
        (mesh.is_at_transition(i) ? between : levels[mesh.place(i).level]).push_back(i);
    auto correct = [&](int i) {
        t.correct(i);
        t.examine(i);
    };
    auto predict = [&](int i) { t.predict(i); };
    for (int part = 0; part < static_cast<int>(t.plan().changed.size()); part++)
        t.change(part);
    std::for_each(between.begin(), between.end(), correct);
    for (const auto &cells : levels)
        loop_over(cells, correct);
    std::for_each(between.begin(), between.end(), predict);
    for (const auto &cells : levels)
        loop_over(cells, predict);
    messages.send();
    messages.agree();
}

// A task each cell, in the order of the zones.  taskwait waits for the tasks of one zone, and of
// others the thread runs none meanwhile.  The region ends when all tasks are done.
template <int D, class F> void run_zones(Traversal<D> &t, const Messages &messages, F work)
{
    const auto border = cells_of(t.mesh(), Zone::BORDER);
    const auto transition = cells_of(t.mesh(), Zone::TRANSITION);
    const auto enclave = cells_of(t.mesh(), Zone::ENCLAVE);
    char at_border = 0, at_transition = 0; // their addresses are what tasks depend on
#pragma omp parallel default(none) shared(t, messages, work, border, transition, enclave) \
    shared(at_border, at_transition)
#pragma omp master
    {
        for (int cell : border) {
#pragma omp task default(none) firstprivate(cell) shared(t, work) depend(in : at_border) \
    priority(BORDER_PRIORITY)
            work(t, cell);
        }
        for (int cell : transition) {
#pragma omp task default(none) firstprivate(cell) shared(t, work) depend(in : at_transition) \
    priority(TRANSITION_PRIORITY)
            work(t, cell);
        }
        for (int cell : enclave) {
#pragma omp task default(none) firstprivate(cell) shared(t, work)
            work(t, cell);
        }
#pragma omp taskwait depend(inout : at_border)
        messages.send();
#pragma omp taskwait depend(inout : at_transition)
        messages.agree();
    }
    (void)at_border;
    (void)at_transition;
}

template <int D> void run_skeleton_first(Traversal<D> &t, const Messages &messages)
{
    change_all(t);
    run_zones(t, messages, [](Traversal<D> &traversal, int cell) {
        traversal.correct(cell);
        traversal.examine(cell);
        traversal.predict(cell);
    });
}

template <int D> void run_arithmetic_aware(Traversal<D> &t, const Messages &messages)
{
    change_all(t);
    loop(t.mesh().size(), [&](int i) {
        t.correct(i);
        t.examine(i);
    });
    messages.agree();
    const Messages rest{messages.send, [] {}};
    run_zones(t, rest, [](Traversal<D> &traversal, int cell) { traversal.predict(cell); });
}

} // namespace

template <int D> void run(Variant variant, Traversal<D> &traversal, const Messages &messages)
{
    switch (variant) {
    case Variant::NONE:
        return run_loops(traversal, messages);
    case Variant::SUBGRIDS:
        return run_subgrids(traversal, messages);
    case Variant::SKELETON_FIRST:
        return run_skeleton_first(traversal, messages);
    case Variant::ARITHMETIC_AWARE:
        return run_arithmetic_aware(traversal, messages);
    }
}

template void run(Variant, Traversal<2> &, const Messages &);
template void run(Variant, Traversal<3> &, const Messages &);

} // namespace euler

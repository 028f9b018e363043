// SPDX-License-Identifier: GPL-3.0-or-later
// traversal.h - what a step does to each cell of a rank, in any order and by any thread.
//
// A traversal ends one time step and begins the next one: it corrects cells of the grid before by
// the traces of all predictors, changes those that are cut or joined, and predicts the cells of the
// grid after.  Cells that stay are the same objects in both grids.  What a function reads is
// written before the traversal began, or by the functions that its comment names; so it is only
// those that the schedule (schedule.h) must order.
#ifndef EULER_TRAVERSAL_H
#define EULER_TRAVERSAL_H

#include <memory>
#include <vector>
#include "../config.h"
#include "../mesh/mesh.h"
#include "../parallel/halo.h"
#include "cell.h"

namespace euler {

// A mesh and its data.
template <int D> struct Grid {
    std::shared_ptr<Mesh<D>> mesh;
    std::shared_ptr<Halo> halo;
    std::vector<CellPointer> cells;
};

template <int D> class Traversal {
public:
    struct Plan {
        long step;              // steps before
        double dt;              // of the predictors; 0: none, the run ends
        bool corrects;          // false: the first one, as there was no predictor
        std::vector<Part> changed; // what is cut or joined, of this rank, in its own numbers
        std::vector<int> origin;   // of each cell after: its number before; -1: it is new
    };

    // All must outlive it.
    Traversal(const Config &config, const Element &element, ScratchPool &pool,
              const Grid<D> &before, Grid<D> &after, Plan plan);

    const Plan &plan() const { return plan_; }
    const Mesh<D> &mesh() const { return *after_.mesh; } // the one after
    bool predicts() const { return plan_.dt > 0; }

    // Corrects all cells of a changed part, and makes those that take their place.
    void change(int part);
    // A cell of the grid after, which is no part of a change: corrects it.
    void correct(int cell);
    // Speed and mark.  After change() or correct() of the cell.
    void examine(int cell);
    // After examine().
    void predict(int cell);

    // The trace of a cell after; after its predict().
    const double *trace(Source source) const;

private:
    const Config &config_;
    const Element &element_;
    ScratchPool &pool_;
    const Grid<D> &before_;
    Grid<D> &after_;
    const Plan plan_;
    const int parity_; // of the traces that are written; the others are read

    void correct_before(int cell);
    Faces faces_of(int cell) const;
    void refine(const Part &part);
    void coarsen(const Part &part);
};

} // namespace euler
#endif

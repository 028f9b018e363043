// SPDX-License-Identifier: GPL-3.0-or-later
// cell.h - the data of a cell, and what a thread needs beside it.
//
// Traces of two steps are kept, called by the step's parity: while some cells are corrected by
// their neighbours' traces of one step, others have left theirs of the next one.  So a step needs
// no order among its cells, and threads no locks.
#ifndef EULER_CELL_H
#define EULER_CELL_H

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>
#include "../../lib/aligned.h"
#include "../element/element.h"
#include "../mesh/tree.h"

namespace euler {

struct Cell {
    explicit Cell(const Sizes &sizes) : state(sizes.state), volume(sizes.state)
    {
        for (auto &set : traces)
            set.resize(2 * static_cast<std::size_t>(sizes.dimensions) * sizes.trace);
    }

    apps::AlignedVector<double> state, volume, traces[2];
    double step = 0;  // of its predictor: dt / side
    double speed = 0; // fastest wave
    Mark mark = Mark::KEEP;
};

using CellPointer = std::shared_ptr<Cell>;

// Memory of a thread while it works on a cell, and the time that it took for that.
struct Scratch {
    apps::AlignedVector<double> memory;
    double predictor_s = 0, corrector_s = 0;
    long predictors = 0, correctors = 0;
};

// A thread takes one for each cell.  Not a thread-local variable: threads are not always the same.
class ScratchPool {
public:
    class Lease {
    public:
        explicit Lease(ScratchPool &pool) : pool_(pool), scratch_(pool.take()) {}
        ~Lease() { pool_.give_back(std::move(scratch_)); }
        Lease(const Lease &) = delete;
        Lease &operator=(const Lease &) = delete;
        Scratch *operator->() const { return scratch_.get(); }
        double *memory() const { return scratch_->memory.data(); }

    private:
        ScratchPool &pool_;
        std::unique_ptr<Scratch> scratch_;
    };

    explicit ScratchPool(std::size_t doubles) : doubles_(doubles) {}

    // Of all threads; while none works.
    Scratch sum() const
    {
        Scratch sum;
        for (const auto &one : free_) {
            sum.predictor_s += one->predictor_s;
            sum.corrector_s += one->corrector_s;
            sum.predictors += one->predictors;
            sum.correctors += one->correctors;
        }
        return sum;
    }

private:
    const std::size_t doubles_;
    std::mutex lock_;
    std::vector<std::unique_ptr<Scratch>> free_; // under lock_

    std::unique_ptr<Scratch> take()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            if (!free_.empty()) {
                auto last = std::move(free_.back());
                free_.pop_back();
                return last;
            }
        }
        auto made = std::make_unique<Scratch>();
        made->memory.resize(doubles_);
        return made;
    }

    void give_back(std::unique_ptr<Scratch> scratch)
    {
        std::lock_guard<std::mutex> guard(lock_);
        free_.push_back(std::move(scratch));
    }
};

inline double seconds_now()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

} // namespace euler
#endif

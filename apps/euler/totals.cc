// SPDX-License-Identifier: GPL-3.0-or-later
// totals.cc - see totals.h.
#include "totals.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include "scenario/scenario.h"

namespace euler {
namespace {

std::uint64_t hashed(std::uint64_t bits)
{
    bits = (bits ^ bits >> 31) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
    return bits ^ bits >> 32;
}

template <int D> double volume_of(const Simulation<D> &s, const Place<D> &place)
{
    return std::pow(s.config().domain.side, D) /
           static_cast<double>(power_of_3(D * place.level));
}

// The sum of `count` numbers that add(cell, numbers) adds for each cell, of all cells of all ranks,
// on rank 0.
template <int D, class F>
std::vector<double> sum_in_order(const Simulation<D> &s, int count, F add)
{
    std::vector<double> bases; // `count` numbers of each of this rank's base cells
    std::int64_t base = -1;
    for (int i = 0; i < s.mesh().size(); i++) {
        const std::int64_t mine = s.mesh().tree().base_of(s.mesh().first() + i);
        if (mine != base)
            bases.resize(bases.size() + static_cast<std::size_t>(count));
        base = mine;
        add(i, &bases[bases.size() - static_cast<std::size_t>(count)]);
    }
    auto length = static_cast<int>(bases.size());
    std::vector<int> lengths(s.ranks()), places(s.ranks() + 1);
    MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, s.comm());
    for (int rank = 0; rank < s.ranks(); rank++)
        places[rank + 1] = places[rank] + lengths[rank];
    std::vector<double> all(static_cast<std::size_t>(places[s.ranks()]));
    MPI_Gatherv(bases.data(), length, MPI_DOUBLE, all.data(), lengths.data(), places.data(),
                MPI_DOUBLE, 0, s.comm());
    std::vector<double> sum(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < all.size(); i++)
        sum[i % static_cast<std::size_t>(count)] += all[i];
    return sum;
}

} // namespace

template <int D> Unknowns totals(const Simulation<D> &s)
{
    const auto sum = sum_in_order(s, D + 2, [&](int i, double *numbers) {
        double means[D + 2] = {};
        s.element().means(s.cell(i).state.data(), means);
        for (int unknown = 0; unknown < D + 2; unknown++)
            numbers[unknown] += volume_of(s, s.mesh().place(i)) * means[unknown];
    });
    Unknowns unknowns{};
    std::copy(sum.begin(), sum.end(), unknowns.begin());
    return unknowns;
}

template <int D> std::uint64_t checksum(const Simulation<D> &s)
{
    std::uint64_t mine = 0, all;
    for (int i = 0; i < s.mesh().size(); i++) {
        const std::uint64_t place = hashed(s.mesh().place(i).key() + 1);
        const auto &state = s.cell(i).state;
        mine += place;
        for (std::size_t k = 0; k < state.size(); k++) {
            std::uint64_t bits;
            const double value = state[k] + 0.0; // -0 is 0
            std::memcpy(&bits, &value, sizeof bits);
            mine += hashed(hashed(bits) + place + k);
        }
    }
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, s.comm());
    return all;
}

template <int D> Errors errors(const Simulation<D> &s)
{
    const Sizes &sizes = s.element().sizes();
    const std::size_t points = sizes.state / static_cast<std::size_t>(sizes.unknowns);
    double largest = 0, max = 0;
    const auto sum = sum_in_order(s, 2, [&](int i, double *numbers) {
        const Place<D> &place = s.mesh().place(i);
        const double side = s.config().domain.side / static_cast<double>(power_of_3(place.level));
        for (std::size_t k = 0; k < points; k++) {
            double where[MOST_DIMENSIONS], exact[MOST_DIMENSIONS + 2];
            s.element().place(k, where);
            for (int axis = 0; axis < D; axis++)
                where[axis] = (place.x[axis] + where[axis]) * side;
            gas_at(s.config(), where, s.time(), exact);
            const double error = std::fabs(s.cell(i).state[k] - exact[0]);
            const double share =
                s.element().weight(k) / static_cast<double>(power_of_3(D * place.level));
            numbers[0] += share * error;
            numbers[1] += share * error * error;
            largest = std::max(largest, error);
        }
    });
    MPI_Reduce(&largest, &max, 1, MPI_DOUBLE, MPI_MAX, 0, s.comm());
    return {sum[0], std::sqrt(sum[1]), max};
}

template Unknowns totals(const Simulation<2> &);
template Unknowns totals(const Simulation<3> &);
template std::uint64_t checksum(const Simulation<2> &);
template std::uint64_t checksum(const Simulation<3> &);
template Errors errors(const Simulation<2> &);
template Errors errors(const Simulation<3> &);

} // namespace euler

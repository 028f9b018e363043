// SPDX-License-Identifier: GPL-3.0-or-later
// difference.cc - see difference.h.
#include "difference.h"

#include <algorithm>
#include <cmath>

namespace swe {

namespace {

// Sums of a rank, then of all.
class Sums {
public:
    void add(double error, double area)
    {
        sum[0] += area * error;
        sum[1] += area * error * error;
        max = std::isnan(error) ? error : std::max(max, error);
    }
    Norms of_all(double area, MPI_Comm comm) const
    {
        double all[2], largest;
        MPI_Allreduce(sum, all, 2, MPI_DOUBLE, MPI_SUM, comm);
        MPI_Allreduce(&max, &largest, 1, MPI_DOUBLE, MPI_MAX, comm);
        return {all[0] / area, std::sqrt(all[1] / area), largest};
    }

private:
    double sum[2] = {}, max = 0;
};

} // namespace

template <class Real> Difference difference_from_solution(Simulation<Real> &s)
{
    const Forest &forest = s.grid().forest();
    auto means = s.scheme().means();
    Sums height, momentum;
    for (const auto &c : s.grid().clusters())
        for (std::int32_t i = 0; i < c->cells(); i++) {
            Values<Real> exact = s.scheme().initial(s.grid().site(*c, i), s.time());
            double off[3];
            for (int k = 0; k < 3; k++)
                off[k] = static_cast<double>(c->field(means[k])[i] - exact.field[means[k]]);
            double area = forest.area(c->depth[i]);
            height.add(std::fabs(off[0]), area);
            momentum.add(std::hypot(off[1], off[2]), area);
        }
    double area = s.config().width() * s.config().height();
    return {height.of_all(area, s.comm()), momentum.of_all(area, s.comm())};
}

template Difference difference_from_solution(Simulation<float> &);
template Difference difference_from_solution(Simulation<double> &);

} // namespace swe

// SPDX-License-Identifier: GPL-3.0-or-later
// uplift.h - the vertical displacement of the bed that sub-faults make together, as a function of
// the place that costs no more for a thousand of them than for one.
//
// Okada's formulas take a microsecond a sub-fault and place.  But what a sub-fault does is smooth
// on the scale of its distance, and so is a polynomial over any square that is no larger than
// that.  Squares are cut into four, from the domain down, until no sub-fault is nearer: at the
// polynomials' nodes each takes its parent's values and adds those sub-faults that were too near
// to its parent and are not to it.  This is the far field of the fast multipole method (Greengard
// and Rokhlin 1987, doi 10.1016/0021-9991(87)90140-9), with Chebyshev's polynomials for all fields
// (Fong and Darve 2009, doi 10.1016/j.jcp.2009.08.031), and sums handed down at once.
#ifndef SWE_SCENARIO_UPLIFT_H
#define SWE_SCENARIO_UPLIFT_H

#include <array>
#include <cstddef>
#include <vector>
#include "../../config.h"
#include "okada.h"

namespace swe {

class Uplift {
public:
    // By all threads of an OpenMP team; the same to the bit with any number of them.
    Uplift(const std::vector<SubFault> &faults, const Config &config);

    // Rise in m at a place of the domain; that of the nearest, at others.
    double at(double x, double y) const;

    // Of all places.
    double lowest() const { return lowest_; }
    double highest() const { return highest_; }

    // Is some of a sub-fault under the domain, or its edge, by the rectangles of the map around
    // them?
    bool is_under_domain() const { return is_under_domain_; }

    std::size_t squares() const { return squares_.size(); }

private:
    static constexpr int N = 6; // nodes along a side
    using Numbers = std::array<double, std::size_t(N) * N>;
    struct Square {
        double x, y, side; // its south-west corner
        int parent;        // -1: none
        int children = -1; // the first of four: south-west, south-east, north-west, north-east
        Numbers of{};      // coefficients of the products of Chebyshev's polynomials
    };
    struct Pending { // a square, and sub-faults that were too near to its parent
        int square;
        std::vector<int> near;
    };
    struct Box {
        double west, east, south, north, top; // top: depth of the upper edge
    };

    std::vector<Square> squares_; // the first is the domain's
    double east_, north_;         // of the domain
    double lowest_ = 0, highest_ = 0;
    bool is_under_domain_ = false;

    static Box box_of(const SubFault &fault);
    static bool is_near(const Square &square, const Box &box);
    static Numbers coefficients(const Numbers &values);
    static double value(const Square &square, double x, double y);
    bool is_outside(const Square &s) const { return s.x > east_ || s.y > north_; }
    void fill(Pending &pending, const std::vector<SubFault> &faults, const std::vector<Box> &boxes,
              double smallest);
    void cut(const Pending &pending, std::vector<Pending> &next);
};

} // namespace swe
#endif

// SPDX-License-Identifier: GPL-3.0-or-later
// noise.h - a smooth random function of the plane, for beds without a survey.
//
// Value noise: a random number in [-1, 1] at each point with integer coordinates, from a hash of
// the point and the seed, and a polynomial between that is flat at these points (two continuous
// derivatives).  Only integers, sums and products: the same on every machine, if the
// compiler does not contract them (-ffp-contract=off).
#ifndef SWE_SCENARIO_NOISE_H
#define SWE_SCENARIO_NOISE_H

#include <cstdint>

namespace swe {

class Noise {
public:
    explicit Noise(std::uint64_t seed) : seed_(seed) {}

    double operator()(double x, double y) const;

    // Sum of `octaves`, each of half the wavelength and half the amplitude of the one before; the
    // first of wavelength and amplitude 1.  Less than 2 in size.
    double rough(double x, double y, int octaves) const;

    // A number of [-1, 1] for two integers.
    double at(std::int64_t i, std::int64_t j) const;

private:
    std::uint64_t seed_;
};

} // namespace swe
#endif

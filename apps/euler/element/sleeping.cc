// SPDX-License-Identifier: GPL-3.0-or-later
// sleeping.cc - see sleeping.h.
#include "sleeping.h"

#include "../../cells/machine.h"

namespace euler {
namespace {

Sizes without_gas(Sizes sizes)
{
    sizes.state = sizes.scratch = 0;
    return sizes;
}

class Sleeping final : public Element {
public:
    Sleeping(const Config &config, const Sizes &like)
        : Element(without_gas(like)), emulate_(config.emulate)
    {
        machine_open(emulate_.machine.empty() ? nullptr : emulate_.machine.c_str());
    }

    double courant() const override { return 1; }

    void predict(const double *, double, double *, double *, double *) const override
    {
        compute(emulate_.predictor_us);
    }

    void correct(double *, double, const double *, const double *, const Faces &,
                 double *) const override
    {
        compute(emulate_.corrector_us);
    }

    void refine(const double *, int, double *, double *) const override {}
    void add_child(const double *, int, double *, double *) const override {}
    Look look(const double *) const override { return {1, 0}; }
    void means(const double *, double *) const override {}
    void place(std::size_t, double *) const override {}
    double weight(std::size_t) const override { return 0; }

private:
    const decltype(Config::emulate) emulate_;

    void compute(double us) const
    {
        if (us > 0)
            machine_compute(us, static_cast<std::uint32_t>(emulate_.cpus));
    }
};

} // namespace

std::unique_ptr<Element> make_sleeping(const Config &config, const Sizes &like)
{
    return std::make_unique<Sleeping>(config, like);
}

} // namespace euler

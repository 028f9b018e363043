// SPDX-License-Identifier: GPL-3.0-or-later
// roofline.cc - swe_roofline: how fast the kernels of order 0 are, against the memory's bandwidth.
//
// Prints lines of a name and a number: a triad's bytes/s; and for each flux and precision cells/s
// and bytes a cell, with the share of the limit that the triad sets.  All are per core, with as
// many threads at work as the argument says. The bytes of a cell are those that a step has to move:
// the state read and written, bed, depth, and links. `cartesian` is the same flux on a uniform grid
// of squares, with two edges a cell.
//
//     swe_roofline [threads] [bisections of a quarter, 20] [seconds for each number, 1]
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include "flux/augmented.h"
#include "flux/rusanov.h"
#include "synthetic_grid.h"
#include "vectors/vector_bytes.h"

using namespace swe;

namespace {

using Clock = std::chrono::steady_clock;

struct Setting {
    int threads = 1, depth = 20;
    double seconds = 1;
};

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// This thread's time on a core: waiting for other programs' turns is not in it.
double core_seconds()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs work(thread) by all threads at once, again and again, but once at least; returns the shortest
// time that the slowest thread took.
template <class Work> double best_time(const Setting &setting, Work work)
{
    std::atomic<int> arrived{0};
    std::atomic<bool> over{false};
    std::vector<double> took(setting.threads);
    constexpr double NONE = 1e30;
    double best = NONE;           // of thread 0
    auto meet = [&](int &round) { // all threads have come here as often
        arrived++;
        round++;
        while (arrived < round * setting.threads)
            std::this_thread::yield();
    };
    auto body = [&](int thread) {
        int round = 0;
        auto begin = Clock::now();
        work(thread); // warms up
        while (true) {
            meet(round);
            if (thread == 0)
                over = best < NONE && seconds_since(begin) > setting.seconds;
            meet(round);
            if (over)
                return;
            double start = core_seconds();
            work(thread);
            took[thread] = core_seconds() - start;
            meet(round);
            if (thread == 0)
                best = std::min(best, *std::max_element(took.begin(), took.end()));
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < setting.threads; t++)
        others.emplace_back(body, t);
    body(0);
    for (auto &other : others)
        other.join();
    return best;
}

double triad(const Setting &setting)
{
    constexpr std::size_t N = 8 << 20;
    std::vector<AlignedVector<double>> a(setting.threads), b(setting.threads), c(setting.threads);
    double time = best_time(setting, [&](int t) {
        if (a[t].empty()) {
            a[t].assign(N, 0);
            b[t].assign(N, 1);
            c[t].assign(N, 2);
        }
        double *__restrict to = a[t].data();
        const double *__restrict x = b[t].data(), *__restrict y = c[t].data();
        for (std::size_t i = 0; i < N; i++)
            to[i] = x[i] + 3 * y[i];
    });
    return 4 * sizeof(double) * N / time; // what is written is read into the cache before
}

// Waves over a bed: wet everywhere, and, on a hill, dry.
template <class Real> void make_waves(SyntheticGrid<Real> &grid)
{
    grid.fill([](double x, double y, Real &h, Real &hu, Real &hv, Real &bed) {
        double hill = std::exp(-40 * ((x - 0.5) * (x - 0.5) + (y - 0.5) * (y - 0.5)));
        bed = Real(-1 + 1.1 * hill);
        h = Real(std::max(0.0, 0.1 * std::sin(20 * x) * std::cos(15 * y) - double(bed)));
        hu = Real(0.1) * h;
        hv = Real(-0.05) * h;
    });
}

template <class Real> double bytes_of_cell()
{
    int state = 3 * 2 * sizeof(Real), bed = sizeof(Real), depth = 1;
    int links = sizeof(std::int32_t) + sizeof(std::uint8_t);
    return state + bed + depth + links;
}

void print_result(const std::string &name, double cells_s, double bytes, double bandwidth)
{
    std::printf("%s-cells-s %.4g\n%s-ns-cell %.3f\n%s-bytes-cell %.0f\n%s-roofline %.3f\n",
                name.c_str(), cells_s, name.c_str(), 1e9 / cells_s, name.c_str(), bytes,
                name.c_str(), cells_s * bytes / bandwidth);
    std::fflush(stdout);
}

template <class Real> void measure_grid(const Setting &setting, const std::string &name,
                                        SyntheticGrid<Real> &grid, Flux flux, double bandwidth)
{
    FvOptions<Real> options;
    std::vector<FvScratch<Real>> scratch(setting.threads);
    Real dt = std::numeric_limits<Real>::infinity();
    make_waves(grid);
    for (auto &c : grid.clusters)
        dt = std::min(dt, fv_stable_step(c.patch, grid.metric, options));
    dt *= Real(0.01); // ghosts are not updated here: the state shall stay what it is
    std::size_t count = grid.clusters.size(), threads = setting.threads;
    double time = best_time(setting, [&](int t) {
        std::size_t end = count * (t + 1) / threads;
        for (std::size_t k = count * t / threads; k < end; k++) {
            auto &c = grid.clusters[k];
            const Patch<Real> *next = k + 1 < end ? &grid.clusters[k + 1].patch : nullptr;
            fv_step<Real>(c.patch, c.links, grid.metric, flux, options, dt, scratch[t], nullptr,
                          next);
        }
    });
    double cells = static_cast<double>(grid.leaves.size());
    print_result(name, cells / time / setting.threads, bytes_of_cell<Real>(), bandwidth);
}

// The reference: a uniform grid of squares, row by row, with walls around; 1 m wide.
template <class Real> struct Squares {
    static constexpr int FRAME = 16; // ghosts at both ends of a row: as many as keep it aligned
    int nx, ny, stride;
    AlignedVector<Real> h, hu, hv, bed;
    FvOptions<Real> options;

    explicit Squares(int width) : nx(width), ny(width), stride(width + 2 * FRAME)
    {
        std::size_t size = static_cast<std::size_t>(stride) * ny;
        for (auto *array : {&h, &hu, &hv, &bed})
            array->assign(size, Real(0));
        for (std::size_t i = 0; i < size; i++) {
            bed[i] = Real(-1 + 0.3 * std::sin(1e-4 * double(i)));
            h[i] = -bed[i];
            hu[i] = Real(0.1) * h[i];
        }
    }
};

// Rows of cell states and of the fluxes between them.
template <class Real> struct RowScratch {
    AlignedVector<Real> h[2], u[2], v[2], c[2], right[5], up[3];

    explicit RowScratch(int stride)
    {
        for (auto *rows : {h, u, v, c})
            for (int k = 0; k < 2; k++)
                rows[k].resize(stride);
        for (auto &row : right)
            row.resize(stride);
        for (auto &row : up)
            row.resize(stride);
    }
};

template <class Value, class Real>
SWE_INLINE void prepare_row(const Squares<Real> &grid, int row, RowScratch<Real> &s)
{
    constexpr int LANES = sizeof(Value) / sizeof(Real);
    const Value tolerance = all<Value>(grid.options.dry_tolerance);
    std::size_t at = static_cast<std::size_t>(row) * grid.stride;
    for (int i = 0; i < grid.stride; i += LANES) {
        Value h = load<Value>(&grid.h[at + i]);
        Value over_h = is_less(tolerance, h) / maximum(tolerance, h);
        store(&s.h[row % 2][i], h);
        store(&s.u[row % 2][i], load<Value>(&grid.hu[at + i]) * over_h);
        store(&s.v[row % 2][i], load<Value>(&grid.hv[at + i]) * over_h);
        store(&s.c[row % 2][i], root(grid.options.gravity * h));
    }
}

template <bool RUSANOV, class Value, class Real>
SWE_INLINE EdgeFlux<Value> flux_of(const CellState<Value> &own, const CellState<Value> &other,
                                   Real nx, Real ny, const FvOptions<Real> &options)
{
    Value x = all<Value>(nx), y = all<Value>(ny);
    if constexpr (RUSANOV)
        return rusanov(own, other, x, y, options.gravity);
    else
        return augmented(own, other, x, y, options.gravity, options.dry_tolerance);
}

// A row's fluxes to the right and up, and its new state; the flux from below is in s.up.
template <bool RUSANOV, class Value, class Real>
SWE_INLINE void step_row(Squares<Real> &grid, int row, Real dt, RowScratch<Real> &s, Value &fastest)
{
    constexpr int LANES = sizeof(Value) / sizeof(Real), FRAME = Squares<Real>::FRAME;
    std::size_t at = static_cast<std::size_t>(row) * grid.stride;
    int k = row % 2, above = (row + 1) % 2;
    auto state = [&](int r, int i, std::size_t bed_at) {
        return CellState<Value>{load<Value>(&s.h[r][i]), load<Value>(&s.u[r][i]),
                                load<Value>(&s.v[r][i]), load<Value>(&s.c[r][i]),
                                load<Value>(&grid.bed[bed_at])};
    };
    for (int i = FRAME - LANES; i < grid.nx + FRAME; i += LANES) {
        EdgeFlux<Value> f = flux_of<RUSANOV>(state(k, i, at + i), state(k, i + 1, at + i + 1),
                                             Real(1), Real(0), grid.options);
        const Value parts[5] = {f.mass, f.lost_x, f.lost_y, f.gained_x, f.gained_y};
        for (int part = 0; part < 5; part++)
            store(&s.right[part][i], parts[part]);
    }
    for (int i = FRAME; i < grid.nx + FRAME; i += LANES) {
        EdgeFlux<Value> f =
            flux_of<RUSANOV>(state(k, i, at + i), state(above, i, at + grid.stride + i), Real(0),
                             Real(1), grid.options);
        auto change = [&](int lost, int gained, Value up, Value from_below) {
            return dt * ((load<Value>(&s.right[gained][i - 1]) - load<Value>(&s.right[lost][i])) +
                         (from_below - up));
        };
        Value h = load<Value>(&s.h[k][i]) + change(0, 0, f.mass, load<Value>(&s.up[0][i]));
        Value hu = load<Value>(&grid.hu[at + i]) + change(1, 3, f.lost_x, load<Value>(&s.up[1][i]));
        Value hv = load<Value>(&grid.hv[at + i]) + change(2, 4, f.lost_y, load<Value>(&s.up[2][i]));
        store(&s.up[0][i], f.mass);
        store(&s.up[1][i], f.gained_x);
        store(&s.up[2][i], f.gained_y);
        store(&grid.h[at + i], h);
        store(&grid.hu[at + i], hu);
        store(&grid.hv[at + i], hv);
        Value over_h = all<Value>(Real(1)) / h;
        Value u = hu * over_h, v = hv * over_h;
        fastest = maximum(fastest, root(u * u + v * v) + root(grid.options.gravity * h));
    }
}

template <bool RUSANOV, class Real, int BYTES>
SWE_INLINE Real step_rows(Squares<Real> &grid, int first, int last, Real dt, RowScratch<Real> &s)
{
    using Value = Lanes<Real, BYTES>;
    Value fastest{};
    prepare_row<Value>(grid, first, s);
    for (int row = first; row + 1 < last; row++) {
        prepare_row<Value>(grid, row + 1, s);
        step_row<RUSANOV>(grid, row, dt, s, fastest);
    }
    return fastest[0];
}

#ifdef __x86_64__
template <bool RUSANOV, class Real>
__attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))) Real
step_rows_v4(Squares<Real> &grid, int first, int last, Real dt, RowScratch<Real> &s)
{
    return step_rows<RUSANOV, Real, 64>(grid, first, last, dt, s);
}

template <bool RUSANOV, class Real> __attribute__((target("arch=x86-64-v3"))) Real
step_rows_v3(Squares<Real> &grid, int first, int last, Real dt, RowScratch<Real> &s)
{
    return step_rows<RUSANOV, Real, 32>(grid, first, last, dt, s);
}
#endif

template <bool RUSANOV, class Real>
Real step_rows_any(Squares<Real> &grid, int first, int last, Real dt, RowScratch<Real> &s)
{
#ifdef __x86_64__
    if (vector_bytes() == 64)
        return step_rows_v4<RUSANOV>(grid, first, last, dt, s);
    if (vector_bytes() == 32)
        return step_rows_v3<RUSANOV>(grid, first, last, dt, s);
#endif
    return step_rows<RUSANOV, Real, 16>(grid, first, last, dt, s);
}

template <class Real>
void measure_squares(const Setting &setting, const std::string &name, Flux flux, double bandwidth)
{
    Squares<Real> grid(1 << (setting.depth / 2 + 1));
    std::vector<RowScratch<Real>> scratch(setting.threads, RowScratch<Real>(grid.stride));
    Real dt = Real(1e-6);
    double time = best_time(setting, [&](int t) {
        int first = grid.ny * t / setting.threads, last = grid.ny * (t + 1) / setting.threads;
        if (flux == Flux::RUSANOV)
            step_rows_any<true>(grid, first, last, dt, scratch[t]);
        else
            step_rows_any<false>(grid, first, last, dt, scratch[t]);
    });
    double cells = double(grid.nx) * (grid.ny - setting.threads);
    print_result(name, cells / time / setting.threads, 7 * sizeof(Real), bandwidth);
}

template <class Real> void measure(const Setting &setting, const char *precision, double bandwidth)
{
    const struct {
        Flux flux;
        const char *name;
    } fluxes[] = {{Flux::RUSANOV, "rusanov"}, {Flux::AUGMENTED, "augmented"}};
    auto uniform = SyntheticGrid<Real>::uniform(1, setting.depth, 4096);
    for (auto f : fluxes)
        measure_grid(setting, std::string(f.name) + "-" + precision, uniform, f.flux, bandwidth);
    for (auto f : fluxes)
        measure_squares<Real>(setting, std::string(f.name) + "-" + precision + "-cartesian", f.flux,
                              bandwidth);
    int fine = setting.depth + 2;
    SyntheticGrid<Real> adaptive(
        1,
        [=](int depth, double x, double y) {
            double ring = std::abs(std::hypot(x - 0.4, y - 0.6) - 0.3);
            return depth < fine - 6 || (depth < fine && ring < 0.03 + 0.02 * (fine - depth));
        },
        false, 4096);
    for (auto f : fluxes)
        measure_grid(setting, std::string(f.name) + "-" + precision + "-adaptive", adaptive, f.flux,
                     bandwidth);
}

} // namespace

int main(int argc, char **argv)
{
    Setting setting;
    if (argc > 1)
        setting.threads = std::max(1, std::atoi(argv[1]));
    if (argc > 2)
        setting.depth = std::atoi(argv[2]);
    if (argc > 3)
        setting.seconds = std::atof(argv[3]);
    if (setting.depth < 6 || setting.depth > 24) {
        std::fprintf(stderr, "swe_roofline: bisections of a quarter must be 6 to 24\n");
        return 1;
    }
    double bandwidth = triad(setting) / setting.threads;
    std::printf("threads %d\ntriad-bytes-s %.4g\n", setting.threads, bandwidth);
    measure<double>(setting, "double", bandwidth);
    measure<float>(setting, "float", bandwidth);
    return 0;
}

// SPDX-License-Identifier: GPL-3.0-or-later
// replay.cc - goes through the same phases as a recorded simulation (recording.h), and sleeps for
// as long as the work would take: for studies with more cores than there are.
//
// A step: agreement on its length by MPI_Allreduce; for each stage one loop over the clusters,
// shared out as in the simulation (parallel/schedule.h), and messages to the ranks whose parts
// touch.  An adaption: a serial part, a loop over the clusters, and for each sweep messages and an
// agreement.  Each takes so many ns a cell, which its starter has measured, times `scale`:
// sleeps shorter than some 0.5 ms would measure the sleeping.  With machine=FILE threads share the
// CPUs of an emulated machine with all other programs on it (apps/cells/machine.h).  wait=sleep: a
// rank that waits for others looks now and then instead of spinning, which would take the few real
// CPUs from all.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mpi.h>
#include <stdexcept>
#include <string>
#include <vector>
#include "../../cells/machine.h"
#include "../../lib/announce.h"
#include "../parallel/schedule.h"
#include "recording.h"
#ifdef SWE_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#endif

namespace {

using namespace swe;

const char *const USAGE =
    "usage: swe_replay record=PREFIX [ns-per-cell=NS] [adaption-ns=NS] [serial-ns=NS] [scale=X]\n"
    "    [parallel=loop|tasks|owner] [announce=off|on|wait] [wait=block|sleep] [stretches=N]\n"
    "    [machine=FILE] [cpus=N]\n"
    "parallel: loop unless said, as the simulation\n";

constexpr double LOOK_US = 50;

struct Options {
    std::string record, machine;
    double cell_ns = 30;     // of a stage
    double adaption_ns = 30; // a cell, of an adaption: what threads share
    double serial_ns = 0;    // and what one does
    double scale = 1;
    Parallel parallel = Parallel::LOOP;    // as swe's run.parallel
    enum { OFF, ON, WAIT } announce = OFF; // the number of cells to the manager, if there is one
    bool sleeps = false;
    long stretches = -1; // at most so many, if not negative
    int cpus = 2;
};

bool set_number(Options &o, const std::string &name, const char *text)
{
    char *end;
    double value = std::strtod(text, &end);
    if (!*text || *end || !(value >= 0))
        return false;
    if (name == "ns-per-cell")
        o.cell_ns = value;
    else if (name == "adaption-ns")
        o.adaption_ns = value;
    else if (name == "serial-ns")
        o.serial_ns = value;
    else if (name == "scale")
        o.scale = value;
    else if (name == "stretches")
        o.stretches = static_cast<long>(value);
    else if (name == "cpus" && value >= 1)
        o.cpus = static_cast<int>(value);
    else
        return false;
    return true;
}

bool set(Options &o, const std::string &name, const std::string &value)
{
    if (name == "record")
        o.record = value;
    else if (name == "machine")
        o.machine = value;
    else if (name == "parallel" && (value == "tasks" || value == "owner" || value == "loop"))
        o.parallel = value == "owner"  ? Parallel::OWNER
                     : value == "loop" ? Parallel::LOOP
                                       : Parallel::TASKS;
    else if (name == "announce" && (value == "on" || value == "off" || value == "wait"))
        o.announce = value == "on" ? Options::ON : value == "wait" ? Options::WAIT : Options::OFF;
    else if (name == "wait" && (value == "block" || value == "sleep"))
        o.sleeps = value == "sleep";
    else
        return set_number(o, name, value.c_str());
    return true;
}

Options parse(int argc, char **argv)
{
    Options o;
    bool good = true;
    for (int i = 1; i < argc; i++) {
        std::string word = argv[i];
        std::size_t equals = word.find('=');
        good =
            good && equals != word.npos && set(o, word.substr(0, equals), word.substr(equals + 1));
    }
    if (good && !o.record.empty())
        return o;
    std::fputs(USAGE, stderr);
    std::exit(2);
}

class Replay {
public:
    Replay(const Options &options, const Recording &recording)
        : o(options), r(recording), schedule(options.parallel)
    {
        in.resize(r.neighbours.size());
    }

    void run()
    {
        for (const Stretch &s : r.stretches) {
            if (stretches == o.stretches)
                break;
            stretches++;
            schedule.weigh(s.clusters);
            announce(static_cast<double>(s.cells()));
            for (long step = 0; step < s.steps; step++)
                advance(s);
            if (!s.is_last)
                adapt(s);
        }
    }

    long phases() const { return phases_; }
    std::int64_t cell_steps() const { return cell_steps_; }
    double work_seconds() const { return work_us * 1e-6; } // of emulated CPUs

private:
    const Options &o;
    const Recording &r;
    Schedule schedule;
    std::vector<double> in;
    long stretches = 0, phases_ = 0;
    std::int64_t cell_steps_ = 0;
    double work_us = 0;

    double us(std::int64_t cells, double ns) const
    {
        return static_cast<double>(cells) * ns * o.scale * 1e-3;
    }

    void announce(double cells) const
    {
        if (o.announce == Options::WAIT)
            announce_and_wait(cells);
        else if (o.announce == Options::ON)
            announce_workload(cells);
    }

    void compute(double for_us) const
    {
        machine_compute(for_us, static_cast<std::uint32_t>(o.cpus));
    }

    void loop(const Stretch &s, double ns)
    {
        schedule.each(static_cast<int>(s.clusters.size()),
                      [&](int i) { compute(us(s.clusters[i], ns)); });
        work_us += us(s.cells(), ns);
        phases_++;
    }

    void agree()
    {
        double mine = 1, all;
        if (!o.sleeps) {
            MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
            return;
        }
        std::vector<MPI_Request> request(1);
        MPI_Iallreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD, request.data());
        wait(request);
    }

    void wait(std::vector<MPI_Request> &requests) const
    {
        auto count = static_cast<int>(requests.size());
        int done = !o.sleeps;
        if (!o.sleeps)
            MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
        while (!done) {
            MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE);
            if (!done)
                machine_sleep(LOOK_US);
        }
    }

    void swap()
    {
        constexpr int tag = 1;
        std::vector<MPI_Request> requests;
        for (std::size_t i = 0; i < r.neighbours.size(); i++) {
            requests.push_back(MPI_REQUEST_NULL);
            MPI_Irecv(&in[i], 1, MPI_DOUBLE, r.neighbours[i], tag, MPI_COMM_WORLD,
                      &requests.back());
        }
        double out = 1;
        for (int rank : r.neighbours) {
            requests.push_back(MPI_REQUEST_NULL);
            MPI_Isend(&out, 1, MPI_DOUBLE, rank, tag, MPI_COMM_WORLD, &requests.back());
        }
        wait(requests);
    }

    void advance(const Stretch &s)
    {
        agree();
        for (int stage = 0; stage < r.stages; stage++) {
            loop(s, o.cell_ns);
            swap();
            cell_steps_ += s.cells();
        }
    }

    void adapt(const Stretch &s)
    {
        compute(us(s.cells(), o.serial_ns));
        work_us += us(s.cells(), o.serial_ns);
        loop(s, o.adaption_ns);
        for (int sweep = 0; sweep < s.adaption.sweeps; sweep++) {
            swap();
            agree();
        }
    }
};

void run(Replay &replay, const Options &o)
{
#ifdef SWE_TBB
    // As many threads as emulated CPUs: by itself TBB has no more than the machine has.
    tbb::global_control threads(tbb::global_control::max_allowed_parallelism, o.cpus);
    tbb::task_arena(o.cpus).execute([&] { replay.run(); });
#else
    (void)o;
    replay.run();
#endif
}

// "name number" lines.  The checksum is of what was done, on all ranks.
void report(const Replay &replay, double seconds, int rank)
{
    double mine[] = {replay.work_seconds(), static_cast<double>(replay.cell_steps())}, all[2];
    double longest;
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    auto cell_steps = static_cast<unsigned long long>(all[1]);
    std::printf("seconds %.6f\nwork-seconds %.6f\nphases %ld\ncell-steps %llu\nchecksum %016llx\n",
                longest, all[0], replay.phases(), cell_steps,
                cell_steps * 0x9e3779b97f4a7c15u + static_cast<unsigned long>(replay.phases()));
}

Recording recording_of(const Options &o, int rank, int ranks)
{
    Recording r = read_recording(recording_file(o.record, rank));
    if (r.ranks != ranks)
        throw std::runtime_error(o.record + ": of " + std::to_string(r.ranks) + " ranks, not " +
                                 std::to_string(ranks));
    return r;
}

} // namespace

int main(int argc, char **argv)
{
    Options o = parse(argc, argv);
    int provided, rank, ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    try {
        Recording recording = recording_of(o, rank, ranks);
        machine_open(o.machine.empty() ? nullptr : o.machine.c_str());
        Replay replay(o, recording);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        run(replay, o);
        report(replay, MPI_Wtime() - start, rank);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "swe_replay: rank %d: %s\n", rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}

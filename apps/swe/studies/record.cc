// SPDX-License-Identifier: GPL-3.0-or-later
// record.cc - looks at the clusters after each step.
#include "record.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include "../../lib/output/failure.h"
#include "recording.h"

namespace swe {

using namespace apps;

namespace {

// Ranks with a root at a side of one of ours; of two that share but a corner none is the other's.
std::vector<int> neighbours_of(const Forest &forest, int rank)
{
    std::set<int> ranks;
    for (const Root &root : forest.roots())
        for (const auto &across : root.across)
            if (root.rank == rank && across.root >= 0)
                ranks.insert(forest.roots()[across.root].rank);
    ranks.erase(rank);
    return {ranks.begin(), ranks.end()};
}

template <class Real> class Record final : public Simulation<Real>::Watcher {
public:
    Record(Simulation<Real> &simulation, const std::string &prefix)
    {
        Recording header;
        MPI_Comm_size(simulation.comm(), &header.ranks);
        MPI_Comm_rank(simulation.comm(), &header.rank);
        header.stages = simulation.scheme().stages();
        header.neighbours = neighbours_of(simulation.grid().forest(), header.rank);
        file = recording_file(prefix, header.rank);
        errno = 0;
        out.open(file);
        out << header_text(header) << std::flush;
        check(simulation);
        see(simulation);
    }

    void look(Simulation<Real> &simulation) override
    {
        const Account &account = simulation.account();
        double adapting = account.adapting - before.adapting;
        now.seconds += MPI_Wtime() - last_look - adapting;
        now.steps += account.steps - before.steps;
        if (account.adaptions > before.adaptions) {
            now.is_last = false;
            now.adaption = {simulation.grid().last_sweeps(), adapting,
                            account.adapting_serial - before.adapting_serial};
            errno = 0;
            out << stretch_text(now) << std::flush;
            check(simulation);
        }
        see(simulation);
        if (simulation.at_end()) // a run that is aborted leaves a record without an end
            finish(simulation);
    }

private:
    std::string file;
    std::ofstream out;
    Stretch now; // is written when it ends
    Account before;
    double last_look = 0;

    // Collective: a file that one rank cannot write ends all of them.
    void check(Simulation<Real> &simulation)
    {
        all_together(simulation.comm(), [this, reason = errno] {
            if (!out)
                throw OutputError("run.record: cannot write " + file + ": " +
                                  (reason ? std::strerror(reason) : "unknown reason"));
        });
    }

    void finish(Simulation<Real> &simulation)
    {
        errno = 0;
        out << stretch_text(now) << RECORDING_END;
        out.close();
        check(simulation);
    }

    void see(Simulation<Real> &simulation)
    {
        if (!now.is_last || now.clusters.empty()) {
            now = {};
            for (const auto &c : simulation.grid().clusters())
                now.clusters.push_back(c->cells());
        }
        before = simulation.account();
        last_look = MPI_Wtime();
    }
};

} // namespace

template <class Real> void add_record(Simulation<Real> &simulation, const std::string &prefix)
{
    simulation.add(std::make_unique<Record<Real>>(simulation, prefix));
}

template void add_record(Simulation<float> &, const std::string &);
template void add_record(Simulation<double> &, const std::string &);

} // namespace swe

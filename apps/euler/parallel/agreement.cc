// SPDX-License-Identifier: GPL-3.0-or-later
// agreement.cc - see agreement.h.
#include "agreement.h"

#include <cstring>

namespace euler {

Agreement::Agreement(MPI_Comm comm) : comm_(comm)
{
    MPI_Comm_size(comm, &ranks_);
}

void Agreement::begin(const std::vector<int> &begins, const std::vector<Mark> &own, double speed)
{
    begins_ = begins;
    counts_.assign(ranks_, 0);
    places_.assign(ranks_ + 1, 0);
    for (int rank = 0; rank < ranks_; rank++) {
        counts_[rank] = static_cast<int>(sizeof speed) + begins[rank + 1] - begins[rank];
        places_[rank + 1] = places_[rank] + counts_[rank];
    }
    all_.resize(places_[ranks_]);
    own_.resize(sizeof speed + own.size());
    std::memcpy(own_.data(), &speed, sizeof speed);
    std::memcpy(own_.data() + sizeof speed, own.data(), own.size());
    requests_.push_back(MPI_REQUEST_NULL);
    MPI_Iallgatherv(own_.data(), static_cast<int>(own_.size()), MPI_BYTE, all_.data(),
                    counts_.data(), places_.data(), MPI_BYTE, comm_, &requests_.back());
}

void Agreement::finish(double look_us)
{
    wait_all(requests_, look_us);
    marks_.resize(begins_.back());
    speed_ = 0;
    for (int rank = 0; rank < ranks_; rank++) {
        double speed;
        std::memcpy(&speed, &all_[places_[rank]], sizeof speed);
        if (!(speed <= speed_))
            speed_ = speed;
        if (speed != speed)
            break;
        std::memcpy(marks_.data() + begins_[rank], &all_[places_[rank]] + sizeof speed,
                    static_cast<std::size_t>(begins_[rank + 1] - begins_[rank]));
    }
}

} // namespace euler

// SPDX-License-Identifier: GPL-3.0-or-later
// recording.cc - reads and writes the lines.
#include "recording.h"

#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>

namespace swe {

const char *const RECORDING_END = "end\n";
static const char *const FIRST_LINE = "swe-record 1";

std::int64_t Stretch::cells() const
{
    return std::accumulate(clusters.begin(), clusters.end(), std::int64_t{0});
}

std::string recording_file(const std::string &prefix, int rank)
{
    return prefix + "." + std::to_string(rank);
}

std::string header_text(const Recording &r)
{
    std::ostringstream text;
    text << FIRST_LINE << "\nrank " << r.rank << " of " << r.ranks << " stages " << r.stages
         << " neighbours";
    for (int n : r.neighbours)
        text << ' ' << n;
    text << '\n';
    return text.str();
}

std::string stretch_text(const Stretch &s)
{
    std::ostringstream text;
    text << "clusters";
    for (auto cells : s.clusters)
        text << ' ' << cells;
    text << "\nsteps " << s.steps << " seconds " << s.seconds << '\n';
    if (!s.is_last)
        text << "adaption sweeps " << s.adaption.sweeps << " seconds " << s.adaption.seconds
             << " serial " << s.adaption.serial << '\n';
    return text.str();
}

namespace {

// Words and numbers of a line, in turn; the stream fails where something else is there.
struct Word {
    const char *text;
};

std::istream &operator>>(std::istream &in, const Word &expected)
{
    std::string word;
    if (!(in >> word) || word != expected.text)
        in.setstate(std::ios::failbit);
    return in;
}

template <class T> std::vector<T> numbers(std::istream &in)
{
    std::vector<T> all;
    for (T n; in >> n;)
        all.push_back(n);
    if (in.eof())
        in.clear(std::ios::eofbit);
    return all;
}

// One line after the header; false if it is not one.
bool take(Recording &r, std::istringstream &line)
{
    std::string kind;
    line >> kind;
    auto &all = r.stretches;
    if (kind == "clusters") {
        all.emplace_back();
        all.back().clusters = numbers<std::int64_t>(line);
        return !line.fail();
    }
    if (all.empty())
        return false;
    Stretch &s = all.back();
    if (kind == "steps")
        return !!(line >> s.steps >> Word{"seconds"} >> s.seconds);
    s.is_last = false;
    return kind == "adaption" && line >> Word{"sweeps"} >> s.adaption.sweeps >> Word{"seconds"} >>
                                     s.adaption.seconds >> Word{"serial"} >> s.adaption.serial;
}

} // namespace

Recording read_recording(const std::string &file)
{
    std::ifstream in(file);
    if (!in)
        throw std::runtime_error(file + ": cannot be read");
    Recording r;
    std::string text;
    bool good = std::getline(in, text) && text == FIRST_LINE && std::getline(in, text);
    std::istringstream header(text);
    good = good && header >> Word{"rank"} >> r.rank >> Word{"of"} >> r.ranks >> Word{"stages"} >>
                       r.stages >> Word{"neighbours"};
    r.neighbours = numbers<int>(header);
    for (long number = 3; good && std::getline(in, text); number++) {
        if (text + "\n" == RECORDING_END)
            return r;
        std::istringstream line(text);
        if (!take(r, line))
            throw std::runtime_error(file + ": line " + std::to_string(number) +
                                     ": not understood");
    }
    throw std::runtime_error(file + (good ? ": cut off" : ": no record of swe"));
}

} // namespace swe

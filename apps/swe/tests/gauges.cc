// SPDX-License-Identifier: GPL-3.0-or-later
// gauges.cc - are the files of tide gauges whole: new, continued after a checkpoint, cut off in the
// middle of a row, and with an error that says what is wrong?
#include "../scenario/gauges.h"
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>
#include "../../lib/promises.h"
#include "temporary.h"

using namespace swe;

namespace {

std::string content(const std::string &file)
{
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

Config two_gauges(const std::string &directory)
{
    return parse_config("name = \"lake\"\n[domain]\nx0 = -500\nnx = 2\n"
                        "[[gauges]]\nname = \"a\"\nx = 100\ny = 200\n"
                        "[[gauges]]\nname = \"b\"\nx = -500\ny = 0\n",
                        "test.toml", {"output.directory=" + directory});
}

void rows(Check &check)
{
    Temporary place;
    Config c = two_gauges(place.path);
    GaugeWriter writer(c);
    writer.append(0, 0, {9.5, 0.25, -1}, -10);
    writer.append(1, 0.1, {0, 0, 0}, 3);
    writer.append(0, 0.5, {9.75, 0, 0}, -10);
    writer.flush();
    check.that(content(c.output.directory + "/gauge-a.csv") ==
                   "time,eta,h,hu,hv\n0,-0.5,9.5,0.25,-1\n0.5,-0.25,9.75,0,0\n",
               "rows of a");
    check.that(content(c.output.directory + "/gauge-b.csv") ==
                   "time,eta,h,hu,hv\n0.10000000000000001,3,0,0,0\n",
               "rows of b");
}

void restart(Check &check)
{
    Temporary place;
    Config c = two_gauges(place.path);
    std::string file = place.path + "/gauge-a.csv";
    std::ofstream(file) << "time,eta,h,hu,hv\n0,1,1,1,1\n0.5,2,2,2,2\n1,3,3,3,3\n1.5,4,4,";
    {
        GaugeWriter writer(c, 1);
        writer.append(0, 1, {1, 0, 0}, 1);
    }
    check.that(content(file) == "time,eta,h,hu,hv\n0,1,1,1,1\n0.5,2,2,2,2\n1,2,1,0,0\n",
               "later rows go: " + content(file));
    check.that(content(place.path + "/gauge-b.csv") == "time,eta,h,hu,hv\n",
               "a new gauge has a file");
    std::ofstream(file) << "time,eta,h,hu,hv\n0,1,1,1,1\n0.";
    {
        GaugeWriter writer(c, 10);
    }
    check.that(content(file) == "time,eta,h,hu,hv\n0,1,1,1,1\n", "a row that was cut off goes");
    std::ofstream(file) << "";
    {
        GaugeWriter writer(c, 10);
    }
    check.that(content(file) == "time,eta,h,hu,hv\n", "an empty file begins anew");
}

// What a run that is killed leaves: nothing is closed.
void killed(Check &check)
{
    Temporary place;
    Config c = two_gauges(place.path);
    std::string file = place.path + "/gauge-a.csv";
    GaugeWriter writer(c);
    check.that(content(file) == "time,eta,h,hu,hv\n", "the header is there at once");
    writer.append(0, 0.5, {1, 0, 0}, 1);
    writer.flush();
    check.that(content(file) == "time,eta,h,hu,hv\n0.5,2,1,0,0\n", "a row, before the end");
}

void errors(Check &check)
{
    Temporary place;
    Config c = two_gauges(place.path);
    std::ofstream(place.path + "/gauge-a.csv") << "my thesis\n";
    try {
        GaugeWriter writer(c, 1);
        check.that(false, "another file is taken for a gauge's");
    } catch (const std::runtime_error &e) {
        check.contains(e.what(), "gauge-a.csv: not the rows of a gauge");
    }
    check.that(content(place.path + "/gauge-a.csv") == "my thesis\n", "and is left alone");
    c.output.directory = place.path + "/gauge-a.csv/sub";
    try {
        GaugeWriter writer(c);
        check.that(false, "a file for a directory");
    } catch (const std::runtime_error &e) {
        check.contains(e.what(), "gauge-a.csv/sub/gauge-a.csv: cannot write: Not a directory");
    }
}

void full_disk(Check &check)
{
    if (access("/dev/full", W_OK) != 0)
        return;
    Temporary place;
    Config c = two_gauges(place.path);
    std::filesystem::create_symlink("/dev/full", place.path + "/gauge-a.csv");
    try {
        GaugeWriter writer(c);
        check.that(false, "a full disk is not seen");
    } catch (const std::runtime_error &e) {
        check.contains(e.what(), "gauge-a.csv: cannot write: No space left");
    }
}

// Room for the headers, but not for a row.
void disk_that_fills(Check &check)
{
    Temporary place;
    GaugeWriter writer(two_gauges(place.path));
    rlimit before{}, limit{};
    getrlimit(RLIMIT_FSIZE, &before);
    limit = {20, before.rlim_max};
    auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
        writer.append(0, 0.5, {1, 0, 0}, 1);
        writer.flush();
        check.that(false, "a disk that is full is not seen");
    } catch (const std::runtime_error &e) {
        check.contains(e.what(), "gauge-a.csv: cannot write: File too large");
    }
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
}

void points(Check &check)
{
    Config c = two_gauges("x");
    Lattice a = gauge_point(c, c.gauges[0]), b = gauge_point(c, c.gauges[1]);
    check.near(double(a.x), 0.6 * LATTICE_UNIT, 1, "x of a");
    check.near(double(a.y), 0.2 * LATTICE_UNIT, 1, "y of a");
    check.that(b == Lattice{0, 0}, "b is the corner");
    Gauge east{"c", 1499.9999999999998, 999.9999999999999};
    Lattice e = gauge_point(c, east);
    check.that(e.x < 2 * LATTICE_UNIT && e.y < LATTICE_UNIT, "never on the far ends");
}

} // namespace

int main(int argc, char **argv)
{
    return run_promises(argc, argv,
                        {{"rows_are_written", rows},
                         {"restart_takes_later_rows_away", restart},
                         {"rows_are_there_when_a_run_is_killed", killed},
                         {"errors_name_the_file", errors},
                         {"full_disk_is_told", full_disk},
                         {"disk_that_fills_is_told", disk_that_fills},
                         {"points_are_in_the_domain", points}});
}

// SPDX-License-Identifier: GPL-3.0-or-later
// progress.h - one line that says how far the simulation is, how fast, and how long it will take.
#ifndef APPS_LIB_PROGRESS_H
#define APPS_LIB_PROGRESS_H

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

namespace apps {

// On a terminal the line is rewritten five times a second at most; elsewhere, as in a log file,
// there is a new one every ten seconds.  Not enabled (other ranks than 0, output.progress =
// false): no cost but a test.
class Progress {
public:
    using Clock = std::function<double()>; // s since whenever; tests have their own

    Progress(bool enabled, double end_time, long max_steps, std::FILE *stream = stderr,
             Clock clock = Clock());
    ~Progress() { finish(); }
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    // After a time step: its number, the time it came to, its size, and the cells of all ranks.
    void step(long number, double time, double dt, long cells)
    {
        if (enabled)
            record(number, time, dt, cells);
    }

    // Ends the line of a terminal, so that other messages have their own; step() goes on below.
    void finish();

private:
    bool enabled;
    double end_time;
    long max_steps;
    std::FILE *stream;
    Clock clock;
    bool terminal, line_open = false;
    double shown = 0;                       // when the last line was
    double first_clock = 0, first_time = 0; // where the estimate begins
    long first_number = -1;
    double updates = 0; // cells that were advanced since the last line

    void record(long number, double time, double dt, long cells);
    void show(long number, double time, double dt, long cells, double now);
    double seconds_left(long number, double time, double now) const;
};

// h:mm:ss, or "?" of what is not finite.
std::string hours(double seconds);

} // namespace apps
#endif

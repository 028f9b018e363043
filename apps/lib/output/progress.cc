// SPDX-License-Identifier: GPL-3.0-or-later
// progress.cc - see progress.h.
#include "progress.h"

#include <algorithm>
#include <cmath>
#include <unistd.h>

namespace apps {

namespace {

constexpr double TERMINAL_S = 0.2, LOG_S = 10;

double steady_seconds()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

} // namespace

Progress::Progress(bool on, double end, long steps, std::FILE *to, Clock own)
    : enabled(on), end_time(end), max_steps(steps), stream(to),
      clock(own ? std::move(own) : Clock(steady_seconds)), terminal(isatty(fileno(to)) == 1)
{
}

void Progress::record(long number, double time, double dt, long cells)
{
    const double now = clock();
    if (first_number < 0) { // of the step before it we know neither time nor work
        first_number = number;
        first_time = time;
        first_clock = shown = now;
        return;
    }
    updates += static_cast<double>(cells);
    if (now - shown >= (terminal ? TERMINAL_S : LOG_S))
        show(number, time, dt, cells, now);
}

// The rest goes as fast as all before since the program began: steadier than the last seconds, and
// right where they differ by the writing of files.
double Progress::seconds_left(long number, double time, double now) const
{
    const double elapsed = now - first_clock;
    double left = elapsed * (end_time - time) / (time - first_time);
    if (max_steps >= 0)
        left = std::min(left, elapsed * static_cast<double>(max_steps - number) /
                                  static_cast<double>(number - first_number));
    return left;
}

void Progress::show(long number, double time, double dt, long cells, double now)
{
    std::fprintf(stream,
                 "%st %.6g of %.6g s  step %ld  dt %.3g s  %ld cells  %.3g cells/s  ETA %s%s",
                 terminal ? "\r" : "", time, end_time, number, dt, cells, updates / (now - shown),
                 hours(seconds_left(number, time, now)).c_str(), terminal ? "\x1b[K" : "\n");
    std::fflush(stream);
    line_open = terminal;
    shown = now;
    updates = 0;
}

void Progress::finish()
{
    if (line_open)
        std::fputc('\n', stream);
    line_open = false;
}

std::string hours(double seconds)
{
    if (!std::isfinite(seconds) || seconds < 0 || seconds > 3.6e9)
        return "?";
    const long s = std::lround(seconds);
    char text[40];
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

} // namespace apps

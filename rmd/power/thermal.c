/* SPDX-License-Identifier: GPL-3.0-or-later */
/* thermal.c - see thermal.h. */
#define _GNU_SOURCE
#include "rmd/power/thermal.h"
#include "rmd/host/sysfile.h"

#include <glob.h>
#include <math.h>
#include <string.h>

/* AHEAD: looks for which the temperature is guessed.  DOWN_A_DEGREE, DOWN_LEAST: by which the speed
 * falls for each degree above the threshold, and at least.  UP: by which it grows, and from how
 * many degrees below the threshold on.  Chosen by simulation of chips that take 4, 8 and 30 s to
 * warm up, with thresholds that ask for 0.69 to 0.94 of the speed: of 375 choices nearly the one
 * that costs least, 1 % of the time over the best constant speed, and 5 % with sensors that tell
 * whole degrees. */
static const double AHEAD = 4, DOWN_A_DEGREE = 0.03, DOWN_LEAST = 0.005, UP = 0.02, BELOW = 1;

double rmd_thermal_next(double part, double now, double last, double threshold)
{
    double expected = now + AHEAD * fmax(now - last, 0);
    if (expected > threshold)
        part -= fmax(DOWN_LEAST, DOWN_A_DEGREE * (expected - threshold));
    else if (expected < threshold - BELOW)
        part += UP;
    return fmin(1, fmax(RMD_THERMAL_SLOWEST, part));
}

/* --- sensors */

/* The drivers and types of sensors in CPUs; the first word of a file has to begin so. */
static const char *const drivers[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal", NULL};
static const char *const types[] = {"x86_pkg_temp", "cpu", NULL};

static bool is_of_cpu(const char *path, const char *const *names)
{
    struct rmd_sysfile file = rmd_sysfile(path, "%s", "");
    char text[32];
    bool found = false;
    rmd_sysfile_read_line(&file, text, sizeof text);
    for (; *names && !found; names++)
        found = !strncmp(text, *names, strlen(*names));
    return found;
}

static unsigned add_files(const char *pattern, double *hottest)
{
    glob_t found;
    unsigned n = 0;
    if (!glob(pattern, 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct rmd_sysfile file = rmd_sysfile(found.gl_pathv[i], "%s", "");
            uint64_t millidegrees;
            if (!rmd_sysfile_read(&file, &millidegrees) || millidegrees > 200000)
                continue; /* below zero, or nonsense */
            *hottest = fmax(n++ ? *hottest : 0, 1e-3 * (double)millidegrees);
        }
    globfree(&found);
    return n;
}

/* Of the devices whose file `kind` has one of these names, the files of this pattern. */
static unsigned read_sensors(const char *root, const char *devices, const char *kind,
                             const char *const *names, const char *pattern, double *hottest)
{
    struct rmd_sysfile all = rmd_sysfile(root, "%s/%s", devices, kind);
    glob_t found;
    unsigned n = 0;
    if (!glob(all.path, 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++) {
            double here = 0;
            if (!is_of_cpu(found.gl_pathv[i], names))
                continue;
            struct rmd_sysfile files = rmd_sysfile(found.gl_pathv[i], "%s", "");
            strcpy(strrchr(files.path, '/') + 1, pattern);
            unsigned more = add_files(files.path, &here);
            if (more)
                *hottest = fmax(n ? *hottest : 0, here);
            n += more;
        }
    globfree(&found);
    return n;
}

unsigned rmd_thermal_read(const char *root, double *hottest)
{
    unsigned n =
        read_sensors(root, "/sys/class/hwmon/hwmon*", "name", drivers, "temp*_input", hottest);
    return n ? n
             : read_sensors(root, "/sys/class/thermal/thermal_zone*", "type", types, "temp",
                            hottest);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sensors.c - see sensors.h. */
#define _GNU_SOURCE
#include "rmd/power/sensors.h"
#include "rmd/host/online.h"
#include "rmd/host/sysfile.h"
#include "rmd/loop/log.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The drivers and types of sensors in CPUs; the first word of a file has to begin so. */
static const char *const drivers[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal", NULL};
static const char *const types[] = {"x86_pkg_temp", "cpu", NULL};

#define THERMAL_ZONE "/sys/class/thermal/thermal_zone"

#define PACKAGE_LABEL "Package id "

struct look {
    struct rmd_sensors *sensors;
    const struct rmd_chips *chips;
    unsigned chip; /* of the device that is read, or RMD_NO_CHIP */
    size_t root_length; /* of paths */
    uint64_t now_ns;
    unsigned next; /* index of the sensor that is expected: files keep their order */
};

static struct rmd_sensor *find_sensor(struct look *l, const char *name)
{
    struct rmd_sensors *s = l->sensors;
    for (unsigned i = 0; i < s->count; i++) {
        unsigned at = (l->next + i) % s->count;
        if (strcmp(s->known[at].name, name) == 0) {
            l->next = at + 1;
            return &s->known[at];
        }
    }
    return NULL;
}

static struct rmd_sensor *remember_sensor(struct look *l, const char *name)
{
    struct rmd_sensors *s = l->sensors;
    if (s->count == RMD_SENSORS || strlen(name) >= sizeof s->known->name)
        return NULL;
    struct rmd_sensor *sensor = &s->known[s->count++];
    *sensor = (struct rmd_sensor){.missing = true, /* until it has been read */
                                  .chip = (unsigned char)l->chip};
    strcpy(sensor->name, name);
    l->next = s->count;
    return sensor;
}

static void count_reading(struct rmd_heat_seen *seen, double degrees)
{
    seen->hottest = seen->read++ ? fmax(seen->hottest, degrees) : degrees;
}

static void read_sensor(struct look *l, const char *path)
{
    struct rmd_sensors *s = l->sensors;
    struct rmd_sysfile file = rmd_sysfile(path, "%s", "");
    const char *name = file.path + l->root_length;
    struct rmd_sensor *sensor = find_sensor(l, name);
    uint64_t millidegrees;
    if (sensor) {
        sensor->listed_ns = l->now_ns;
        sensor->chip = (unsigned char)l->chip;
    }
    if (!rmd_sysfile_read(&file, &millidegrees) || millidegrees > 200000)
        return; /* below zero, or nonsense */
    double degrees = 1e-3 * (double)millidegrees;
    count_reading(&s->all, degrees);
    for (unsigned i = 0; i < l->chips->count; i++)
        if (l->chip == i || l->chip == RMD_NO_CHIP)
            count_reading(&s->chip[i], degrees);
    if (!sensor && !(sensor = remember_sensor(l, name)))
        return;
    sensor->read_ns = sensor->listed_ns = l->now_ns;
    sensor->online = s->online;
}

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

static void read_files(struct look *l, const char *pattern)
{
    glob_t found;
    if (!glob(pattern, 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            read_sensor(l, found.gl_pathv[i]);
    globfree(&found);
}

/* The chip of the device whose file `kind` this is.  coretemp's first sensor has the label of the
 * package.  A device of PCI lists the CPUs near it. */
static unsigned chip_of_device(const struct rmd_chips *chips, const char *kind)
{
    struct rmd_sysfile file = rmd_sysfile(kind, "%s", "");
    char text[32];
    unsigned package;
    if (chips->count == 1)
        return 0;
    char *name = strrchr(file.path, '/') + 1;
    strcpy(name, "temp1_label");
    if (rmd_sysfile_read_line(&file, text, sizeof text) &&
        sscanf(text, PACKAGE_LABEL "%u", &package) == 1)
        return rmd_chips_of_package(chips, package);
    strcpy(name, "device/local_cpulist");
    return rmd_chips_of_cpu_list(chips, file.path);
}

/* Of the devices whose file `kind` has one of these names, the files of this pattern. */
static void read_devices(struct look *l, const char *root, const char *devices, const char *kind,
                         const char *const *names, const char *pattern)
{
    struct rmd_sysfile all = rmd_sysfile(root, "%s/%s", devices, kind);
    bool zones = !strcmp(kind, "type");
    glob_t found;
    if (!glob(all.path, 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++) {
            if (!is_of_cpu(found.gl_pathv[i], names))
                continue;
            struct rmd_sysfile files = rmd_sysfile(found.gl_pathv[i], "%s", "");
            strcpy(strrchr(files.path, '/') + 1, pattern);
            l->chip = zones ? RMD_NO_CHIP : chip_of_device(l->chips, found.gl_pathv[i]);
            read_files(l, files.path);
        }
    globfree(&found);
}

/* Thermal zones stand in for the sensors of hwmon, and are not missed when those can be read. */
static void forget_zones(struct rmd_sensors *s)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < s->count; i++)
        if (strncmp(s->known[i].name, THERMAL_ZONE, strlen(THERMAL_ZONE)) != 0)
            s->known[kept++] = s->known[i];
    s->count = kept;
}

/* Is the sensor gone because a CPU was taken offline? */
static bool is_gone(const struct rmd_sensors *s, const struct rmd_sensor *sensor, uint64_t now_ns)
{
    return sensor->listed_ns != now_ns && s->online && s->online < sensor->online &&
           now_ns - sensor->read_ns >= RMD_SENSOR_GONE_S * UINT64_C(1000000000);
}

/* While none can be read none is given up: those that are gone may come back with the others. */
static void give_up_gone(struct rmd_sensors *s, uint64_t now_ns)
{
    unsigned kept = 0, gone = 0;
    char first[sizeof s->known->name] = "";
    for (unsigned i = 0; s->all.read && i < s->count; i++)
        if (!is_gone(s, &s->known[i], now_ns))
            s->known[kept++] = s->known[i];
        else if (!gone++)
            strcpy(first, s->known[i].name);
    if (!gone)
        return;
    s->count = kept;
    rmd_log(RMD_NOTICE,
            "%u sensor%s gone since a CPU went offline (%s%s): heat is limited by the others", gone,
            gone == 1 ? " is" : "s are", first, gone == 1 ? "" : ", ...");
}

/* Counts a known sensor.  changed: it was missing at the look before, and is not now, or the other
 * way round. */
static void count_known(struct rmd_heat_seen *seen, bool missing, bool changed)
{
    seen->known++;
    seen->missing += missing;
    seen->changed |= changed;
}

static void count_sensor(struct rmd_sensors *s, const struct rmd_sensor *sensor, bool missing)
{
    bool changed = missing != sensor->missing;
    count_known(&s->all, missing, changed);
    for (unsigned i = 0; i < RMD_CHIPS; i++)
        if (sensor->chip == i || sensor->chip == RMD_NO_CHIP)
            count_known(&s->chip[i], missing, changed);
}

/* Counts the sensors, and those that are missing, and logs those that have been for RMD_SENSOR_TELL_S. */
static void find_missing(struct rmd_sensors *s, uint64_t now_ns)
{
    unsigned told = 0;
    const char *first = "";
    for (unsigned i = 0; i < s->count; i++) {
        struct rmd_sensor *sensor = &s->known[i];
        bool missing = sensor->read_ns != now_ns;
        count_sensor(s, sensor, missing);
        sensor->missing = missing;
        sensor->told &= missing;
        if (!missing || sensor->told || !s->all.read ||
            now_ns - sensor->read_ns < RMD_SENSOR_TELL_S * UINT64_C(1000000000))
            continue;
        sensor->told = true;
        first = told++ ? first : sensor->name;
    }
    if (told)
        rmd_log(RMD_WARNING,
                "%u sensor%s of the CPUs cannot be read any more (%s%s): the CPUs do not become "
                "faster until that ends, or rmctl power sets a threshold again",
                told, told == 1 ? "" : "s", first, told == 1 ? "" : ", ...");
}

/* `hottest` stays until a sensor is read. */
static void begin_look(struct rmd_heat_seen *seen)
{
    *seen = (struct rmd_heat_seen){.hottest = seen->hottest};
}

void rmd_sensors_look(struct rmd_sensors *s, const char *root, const struct rmd_chips *chips,
                      uint64_t now_ns)
{
    struct rmd_sysfile top = rmd_sysfile(root, "%s", "");
    struct look l = {.sensors = s, .chips = chips, .root_length = strlen(top.path), .now_ns = now_ns};
    begin_look(&s->all);
    for (unsigned i = 0; i < RMD_CHIPS; i++)
        begin_look(&s->chip[i]);
    s->online = rmd_online_count(root);
    read_devices(&l, root, "/sys/class/hwmon/hwmon*", "name", drivers, "temp*_input");
    if (s->all.read)
        forget_zones(s);
    else
        read_devices(&l, root, THERMAL_ZONE "*", "type", types, "temp");
    give_up_gone(s, now_ns);
    find_missing(s, now_ns);
}

static void forget_missing(struct rmd_heat_seen *seen)
{
    seen->known -= seen->missing;
    seen->missing = 0;
}

void rmd_sensors_forget_missing(struct rmd_sensors *s)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < s->count; i++)
        if (!s->known[i].missing)
            s->known[kept++] = s->known[i];
    s->count = kept;
    forget_missing(&s->all);
    for (unsigned i = 0; i < RMD_CHIPS; i++)
        forget_missing(&s->chip[i]);
}

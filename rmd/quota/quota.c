/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quota.c - in a directory of each group, in microseconds:
 *
 *   cpu.max                                 version 2: "QUOTA PERIOD", QUOTA may be "max"
 *   cpu.cfs_quota_us, cpu.cfs_period_us     version 1; quota -1: none
 *   cpu.stat                                "nr_periods N", "nr_throttled N"
 *
 * A machine may have the hierarchies of both versions, and the controller in either.
 */
#define _GNU_SOURCE
#include "rmd/quota/quota.h"
#include "rmd/host/sysfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of the kernel: a period has 1 ms to 1 s.  What is more than that for a million CPUs is no quota.
 * */
enum { PERIOD_LEAST_US = 1000, PERIOD_MOST_US = 1000000 };
#define QUOTA_MOST_US INT64_C(1000000000000)

double rmd_quota_cores(const struct rmd_quota *q)
{
    return q->quota_ns ? (double)q->quota_ns / (double)q->period_ns : 0;
}

/* Is the text one number, followed by nothing? */
static bool parse_us(const char *text, int64_t *us)
{
    char *end;
    *us = strtoll(text, &end, 10);
    return end != text && !*end;
}

/* error: of reading, or 0. */
static void ignore_file(struct rmd_quota *q, const struct rmd_sysfile *file, const char *text, int error)
{
    memcpy(q->nonsense, file->path, sizeof q->nonsense);
    snprintf(q->text, sizeof q->text, "%s", text);
    q->error = error;
}

/* Reads a line of a file of the group; an empty file has an empty line.  False: there is no such
 * file, or it cannot be read, and is ignored. */
static bool read_file(struct rmd_quota *q, const struct rmd_sysfile *file, char *line, size_t bytes)
{
    errno = 0;
    if (rmd_sysfile_read_line(file, line, bytes) || !errno)
        return true;
    if (errno != ENOENT && errno != ENODEV) /* ENODEV: the group was removed a moment ago */
        ignore_file(q, file, "", errno);
    return false;
}

/* Takes the quota of the group if it is tighter.  `file` is the one of the quota. */
static void consider(struct rmd_quota *q, const char *root, const char *directory,
                     const struct rmd_sysfile *file, const char *quota_text, const char *period_text)
{
    int64_t quota, period;
    if (!parse_us(period_text, &period) || period < PERIOD_LEAST_US || period > PERIOD_MOST_US ||
        !parse_us(quota_text, &quota) || quota <= 0 || quota > QUOTA_MOST_US) {
        char text[sizeof q->text];
        snprintf(text, sizeof text, "%s%s%s", quota_text, *period_text ? " " : "", period_text);
        ignore_file(q, file, text, 0);
        return;
    }
    struct rmd_quota one = {.quota_ns = (uint64_t)quota * 1000, .period_ns = (uint64_t)period * 1000};
    if (q->quota_ns && rmd_quota_cores(&one) >= rmd_quota_cores(q))
        return;
    struct rmd_sysfile group = rmd_sysfile(root, "%s", directory);
    q->quota_ns = one.quota_ns;
    q->period_ns = one.period_ns;
    memcpy(q->group, group.path, sizeof q->group);
}

static void consider_v2(struct rmd_quota *q, const char *root, const char *directory)
{
    struct rmd_sysfile file = rmd_sysfile(root, "%s/cpu.max", directory);
    char line[64], quota[24], period[24] = "100000";
    if (!read_file(q, &file, line, sizeof line))
        return;
    int words = sscanf(line, "%23s %23s", quota, period);
    if (words < 1)
        ignore_file(q, &file, line, 0);
    else if (strcmp(quota, "max") != 0)
        consider(q, root, directory, &file, quota, period);
}

static void consider_v1(struct rmd_quota *q, const char *root, const char *directory)
{
    struct rmd_sysfile quota_file = rmd_sysfile(root, "%s/cpu.cfs_quota_us", directory);
    struct rmd_sysfile period_file = rmd_sysfile(root, "%s/cpu.cfs_period_us", directory);
    char quota[24], period[24];
    if (read_file(q, &quota_file, quota, sizeof quota) && strcmp(quota, "-1") != 0 &&
        read_file(q, &period_file, period, sizeof period))
        consider(q, root, directory, &quota_file, quota, period);
}

/* Where the hierarchy is mounted: which directory, and which group that is. */
struct mounted {
    char at[256], group[256];
};

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ',') && (p[n] == ',' || !p[n]))
            return true;
    return false;
}

/* A line of mountinfo: "ID PARENT DEVICE GROUP AT ... - TYPE SOURCE OPTIONS". */
static bool find_mount(const char *root, bool v2, struct mounted *m)
{
    char line[2048], type[16], options[256];
    struct rmd_sysfile file = rmd_sysfile(root, "/proc/self/mountinfo");
    FILE *f = fopen(file.path, "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *rest = strstr(line, " - ");
        found = rest && sscanf(line, "%*s %*s %*s %255s %255s", m->group, m->at) == 2 &&
                sscanf(rest, " - %15s %*s %255s", type, options) == 2 &&
                (v2 ? !strcmp(type, "cgroup2")
                    : !strcmp(type, "cgroup") && has_word(options, "cpu"));
    }
    if (f)
        fclose(f);
    return found;
}

/* The group, and all above it up to the one that is mounted.  In a container that one may be the
 * container's own, by a path of the machine's. */
static void consider_groups(struct rmd_quota *q, const char *root, bool v2, const char *group)
{
    struct mounted m;
    if (!find_mount(root, v2, &m))
        return;
    size_t above = strcmp(m.group, "/") ? strlen(m.group) : 0;
    bool below = !strncmp(group, m.group, above) && (!group[above] || group[above] == '/');
    char directory[512];
    size_t top = strlen(m.at);
    snprintf(directory, sizeof directory, "%s%s", m.at, below ? group + above : "");
    for (char *slash; (slash = strrchr(directory, '/')) && slash[1] == '\0' && slash != directory;)
        *slash = '\0';
    for (;;) {
        if (v2)
            consider_v2(q, root, directory);
        else
            consider_v1(q, root, directory);
        char *slash = strrchr(directory, '/');
        if (strlen(directory) <= top || !slash)
            return;
        *slash = '\0';
    }
}

void rmd_quota_of(struct rmd_quota *q, const char *root, pid_t pid)
{
    char line[768];
    struct rmd_sysfile file = pid ? rmd_sysfile(root, "/proc/%d/cgroup", (int)pid)
                                  : rmd_sysfile(root, "/proc/self/cgroup");
    memset(q, 0, sizeof *q);
    FILE *f = fopen(file.path, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':')
                                                                    : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        bool v2 = !strcmp(line, "0:");
        if (*group == '/' && !strstr(group, "/..") && (v2 || has_word(controllers + 1, "cpu")))
            consider_groups(q, root, v2, group);
    }
    if (f)
        fclose(f);
}

bool rmd_quota_periods(const struct rmd_quota *q, uint64_t *periods, uint64_t *throttled)
{
    char line[64];
    struct rmd_sysfile file = rmd_sysfile("", "%s/cpu.stat", q->group);
    int found = 0;
    FILE *f = fopen(file.path, "re");
    while (f && found < 2 && fgets(line, sizeof line, f))
        found += sscanf(line, "nr_periods %" SCNu64, periods) == 1 ||
                 sscanf(line, "nr_throttled %" SCNu64, throttled) == 1;
    if (f)
        fclose(f);
    return found == 2;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cgroup.c - files in a directory, by their names in both versions:
 *
 *   BASE/cgroup.controllers         is there in version 2 only
 *   BASE/cgroup.subtree_control     version 2: "+cpuset", or its groups have no cpuset.cpus
 *   BASE/invasive-UID/cpuset.cpus   the CPUs
 *   BASE/invasive-UID/cpuset.mems   version 1: must be filled before a process may enter
 *   BASE/invasive-UID/cgroup.procs  write a pid and it enters
 *
 * In version 2 a group that has processes can have no groups with processes and controllers, so rmd
 * goes into BASE/rmd itself where it is in the way (the unit has Delegate=cpuset).  Files are
 * opened with O_CREAT, which means nothing to the kernel's, so that a test may use an ordinary
 * directory.
 */
#define _GNU_SOURCE
#include "cgroup.h"
#include "cpulist.h"
#include "log.h"
#include "procstat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOVES = 256, /* processes that are put back at a time, while others wait for rmd */
    PASSES = 8   /* who forks faster than this waits for the next check */
};

/* A group of a user who has no members any more, with processes in it. */
struct leftover {
    struct leftover *next;
    uid_t uid;
    char *home;   /* where they go; NULL unknown */
    bool widened; /* it has all CPUs */
    bool said;
};

static char base[PATH_MAX], top[PATH_MAX]; /* top: of the hierarchy */
static bool version_2;
static struct leftover *leftovers;

/* DIRECTORY/NAME */
static bool path_of(char path[PATH_MAX], const char *directory, const char *name)
{
    int n = snprintf(path, PATH_MAX, "%s/%s", directory, name);
    errno = ENAMETOOLONG;
    return n > 0 && n < PATH_MAX;
}

static bool write_text(const char *directory, const char *name, const char *text, int flags)
{
    char path[PATH_MAX];
    if (!path_of(path, directory, name))
        return false;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    if (fd < 0)
        return false;
    size_t length = strlen(text);
    ssize_t n = write(fd, text, length);
    int saved = errno;
    close(fd);
    errno = saved;
    return n == (ssize_t)length;
}

static bool has(const char *directory, const char *name)
{
    char path[PATH_MAX];
    return path_of(path, directory, name) && !access(path, F_OK);
}

static bool read_text(const char *directory, const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    int fd = path_of(path, directory, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static void name_of(char name[32], uid_t uid)
{
    snprintf(name, 32, "invasive-%u", (unsigned)uid);
}

static bool group_of(char path[PATH_MAX], uid_t uid)
{
    char name[32];
    name_of(name, uid);
    return path_of(path, base, name);
}

/* --- where */

/* The group of a process, "/..." below the mount point, from /proc/PID/cgroup: version 2 "0::PATH",
 * version 1 "N:...,cpuset,...:PATH". */
static bool group_of_process(pid_t pid, char path[PATH_MAX])
{
    char name[40], line[PATH_MAX + 64];
    bool found = false;
    snprintf(name, sizeof name, "/proc/%d/cgroup", (int)pid);
    FILE *f = fopen(name, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(++controllers, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        found = version_2 ? !strncmp(line, "0:", 2) && !*controllers
                          : strstr(controllers, "cpuset") != NULL;
        if (found)
            snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, group);
    }
    if (f)
        fclose(f);
    return found;
}

/* Is it the user's?  One may be called so that is elsewhere.  Where a part of the hierarchy only is
 * mounted nobody can tell. */
static bool is_group_of(const char *group, uid_t uid)
{
    char name[32], own[PATH_MAX], path[PATH_MAX];
    struct stat a, b;
    name_of(name, uid);
    const char *last = strrchr(group, '/');
    if (!last || strcmp(last + 1, name) != 0 || strstr(group, "/.."))
        return false;
    if (!path_of(path, top, group + 1) || stat(path, &a))
        return true;
    return group_of(own, uid) && !stat(own, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The mount point of the hierarchy: a line of /proc/self/mounts. */
static bool mount_point(char path[PATH_MAX])
{
    char line[PATH_MAX], where[1024], type[32], options[512];
    bool found = false;
    FILE *f = fopen("/proc/self/mounts", "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%*s %1023s %31s %511s", where, type, options) != 3)
            continue;
        found = version_2 ? !strcmp(type, "cgroup2")
                          : !strcmp(type, "cgroup") && strstr(options, "cpuset");
        if (found)
            snprintf(path, PATH_MAX, "%s", where);
    }
    if (f)
        fclose(f);
    return found;
}

static bool controls_cpusets(const char *directory)
{
    char controllers[512];
    return !version_2 || (read_text(directory, "cgroup.controllers", controllers,
                                    sizeof controllers) &&
                          strstr(controllers, "cpuset"));
}

/* rmd's own group in the hierarchy of this version. */
static bool find_own(bool v2)
{
    char own[PATH_MAX];
    version_2 = v2;
    return mount_point(top) && group_of_process(getpid(), own) &&
           path_of(base, top, own[0] == '/' ? own + 1 : own) && controls_cpusets(base);
}

/* The uppermost directory above base that is a group, too. */
static void find_top(void)
{
    snprintf(top, sizeof top, "%s", base);
    for (char *slash; (slash = strrchr(top, '/')) != NULL && slash != top;) {
        *slash = '\0';
        if (!has(top, "cgroup.procs")) {
            *slash = '/';
            return;
        }
    }
}

/* --- what is left of users */

static void forget(struct leftover *l)
{
    struct leftover **link = &leftovers;
    while (*link != l)
        link = &(*link)->next;
    *link = l->next;
    free(l->home);
    free(l);
}

static struct leftover *leftover_of(uid_t uid)
{
    struct leftover *l = leftovers;
    while (l && l->uid != uid)
        l = l->next;
    return l;
}

static struct leftover *remember(uid_t uid, const char *home)
{
    struct leftover *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct leftover){leftovers, uid, home ? strdup(home) : NULL, false, false};
    return leftovers = l;
}

/* Groups that a former rmd has left: of members that are about to be taken back, or of nobody. */
static void find_leftovers(void)
{
    DIR *groups = opendir(base);
    unsigned uid;
    char name[32];
    for (struct dirent *e; groups && (e = readdir(groups)) != NULL;) {
        if (sscanf(e->d_name, "invasive-%u", &uid) != 1)
            continue;
        name_of(name, uid);
        if (!strcmp(name, e->d_name))
            remember(uid, NULL);
    }
    if (groups)
        closedir(groups);
}

/* The kernel takes a number only, so that is seen to be the process's right before. */
static bool enter(const char *group, pid_t pid, int pidfd)
{
    char text[16];
    errno = ESRCH;
    if (!rmd_alive(pidfd))
        return false;
    snprintf(text, sizeof text, "%d\n", (int)pid);
    return write_text(group, "cgroup.procs", text, O_APPEND);
}

/* The directory of a group that a process was in, and that is still there. */
static bool find_home(char path[PATH_MAX], const char *home)
{
    errno = ENOENT;
    return home && home[0] == '/' && !strstr(home, "/..") && path_of(path, top, home + 1) &&
           has(path, "cgroup.procs");
}

/* A process that was in the user's group a moment ago, or another one by now, which is let be.
 * False with errno. */
static bool move(const char *to, pid_t pid, uid_t uid)
{
    char group[PATH_MAX];
    uid_t owner;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return errno == ESRCH;
    bool is = (rmd_owner(pid, &owner) && owner == uid) ||
              (group_of_process(pid, group) && is_group_of(group, uid));
    bool good = !is || enter(to, pid, pidfd) || errno == ESRCH;
    int saved = errno;
    close(pidfd);
    errno = saved;
    return good;
}

/* Puts back what is in the group, a part of it where that is much.  False: it cannot be done. */
static bool empty(const char *group, uid_t uid, const char *home)
{
    char path[PATH_MAX], procs[PATH_MAX];
    int pid, moves = 0;
    bool some = true;
    if (!find_home(path, home) || !path_of(procs, group, "cgroup.procs"))
        return false;
    for (int pass = 0; some && pass < PASSES && moves < MOVES; pass++) {
        FILE *f = fopen(procs, "re");
        some = false;
        while (f && moves < MOVES && fscanf(f, "%d", &pid) == 1) {
            if (pid <= 0)
                continue; /* of another pid namespace; to the kernel it would mean ourselves */
            if (!move(path, pid, uid)) {
                int saved = errno;
                fclose(f);
                errno = saved;
                return false;
            }
            some = true;
            moves++;
        }
        if (f)
            fclose(f);
    }
    return true;
}

/* All that the groups below base may have at all. */
static void widen(struct leftover *l, const char *group)
{
    char list[4096];
    const char *all = version_2 ? "cpuset.cpus.effective" : "cpuset.cpus";
    if (!l->widened && read_text(base, all, list, sizeof list))
        l->widened = write_text(group, "cpuset.cpus", list, O_TRUNC);
}

static void tidy(struct leftover *l)
{
    char group[PATH_MAX];
    if (!group_of(group, l->uid) || !rmdir(group) || errno == ENOENT) {
        forget(l);
        return;
    }
    if (!empty(group, l->uid, l->home) && !l->said) {
        rmd_log(RMD_INFO, "user %u: processes stay in %s: cannot put them back into %s: %s",
                (unsigned)l->uid, group, l->home ? l->home : "an unknown one", strerror(errno));
        l->said = true;
    }
    widen(l, group);
    if (!rmdir(group))
        forget(l);
}

void rmd_cgroup_tidy(void)
{
    for (struct leftover *l = leftovers, *next; l; l = next) {
        next = l->next;
        tidy(l);
    }
}

bool rmd_cgroup_untidy(void)
{
    return leftovers != NULL;
}

void rmd_cgroup_release(uid_t uid, const char *home)
{
    struct leftover *l = leftover_of(uid);
    if (!l)
        l = remember(uid, home);
    if (l)
        tidy(l);
}

/* --- beginning */

/* Version 2: are there processes in it?  In the uppermost group, which has no type, none
 * matters. */
static bool peopled(const char *group)
{
    char first[16];
    return has(group, "cgroup.type") && read_text(group, "cgroup.procs", first, sizeof first);
}

static bool go_into(const char *group)
{
    return (!mkdir(group, 0755) || errno == EEXIST) &&
           write_text(group, "cgroup.procs", "0", O_APPEND);
}

/* Version 2: let groups below base have cpusets.  With processes in base the kernel refuses that,
 * or makes base the root of a threaded subtree, where the groups below take no processes. */
static bool delegate(void)
{
    char own[PATH_MAX];
    if (peopled(base) && (!path_of(own, base, "rmd") || !go_into(own)))
        return false;
    errno = EBUSY;
    return !peopled(base) && write_text(base, "cgroup.subtree_control", "+cpuset", 0);
}

bool rmd_cgroup_open(const char *told)
{
    if (told) {
        snprintf(base, sizeof base, "%s", told);
        version_2 = has(base, "cgroup.controllers");
        find_top();
    }
    if (told ? !has(base, version_2 ? "cgroup.procs" : "cpuset.cpus") || !controls_cpusets(base)
             : !find_own(true) && !find_own(false)) {
        rmd_log(RMD_WARNING, "no control group with cpusets%s%s", told ? " at " : " is there",
                told ? told : "");
        return false;
    }
    if (version_2 ? !delegate() : access(base, W_OK) != 0) {
        rmd_log(RMD_WARNING, "cannot make groups with cpusets in %s: %s", base, strerror(errno));
        return false;
    }
    find_leftovers();
    rmd_log(RMD_INFO, "groups with cpusets, version %d, in %s", version_2 ? 2 : 1, base);
    return true;
}

/* --- use */

bool rmd_cgroup_confine(uid_t uid, const struct inv_cpus *cpus)
{
    char group[PATH_MAX], list[6 * INV_MAX_CPUS], nodes[256]; /* the longest: each with a comma */
    struct leftover *l = leftover_of(uid);
    if (l)
        forget(l);
    if (!inv_cpulist_print(cpus, list, sizeof list) || !group_of(group, uid) ||
        (mkdir(group, 0755) && errno != EEXIST) || !write_text(group, "cpuset.cpus", list, O_TRUNC))
        return false;
    return version_2 || !read_text(base, "cpuset.mems", nodes, sizeof nodes) ||
           write_text(group, "cpuset.mems", nodes, O_TRUNC);
}

char *rmd_cgroup_of(pid_t pid, uid_t uid)
{
    char group[PATH_MAX];
    if (!group_of_process(pid, group) || !strchr(group, '/') || is_group_of(group, uid))
        return NULL;
    return strdup(group);
}

bool rmd_cgroup_enter(uid_t uid, pid_t pid, int pidfd)
{
    char group[PATH_MAX];
    return group_of(group, uid) && enter(group, pid, pidfd);
}

bool rmd_cgroup_leave(pid_t pid, int pidfd, const char *before)
{
    char group[PATH_MAX];
    return find_home(group, before) && (enter(group, pid, pidfd) || errno == ESRCH);
}

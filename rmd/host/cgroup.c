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
 * In version 2 a group with processes cannot have child groups with processes and controllers.
 * So rmd moves itself into BASE/rmd if it is in BASE (the unit has Delegate=cpuset).  Files are
 * opened with O_CREAT, which the kernel's files ignore, so that a test can use an ordinary
 * directory.
 */
#define _GNU_SOURCE
#include "rmd/host/cgroup.h"
#include "libinvasive/base/cpulist.h"
#include "rmd/loop/log.h"
#include "rmd/host/procstat.h"

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
    MOVES = 256, /* processes that are moved at a time: other events wait meanwhile */
    PASSES = 8   /* over a group whose processes fork; the next check continues */
};

/* A group with processes, of a user without members. */
struct leftover {
    struct leftover *next;
    uid_t uid;
    char *origin; /* the group to which its processes go; NULL: unknown */
    bool widened; /* it has all CPUs */
    bool said;    /* that its processes stay */
};

/* Only the loop's thread reads and writes it. */
static struct {
    char base[PATH_MAX], top[PATH_MAX]; /* top: of the hierarchy */
    bool version_2;
    struct leftover *leftovers;
} tree;

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

static bool has_file(const char *directory, const char *name)
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
    return path_of(path, tree.base, name);
}

/* --- paths of groups */

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
        found = tree.version_2 ? !strncmp(line, "0:", 2) && !*controllers
                          : strstr(controllers, "cpuset") != NULL;
        if (found)
            snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, group);
    }
    if (f)
        fclose(f);
    return found;
}

/* Is it the user's group?  A group elsewhere may have the same name.  If only a part of the
 * hierarchy is mounted, the name decides. */
static bool is_group_of(const char *group, uid_t uid)
{
    char name[32], own[PATH_MAX], path[PATH_MAX];
    struct stat a, b;
    name_of(name, uid);
    const char *last = strrchr(group, '/');
    if (!last || strcmp(last + 1, name) != 0 || strstr(group, "/.."))
        return false;
    if (!path_of(path, tree.top, group + 1) || stat(path, &a))
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
        found = tree.version_2 ? !strcmp(type, "cgroup2")
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
    return !tree.version_2 || (read_text(directory, "cgroup.controllers", controllers,
                                    sizeof controllers) &&
                          strstr(controllers, "cpuset"));
}

/* rmd's own group in the hierarchy of this version. */
static bool find_own(bool v2)
{
    char own[PATH_MAX];
    tree.version_2 = v2;
    return mount_point(tree.top) && group_of_process(getpid(), own) &&
           path_of(tree.base, tree.top, own[0] == '/' ? own + 1 : own) &&
           controls_cpusets(tree.base);
}

/* The uppermost directory above base that is a group, too. */
static void find_top(void)
{
    snprintf(tree.top, sizeof tree.top, "%s", tree.base);
    for (char *slash; (slash = strrchr(tree.top, '/')) != NULL && slash != tree.top;) {
        *slash = '\0';
        if (!has_file(tree.top, "cgroup.procs")) {
            *slash = '/';
            return;
        }
    }
}

/* --- leftovers */

static void free_leftover(struct leftover *l)
{
    struct leftover **link = &tree.leftovers;
    while (*link != l)
        link = &(*link)->next;
    *link = l->next;
    free(l->origin);
    free(l);
}

static struct leftover *leftover_of(uid_t uid)
{
    struct leftover *l = tree.leftovers;
    while (l && l->uid != uid)
        l = l->next;
    return l;
}

static struct leftover *add_leftover(uid_t uid, const char *origin)
{
    struct leftover *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct leftover){tree.leftovers, uid, origin ? strdup(origin) : NULL, false, false};
    return tree.leftovers = l;
}

/* Groups of a former rmd: of members that rmd is about to take over, or of users without
 * members. */
static void find_leftovers(void)
{
    DIR *groups = opendir(tree.base);
    unsigned uid;
    char name[32];
    for (struct dirent *e; groups && (e = readdir(groups)) != NULL;) {
        if (sscanf(e->d_name, "invasive-%u", &uid) != 1)
            continue;
        name_of(name, uid);
        if (!strcmp(name, e->d_name))
            add_leftover(uid, NULL);
    }
    if (groups)
        closedir(groups);
}

/* The kernel takes a pid only, so the pidfd is checked immediately before. */
static bool enter_group(const char *group, pid_t pid, int pidfd)
{
    char text[16];
    errno = ESRCH;
    if (!rmd_alive(pidfd))
        return false;
    snprintf(text, sizeof text, "%d\n", (int)pid);
    return write_text(group, "cgroup.procs", text, O_APPEND);
}

/* The directory of the group `origin`, if it exists. */
static bool find_origin(char path[PATH_MAX], const char *origin)
{
    errno = ENOENT;
    return origin && origin[0] == '/' && !strstr(origin, "/..") &&
           path_of(path, tree.top, origin + 1) && has_file(path, "cgroup.procs");
}

/* Moves a process that was in the user's group a moment ago.  Nothing happens if the pid is another
 * process's by now.  False with errno. */
static bool move_process(const char *to, pid_t pid, uid_t uid)
{
    char group[PATH_MAX];
    uid_t owner;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return errno == ESRCH;
    bool is = (rmd_owner(pid, &owner) && owner == uid) ||
              (group_of_process(pid, group) && is_group_of(group, uid));
    bool good = !is || enter_group(to, pid, pidfd) || errno == ESRCH;
    int saved = errno;
    close(pidfd);
    errno = saved;
    return good;
}

/* Moves the processes of the group to `origin`, at most MOVES of them.  False: they cannot be
 * moved. */
static bool move_processes_out(const char *group, uid_t uid, const char *origin)
{
    char path[PATH_MAX], procs[PATH_MAX];
    int pid, moves = 0;
    bool some = true;
    if (!find_origin(path, origin) || !path_of(procs, group, "cgroup.procs"))
        return false;
    for (int pass = 0; some && pass < PASSES && moves < MOVES; pass++) {
        FILE *f = fopen(procs, "re");
        some = false;
        while (f && moves < MOVES && fscanf(f, "%d", &pid) == 1) {
            if (pid <= 0)
                continue; /* of another pid namespace; the kernel takes 0 for the caller */
            if (!move_process(path, pid, uid)) {
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

/* Gives the group all CPUs that groups below base may have. */
static void allow_all_cpus(struct leftover *l, const char *group)
{
    char list[4096];
    const char *all = tree.version_2 ? "cpuset.cpus.effective" : "cpuset.cpus";
    if (!l->widened && read_text(tree.base, all, list, sizeof list))
        l->widened = write_text(group, "cpuset.cpus", list, O_TRUNC);
}

static void remove_leftover(struct leftover *l)
{
    char group[PATH_MAX];
    if (!group_of(group, l->uid) || !rmdir(group) || errno == ENOENT) {
        free_leftover(l);
        return;
    }
    if (!move_processes_out(group, l->uid, l->origin) && !l->said) {
        rmd_log(RMD_INFO, "user %u: processes stay in %s: cannot put them back into %s: %s",
                (unsigned)l->uid, group, l->origin ? l->origin : "an unknown one", strerror(errno));
        l->said = true;
    }
    allow_all_cpus(l, group);
    if (!rmdir(group))
        free_leftover(l);
}

void rmd_cgroup_remove_leftovers(void)
{
    for (struct leftover *l = tree.leftovers, *next; l; l = next) {
        next = l->next;
        remove_leftover(l);
    }
}

bool rmd_cgroup_has_leftovers(void) { return tree.leftovers != NULL; }

void rmd_cgroup_release(uid_t uid, const char *origin)
{
    struct leftover *l = leftover_of(uid);
    if (!l)
        l = add_leftover(uid, origin);
    if (l)
        remove_leftover(l);
}

/* --- setting up */

/* Version 2: are there processes in it?  They do not matter in the root group, which has no
 * type. */
static bool has_processes(const char *group)
{
    char first[16];
    return has_file(group, "cgroup.type") && read_text(group, "cgroup.procs", first, sizeof first);
}

static bool enter_as_self(const char *group)
{
    return (!mkdir(group, 0755) || errno == EEXIST) &&
           write_text(group, "cgroup.procs", "0", O_APPEND);
}

/* Version 2: enables cpusets for the groups below base.  With processes in base the kernel refuses,
 * or makes base the root of a threaded subtree, whose groups accept no processes. */
static bool enable_cpusets(void)
{
    char own[PATH_MAX];
    if (has_processes(tree.base) && (!path_of(own, tree.base, "rmd") || !enter_as_self(own)))
        return false;
    errno = EBUSY;
    return !has_processes(tree.base) &&
           write_text(tree.base, "cgroup.subtree_control", "+cpuset", 0);
}

bool rmd_cgroup_open(const char *told)
{
    if (told) {
        snprintf(tree.base, sizeof tree.base, "%s", told);
        tree.version_2 = has_file(tree.base, "cgroup.controllers");
        find_top();
    }
    if (told
            ? !has_file(tree.base, tree.version_2 ? "cgroup.procs" : "cpuset.cpus") ||
                  !controls_cpusets(tree.base)
            : !find_own(true) && !find_own(false)) {
        rmd_log(RMD_WARNING, "no control group with cpusets%s%s", told ? " at " : " is there",
                told ? told : "");
        return false;
    }
    if (tree.version_2 ? !enable_cpusets() : access(tree.base, W_OK) != 0) {
        rmd_log(RMD_WARNING, "cannot make groups with cpusets in %s: %s", tree.base,
                strerror(errno));
        return false;
    }
    find_leftovers();
    rmd_log(RMD_INFO, "groups with cpusets, version %d, in %s", tree.version_2 ? 2 : 1, tree.base);
    return true;
}

/* --- groups of users */

bool rmd_cgroup_confine(uid_t uid, const struct inv_cpus *cpus)
{
    char group[PATH_MAX], list[6 * INV_MAX_CPUS], nodes[256]; /* the longest: each with a comma */
    struct leftover *l = leftover_of(uid);
    if (l)
        free_leftover(l);
    if (!inv_cpulist_print(cpus, list, sizeof list) || !group_of(group, uid) ||
        (mkdir(group, 0755) && errno != EEXIST) || !write_text(group, "cpuset.cpus", list, O_TRUNC))
        return false;
    return tree.version_2 || !read_text(tree.base, "cpuset.mems", nodes, sizeof nodes) ||
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
    return group_of(group, uid) && enter_group(group, pid, pidfd);
}

bool rmd_cgroup_leave(pid_t pid, int pidfd, const char *before)
{
    char group[PATH_MAX];
    return find_origin(group, before) && (enter_group(group, pid, pidfd) || errno == ESRCH);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_paths.c - where rmd and the libraries are, and the environment of the command.
 *
 * The build tree has the layout of an installation, so one rule serves both: rmd lies
 * beside our own executable, the libraries in ../lib/invasive from there.  An
 * installation with another layout has told us its directories when we were compiled.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "libinvasive/launch/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef INV_BINDIR
#define INV_BINDIR "/usr/local/bin"
#endif
#ifndef INV_PKGLIBDIR
#define INV_PKGLIBDIR "/usr/local/lib/invasive"
#endif

/* In a sanitized build, whose libraries fit no other program. */
#ifndef INV_PRELOAD_NOTHING
#define INV_PRELOAD_NOTHING 0
#endif

enum { PATH_BYTES = sizeof((struct invade_paths *)0)->rmd };

/* The directory of our own executable, "" when the kernel does not tell.  Returns `path`. */
static const char *own_directory(char path[PATH_BYTES])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return path;
}

static bool found(char *path, int access_mode, const char *directory, const char *below,
                  const char *name)
{
    int n = snprintf(path, PATH_BYTES, "%s%s/%s", directory, below, name);
    return n < PATH_BYTES && directory[0] && !access(path, access_mode);
}

bool invade_find_rmd(struct invade_paths *paths)
{
    const char *told = getenv("INVASIVE_RMD");
    char own[PATH_BYTES];
    if (told && *told) {
        snprintf(paths->rmd, sizeof paths->rmd, "%s", told);
        return true;
    }
    if (found(paths->rmd, X_OK, own_directory(own), "", "rmd") ||
        found(paths->rmd, X_OK, INV_BINDIR, "", "rmd"))
        return true;
    invade_say("cannot find rmd in %s or %s: is the installation complete? Running unmanaged.",
               own_directory(own), INV_BINDIR);
    return false;
}

static bool find_library(char *path, const char *name)
{
    static const char below_own[] = "/../lib/invasive";
    char own[PATH_BYTES];
    if (found(path, R_OK, own_directory(own), below_own, name) ||
        found(path, R_OK, INV_PKGLIBDIR, "", name))
        return true;
    invade_say("cannot find %s in %s%s or %s: is the installation complete? Running unmanaged.",
               name, own_directory(own), below_own, INV_PKGLIBDIR);
    return false;
}

bool invade_find(struct invade_paths *paths)
{
    if (INV_PRELOAD_NOTHING)
        return true;
    if (!find_library(paths->preload[0], "libinvasive-process.so") ||
        !find_library(paths->preload[1], "libgomp.so.1"))
        return false;
#ifdef INV_HAVE_SHIM /* else we were configured without MPI */
    const char *interposing = "libinvasive-mpi.so";
#else
    const char *interposing = "libinvasive-preload.so";
#endif
    if (!find_library(paths->preload[2], interposing))
        return false;
    for (int i = 0; i < 3 && paths->preload[i][0]; i++) {
        char *real = realpath(paths->preload[i], NULL); /* no ../ in other programs' maps */
        if (real && strlen(real) < PATH_BYTES)
            strcpy(paths->preload[i], real);
        free(real);
        if (!strpbrk(paths->preload[i], " \t\n:"))
            continue;
        invade_say("cannot preload %s: the dynamic linker splits names at spaces and colons. "
                   "Running unmanaged.",
                   paths->preload[i]);
        return false;
    }
    return true;
}

static bool set_number(const char *name, unsigned value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    return !setenv(name, text, 1);
}

/* Ours before the user's own; a nested invade finds ours there already. */
static bool set_preload(const struct invade_paths *paths)
{
    const char *theirs = getenv("LD_PRELOAD");
    char *value = NULL;
    char ours[3 * PATH_BYTES + 3];
    snprintf(ours, sizeof ours, "%s:%s%s%s", paths->preload[0], paths->preload[1],
             paths->preload[2][0] ? ":" : "", paths->preload[2]);
    if (INV_PRELOAD_NOTHING || (theirs && !strncmp(theirs, ours, strlen(ours))))
        return true;
    if (asprintf(&value, "%s%s%s", ours, theirs && *theirs ? ":" : "", theirs ? theirs : "") < 0)
        return false;
    bool ok = !setenv("LD_PRELOAD", value, 1);
    free(value);
    return ok;
}

/* A program built with AddressSanitizer refuses to start when anything is loaded before its
 * run-time library; ours define nothing that it intercepts, so tell it not to mind. */
static bool calm_asan(void)
{
    const char *theirs = getenv("ASAN_OPTIONS");
    char *value = NULL;
    if (theirs && strstr(theirs, "verify_asan_link_order"))
        return true;
    if (asprintf(&value, "%s%sverify_asan_link_order=0", theirs ? theirs : "",
                 theirs && *theirs ? ":" : "") < 0)
        return false;
    bool ok = !setenv("ASAN_OPTIONS", value, 1);
    free(value);
    return ok;
}

/* Open MPI's launcher would refuse more ranks than cores, and bind each rank to a core: a rank of Open
 * MPI 4 has all cores of the domain when it joins, one of 5 is not to be bound.  What the user has set
 * is left alone, and so is what the command line says.  (The last two: 5.) */
static bool loosen_open_mpi(void)
{
    static const char *const settings[][2] = {
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"PRTE_MCA_hwloc_default_binding_policy", "none"},
        {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (setenv(settings[i][0], settings[i][1], 0))
            return false;
    return true;
}

/* Does this start an MPI job, without -x?  Open MPI refuses that beside a list of variables. */
static bool takes_list(char **command)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "orterun"};
    const char *slash = strrchr(command[0], '/'), *name = slash ? slash + 1 : command[0];
    bool known = false;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        known = known || !strncmp(name, launchers[i], strlen(launchers[i]));
    for (char **arg = command + 1; *arg; arg++)
        if (!strcmp(*arg, "-x") || !strcmp(*arg, "--x"))
            return false;
    return known;
}

/* Open MPI passes only variables of its own on to other nodes, and what this one of them lists. */
static bool set_openmpi_list(char **command)
{
    static const char list[] = "OMPI_MCA_mca_base_env_list";
    static const char *const ours[] = {"INVASIVE",       "INVASIVE_SOCKET",  "INVASIVE_LAUNCH",
                                       "INVASIVE_CORES", "INVASIVE_THREADS", "INVASIVE_TEAM",
                                       "INVASIVE_BIND",  "INVASIVE_TOOL",    "INVASIVE_RMD",
                                       "INVASIVE_REPORT", "INVASIVE_MPI_TASKS", "INVASIVE_PRIORITY",
                                       "INVASIVE_UNEVEN", "INVASIVE_TUNE", "LD_PRELOAD"};
    char value[4096];
    const char *theirs = getenv(list);
    if (!takes_list(command) || (theirs && (strlen(theirs) > sizeof value / 2 ||
                                            strstr(theirs, "INVASIVE_SOCKET"))))
        return true;
    size_t length = (size_t)snprintf(value, sizeof value, "%s", theirs ? theirs : "");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (getenv(ours[i]))
            length += (size_t)snprintf(value + length, sizeof value - length, "%s%s",
                                       length ? ";" : "", ours[i]);
    return !setenv(list, value, 1);
}

bool invade_environment(const struct invade_paths *paths, const struct invade_manager *manager,
                        const struct invade_options *options,
                        const struct invade_report *report)
{
    char launch[48];
    unsetenv(INV_STOCK_VARIABLE); /* of a process that started us by a system call of its own */
    unsetenv("INVASIVE_UNEVEN");
    snprintf(launch, sizeof launch, "%llx:%llx", (unsigned long long)report->launch,
             (unsigned long long)(report->ours ? inv_node_id() : 0));
    if (!setenv("INVASIVE_SOCKET", manager->socket, 1) &&
        (!manager->launch[0] || !setenv("INVASIVE_LAUNCH", manager->launch, 1)) &&
        set_number("INVASIVE_CORES", manager->ncores) &&
        (!manager->uneven || !setenv("INVASIVE_UNEVEN", "1", 1)) &&
        (!options->threads || set_number("INVASIVE_THREADS", options->threads)) &&
        (!options->team || !setenv("INVASIVE_TEAM", options->team, 1)) &&
        (!options->priority || !setenv("INVASIVE_PRIORITY", options->priority, 1)) &&
        (!options->tune || !setenv("INVASIVE_TUNE", options->tune, 1)) &&
        (!options->mpi_tasks || !setenv("INVASIVE_MPI_TASKS", "1", 1)) &&
        (!report->wanted || !setenv("INVASIVE_REPORT", launch, 1)) && set_preload(paths) &&
        calm_asan() && loosen_open_mpi() && set_openmpi_list(options->command))
        return true;
    invade_say("cannot set the environment: %s. Running unmanaged.", strerror(errno));
    return false;
}

/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* preload.c - which of our libraries a program gets, and what is said about it: see preload.h. */
#define _GNU_SOURCE
#include "libinvasive/launch/preload.h"
#include "libinvasive/base/complain.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/hash.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/launch/image.h"
#include "libinvasive/launch/preload_list.h"
#include "libinvasive/table/protocol.h"
#include "libinvasive/table/socket.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD"
#define NS_PER_MS UINT64_C(1000000)

enum {
    /* An rmd that is busy has this long to answer: the parent of a vfork's child is stopped
     * meanwhile.  Without an answer the line is printed. */
    ASK_TIMEOUT_MS = 200,
    LINE_BYTES = 3 * INV_IMAGE_PATH_BYTES,
};

/* Memory for the inspection of a program: too much for the stack of a small thread. */
struct work {
    struct inv_image image;
    char path[PATH_MAX];
    char line[LINE_BYTES];
};

/* --- LD_PRELOAD */

/* The entry of `envp` that sets the variable; NULL: it is not set. */
static char *const *find_variable(char *const envp[], const char *name)
{
    size_t length = strlen(name);
    for (char *const *e = envp; e && *e; e++)
        if (!strncmp(*e, name, length) && (*e)[length] == '=')
            return e;
    return NULL;
}

static const char *value_of(char *const envp[], const char *name)
{
    char *const *found = find_variable(envp, name);
    return found ? *found + strlen(name) + 1 : NULL;
}

static bool names_ours(const char *preload)
{
    struct inv_preload_entry entry = {0};
    while (inv_preload_next(&preload, &entry))
        if (entry.ours)
            return true;
    return false;
}

static size_t length_of(const char *text) { return text ? strlen(text) : 0; }

/* LD_PRELOAD as it was before, LD_PRELOAD and INVASIVE_STOCK as they are to be. */
static size_t text_bytes(char *const envp[])
{
    size_t preload = length_of(value_of(envp, PRELOAD));
    size_t stock = length_of(value_of(envp, INV_STOCK_VARIABLE));
    return 3 * (preload + stock + sizeof PRELOAD + sizeof INV_STOCK_VARIABLE + 2);
}

size_t inv_preload_room(char *const envp[])
{
    size_t count = 0;
    if (inv_privileged() || !names_ours(value_of(envp, PRELOAD)))
        return 0;
    while (envp[count])
        count++;
    return (count + 2) * sizeof *envp + sizeof(struct work) + text_bytes(envp);
}

/* Appends one entry to "NAME=..." that ends at `end`.  Returns the new end. */
static char *append_entry(char *end, const char *entry, size_t length)
{
    if (end[-1] != '=')
        *end++ = ':';
    memcpy(end, entry, length);
    end[length] = '\0';
    return end + length;
}

enum keep { KEEP_ALL, KEEP_NO_OPENMP, KEEP_THEIRS };

/* Writes "LD_PRELOAD=..." of the entries that are kept; `openmp`, if not NULL, is put behind the
 * first of ours.  Returns the byte behind its NUL. */
static char *write_preload(char *text, const char *from, enum keep keep, const char *openmp)
{
    struct inv_preload_entry entry = {0};
    char *end = stpcpy(text, PRELOAD "=");
    while (inv_preload_next(&from, &entry)) {
        if ((entry.openmp && keep != KEEP_ALL) || (entry.ours && keep == KEEP_THEIRS))
            continue;
        end = append_entry(end, entry.text, entry.length);
        if (entry.ours && openmp) {
            end = append_entry(end, openmp, strlen(openmp));
            openmp = NULL;
        }
    }
    return end + 1;
}

/* --- what is said */

static int ask_rmd(const char *socket, const struct inv_request *request, uint64_t until_ns)
{
    struct inv_reply reply;
    uint64_t now = inv_now_ns();
    unsigned left_ms = now < until_ns ? (unsigned)((until_ns - now) / NS_PER_MS) : 0;
    int passed, fd = left_ms ? inv_socket_connect_ms(socket, left_ms) : -1;
    if (fd < 0)
        return -1;
    bool good = inv_socket_ask(fd, request, sizeof *request, &reply, &passed);
    close(fd);
    if (good && passed >= 0)
        close(passed);
    return good && reply.status == INV_OK ? (int)reply.count : -1;
}

/* Is this the first process of the launch on this node that has this to say?  Where no rmd can be
 * asked: is it the first rank? */
static bool is_first(const struct inv_image *image, char *const envp[])
{
    const char *socket = value_of(envp, "INVASIVE_SOCKET");
    const char *launch = value_of(envp, "INVASIVE_LAUNCH");
    static const char *const ranks[] = {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "SLURM_LOCALID"};
    char here[108];
    struct inv_request request = inv_request_of(INV_SAY);
    size_t name = launch ? strcspn(launch, "/") : 0;
    request.launch = inv_hash(INV_HASH_BASIS, launch ? launch : "", name);
    request.launch = inv_hash(request.launch, &image->fit, sizeof image->fit);
    if (image->fit == INV_IMAGE_OPENMP)
        request.launch = inv_hash_text(request.launch, image->object);
    uint64_t until_ns = inv_now_ns() + ASK_TIMEOUT_MS * NS_PER_MS;
    int first = socket && *socket ? ask_rmd(socket, &request, until_ns) : -1;
    if (first < 0 && name > 0 && name < sizeof here - 1) { /* the rmd of a further node */
        snprintf(here, sizeof here, "@%.*s", (int)name, launch);
        first = ask_rmd(here, &request, until_ns);
    }
    for (size_t i = 0; first < 0 && i < sizeof ranks / sizeof *ranks; i++) {
        const char *rank = value_of(envp, ranks[i]);
        if (rank)
            first = atoi(rank) == 0;
    }
    return first != 0;
}

static int format_line(char *line, const struct inv_image *i, const char *who)
{
    bool itself = !strcmp(i->object, i->file);
    if (i->fit == INV_IMAGE_OPENMP)
        return snprintf(line, LINE_BYTES,
                        "%s: %s needs %s of libgomp.so.1, which our OpenMP runtime has not: %s runs "
                        "unmanaged. Build invasive for that compiler (configure "
                        "--with-gcc-source) to manage it.\n",
                        who, i->object, i->need, itself ? "it" : i->file);
    return snprintf(line, LINE_BYTES,
                    "%s: %s cannot load our libraries (%s): it runs unmanaged, and so do others of "
                    "its kind.\n",
                    who, i->file,
                    i->fit == INV_IMAGE_STATIC ? "it is linked statically" : i->need);
}

static void say_misfit(struct work *work, const char *who)
{
    int n = format_line(work->line, &work->image, who);
    if (n > 0 && n < LINE_BYTES)
        inv_write_stderr(work->line, (size_t)n);
}

/* --- the environment */

const char *inv_search_path(const char *file, char path[PATH_MAX])
{
    const char *list = inv_getenv("PATH");
    struct stat s;
    for (list = list ? list : "/bin:/usr/bin";; list++) {
        size_t length = strcspn(list, ":");
        int n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, list, length ? "/" : "", file);
        if (n > 0 && n < PATH_MAX && !access(path, X_OK) && !stat(path, &s) && S_ISREG(s.st_mode))
            return path;
        list += length;
        if (!*list)
            return NULL;
    }
}

static void judge_file(struct work *work, const char *file, bool search, const char *preload,
                       const char *library_path)
{
    const char *found = search && !strchr(file, '/') ? inv_search_path(file, work->path) : NULL;
    inv_image_inspect(&work->image, found ? found : file, preload, library_path);
}

/* The entries of `envp` but for the two that differ, then these. */
static char *const *copy_environment(char **to, char *const envp[], char *preload, char *stock)
{
    char **copy = to;
    for (char *const *e = envp; *e; e++)
        if (strncmp(*e, PRELOAD "=", sizeof PRELOAD) &&
            strncmp(*e, INV_STOCK_VARIABLE "=", sizeof INV_STOCK_VARIABLE))
            *to++ = *e;
    if (preload)
        *to++ = preload;
    if (stock)
        *to++ = stock;
    *to = NULL;
    return copy;
}

/* "INVASIVE_STOCK=PATH", of our libgomp.so.1 in this LD_PRELOAD; NULL: it names none. */
static char *write_stock(char *text, const char *preload)
{
    struct inv_preload_entry entry = {0};
    while (inv_preload_next(&preload, &entry))
        if (entry.openmp) {
            append_entry(stpcpy(text, INV_STOCK_VARIABLE "="), entry.text, entry.length);
            return text;
        }
    return NULL;
}

char *const *inv_preload_environment(const char *file, bool search, char *const envp[], void *room,
                                     const char *who)
{
    int error = errno;
    if (!room || !file)
        return envp;
    INV_UNCANCELLED; /* neither exec nor posix_spawn is a cancellation point */
    size_t count = 0;
    while (envp[count])
        count++;
    const char *stock = value_of(envp, INV_STOCK_VARIABLE);
    struct work *work = (struct work *)((char **)room + count + 2);
    const struct inv_image *image = &work->image;
    char *all = (char *)(work + 1);
    char *some = write_preload(all, value_of(envp, PRELOAD), KEEP_ALL, stock);
    const char *value = all + sizeof PRELOAD;
    judge_file(work, file, search, value, value_of(envp, "LD_LIBRARY_PATH"));
    /* valgrind's tools are static, and start the program with what LD_PRELOAD names */
    bool valgrind = image->fit == INV_IMAGE_STATIC && value_of(envp, "VALGRIND_LAUNCHER");
    if (image->fit != INV_IMAGE_FITS && !valgrind && is_first(image, envp))
        say_misfit(work, who);
    errno = error;
    switch (image->fit) {
    case INV_IMAGE_STATIC:
        return envp;
    case INV_IMAGE_FITS:
        return stock ? copy_environment(room, envp, all, NULL) : envp;
    case INV_IMAGE_OPENMP:
        stock = write_stock(write_preload(some, value, KEEP_NO_OPENMP, NULL), value);
        return copy_environment(room, envp, some, (char *)(uintptr_t)stock);
    default:
        write_preload(some, value, KEEP_THEIRS, NULL);
        return copy_environment(room, envp, some[sizeof PRELOAD] ? some : NULL, NULL);
    }
}

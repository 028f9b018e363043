/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * spawn.c - programs that a pinned thread starts begin with the affinity that ours had.
 *
 * An affinity mask goes through fork and exec.  fork is dealt with by a handler
 * (join.c), which vfork and the C library's own spawning do not call; so the calls
 * that start programs are interposed: the thread is unpinned for the call.  In the
 * child of a vfork, too: it shares our memory, but its affinity is its own.
 *
 * The same calls look at the program first: one that cannot have our libraries is started without
 * them (preload.h).  system and popen start a shell, which has them; it then calls execve.
 */
#define _GNU_SOURCE
#include "libinvasive/hold/pin.h"
#include "libinvasive/launch/preload.h"
#include "libinvasive/member/next.h"

#include <alloca.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory for an environment, which may be larger than the stack of a small thread. */
struct room {
    void *memory; /* NULL: none */
    size_t bytes;
    pid_t process; /* that has mapped it */
};

/* The thread's last one for exec.  A child of vfork that becomes another program leaves it mapped
 * in our memory; the thread, or its next such child, unmaps it.  Written and read by both; the
 * thread is stopped while such a child runs. */
static __thread struct room left_room __attribute__((tls_model("initial-exec")));

static void unmap_room(struct room *room)
{
    int error = errno;
    if (room->memory)
        munmap(room->memory, room->bytes);
    if (room->memory == left_room.memory)
        left_room.memory = NULL;
    room->memory = NULL;
    errno = error;
}

static struct room map_room(size_t bytes)
{
    struct room room = {.bytes = bytes, .process = getpid()};
    int error = errno;
    if (left_room.process != room.process) /* or a handler interrupts a call that needs it */
        unmap_room(&left_room);
    void *memory = MAP_FAILED;
    if (bytes)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    room.memory = memory == MAP_FAILED ? NULL : memory;
    errno = error;
    return room;
}

#pragma GCC visibility push(default)

/* Call `call`, which uses `real` of the type of `name`, with the thread unpinned. */
#define UNPINNED(type, name, call)                                                             \
    __typeof__(name) *real = INV_NEXT(name);                                                   \
    int pinned = inv_thread_unpin_for_child();                                                 \
    type result = call;                                                                        \
    int error = errno;                                                                         \
    inv_thread_repin(pinned);                                                                  \
    errno = error;                                                                             \
    return result

/* `envp` as the program gets it, until the caller's block is left. */
#define FOR_PROGRAM(file, search, envp)                                                        \
    struct room room __attribute__((cleanup(unmap_room))) = map_room(inv_preload_room(envp));  \
    char *const *given =                                                                       \
        inv_preload_environment(file, search, envp, room.memory, "invasive");                  \
    if (given == envp)                                                                         \
        unmap_room(&room)

/* The same for a call that leaves the block only when it fails. */
#define FOR_EXEC(file, search, envp)                                                           \
    FOR_PROGRAM(file, search, envp);                                                           \
    left_room = room

int execve(const char *path, char *const argv[], char *const envp[])
{
    FOR_EXEC(path, false, envp);
    UNPINNED(int, execve, real(path, argv, given));
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FOR_EXEC(path, false, envp);
    UNPINNED(int, fexecve, real(fd, argv, given));
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
    FOR_EXEC(file, true, envp);
    UNPINNED(int, execvpe, real(file, argv, given));
}

int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

/* The arguments after `first` up to the null pointer; `envp`, if asked for, comes after it. */
#define COLLECT(first, envp_too)                                                               \
    va_list args;                                                                              \
    size_t n = 1;                                                                              \
    va_start(args, first);                                                                     \
    while (va_arg(args, char *))                                                               \
        n++;                                                                                   \
    va_end(args);                                                                              \
    char **argv = alloca((n + 1) * sizeof *argv);                                              \
    argv[0] = (char *)first;                                                                   \
    va_start(args, first);                                                                     \
    for (size_t i = 1; i <= n; i++)                                                            \
        argv[i] = va_arg(args, char *);                                                        \
    char *const *envp = envp_too ? va_arg(args, char *const *) : environ;                      \
    va_end(args)

int execl(const char *path, const char *first, ...)
{
    COLLECT(first, 0);
    return execve(path, argv, envp);
}

int execlp(const char *file, const char *first, ...)
{
    COLLECT(first, 0);
    return execvpe(file, argv, envp);
}

int execle(const char *path, const char *first, ...)
{
    COLLECT(first, 1);
    return execve(path, argv, envp);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    FOR_PROGRAM(path, false, envp);
    UNPINNED(int, posix_spawn, real(pid, path, actions, attributes, argv, given));
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    FOR_PROGRAM(file, true, envp);
    UNPINNED(int, posix_spawnp, real(pid, file, actions, attributes, argv, given));
}

int system(const char *command)
{
    UNPINNED(int, system, real(command));
}

FILE *popen(const char *command, const char *type)
{
    UNPINNED(FILE *, popen, real(command, type));
}

#pragma GCC visibility pop

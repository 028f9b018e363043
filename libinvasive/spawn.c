/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * spawn.c - programs that a pinned thread starts begin with the affinity that ours had.
 *
 * An affinity mask goes through fork and exec.  fork is dealt with by a handler
 * (process.c), which vfork and the C library's own spawning do not call; so the calls
 * that start programs are interposed: the thread is unpinned for the call.  In the
 * child of a vfork, too: it shares our memory, but its affinity is its own.
 */
#define _GNU_SOURCE
#include "process.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#pragma GCC visibility push(default)

/* Call `call`, which uses `real` of the type of `name`, with the thread unpinned. */
#define UNPINNED(type, name, call)                                                             \
    static _Atomic(void *) cache;                                                              \
    void *found = atomic_load_explicit(&cache, memory_order_relaxed);                          \
    if (!found) {                                                                              \
        found = dlsym(RTLD_NEXT, #name);                                                       \
        atomic_store_explicit(&cache, found, memory_order_relaxed);                            \
    }                                                                                          \
    __typeof__(name) *real = (__typeof__(name) *)found;                                        \
    int pinned = inv_thread_unpin();                                                           \
    type result = call;                                                                        \
    int error = errno;                                                                         \
    inv_thread_repin(pinned);                                                                  \
    errno = error;                                                                             \
    return result

int execve(const char *path, char *const argv[], char *const envp[])
{
    UNPINNED(int, execve, real(path, argv, envp));
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
    UNPINNED(int, fexecve, real(fd, argv, envp));
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
    UNPINNED(int, execvpe, real(file, argv, envp));
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
    UNPINNED(int, posix_spawn, real(pid, path, actions, attributes, argv, envp));
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    UNPINNED(int, posix_spawnp, real(pid, file, actions, attributes, argv, envp));
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

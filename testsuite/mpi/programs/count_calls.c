/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * count_calls.c - a profiler as others write them: MPI_X counts itself and calls PMPI_X.  At the
 * end each process appends its counts to the file $COUNT_CALLS, in one write.  It knows no MPI's
 * types and uses no constant of MPI, so one text does for all of them.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef uintptr_t w;

/* NAME(parameters), arguments */
#define FUNCTIONS(F)                                                                               \
    F(Init, (w a, w b), (a, b))                                                                    \
    F(Init_thread, (w a, w b, w c, w d), (a, b, c, d))                                             \
    F(Send, (w a, w b, w c, w d, w e, w f), (a, b, c, d, e, f))                                    \
    F(Isend, (w a, w b, w c, w d, w e, w f, w g), (a, b, c, d, e, f, g))                           \
    F(Recv, (w a, w b, w c, w d, w e, w f, w g), (a, b, c, d, e, f, g))                            \
    F(Irecv, (w a, w b, w c, w d, w e, w f, w g), (a, b, c, d, e, f, g))                           \
    F(Sendrecv, (w a, w b, w c, w d, w e, w f, w g, w h, w i, w j, w k, w l),                      \
      (a, b, c, d, e, f, g, h, i, j, k, l))                                                        \
    F(Probe, (w a, w b, w c, w d), (a, b, c, d))                                                   \
    F(Wait, (w a, w b), (a, b))                                                                    \
    F(Waitall, (w a, w b, w c), (a, b, c))                                                         \
    F(Waitany, (w a, w b, w c, w d), (a, b, c, d))                                                 \
    F(Barrier, (w a), (a))                                                                         \
    F(Bcast, (w a, w b, w c, w d, w e), (a, b, c, d, e))                                           \
    F(Reduce, (w a, w b, w c, w d, w e, w f, w g), (a, b, c, d, e, f, g))                          \
    F(Allreduce, (w a, w b, w c, w d, w e, w f), (a, b, c, d, e, f))                               \
    F(Iallreduce, (w a, w b, w c, w d, w e, w f, w g), (a, b, c, d, e, f, g))                      \
    F(Alltoallw, (w a, w b, w c, w d, w e, w f, w g, w h, w i), (a, b, c, d, e, f, g, h, i))       \
    F(Pack, (w a, w b, w c, w d, w e, w f, w g), (a, b, c, d, e, f, g))                            \
    F(Comm_dup, (w a, w b), (a, b))                                                                \
    F(Comm_split, (w a, w b, w c, w d), (a, b, c, d))                                              \
    F(Comm_free, (w a), (a))                                                                       \
    F(Pcontrol, (w a), (a))                                                                        \
    F(Comm_rank, (w a, w b), (a, b))                                                               \
    F(Error_class, (w a, w b), (a, b))

#define NUMBER(name, parameters, arguments) number_##name,
enum { FUNCTIONS(NUMBER) NUMBERS };

static _Atomic long calls[NUMBERS];

#define WRAPPER(name, parameters, arguments)                                                       \
    int PMPI_##name parameters;                                                                    \
    int MPI_##name parameters;                                                                     \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        calls[number_##name]++;                                                                    \
        return PMPI_##name arguments;                                                              \
    }
FUNCTIONS(WRAPPER)

int PMPI_Finalize(void);
int MPI_Finalize(void);
int MPI_Finalize(void)
{
#define NAME(name, parameters, arguments) #name,
    static const char *const names[] = {FUNCTIONS(NAME)};
    static char text[4096];
    const char *file = getenv("COUNT_CALLS");
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    int n = snprintf(text, sizeof text, "rank %s:", rank ? rank : "?");
    for (int i = 0; i < NUMBERS; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s=%ld", names[i], calls[i]);
    text[n++] = '\n';
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd >= 0) {
        if (write(fd, text, (size_t)n) != n)
            abort();
        close(fd);
    }
    return PMPI_Finalize();
}

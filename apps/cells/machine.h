/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * machine.h - an emulated machine with more CPUs than the real one, for programs that sleep instead
 * of computing (C and C++).  All programs share it: it is a file of zeros, which their
 * starter makes.
 *
 * A thread computes on one of its CPUs.  A thread that finds none free waits in line for one, and
 * gives it up after a time slice if another thread waits.  So threads that are more than the CPUs
 * share them, at no cost, as with a perfect kernel.
 */
#ifndef CELLS_MACHINE_H
#define CELLS_MACHINE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MACHINE_LINE = 4096 };
static const double machine_slice_us = 3000;
struct machine {
    uint32_t next;    /* number of the next thread that comes */
    uint32_t served;  /* numbers below it have, or had, a CPU */
    uint32_t called[MACHINE_LINE]; /* futexes: number + 1 of the last of this place to be called */
};
static struct machine *the_machine;
static pthread_key_t machine_late_ns;

static inline double machine_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The file, of at least sizeof(struct machine) zeros; NULL: a CPU is always free. */
static inline void machine_open(const char *path)
{
    prctl(PR_SET_TIMERSLACK, 1); /* ns, also of threads that we make; the default is 50 us */
    if (pthread_key_create(&machine_late_ns, NULL)) {
        fprintf(stderr, "emulated machine: too many keys\n");
        exit(1);
    }
    if (!path)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *memory = MAP_FAILED;
    if (fd >= 0)
        memory = mmap(NULL, sizeof *the_machine, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "emulated machine: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    close(fd);
    the_machine = (struct machine *)memory;
}

static inline void machine_get_cpu(uint32_t cpus)
{
    uint32_t number = __atomic_fetch_add(&the_machine->next, 1, __ATOMIC_SEQ_CST);
    uint32_t *called = &the_machine->called[number % MACHINE_LINE], seen;
    if ((int32_t)(number - __atomic_load_n(&the_machine->served, __ATOMIC_SEQ_CST)) <
        (int32_t)cpus)
        return;
    while ((int32_t)((seen = __atomic_load_n(called, __ATOMIC_SEQ_CST)) - (number + 1)) < 0)
        syscall(SYS_futex, called, FUTEX_WAIT, seen, NULL, NULL, 0);
}

/* Calls the first thread in line; if the line is empty, the next thread that comes. */
static inline void machine_put_cpu(uint32_t cpus)
{
    uint32_t number = __atomic_fetch_add(&the_machine->served, 1, __ATOMIC_SEQ_CST) + cpus;
    uint32_t *called = &the_machine->called[number % MACHINE_LINE];
    __atomic_store_n(called, number + 1, __ATOMIC_SEQ_CST);
    if ((int32_t)(__atomic_load_n(&the_machine->next, __ATOMIC_SEQ_CST) - number) > 0)
        syscall(SYS_futex, called, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline int machine_somebody_waits(uint32_t cpus)
{
    return (int32_t)(__atomic_load_n(&the_machine->next, __ATOMIC_SEQ_CST) -
                     __atomic_load_n(&the_machine->served, __ATOMIC_SEQ_CST)) > (int32_t)cpus;
}

static inline double machine_sleep(double us)
{
    double start = machine_now();
    struct timespec t = {(time_t)(us * 1e-6), (long)(fmod(us, 1e6) * 1e3)};
    nanosleep(&t, NULL);
    return (machine_now() - start) * 1e6;
}

/* What an emulated CPU, one of so many, does for so long.  A sleep ends late; the thread's next one
 * is shorter by that.  Not by a thread-local variable: in a program that has one, thread numbers
 * stay with their kernel threads, and cores that are added are of no use (INVASIVE_BIND). */
static inline void machine_compute(double us, uint32_t cpus)
{
    double left = us - 1e-3 * (double)(intptr_t)pthread_getspecific(machine_late_ns);
    while (left > 0 && !the_machine)
        left -= machine_sleep(left);
    while (left > 0) {
        double slice = left < machine_slice_us ? left : machine_slice_us;
        machine_get_cpu(cpus);
        do {
            left -= machine_sleep(slice);
            slice = left < machine_slice_us ? left : machine_slice_us;
        } while (left > 0 && !machine_somebody_waits(cpus));
        machine_put_cpu(cpus);
    }
    double late_us = -left < machine_slice_us ? -left : machine_slice_us;
    pthread_setspecific(machine_late_ns, (void *)(intptr_t)(1e3 * late_us));
}

#endif

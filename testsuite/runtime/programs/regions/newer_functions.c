/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The public functions that libgomp has since GCC 13 are there, in their versions, and do what
 * OpenMP says: omp_in_explicit_task is true in tasks of every kind and false in implicit ones; a
 * taskwait with nowait is a task in the order of dependences; copies to and from the host take part
 * in that order, are waited for as tasks are, and look at no argument after the call.  So are the
 * kinds of dependences that a newer compiler hands over: inoutset, and all memory.
 *
 * @mends the stock library of GCC 12 has none of them
 * @changing
 */
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MANY = 200, HOST = -1 }; /* omp_initial_device */

/* The binary interface, as a newer compiler's code calls it. */
static int (*in_explicit_task)(void);
static int32_t (*in_explicit_task_fortran)(void);
static void (*taskwait_depend_nowait)(void **);
static void *(*get_mapped_ptr)(const void *, int);
static int (*is_accessible)(const void *, size_t, int);
static int (*memcpy_async)(void *, const void *, size_t, size_t, size_t, int, int, int,
                           omp_depend_t *);
static int (*memcpy_rect_async)(void *, const void *, size_t, int, const size_t *, const size_t *,
                                const size_t *, const size_t *, const size_t *, int, int, int,
                                omp_depend_t *);

static void find(void *function, const char *name, const char *version)
{
    void *found = dlvsym(RTLD_DEFAULT, name, version);
    CHECK(found, "no %s@%s", name, version);
    memcpy(function, &found, sizeof found);
}

static void pause_a_little(void)
{
    for (volatile int i = 0; i < 300; i++)
        ;
}

static void explicit_here(bool expected, const char *where)
{
    CHECK(!in_explicit_task() == !expected, "omp_in_explicit_task %s", where);
    CHECK(!in_explicit_task_fortran() == !expected, "omp_in_explicit_task_ %s", where);
}

/* --- omp_in_explicit_task */

static void in_tasks(void)
{
#pragma omp task
    {
        explicit_here(true, "in a task");
#pragma omp task
        explicit_here(true, "in a task of a task");
#pragma omp taskwait
        explicit_here(true, "after a taskwait in a task");
#pragma omp taskyield
        explicit_here(true, "after a taskyield in a task");
    }
#pragma omp task if (0)
    {
        explicit_here(true, "in an undeferred task");
#pragma omp task
        explicit_here(true, "in a task of an undeferred one");
        explicit_here(true, "in an undeferred task that has a child");
    }
#pragma omp task final(1)
    {
        explicit_here(true, "in a final task");
#pragma omp task
        explicit_here(true, "in an included task");
    }
#pragma omp task mergeable untied
    explicit_here(true, "in an untied task");
}

static void in_taskloops(void)
{
#pragma omp taskloop grainsize(1)
    for (int i = 0; i < 40; i++)
        explicit_here(true, "in a taskloop");
#pragma omp taskloop if (0)
    for (int i = 0; i < 10; i++)
        explicit_here(true, "in an undeferred taskloop");
#pragma omp taskloop num_tasks(3) nogroup
    for (int i = 0; i < 10; i++)
        explicit_here(true, "in a taskloop without a group");
}

/* A target region is an implicit task, also on the host; what encounters it is not changed. */
static void in_targets(bool in_task)
{
    int x = 0; /* dependences name it */
    (void)x;
#pragma omp target
    {
        explicit_here(false, "in a target region");
#pragma omp task
        explicit_here(true, "in a task of a target region");
#pragma omp task if (0)
        explicit_here(true, "in an undeferred task of a target region");
    }
#pragma omp target nowait depend(inout : x)
    explicit_here(false, "in a target task's region");
    explicit_here(in_task, "after a target task");
#pragma omp task depend(inout : x)
    {
        explicit_here(true, "in a task after a target task");
#pragma omp target nowait
        explicit_here(false, "in a target region of a task");
        explicit_here(true, "in a task that has a target task");
#pragma omp taskwait
    }
#pragma omp taskwait
}

static void where_tasks_are_explicit(int n)
{
    explicit_here(false, "before a region");
    in_tasks();
    in_taskloops();
    in_targets(false);
    explicit_here(false, "between regions");
#pragma omp parallel num_threads(n)
    {
        explicit_here(false, "in a region");
        for (int i = 0; i < 20; i++)
            in_tasks();
        explicit_here(false, "in a region with tasks");
#pragma omp barrier
        explicit_here(false, "after a barrier that runs tasks");
#pragma omp single
        {
            in_taskloops();
            explicit_here(false, "after a taskloop");
            in_targets(false);
#pragma omp task
            in_targets(true);
#pragma omp task
            {
#pragma omp parallel num_threads(2)
                {
                    explicit_here(false, "in a region of a task");
                    in_tasks();
                }
                explicit_here(true, "after a region of a task");
            }
#pragma omp taskgroup
            in_tasks();
            explicit_here(false, "after a taskgroup");
        }
    }
    explicit_here(false, "after a region");
}

/* --- dependences, as a compiler hands them over */

/* A depend object: an address and a kind. */
enum { IN = 1, OUT = 2, INOUT = 3, MUTEXINOUTSET = 4, INOUTSET = 5 };

static omp_depend_t object(void *address, int kind)
{
    omp_depend_t o;
    void *words[2] = {address, (void *)(intptr_t)kind};
    _Static_assert(sizeof o == sizeof words, "a depend object is two words");
    memcpy(&o, words, sizeof o);
    return o;
}

/* out: NULL for none; the same for in. */
static void taskwait_nowait(void *out, void *in)
{
    void *depend[4] = {NULL};
    intptr_t n = 0;
    if (out)
        depend[2 + n++] = out;
    depend[1] = (void *)n;
    if (in)
        depend[2 + n++] = in;
    depend[0] = (void *)n;
    taskwait_depend_nowait(depend);
}

/* --- kinds of dependences that compilers have since GCC 13
 *
 * unused: GCC 12 says so of variables that only depend clauses name. */

/* Members of a set need not wait for each other: the second one ends while the first has not. */
static void members_of_an_inoutset_are_independent(int n)
{
    int x = 0, second = 0;
    omp_event_handle_t event;
    omp_depend_t set __attribute__((unused)) = object(&x, INOUTSET);
#pragma omp parallel num_threads(n)
#pragma omp single
    {
#pragma omp task depend(depobj : set) detach(event)
        pause_a_little();
#pragma omp task depend(depobj : set) depend(out : second) shared(second)
        second = 1;
#pragma omp taskwait depend(in : second)
        CHECK(second == 1, "a member of an inoutset");
        omp_fulfill_event(event);
    }
}

/* Others are before or after all members. */
static void an_inoutset_is_ordered(int n)
{
    int x = 0, members = 0;
    omp_depend_t set __attribute__((unused)) = object(&x, INOUTSET);
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int round = 0; round < MANY; round++) {
#pragma omp task depend(inout : x) shared(x, members)
        {
            pause_a_little();
            CHECK(members == 3 * x, "%d members before round %d", members, x);
            x++;
        }
        for (int i = 0; i < 3; i++) {
#pragma omp task depend(depobj : set) shared(x, members) firstprivate(round)
            {
                CHECK(x == round + 1, "a member of round %d in round %d", round, x);
                pause_a_little();
#pragma omp atomic
                members++;
            }
        }
        if (round % 2) {
#pragma omp task depend(in : x) shared(members) firstprivate(round)
            CHECK(members == 3 * round + 3, "%d members in round %d", members, round);
        }
    }
    CHECK(members == 3 * MANY, "%d members", members);
}

/* inout on omp_all_memory is behind all that has dependences, and all that comes is behind it. */
static void all_memory_is_every_address(int n)
{
    int a[MANY] __attribute__((unused)), ended = 0, barrier = 0;
    omp_depend_t all __attribute__((unused)) = object(NULL, INOUT);
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < MANY; i++) {
#pragma omp task depend(out : a[i]) shared(ended, barrier) firstprivate(round)
            {
                CHECK(barrier == round - 1, "a task passed all memory in round %d", round);
                pause_a_little();
#pragma omp atomic
                ended++;
            }
        }
#pragma omp task depend(depobj : all) shared(ended, barrier) firstprivate(round)
        {
            CHECK(ended == MANY * round, "all memory after %d tasks in round %d", ended, round);
            pause_a_little();
            barrier = round;
        }
    }
    CHECK(barrier == 3, "%d rounds", barrier);
}

/* --- GOMP_taskwait_depend_nowait */

/* It joins two chains of dependences and holds up nothing else. */
static void taskwaits_order_tasks(int n)
{
    int a[MANY], b = 0, sum = 0;
    memset(a, 0, sizeof a);
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        taskwait_nowait(&b, a);
#pragma omp taskwait
#pragma omp taskgroup
        taskwait_nowait(NULL, a);
        for (int i = 0; i < MANY; i++) {
#pragma omp task depend(in : a) shared(a) firstprivate(i)
            {
                pause_a_little();
                a[i] = i + 1;
            }
        }
        taskwait_nowait(a, NULL);
        for (int i = 0; i < MANY; i++) {
#pragma omp task depend(mutexinoutset : a) shared(a, sum) firstprivate(i)
            {
                CHECK(a[i] == i + 1, "a task passed a taskwait with nowait: %d", i);
                pause_a_little();
                sum++;
            }
        }
        taskwait_nowait(&b, a); /* tasks that depend on b now wait for those of a */
#pragma omp task depend(in : b) shared(sum)
        CHECK(sum == MANY, "a task on the other address came after %d of %d", sum, MANY);
#pragma omp taskwait depend(in : b)
        CHECK(sum == MANY, "a taskwait on the other address came after %d of %d", sum, MANY);
    }
}

/* --- copies */

static void devices(void)
{
    char a[4] = "abc", b[4] = "";
    int host = omp_get_initial_device(), none[] = {host + 1, -2, -4, INT_MAX, INT_MIN};
    CHECK(get_mapped_ptr(a, host) == a && get_mapped_ptr(a, HOST) == a, "mapped on the host");
    CHECK(is_accessible(a, sizeof a, host) && is_accessible(a, sizeof a, HOST), "accessible");
    CHECK(get_mapped_ptr(NULL, host) == NULL, "NULL is mapped to NULL");
    for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
        const size_t one[1] = {1}, zero[1] = {0};
        CHECK(get_mapped_ptr(a, none[i]) == NULL, "mapped on device %d", none[i]);
        CHECK(!is_accessible(a, sizeof a, none[i]), "accessible from device %d", none[i]);
        for (int to = 0; to < 2; to++) {
            int dst = to ? none[i] : host, src = to ? host : none[i];
            CHECK(memcpy_async(b, a, 1, 0, 0, dst, src, 0, NULL) == EINVAL, "copy %d %d", dst, src);
            CHECK(memcpy_rect_async(b, a, 1, 1, one, zero, zero, one, one, dst, src, 0, NULL) ==
                      EINVAL, "copy of a rectangle %d %d", dst, src);
        }
    }
    CHECK(b[0] == 0, "a copy that was refused");
    CHECK(memcpy_rect_async(NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, host, host, 0, NULL) >=
              3, "how many dimensions there may be");
    CHECK(memcpy_rect_async(b, a, 1, 0, NULL, NULL, NULL, NULL, NULL, host, host, 0, NULL) ==
              EINVAL, "no dimension");
    CHECK(memcpy_rect_async(b, a, 0, 1, (size_t[]){1}, (size_t[]){0}, (size_t[]){0}, (size_t[]){1},
                            (size_t[]){1}, host, host, 0, NULL) == EINVAL, "elements of no bytes");
}

/* Outside of regions a copy is over when the call returns or with the next taskwait. */
static void copies(void)
{
    char from[8] = "abcdefg", to[8] = "";
    CHECK(memcpy_async(to, from, 3, 1, 2, HOST, omp_get_initial_device(), 0, NULL) == 0, "copy");
#pragma omp taskwait
    CHECK(!memcmp(to, "\0cde\0\0\0", 8), "copied: %s", to + 1);
    enum { X = 4, Y = 5, Z = 6 };
    int box[X][Y][Z], part[3][4][5];
    for (int i = 0; i < X * Y * Z; i++)
        (&box[0][0][0])[i] = i;
    memset(part, 0, sizeof part);
    CHECK(memcpy_rect_async(part, box, sizeof(int), 3, (size_t[]){2, 2, 3}, (size_t[]){1, 0, 2},
                            (size_t[]){2, 3, 1}, (size_t[]){3, 4, 5}, (size_t[]){X, Y, Z}, HOST,
                            HOST, 0, NULL) == 0, "copy of a box");
#pragma omp taskwait
    for (int x = 0; x < 3; x++)
        for (int y = 0; y < 4; y++)
            for (int z = 0; z < 5; z++) {
                int there = x >= 1 && y < 2 && z >= 2 ? box[x + 1][y + 3][z - 1] : 0;
                CHECK(part[x][y][z] == there, "box: [%d][%d][%d] is %d", x, y, z, part[x][y][z]);
            }
}

/* One copy; rectangles are made of lists that are overwritten after the call. */
static void copy_one(int *to, const int *from, bool rect, int count, omp_depend_t *objects)
{
    size_t volume[2] = {1, 1}, offsets[2] = {0, 0}, dimensions[2] = {1, 1};
    int status = rect ? memcpy_rect_async(to, from, sizeof *to, 2, volume, offsets, offsets,
                                          dimensions, dimensions, HOST, HOST, count, objects)
                      : memcpy_async(to, from, sizeof *to, 0, 0, HOST, HOST, count, objects);
    CHECK(status == 0, "copy: %d", status);
    memset(volume, 0, sizeof volume);
    memset(offsets, -1, sizeof offsets);
    for (int i = 0; i < count; i++)
        objects[i] = object(NULL, 0);
}

/* x to y by a copy, y to x by a task that adds one: a copy out of order loses an addition. */
static void copies_keep_the_order(int n)
{
    int x = 0, y = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < MANY; i++) {
        omp_depend_t both[2] = {object(&x, i % 3 ? IN : MUTEXINOUTSET),
                                object(&y, i % 2 ? OUT : INOUT)};
        copy_one(&y, &x, i % 5 == 0, 2, both);
#pragma omp task depend(in : y) depend(out : x) shared(x, y)
        {
            pause_a_little();
            x = y + 1;
        }
    }
    CHECK(x == MANY, "%d of %d additions", x, MANY);
}

/* A copy is a child of the task that makes it. */
static void copies_are_waited_for(int n)
{
    int from[MANY], to[MANY];
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < MANY; i++)
            from[i] = i + round;
#pragma omp parallel num_threads(n)
#pragma omp single
        {
            for (int i = 0; i < MANY; i++)
                if (round == 2) {
#pragma omp task shared(from, to) firstprivate(i)
                    {
                        copy_one(&to[i], &from[i], i % 2, 0, NULL);
#pragma omp taskwait
                        CHECK(to[i] == i + 2, "taskwait in a task: %d", i);
                    }
                } else
                    copy_one(&to[i], &from[i], i % 2, 0, NULL);
            if (round == 1) {
#pragma omp taskwait
                for (int i = 0; i < MANY; i++)
                    CHECK(to[i] == i + 1, "taskwait: %d", i);
            }
        }
        for (int i = 0; i < MANY; i++)
            CHECK(to[i] == i + round, "the end of the region, round %d: %d", round, i);
    }
}

/* The caller goes on while predecessors wait for it: here for an event that the caller fulfils. */
static void no_call_waits(int n)
{
    int x = 0, told = 0, from = 1, to[2] = {0, 0};
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        omp_event_handle_t event;
#pragma omp task detach(event) depend(out : x)
        pause_a_little();
        taskwait_nowait(&x, NULL);
        for (int rect = 0; rect < 2; rect++) {
            omp_depend_t on_x[1] = {object(&x, IN)};
            copy_one(&to[rect], &from, rect, 1, on_x);
        }
#pragma omp task depend(in : x) shared(told)
        CHECK(__atomic_load_n(&told, __ATOMIC_RELAXED), "a task before its predecessor's event");
        pause_a_little();
        from = 2;
        __atomic_store_n(&told, 1, __ATOMIC_RELAXED);
        omp_fulfill_event(event);
    }
    CHECK(to[0] == 2 && to[1] == 2, "copies before their predecessor's event: %d %d", to[0], to[1]);
}

int main(void)
{
    static const int sizes[] = {1, 2, 4, 16};
    find(&in_explicit_task, "omp_in_explicit_task", "OMP_5.2");
    find(&in_explicit_task_fortran, "omp_in_explicit_task_", "OMP_5.2");
    find(&get_mapped_ptr, "omp_get_mapped_ptr", "OMP_5.1.1");
    find(&is_accessible, "omp_target_is_accessible", "OMP_5.1.1");
    find(&memcpy_async, "omp_target_memcpy_async", "OMP_5.1.1");
    find(&memcpy_rect_async, "omp_target_memcpy_rect_async", "OMP_5.1.1");
    find(&taskwait_depend_nowait, "GOMP_taskwait_depend_nowait", "GOMP_5.1.1");
    explicit_here(false, "before OpenMP is used");
    omp_set_max_active_levels(2);
    devices();
    copies();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        where_tasks_are_explicit(n);
        if (n > 1) /* a team of one executes a task at once */
            members_of_an_inoutset_are_independent(n);
        an_inoutset_is_ordered(n);
        all_memory_is_every_address(n);
        taskwaits_order_tasks(n);
        no_call_waits(n);
        copies_keep_the_order(n);
        copies_are_waited_for(n);
    }
    return check_ok();
}

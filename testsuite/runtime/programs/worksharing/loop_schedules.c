/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every iteration of a loop runs once: each schedule, with signed and unsigned, short and long
 * iterators, up and down, odd strides, chunks of all sizes, empty ranges, ranges that end at
 * the limits of the type; loops follow each other without a barrier, so that thread numbers
 * that start late meet all of them.  Monotonic schedules give each thread ascending
 * iterations, ordered ones keep the order, lastprivate is the value of the last iteration.
 * @each int unsigned long ull constant last
 * @mends chunks that overflow when multiplied with the step; static ordered loops that follow an
 * empty one
 */
#include "../check.h"
#include <limits.h>
#include <omp.h>
#include <string.h>

typedef unsigned long long ull;

enum { LOOPS = 480, TRIPS = 260 };

static unsigned char count[LOOPS][TRIPS]; /* how often each iteration ran */
static int trips_of[LOOPS];
static int order[LOOPS]; /* ordered loops: the iteration that comes next */
static int team = 1;

/* Some iterations take longer, so that threads run out of work at different times. */
static void hit(int loop, ull trip)
{
    CHECK(trip < TRIPS, "loop %d of %d iterations: iteration %llu", loop, trips_of[loop], trip);
    __atomic_fetch_add(&count[loop][trip], 1, __ATOMIC_RELAXED);
    for (volatile int k = 0; k < (trip % 61 == 7 ? 300 : 1); k++)
        ;
}

static void in_order(int loop, int trip)
{
    CHECK(order[loop] == trip, "loop %d: iteration %d in place of %d", loop, trip, order[loop]);
    order[loop] = trip + 1;
}

static void ordered_hit(int loop, ull trip)
{
    hit(loop, trip);
#pragma omp ordered
    in_order(loop, (int)trip);
}

static void ascending(int loop, long *before, ull trip)
{
    CHECK((long)trip > *before, "loop %d: iteration %llu after %ld", loop, trip, *before);
    *before = (long)trip;
}

static void all_once(const char *what)
{
    for (int loop = 0; loop < LOOPS; loop++)
        for (int trip = 0; trip < TRIPS; trip++)
            CHECK(count[loop][trip] == (trip < trips_of[loop]),
                  "%s, team of %d: loop %d of %d iterations ran iteration %d %d times", what, team,
                  loop, trips_of[loop], trip, count[loop][trip]);
    memset(count, 0, sizeof count);
    memset(trips_of, 0, sizeof trips_of);
    memset(order, 0, sizeof order);
}

#define PRAGMA(...) _Pragma(#__VA_ARGS__)

/* One loop, up or down, from `low` to `high`, both ends as the program has them. */
#define EITHER_WAY(T, CLAUSES, BODY)                                                               \
    if (up) {                                                                                      \
        PRAGMA(omp for nowait CLAUSES)                                                             \
        for (T i = low; i < high; i += step) {                                                     \
            ull trip = ((ull)i - (ull)low) / (ull)step;                                            \
            BODY;                                                                                  \
        }                                                                                          \
    } else {                                                                                       \
        PRAGMA(omp for nowait CLAUSES)                                                             \
        for (T i = high; i > low; i -= step) {                                                     \
            ull trip = ((ull)high - (ull)i) / (ull)step;                                           \
            BODY;                                                                                  \
        }                                                                                          \
    }

/* The loops of one range: with each clause, all in the region that the caller is in. */
#define SCHEDULES(T, S, NAME)                                                                         \
    static void NAME##_range(int kind, int loop, T low, T high, S step, S chunk, int up)           \
    {                                                                                              \
        long before = -1;                                                                          \
        switch (kind) {                                                                            \
        case 0:                                                                                    \
            EITHER_WAY(T, schedule(dynamic, chunk), hit(loop, trip));                              \
            break;                                                                                 \
        case 1:                                                                                    \
            EITHER_WAY(T, schedule(monotonic : dynamic, chunk),                                    \
                       (hit(loop, trip), ascending(loop, &before, trip)));                         \
            break;                                                                                 \
        case 2:                                                                                    \
            EITHER_WAY(T, schedule(guided, chunk), hit(loop, trip));                               \
            break;                                                                                 \
        case 3:                                                                                    \
            EITHER_WAY(T, schedule(monotonic : guided, chunk),                                     \
                       (hit(loop, trip), ascending(loop, &before, trip)));                         \
            break;                                                                                 \
        case 4:                                                                                    \
            EITHER_WAY(T, schedule(static, chunk), hit(loop, trip));                               \
            break;                                                                                 \
        case 5:                                                                                    \
            EITHER_WAY(T, schedule(runtime), hit(loop, trip));                                     \
            break;                                                                                 \
        case 6:                                                                                    \
            EITHER_WAY(T, schedule(monotonic : runtime), hit(loop, trip));                         \
            break;                                                                                 \
        case 7:                                                                                    \
            EITHER_WAY(T, schedule(auto), hit(loop, trip));                                        \
            break;                                                                                 \
        default:                                                                                   \
            ordered_##NAME(kind - 8, loop, low, high, step, chunk, up);                            \
        }                                                                                          \
    }

#define ORDERED(T, S, NAME)                                                                           \
    static void ordered_##NAME(int kind, int loop, T low, T high, S step, S chunk, int up)         \
    {                                                                                              \
        if (kind == 0) {                                                                           \
            EITHER_WAY(T, ordered schedule(dynamic, chunk), ordered_hit(loop, trip))                          \
        } else if (kind == 1) {                                                                    \
            EITHER_WAY(T, ordered schedule(guided, chunk), ordered_hit(loop, trip))                           \
        } else {                                                                                   \
            EITHER_WAY(T, ordered schedule(runtime), ordered_hit(loop, trip))                                 \
        }                                                                                          \
    }

/* All ranges of a type.  MIN, MAX: its limits.  S: its signed fellow, of strides.  DOWN:
 * also loops that count down; gcc 12 makes empty ones of those with unsigned int. */
#define RANGES(T, S, NAME, MIN, MAX, DOWN)                                                                  \
    ORDERED(T, S, NAME)                                                                              \
    SCHEDULES(T, S, NAME)                                                                             \
    static int NAME##_ranges(int kind)                                                             \
    {                                                                                              \
        static const int trips[] = {0, 1, 7, 63, 250}, chunks[] = {1, 3, 8, 1000};                 \
        const S strides[] = {1, 3, 7, (S)(MAX / 2) / 130};                                         \
        int loop = 0;                                                                              \
        for (int t = 0; t < 5; t++)                                                                \
            for (int s = 0; s < 4; s++)                                                            \
                for (int c = 0; c < 4; c++)                                                        \
                    for (int place = 0; place < 3; place++)                                        \
                        for (int up = DOWN ? 0 : 1; up < 2; up++, loop++) {                        \
                            int n = trips[t] > 63 && kind >= 8 ? 20 : trips[t];                    \
                            T room = (T)((T)n * (T)strides[s]);                                       \
                            T past = (T)((T)strides[s] + (T)team); /* stepping over the end */        \
                            T low = place == 0 ? 5 : place == 1 ? (T)(MIN + past)                  \
                                                               : (T)(MAX - past - room);           \
                            trips_of[loop] = n;                                                    \
                            NAME##_range(kind, loop, low, (T)(low + room), strides[s],             \
                                         (S)chunks[c], up);                                        \
                        }                                                                          \
        return loop;                                                                               \
    }                                                                                              \
    static void NAME##_kinds(void)                                                                 \
    {                                                                                              \
        for (int kind = 0; kind < 11; kind++) {                                                    \
            _Pragma("omp parallel num_threads(team)") NAME##_ranges(kind);                         \
            char what[40];                                                                         \
            snprintf(what, sizeof what, #T ", kind %d", kind);                                     \
            all_once(what);                                                                        \
        }                                                                                          \
    }

RANGES(int, int, int, INT_MIN, INT_MAX, 1)
RANGES(unsigned, int, unsigned, 0, UINT_MAX, 0)
RANGES(long, long, long, LONG_MIN, LONG_MAX, 1)
RANGES(ull, long long, ull, 0, ULLONG_MAX, 1)

/* Regions that are one loop with constant bounds have entry points of their own. */
#define CONSTANT(LOOP, TRIPS_, FROM, WHILE, STEP, TRIP, ...)                                       \
    trips_of[LOOP] = TRIPS_;                                                                       \
    PRAGMA(omp parallel for num_threads(team) schedule(__VA_ARGS__))                                 \
    for (long i = FROM; WHILE; STEP)                                                               \
        hit(LOOP, (ull)(TRIP));

#define CONSTANT_BOUNDS(LOOP, ...)                                                                 \
    CONSTANT(LOOP, 250, 0, i < 250, i++, i, __VA_ARGS__)                                           \
    CONSTANT(LOOP + 1, 250, 250, i > 0, i--, 250 - i, __VA_ARGS__)                                 \
    CONSTANT(LOOP + 2, 84, 10, i < 260, i += 3, (i - 10) / 3, __VA_ARGS__)                         \
    CONSTANT(LOOP + 3, 12, LONG_MAX - 14, i < LONG_MAX - 2, i++, i - (LONG_MAX - 14), __VA_ARGS__) \
    CONSTANT(LOOP + 4, 12, LONG_MIN + 14, i > LONG_MIN + 2, i--, LONG_MIN + 14 - i, __VA_ARGS__)   \
    CONSTANT(LOOP + 5, 250, LONG_MAX - 252, i < LONG_MAX - 2, i++, i - (LONG_MAX - 252),           \
             __VA_ARGS__)                                                                          \
    CONSTANT(LOOP + 6, 0, 7, i < 7, i++, i, __VA_ARGS__)

static void constant_kinds(void)
{
    CONSTANT_BOUNDS(0, dynamic)
    CONSTANT_BOUNDS(10, dynamic, 5)
    CONSTANT_BOUNDS(20, guided)
    CONSTANT_BOUNDS(30, static)
    CONSTANT_BOUNDS(40, runtime)
    CONSTANT_BOUNDS(50, nonmonotonic : runtime)
    CONSTANT_BOUNDS(60, auto)
    all_once("constant bounds");
}

/* The compiler stores the value after the last chunk that a thread was given. */
#define LAST(...)                                                                                  \
    {                                                                                              \
        long last = -1;                                                                            \
        PRAGMA(omp parallel for num_threads(team) lastprivate(last) schedule(__VA_ARGS__))         \
        for (long i = 0; i < n; i++) {                                                             \
            hit(0, (ull)i);                                                                        \
            last = i;                                                                              \
        }                                                                                          \
        CHECK(last == n - 1, "schedule " #__VA_ARGS__ ": lastprivate %ld of %ld", last, n);        \
        trips_of[0] = (int)n;                                                                      \
        all_once("lastprivate, " #__VA_ARGS__);                                                    \
    }

static void lastprivates(void)
{
    static const long sizes[] = {1, 2, 7, 40, 260};
    for (int s = 0; s < 5; s++)
        for (int chunk = 1; chunk < 4; chunk += 2) {
            long n = sizes[s];
            LAST(dynamic, chunk)
            LAST(monotonic : dynamic, chunk)
            LAST(guided, chunk)
            LAST(static, chunk)
            LAST(runtime)
        }
}

static void each_team(void (*kinds)(void))
{
    static const int teams[] = {1, 2, 5, 17};
    static const struct {
        omp_sched_t kind;
        int chunk;
    } schedules[] = {{omp_sched_dynamic, 1},
                     {omp_sched_auto, 0},
                     {omp_sched_guided, 2},
                     {omp_sched_static, 3},
                     {omp_sched_dynamic | omp_sched_monotonic, 4}};
    for (int t = 0; t < 4; t++) {
        team = teams[t];
        omp_set_schedule(schedules[t].kind, schedules[t].chunk);
        kinds();
        omp_set_schedule(schedules[t + 1].kind, schedules[t + 1].chunk);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "long";
    each_team(strcmp(what, "int") == 0        ? int_kinds
              : strcmp(what, "unsigned") == 0 ? unsigned_kinds
              : strcmp(what, "ull") == 0      ? ull_kinds
              : strcmp(what, "long") == 0     ? long_kinds
              : strcmp(what, "last") == 0     ? lastprivates
                                              : constant_kinds);
    return check_ok();
}

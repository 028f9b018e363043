/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cores come and go in the middle of loops: long loops of every schedule alternate with pauses
 * in which the cores are others', with teams of the default size and larger ones, in two
 * threads of the program at once.  Every iteration runs once, ordered ones in order, and the
 * loop that is heaviest at one end ends as the others do.
 * @each dynamic guided ordered runtime auto
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 600, ROUNDS = 12 };

struct counts {
    unsigned char ran[ITEMS];
    int next;
};

static const char *schedule;

static void pause_ms(long ms)
{
    struct timespec ts = {0, ms * 1000000};
    nanosleep(&ts, NULL);
}

/* About 10 microseconds; ten times as long in the last tenth of the loop. */
static void work(struct counts *c, int i)
{
    c->ran[i]++;
    for (volatile int k = 0; k < (i >= ITEMS - ITEMS / 10 ? 30000 : 3000); k++)
        ;
}

static void in_order(struct counts *c, int i)
{
    CHECK(c->next == i, "ordered iteration %d in place of %d", i, c->next);
    c->next++;
}

static void loop(struct counts *c, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        if (strcmp(schedule, "dynamic") == 0) {
#pragma omp for schedule(dynamic)
            for (int i = 0; i < ITEMS; i++)
                work(c, i);
        } else if (strcmp(schedule, "guided") == 0) {
#pragma omp for schedule(guided, 2) nowait
            for (int i = 0; i < ITEMS; i++)
                work(c, i);
        } else if (strcmp(schedule, "ordered") == 0) {
#pragma omp for ordered schedule(dynamic, 3)
            for (int i = 0; i < ITEMS; i++) {
                work(c, i);
#pragma omp ordered
                in_order(c, i);
            }
        } else {
#pragma omp for schedule(runtime) nowait
            for (int i = 0; i < ITEMS; i++)
                work(c, i);
        }
    }
    for (int i = 0; i < ITEMS; i++)
        CHECK(c->ran[i] == 1, "%s: iteration %d ran %d times", schedule, i, c->ran[i]);
    memset(c, 0, sizeof *c);
}

static void *rounds(void *threads)
{
    struct counts c = {{0}, 0}; /* not thread-local: that would bind the threads */
    if (strcmp(schedule, "auto") == 0)
        omp_set_schedule(omp_sched_auto, 0);
    for (int round = 0; round < ROUNDS; round++) {
        loop(&c, *(int *)threads);
        pause_ms(round % 3);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    schedule = argc > 1 ? argv[1] : "dynamic";
    int some = omp_get_max_threads(), many = 9;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, rounds, &many) == 0, "no thread");
    rounds(&some);
    pthread_join(other, NULL);
    return check_ok();
}

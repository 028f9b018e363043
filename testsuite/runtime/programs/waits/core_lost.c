/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A thread waits asleep for a lock.  It and the holder of the lock use stdout and stdin.
 * @helper for test_lost_holds.py, which takes the holder's core away
 */
#include "../check.h"
#include <omp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static omp_lock_t lock;
static atomic_bool started, locked;

static void say_and_hear(const char *word)
{
    char line[8];
    puts(word);
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin), "no answer to %s", word);
}

int main(void)
{
    omp_init_lock(&lock);
#pragma omp parallel num_threads(3) /* a worker that the next region does not need */
    {
#pragma omp barrier
    }
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            omp_set_lock(&lock);
            locked = true;
            while (!started)
                usleep(100);
            say_and_hear("locked");
            omp_unset_lock(&lock);
        } else {
            started = true;
            while (!locked)
                usleep(100);
            omp_set_lock(&lock);
            say_and_hear("runs");
            omp_unset_lock(&lock);
        }
    }
    return 0;
}

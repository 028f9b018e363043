/* SPDX-License-Identifier: GPL-3.0-or-later */
/* store_load - of two threads that each store a word and then load the other's, both with sequential
 * consistency, one at least sees what the other stored.  Threads that sleep and threads that wake them
 * rely on it.  OK: so it was in each round. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum { ROUNDS = 100000 };

/* Of thread 0 and 1; the last round in which it ... */
static struct {
    _Alignas(64) _Atomic int begun;
    _Alignas(64) _Atomic int stored;
    _Alignas(64) _Atomic int loaded;
    int saw; /* what it loaded from the other's `stored`; written before `loaded` */
} threads[2];

static void meet(_Atomic int *mine, _Atomic int *others, int round)
{
    atomic_store(mine, round);
    while (atomic_load(others) < round)
        ;
}

static void *run(void *arg)
{
    intptr_t me = (intptr_t)arg, other = 1 - me, lost = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        meet(&threads[me].begun, &threads[other].begun, round);
        atomic_store(&threads[me].stored, round);
        threads[me].saw = atomic_load(&threads[other].stored);
        meet(&threads[me].loaded, &threads[other].loaded, round);
        lost += threads[0].saw < round && threads[1].saw < round;
    }
    return (void *)lost;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, (void *)1) != 0)
        return 1;
    intptr_t lost = (intptr_t)run((void *)0);
    pthread_join(thread, NULL);
    if (lost > 0)
        printf("in %d of %d rounds neither saw the other's store\n", (int)lost, ROUNDS);
    else
        puts("OK");
    return lost > 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * handover.pml - how the threads of one managed process hand their cores to each other
 * (parking.c and ready.c of threads/; sleepers.c, cores.c and hold.c of sched/), every interleaving.
 *
 * NT threads on two cores pass a barrier ROUNDS times, or, with WITH_LOCK, each enters a critical
 * section so often.  A thread that has to wait parks and passes its core on: to a thread that is ready,
 * or the core is lent.  Then it sleeps.  Thread 0 has core 0 in the beginning, the others are pinned
 * nowhere yet.  NW free workers are parked, and with STRANGER another process takes free cores
 * and lends them back.  With OWNER core 1 is another process's, which asks for it as often, takes it when
 * it is given up or in the middle of whatever goes on there, and lends it again.  No watchdog: nothing
 * here heals what got lost.
 *
 * What is checked:
 *  - at most one thread holds a core, and the process holds it       (assertions in begin_hold);
 *    but after an eviction two threads may believe that they hold it, or it may be handed over twice.
 *    The last hold to begin counts, if the process has the core again; the other thread finds out at
 *    its next scheduling point
 *  - when nothing moves any more, every thread has come to its end: no wake-up is lost
 *  - then the process holds no core any more: no hold is lost                 (both in init)
 *
 * One STEP is one access to memory that others race for, or several of which only one matters to
 * the others.  A critical section is one step where no process can tell (its lock must be free then).
 * Parts of the protocol of parked workers that libinvasive/model/core.pml checks are coarser here, more of
 * them with COARSE.  With PAUSES a thread may pass its core on without waiting for anything, once a round.
 * With PINNED each thread has held a core before, and two hold one now.  A thread that
 * is woken without a hold runs unheld to its next wait.  Left out: holds for unheld threads, tickets
 * (tickets.pml), tokens.
 *
 * BUG_* break it on purpose; check.sh sees that each is found.
 */
#ifndef NT
#define NT 3
#endif
#ifndef NW
#define NW 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define NC 2
#define UNPINNED NC /* the queue of those that are pinned nowhere */
#define NONE 7
#define STEP(x) d_step { x }

/* --- a waiter, one for each thread */
#define AWAKE 0
#define GO 1
#define ASLEEP 2
byte word[NT];
byte hold[NT];        /* what its waker gives it */
byte core[NT];        /* that it held last, UNPINNED: none */

/* --- ready.c */
chan queue[NC + 1] = [NT] of { byte };

#define READY_COUNT (len(queue[0]) + len(queue[1]) + len(queue[UNPINNED]))

/* --- the parking lot: one bucket */
chan lot = [NT] of { byte };
bool lot_locked;
byte sleepers;

/* --- libinvasive: cores, what this process wants, parked workers */
bool held[NC];        /* by this process */
bool lent[NC];        /* held by the stranger, or the owner */
bool asked[NC];       /* by the owner: no other process may take it */
bool evicted;         /* some time */
bool want;
bool parked[NW], bell[NW];
byte worker_core[NW];  /* a hint: to be borrowed */

/* --- what the model knows besides */
byte holder[NC] = NONE;
byte ended = 0;

/* --- the program: a barrier, a lock (0 free, 1 taken, 2 taken and a thread may sleep) */
byte generation, arrived;
byte mutex;
bool inside;

/* in a STEP */
inline begin_hold(c, who)
{
    assert(evicted || (held[c] && holder[c] == NONE));
    if
    :: held[c] -> holder[c] = who
    :: else
    fi
}

/* In a STEP: s becomes NONE if the thread does not hold it any more. */
inline detach(s, who)
{
    assert(evicted || holder[s] == who);
    if
    :: holder[s] == who -> holder[s] = NONE
    :: else -> s = NONE
    fi
}

/* The first of the queue goes into w, if that is NONE. */
inline take_first(q)
{
    if
    :: w == NONE && len(queue[q]) > 0 -> queue[q]?w
    :: else
    fi
}

/* --- ready.c */

inline ready_push(who)
{
    STEP(queue[core[who]]!who)
}

/* ok: a thread that is ready has been given hold s: with taking it (gomp_waiter_wake) one step, as only
 * its falling asleep comes in between.  The real one has each queue's lock in turn.  What comes to a queue
 * after the look at it is the same as what comes after all. */
inline place_hold(s)
{
    d_step {
        take_first(s);
        take_first((s + 1) % (NC + 1));
        take_first((s + 2) % (NC + 1));
        ok = w != NONE;
        if
        :: ok -> hold[w] = s; word[w] = GO; w = NONE
        :: else
        fi }
}

/* --- parking.c, park.c, sleepers.c */

/* Returns with a hold, which is the thread's. */
inline waiter_sleep(me)
{
#ifdef BUG_SLEEP_OVERWRITES
    STEP(word[me] = ASLEEP);
#else
    STEP(if
         :: word[me] == AWAKE -> word[me] = ASLEEP
         :: else
         fi);
#endif
    word[me] == GO;
    STEP(mine = hold[me]; hold[me] = NONE; word[me] = AWAKE;
         assert(mine != NONE || evicted);
         if
         :: mine != NONE -> core[me] = mine; begin_hold(mine, me)
         :: else
         fi)
}

/* --- libinvasive */

#define FREE(c) (!held[c] && !lent[c] && !asked[c])

/* in a STEP */
inline try_if_wanted(into)
{
    if
    :: want && FREE(0) -> held[0] = true; into = 0
    :: want && !FREE(0) && FREE(1) -> held[1] = true; into = 1
    :: else -> into = NONE
    fi
}

/* In a STEP: offer a core that has just been lent, to parked workers of this process if it wants
 * one. */
inline core_offer(s)
{
    if
    :: FREE(s) && want && parked[0] ->
        parked[0] = false; worker_core[0] = s; bell[0] = true
    :: FREE(s) && want && !parked[0] && parked[NW - 1] ->
        parked[NW - 1] = false; worker_core[NW - 1] = s; bell[NW - 1] = true
    :: else
    fi
}

inline hold_release(s)
{
    STEP(assert(evicted || (held[s] && holder[s] == NONE)); held[s] = false;
#ifdef COARSE
         core_offer(s)
    )
#else
    );
    STEP(core_offer(s))
#endif
}

/* --- cores.c, hold.c */

/* Where the real one starts a worker because none is parked or on its way, here those that there
 * are must do: they park some time. */
inline take_free_cores()
{
    ok = false;
    do
    :: ok -> break
    :: else ->
        STEP(if
             :: READY_COUNT > 0 && FREE(0) -> got = 0; held[0] = true
             :: READY_COUNT > 0 && !FREE(0) && FREE(1) -> got = 1; held[1] = true
             :: else -> ok = true
             fi);
        if
        :: ok -> break
        :: else -> place_hold(got)
        fi;
        if
        :: ok -> ok = false /* another one */
        :: else -> hold_release(got); break
        fi
    od;
    got = NONE;
    ok = false
}

inline want_cores_if(needed)
{
    STEP(if
         :: needed -> ok = want; want = true
         :: else -> ok = true
         fi);
    if
    :: ok -> ok = false
    :: else -> take_free_cores()
    fi
}

inline stop_wanting()
{
    if
    :: READY_COUNT == 0 -> want = false
    :: else
    fi;
#ifndef BUG_NO_LOOK_AFTER_STOP
    want_cores_if(READY_COUNT > 0)
#endif
}

#ifdef OWNER
#define CALLED_BACK(s) asked[(s) % NC]
#else
#define CALLED_BACK(s) false
#endif

#define IS_LOST(s) ((s) == NONE || !held[(s) % NC])

/* in hold_handover */
inline give_up(s)
{
    stop_wanting();
    hold_release(s);
#ifndef BUG_NO_LOOK_AFTER_STOP
    want_cores_if(READY_COUNT > 0)
#endif
}

/* A hold that is lost (or none) or asked back serves no thread that is ready. */
inline hold_handover(s)
{
    if
    :: IS_LOST(s) ->
#ifdef BUG_LOST_LOOKS_AWAY
        skip
#else
        stop_wanting();
        take_free_cores()
#endif
#ifdef OWNER
    :: !IS_LOST(s) && CALLED_BACK(s) -> give_up(s); take_free_cores()
#endif
    :: else ->
        place_hold(s);
        if
        :: ok -> ok = false
        :: else -> give_up(s)
        fi
    fi
}

/* mine becomes NONE */
inline hold_yield(who)
{
    STEP(if
         :: mine != NONE -> detach(mine, who)
         :: else
         fi);
    hold_handover(mine);
    mine = NONE
}

#define LOST(who) (!held[mine % NC] || holder[mine % NC] != (who))

/* A scheduling point of a thread that goes on (gomp_hold_checkpoint). */
inline checkpoint(me)
{
    if
    :: mine != NONE && (LOST(me) || CALLED_BACK(mine)) ->
        hold_yield(me);
        ready_push(me);
        want_cores_if(true);
        waiter_sleep(me)
    :: else
    fi
}

/* A thread that waits without sleeping passes its core on (pass_on_and_queue of hold.c): it takes the next ready thread,
 * queues, and wakes that thread then.  Left out: a thread that waits in a loop of tests of MPI queues for a limited time. */
inline pause(me)
{
    if
    :: mine != NONE && READY_COUNT > 0 ->
        STEP(detach(mine, me));
        if
        :: !IS_LOST(mine) && !CALLED_BACK(mine) -> d_step {
            take_first(mine);
            take_first((mine + 1) % (NC + 1));
            take_first((mine + 2) % (NC + 1));
            next = w; w = NONE }
        :: else
        fi;
        if
        :: next != NONE ->
            ready_push(me);
            want_cores_if(true);
            STEP(hold[next] = mine; word[next] = GO; next = NONE; mine = NONE)
        :: else ->
            hold_handover(mine);
            mine = NONE;
            ready_push(me);
            want_cores_if(true)
        fi;
        waiter_sleep(me)
    :: else
    fi
}

inline park(me, still)
{
#ifdef BUG_LOOK_BEFORE_SLEEPER
    atomic { !lot_locked -> lot_locked = true; ok = (still) };
    STEP(if :: ok -> sleepers++; lot!me :: else fi; lot_locked = false);
#else
    atomic { !lot_locked -> lot_locked = true; sleepers++ };
    STEP(ok = (still);
        if
        :: ok -> lot!me
        :: else -> sleepers--
        fi;
        lot_locked = false);
#endif
    if
    :: ok -> ok = false; hold_yield(me); waiter_sleep(me)
    :: else
    fi
}

/* Taken: as the real one, those to wake first, then one after the other. */
inline unpark(count)
{
    if
    :: sleepers == 0
    :: else ->
        d_step { !lot_locked ->
            left = 0;
            do
            :: left < (count) && len(lot) > 0 -> lot?taken[left]; left++; sleepers--
            :: else -> break
            od };
        if
        :: left > 0 ->
            n = 0;
            do
            :: n < left -> ready_push(taken[n]); taken[n] = 0; n++
            :: else -> break
            od;
            left = 0;
            n = 0;
            want_cores_if(true)
        :: else
        fi
    fi
}

/* --- the program */

inline barrier(me)
{
    STEP(g = generation; arrived++; ok = arrived == NT;
        if
        :: ok -> arrived = 0; generation++
        :: else
        fi);
    if
    :: ok -> ok = false; unpark(NT)
    :: else ->
        do
        :: generation != g -> break
        :: generation == g -> park(me, generation == g)
        od
    fi;
    g = 0
}

inline critical_section(me)
{
    STEP(ok = mutex == 0; if :: ok -> mutex = 1 :: else fi);
    do
    :: ok -> break
    :: else ->
        STEP(ok = mutex == 0; mutex = 2);
        if
        :: ok -> break
        :: else -> park(me, mutex == 2)
        fi
    od;
    skip;
    STEP(assert(!inside); inside = true; ok = false);
    inside = false;
    STEP(ok = mutex == 2; mutex = 0);
    if
    :: ok -> ok = false; unpark(1)
    :: else
    fi
}

proctype thread(byte me)
{
    byte mine = NONE, got = NONE, w = NONE, g, n, left, rounds = ROUNDS;
#ifdef PAUSES
    byte next = NONE;
#endif
    byte taken[NT];
    bool ok;
    if
    :: holder[me % NC] == me -> mine = me
    :: else -> ready_push(me); want_cores_if(true); waiter_sleep(me)
    fi;
    do
    :: rounds > 0 -> rounds--;
#ifdef OWNER
        checkpoint(me);
#endif
#ifdef PAUSES
        pause(me);
#endif
#ifdef WITH_LOCK
        critical_section(me)
#else
        barrier(me)
#endif
    :: else -> break
    od;
    hold_yield(me);
    ended++
}

/* A free worker, parked as number `me` in libinvasive while it holds no core (inv_worker_park). */
inline worker_park()
{
    STEP(bell[me] = false; worker_core[me] = NONE; parked[me] = true
#ifdef COARSE
         ; try_if_wanted(mine); parked[me] = mine == NONE
    );
#else
    );
    STEP(try_if_wanted(mine));
#endif
    if
    :: mine == NONE -> bell[me]
    :: else
    fi;
    STEP(ok = parked[me]; parked[me] = false);
    if
    :: ok -> ok = false
    :: !ok && !bell[me] /* COARSE: was withdrawn at once */
    :: !ok && bell[me] -> /* another process has woken the worker, and offers a core */
        STEP(got = worker_core[me];
            if
            :: got != NONE && FREE(got % NC) -> held[got] = true
            :: else -> try_if_wanted(got)
            fi);
        if
        :: mine == NONE -> mine = got
        :: mine != NONE && got != NONE -> hold_release(got)
        :: else
        fi;
        got = NONE
    fi
}

proctype worker(byte me)
{
    byte mine = NONE, got = NONE, w = NONE;
    bool ok;
    do
    :: mine == NONE ->
        worker_park();
        if
        :: mine != NONE -> STEP(begin_hold(mine, NT + me))
        :: else -> stop_wanting()
        fi
    :: mine != NONE && (LOST(NT + me) || CALLED_BACK(mine)) -> hold_yield(NT + me)
    :: mine != NONE && !(LOST(NT + me) || CALLED_BACK(mine)) ->
        if
        :: READY_COUNT > 0 ->
            STEP(detach(mine, NT + me));
            if
            :: mine == NONE
            :: else ->
                place_hold(mine);
                if
                :: ok -> ok = false; mine = NONE
                :: else -> STEP(begin_hold(mine, NT + me))
                fi
            fi
        :: else
        fi;
        if
        :: mine == NONE
        :: mine != NONE && len(queue[mine % NC]) > 0
        :: mine != NONE -> hold_yield(NT + me) /* idled for long enough */
        fi
    od
}

#ifdef OWNER
proctype owner()
{
    byte rounds = OWNER;
    do
    :: rounds > 0 ->
        rounds--;
        STEP(if
             :: FREE(1) -> lent[1] = true
             :: else -> asked[1] = true
             fi);
        if
        :: lent[1]
        :: d_step { asked[1] && !held[1] -> lent[1] = true; asked[1] = false }
        :: d_step { asked[1] && held[1] -> /* late */
               held[1] = false; holder[1] = NONE; evicted = true; lent[1] = true; asked[1] = false }
        fi;
        STEP(lent[1] = false);
        STEP(core_offer(1))
    :: true -> break
    od
}
#endif

#ifdef STRANGER
proctype stranger()
{
    byte rounds = STRANGER, c;
    do
    :: rounds > 0 ->
        rounds--;
        if
        :: d_step { FREE(0) -> lent[0] = true; c = 0 }
        :: d_step { FREE(1) -> lent[1] = true; c = 1 }
        fi;
        STEP(lent[c] = false);
        STEP(core_offer(c))
    :: true -> break
    od
}
#endif

init
{
    byte p = 0;
    d_step {
        do
        :: p < NT -> hold[p] = NONE; core[p] = UNPINNED; p++
        :: else -> break
        od;
        p = 0;
        core[0] = 0; held[0] = true; holder[0] = 0;
#ifdef PINNED
        core[1] = 1; held[1] = true; holder[1] = 1;
        core[2 % NT] = 0; core[NT - 1] = (NT - 1) % NC;
#endif
        do
        :: p < NW -> worker_core[p] = NONE; p++
        :: else -> break
        od;
        p = 0
    };
    atomic {
        do
        :: p < NT -> run thread(p); p++
        :: else -> break
        od;
        p = 0;
        do
        :: p < NW -> run worker(p); p++
        :: else -> break
        od;
        p = 0;
#ifdef STRANGER
        run stranger();
#endif
#ifdef OWNER
        run owner()
#endif
    };
    timeout;
    d_step { assert(ended == NT);
             assert(!held[0] && !held[1]);
             assert(READY_COUNT == 0 && sleepers == 0) }
}

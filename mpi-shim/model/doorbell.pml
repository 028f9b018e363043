/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * doorbell.pml - a rank that sleeps in an MPI wait, and ranks that may end the wait: shim_sleep_*
 * of wait.c, watch.c, ring.c and inv_ring, in every interleaving, on a machine that delays stores
 * (x86: total store order).
 *
 *     sleeper:  read the bell; flag := 1; fence; check; sleep while the bell is as read, a slice
 *     poster:   post (a store, delayed); is the flag set?  then clear it, bump the bell, wake
 *
 * The poster has no fence between its post and its check of the flag: a fence would also cost
 * messages for which no rank sleeps.  So a ring can be missed while the flag is new.  The slice
 * that follows a new flag is therefore short, but taken to be longer than a store is delayed; all
 * later slices are long.  What must hold: no rank is in a long slice while what it waits for is
 * there and no poster is about to ring.  In the model a long slice has no end, so an invalid end
 * state is a rank that sleeps for ever.
 *
 * With ARRIVAL, the same for an arrival barrier: the post is the poster's arrival, and only a
 * poster that sees all arrivals rings.  Two posters can arrive last and each miss the other's
 * arrival.  Both check again later, inside the collective or at its end (shim_watch_end), when
 * their stores are visible.
 *
 * BUG_* leave out what the proof needs; check.sh sees that each is found.
 */
#ifndef POSTERS
#define POSTERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

#ifdef ARRIVAL
#define WAITS ROUNDS /* until each has come to as many collectives */
#else
#define WAITS (POSTERS * ROUNDS) /* until so many messages are there */
#endif

byte posted[POSTERS];  /* in memory */
byte own[POSTERS];     /* as the poster itself sees it */
byte flag = 0;         /* sleep flag: of the rank, or of its line of the arrival board */
byte counted = 0;      /* the arrival board's header: sleepers in the collective */
byte bell = 0;         /* 8 bits are enough here */
bool asleep = false;   /* in the kernel, on the bell */
bool short_slice;
byte round = 1;

inline fence(me) { posted[me] = own[me] } /* only within atomic */

#define DELAYED (own[0] != posted[0] || own[POSTERS - 1] != posted[POSTERS - 1])

/* A poster's stores become visible at any time. */
active [POSTERS] proctype memory()
{
end:
    do
    :: atomic { own[_pid] != posted[_pid] -> posted[_pid] = own[_pid] }
    od
}

inline check()
{
#ifdef ARRIVAL
    here = (posted[0] >= round && posted[POSTERS - 1] >= round)
#else
    here = (posted[0] + posted[POSTERS - 1] >= round)
#endif
}

active proctype sleeper()
{
    byte seen, now;
    bool here, rung, early;

    do
    :: round > WAITS -> break
    :: else ->
        check();
        if
        :: here -> skip
        :: else ->
            /* shim_sleep_begin */
#ifdef ARRIVAL
            atomic { counted = 1 } /* a locked instruction */
#endif
#ifndef BUG_BELL_AFTER_CHECK
            seen = bell;
#endif
            flag = 1; /* with its fence */
            check();
#ifdef BUG_LONG_FIRST
            rung = false;
#else
            rung = true; /* the flag is as new as after a ring */
#endif
            do
            :: here -> break
            :: else ->
#ifdef BUG_BELL_AFTER_CHECK
                seen = bell;
#endif
                /* shim_sleep_slice */
                short_slice = rung;
                rung = false;
                atomic {
                    if
                    :: bell == seen -> asleep = true
                    :: else
                    fi
                }
                if
                :: !asleep -> early = true /* woken, maybe for the wait before; or no sleep */
                :: atomic { short_slice && asleep && !DELAYED -> asleep = false; early = false }
                fi;
#ifdef BUG_LATE_WAKE_ENDS_SLICE
                early = false;
#endif
#ifdef BUG_BELL_READ_TWICE
                rung = (bell != seen);
                seen = bell;
#else
                now = bell;
#ifndef BUG_LONG_AFTER_RING
                rung = (now != seen || early);
#endif
                seen = now;
#endif
                flag = 1;
                check()
            od;
            /* shim_sleep_end */
            flag = 0;
            counted = 0
        fi;
        round++
    od
}

inline ring()
{
    if
    :: flag == 0 -> skip
    :: else ->
#ifdef BUG_CLEAR_AFTER_RING
        atomic { bell++; fence(me) }
        atomic { asleep = false }
        flag = 0;
#else
        atomic { rings = flag; flag = 0; fence(me) }
        if
        :: rings ->
#ifndef BUG_WAKE_ONLY
            atomic { bell++ }
#endif
            asleep = false
        :: else
        fi
#endif
    fi
}

inline ring_if_all_have_come()
{
    if
    :: counted == 0 -> skip
    :: else ->
        if
        :: own[me] <= posted[1 - me] -> ring()
        :: else
        fi
    fi
}

active [POSTERS] proctype poster()
{
    byte me = _pid - POSTERS - 1;
    byte n = 0;
    bool rings;

    do
    :: n == ROUNDS -> break
    :: else ->
        n++;
        atomic { own[me] == posted[me] -> own[me] = n } /* one delayed store is enough */
#ifdef ARRIVAL
        ring_if_all_have_come();
        /* The collective itself: no rank leaves before all have arrived. */
        posted[0] >= n && posted[POSTERS - 1] >= n;
#ifndef BUG_CHECKS_ONCE
        ring_if_all_have_come()
#endif
#else
        ring()
#endif
    od
}

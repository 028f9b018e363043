/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * contexts.pml - implicit tasks that wait as contexts (implicit/carrier.c, sched/suspended.c; gomp_unpark of sleepers.c,
 * gomp_park_context of parking.c; gomp_stop_wanting and gomp_want_cores of cores.c), every
 * interleaving.
 *
 * N contexts wait until a word changes.  Two carriers start them, look whether those in their own
 * list can go on, take them from the queue of the process and from the other's list, and give their
 * core up whenever they like: then they publish their list, and sleep until they are found.  One
 * more thread changes the word and unparks its waiters.  There is no watchdog: nothing here
 * heals what got lost.
 *
 * With BARRIER the word is that of the team's barrier.  A context that waits has arrived there, and its
 * carrier counts it later, with others (count_arrivals of carrier.c), or at once if it has no other and
 * none is to be started (arrive_alone).  The carrier that counts the last one changes the word.
 *
 * With NESTED the word is that of a nested region's end.  One context begins the region, says that it waits, and
 * waits; the region's N implicit tasks are run by both carriers, each of which counts those that have ended on it
 * when it goes back to its loop (leave of carrier.c, gomp_region_leave of region.h).  The carrier that counts the last one
 * changes the word, if the context has said that it waits.  (The thread that begins a nested region may also be a
 * carrier's own, which this does not have.)
 *
 * What is checked:
 *  - every context goes on, once (the count, and the invalid end states)
 *  - no context is taken before its stack has been left (the assertion in steal)
 *
 * One STEP is one access to memory that threads race for, or what is done under a lock.  Left out:
 * memory orders, implicit tasks that have not been started, kernel threads that queue for a core.
 *
 * BUG_* break it on purpose; check.sh sees that each is found.
 */
#ifndef N
#define N 3
#endif
#define STEP(x) atomic { x } /* never blocks inside */

bool word;               /* has it changed? */
#ifdef NESTED
#define CONTEXTS 1
byte to_start = 0;       /* implicit tasks that have not begun, when the region is open */
bool waits;              /* the context that has begun it */
#else
#define CONTEXTS N
byte to_start = N;       /* contexts that have not begun */
#endif
byte list[2];            /* in a carrier's list */
bool fresh[2];           /* the last one there is still on its stack */
byte lot, sleepers;      /* in the parking lot; and those about to be */
bool lot_locked;
byte ready;              /* in the queue of the process */
byte gone_on;
bool want, bell[2], over;
byte awaited = N, uncounted[2]; /* arrivals: all that are not counted; those of a carrier */

#define WORK (ready > 0 || ((list[0] > 0 || list[1] > 0) && word))

inline want_cores()
{
    STEP(if
         :: !want -> want = true; bell[0] = true; bell[1] = true
         :: else
         fi)
}

/* Contexts in a list are looked at by their carrier while it has a core, and published when it has not:
 * this is for other cores, and would also do for those that had not been published. */
inline call_cores()
{
    if
#ifdef BUG_NO_PUBLISH_NO_CALL
    :: true -> skip
#endif
    :: list[0] > 0 || list[1] > 0 -> want_cores()
    :: else
    fi
}

inline run_own()
{
    STEP(if
         :: list[id] > 0 && word -> list[id]--; gone_on++; found = true
         :: else
         fi)
}

inline run_public()
{
    STEP(if
         :: ready > 0 -> ready--; gone_on++; found = true
         :: else
         fi)
}

inline steal()
{
    STEP(if
#ifdef BUG_STEAL_FRESH
         :: list[1 - id] > 0 && word ->
#else
         :: list[1 - id] > fresh[1 - id] && word ->
#endif
            assert(list[1 - id] > fresh[1 - id]);
            list[1 - id]--; gone_on++; found = true
         :: else
         fi)
}

/* Under the bucket's lock: say that one sleeps, then look. */
inline park_context()
{
    atomic { !lot_locked -> lot_locked = true }
#ifdef BUG_LOOK_BEFORE_SLEEPERS
    STEP(changed = word);
    STEP(sleepers++);
#else
    STEP(sleepers++);
    STEP(changed = word);
#endif
    STEP(if
         :: changed -> sleepers--; ready++
         :: else -> lot++
         fi;
         changed = false; lot_locked = false)
}

inline publish()
{
#ifdef BUG_NO_PUBLISH_NO_CALL
    skip
#else
    STEP(mine = list[id]; list[id] = 0);
    do
    :: mine > 0 -> park_context(); mine--
    :: else -> break
    od
#endif
}

/* The word changes: unpark the contexts that sleep there. */
inline change_word()
{
    STEP(word = true);
    if
    :: sleepers == 0 -> call_cores()
    :: else ->
        atomic { !lot_locked -> lot_locked = true }
        STEP(moved = lot; lot = 0; sleepers = sleepers - moved; lot_locked = false);
        STEP(ready = ready + moved);
        if
        :: moved > 0 -> want_cores()
        :: else -> call_cores()
        fi;
        moved = 0
    fi
}

inline count_arrivals()
{
#if defined BARRIER || defined NESTED
    STEP(counts = uncounted[id] > 0; awaited = awaited - uncounted[id]; uncounted[id] = 0;
         opens = counts && awaited == 0);
#ifdef NESTED
    STEP(opens = opens && waits);
#endif
    if
    :: opens -> change_word()
    :: else
    fi;
    counts = false;
    opens = false
#else
    skip
#endif
}

#ifdef NESTED
/* wait_for_end of task/help.c, in a context of this carrier. */
inline begin_region()
{
    STEP(to_start = N);
    want_cores();
#ifdef BUG_LOOK_BEFORE_WAITS
    STEP(changed = awaited == 0);
    STEP(waits = true);
#else
    STEP(waits = true);
    STEP(changed = awaited == 0);
#endif
    if
    :: changed -> STEP(gone_on++)
    :: else ->
        STEP(list[id]++; fresh[id] = true);
        STEP(fresh[id] = false)
    fi;
    changed = false
}

/* An implicit task of it runs to its end.  Its context takes the next one, or ends. */
inline start()
{
    STEP(if
         :: to_start > 0 -> to_start--; began = true
         :: else -> began = false
         fi);
    if
    :: began ->
        uncounted[id]++;
        if
        :: count_arrivals()
        :: true -> skip
        fi
    :: else
    fi
}
#else
/* A context begins, and waits unless the word has changed. */
inline start()
{
    STEP(if
         :: to_start > 0 -> to_start--; began = true
         :: else -> began = false
         fi);
#ifdef BARRIER
    if
    :: began ->
        assert(!word);
        uncounted[id]++;
        if
        :: to_start == 0 && list[id] == 0 && uncounted[id] == 1 -> count_arrivals() /* arrive_alone */
        :: else
        fi
    :: else
    fi;
#endif
    if
    :: began && word -> STEP(gone_on++)
    :: began && !word ->
        STEP(list[id]++; fresh[id] = true);
        /* the switch to itself: it has found that it may go on */
        if
        :: word -> STEP(fresh[id] = false; list[id]--; gone_on++)
        :: true -> STEP(fresh[id] = false)
        fi
    :: else
    fi
}
#endif

/* The core is given up. */
inline sleep()
{
#if !defined BUG_SLEEP_UNCOUNTED && !defined NESTED
    count_arrivals();
#endif
    publish();
    STEP(bell[id] = false);
    STEP(want = false);
#ifndef BUG_NO_LOOK_AFTER_STOP
    if
    :: WORK -> want_cores()
    :: else
    fi;
#endif
    (bell[id] || over)
}

proctype carrier(byte id)
{
    bool began, found, changed, counts, opens;
    byte mine, moved;
#ifdef NESTED
    if
    :: id == 0 -> begin_region()
    :: else
    fi;
#endif
    do
    :: over -> break
    :: to_start > 0 -> start()
    :: else ->
#if defined NESTED && !defined BUG_END_UNCOUNTED
        count_arrivals();
#endif
        found = false;
        run_own();
        if
        :: !found -> run_public()
        :: else
        fi;
        if
        :: !found -> steal()
        :: else
        fi;
        if
        :: !found && to_start == 0 -> sleep()
        :: else
        fi
    od
}

active proctype opener()
{
    byte moved;
    run carrier(0);
    run carrier(1);
#if !defined BARRIER && !defined NESTED
    change_word();
#endif
    (gone_on == CONTEXTS);
    STEP(over = true);
    assert(list[0] + list[1] + lot + ready + to_start == 0)
}

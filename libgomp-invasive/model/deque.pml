/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * deque.pml - the deque of task/taskqueue.h with one owner and two thieves, every interleaving
 * of their accesses to memory.  The machine delays stores, as C11 and ARMv8 allow, also those of an
 * exchange, until the owner's next seq_cst load.  (On x86 an exchange delays nothing.)
 *
 * The owner runs each program of PROGRAM letters in turn, all of them: pushes and pops.  A thief
 * steals as long as it finds something; then says that it sleeps, looks once more, and sleeps until
 * woken.  What must hold: no task is taken twice; in the end each task that was pushed has been
 * taken or is in the queue; and no thief sleeps for ever while one is there.
 *
 * Only the owner's stores to bottom are delayed: they are the only plain stores that thieves read,
 * but for ring entries, which become visible before the bottom that covers them.  BUG_* leave out
 * what the proof needs; check.sh sees that each is found.
 */
#ifndef TASKS
#define TASKS 3
#endif
#ifndef STEPS
#define STEPS 5
#endif

byte entry[TASKS + 1];
byte taken[TASKS + 1];
byte top = 1, bottom = 1;  /* in memory */
bool delayed = false;      /* the owner has a store to bottom that others do not see */
byte own_bottom = 1;       /* what the owner sees */
byte asleep = 0, wakes = 0;
byte pushed = 0;
bool owner_done = false;

inline take(x)
{
    assert(x > 0);
    taken[x]++;
    assert(taken[x] == 1);
}

/* The stores become visible at any time, at the latest before a seq_cst load of the owner. */
active proctype memory()
{
end:
    do
    :: atomic { delayed -> bottom = own_bottom; delayed = false }
    od
}

inline store_bottom(value)
{
    atomic { !delayed -> own_bottom = value; delayed = true } /* one at a time is enough */
}

/* What comes before a seq_cst load. */
inline all_visible()
{
    !delayed
}

inline push()
{
    pushed++;
    entry[own_bottom] = pushed;
    store_bottom(own_bottom + 1);
#ifndef BUG_PUSH_LOOKS_RELAXED
    all_visible();
#endif
    if
    :: asleep > 0 -> wakes = 1
    :: else
    fi
}

inline pop()
{
    b = own_bottom - 1;
    if
    :: b < top -> skip
    :: else ->
        store_bottom(b);
#ifndef BUG_POP_LOOKS_RELAXED
        all_visible();
#endif
        t = top;
        if
        :: t > b -> store_bottom(b + 1)
        :: t < b -> take(entry[b])
        :: t == b ->
            got = entry[b];
#ifdef BUG_LAST_WITHOUT_CAS
            take(got);
            top = t + 1;
#else
            atomic {
                if
                :: top == t -> top = t + 1; take(got)
                :: else
                fi
            }
#endif
            store_bottom(b + 1)
        fi
    fi
}

active proctype owner()
{
    byte b, t, got, steps = 0;
    do
    :: steps < STEPS && pushed < TASKS -> push(); steps++
    :: steps < STEPS && pushed > 0 -> pop(); steps++
    :: steps == STEPS || pushed > 0 -> break
    od;
    owner_done = true
}

inline steal()
{
    found = false;
    t = top;
    b = bottom;
    if
    :: t < b ->
        got = entry[t];
#ifdef BUG_STEAL_WITHOUT_CAS
        if
        :: top == t -> top = t + 1; take(got); found = true
        :: else -> found = true
        fi
#else
        atomic {
            if
            :: top == t -> top = t + 1; take(got)
            :: else
            fi;
            found = true /* or another thread has: there may be more */
        }
#endif
    :: else
    fi
}

active [2] proctype thief()
{
    byte b, t, got;
    bool found;
    do
    :: steal();
        if
        :: found
        :: else ->
#ifndef BUG_LOOK_BEFORE_ASLEEP
            asleep++;
            steal();
#else
            steal();
            asleep++;
#endif
            if
            :: found
            :: else ->
                /* Woken by a push, or the end: nothing is left and nothing will come. */
                if
                :: atomic { wakes > 0 -> wakes = 0 }
                :: owner_done && !delayed && top >= bottom -> break
                fi
            fi;
            asleep--
        fi
    od
}

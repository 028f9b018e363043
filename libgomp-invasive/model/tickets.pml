/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tickets.pml - how the implicit tasks of an elastic region are handed out, and how it ends
 * (region/tickets.c; the gate of region.c; the master's wait and helpers of task/help.c; gomp_stop_wanting and
 * gomp_want_cores of cores.c), every interleaving.
 *
 * A master opens REGIONS regions, one after the other, of N implicit tasks and of N - 1; two
 * workers take what they find, enter the gate to help with explicit tasks, and sleep when they find
 * nothing.  The first implicit task after the master's waits for the next one in a loop of its own:
 * its thread keeps its core.  Worker 2 believes that it holds the core of worker 1 (it has been
 * evicted and has not seen it), or, with NO_PORTION, holds a core without a portion.  How many
 * tickets are taken at once is left open.  There is no watchdog: nothing here heals what got lost.
 *
 * With DEALT a region's implicit tasks are in the two portions from the beginning.  What each
 * portion begins with is written when it is other than in the region before: each time, or, with
 * SAME, the first time only.
 *
 * With ALONE a region's implicit tasks are left to the master's core: in its portion, where no
 * other thread looks.  The watchdog, which comes at any time, gives those of a region that lasts
 * to all.
 *
 * With HELD the process does not say that it wants cores while it holds one for each implicit task: the
 * master's and those of the workers that are awake.
 *
 * What is checked:
 *  - every implicit task is run once, in its own region (assertions in execute and the master)
 *  - no thread touches a team that the master has left            (assertions of `alive`)
 *  - the master, a worker or an implicit task never waits in vain: the invalid end states
 *
 * One STEP is one access to memory that threads race for.  Left out: memory orders (the stress has
 * the sanitizer for them), bound workers, cancellation.
 *
 * BUG_* break it on purpose; check.sh sees that each is found.
 */
#ifndef N
#define N 3
#endif
#ifndef REGIONS
#define REGIONS 2
#endif
#ifndef HELPS
#define HELPS 0 /* how often each worker comes to help */
#endif
#ifdef SAME
#define SIZE N
#define CUT 2
#else
#define SIZE (region == 1 -> N : N - 1)
#define CUT (region == 1 -> N : 1) /* the second portion begins with none, then the first one */
#endif
#define NS 2 /* portions */
#define STEP(x) d_step { x }

/* --- tickets: the word `left`, and the portions, each one word as well */
byte left_epoch, left_first, left_end, nthreads;
byte portion_epoch[NS], portion_first[NS], portion_end[NS];
bool left_dealt; /* in `left`: a portion that no thread has taken from is whole */
byte begins_first[NS], begins_end[NS]; /* what that is; not one word */
#ifdef DEALT
#define DEALS 1
#else
#define DEALS 0
#endif

/* --- the gate, one word, and the master's wait */
byte unfinished, inside;
byte end_word;
bool master_waits;

/* --- workers */
bool want, bell[3], over;
bool holds[3] = true; /* its core: the master (0), each worker */

/* --- what the model knows besides */
bool alone;       /* the region's tickets are left to the master */
byte alive;       /* the epoch whose team is there; 0: none */
bool ran[N];

#define IS_EMPTY(i) (portion_first[i] >= portion_end[i])
#define LEFT (left_end - left_first)
#define IS_WHOLE(i, of) (DEALS && portion_epoch[i] != of && left_epoch == of && left_dealt && \
                         begins_first[i] < begins_end[i])
#define HAS_ANY(i, of) ((portion_epoch[i] == of && !IS_EMPTY(i)) || IS_WHOLE(i, of))

/* ok: there are tickets, here or in portions; not those in portions that are unseen.  Two looks:
 * what was taken from the one in between and not put into the other yet is missed. */
inline look_for_tickets(unseen)
{
    STEP(ok = LEFT > 0; seen = left_epoch);
    if
    :: ok || unseen -> seen = 0
    :: else -> STEP(ok = HAS_ANY(0, seen) || HAS_ANY(1, seen); seen = 0)
    fi
}

#ifdef HELD
#define HOLDS_ALL (holds[0] + holds[1] + holds[2] >= nthreads)
#else
#define HOLDS_ALL false
#endif

inline want_cores()
{
    STEP(if
         :: !want && !HOLDS_ALL -> want = true; bell[1] = true; bell[2] = true
         :: else
         fi)
}

/* Nothing to do: ok, if there is after all. */
inline stop_wanting()
{
    STEP(want = false);
    look_for_tickets(alone);
    if
    :: ok -> want_cores()
    :: else
    fi
}

/* --- taking */

/* In a STEP: from portion i, which has first .. end - 1. */
inline cut(i, own, from, to)
{
    portion_epoch[i] = epoch;
    if
    :: own -> id = from; portion_first[i] = from + 1; portion_end[i] = to
    :: else -> id = to - 1; portion_first[i] = from; portion_end[i] = to - 1
    fi
}

#if DEALS
/* From portion i.  What it begins with is read between two looks at `left`, of which `take` has
 * had the first. */
inline take_from(i, own)
{
    do
    :: STEP(w_epoch = portion_epoch[i]; lo = portion_first[i]; hi = portion_end[i]);
        if
        :: w_epoch == epoch
        :: else ->
            STEP(w_first = lo; w_end = hi; lo = begins_first[i]; hi = begins_end[i]);
#ifndef BUG_NO_SECOND_LOOK
            STEP(if :: left_epoch != epoch || !left_dealt || !was_dealt -> lo = 0; hi = 0 :: else fi)
#endif
        fi;
        /* compare and exchange; `done` says more than ok: nothing is left, or it has been taken */
        STEP(ok = lo < hi && portion_epoch[i] == w_epoch &&
                  (w_epoch == epoch -> portion_first[i] == lo && portion_end[i] == hi :
                                       portion_first[i] == w_first && portion_end[i] == w_end);
             if
             :: ok -> cut(i, own, lo, hi)
             :: else
             fi;
             again = !ok && lo < hi;
             w_epoch = 0; w_first = 0; w_end = 0; lo = 0; hi = 0);
        if
        :: again -> again = false
        :: else -> break
        fi
    od;
    skip
}
#else
/* From portion i, by compare and exchange. */
inline take_from(i, own)
{
    STEP(ok = portion_epoch[i] == epoch && !IS_EMPTY(i);
         if
         :: ok -> cut(i, own, portion_first[i], portion_end[i])
         :: else
         fi)
}
#endif

/* In a STEP, and there are so many: from the front; the holder of core 1 from the back. */
inline take_count(n, hold)
{
    count = n;
    epoch = left_epoch;
    if
    :: hold == 1 -> left_end = left_end - n; id = left_end
    :: else -> id = left_first; left_first = left_first + n
    fi
}

#ifdef BUG_PUT_OVERWRITES
#define MAY_PUT(i) true
#else
#define MAY_PUT(i) IS_EMPTY(i)
#endif

inline take_from_left(hold)
{
    if
    :: atomic { LEFT > 0 -> take_count(1, hold) }
    :: atomic { LEFT > 1 && hold < NS -> take_count(2, hold) }
    :: atomic { LEFT > 2 && hold < NS -> take_count(LEFT, hold) }
    :: LEFT == 0 -> count = 0
    fi;
    if
    :: count > 0 ->
        STEP(first = id + 1; ok = true);
        if
        :: count > 1 ->
            at = hold;
            do
            :: d_step { MAY_PUT(at) -> portion_epoch[at] = epoch; portion_first[at] = first;
                        portion_end[at] = id + count } break
            :: !MAY_PUT(at) -> at = (at + 1) % NS
            od;
            skip; /* a break may not lead into a d_step */
            STEP(at = 0; count = 0; first = 0);
#ifndef BUG_PUT_UNTOLD
            want_cores()
#endif
        :: else -> STEP(count = 0; first = 0)
        fi
    :: else
    fi
}

/* That of others' portions comes when what has been executed has been counted. */
#define OWN_ONLY (DEALS && done > 0)

/* ok: id is the taker's.  With BUG_OWN_WITHOUT_CAS the portion's thread reads, then writes it. */
inline take(hold)
{
    STEP(epoch = left_epoch; was_dealt = left_dealt; ok = false);
    if
    :: hold < NS ->
#ifdef BUG_OWN_WITHOUT_CAS
        STEP(ok = portion_epoch[hold] == epoch && !IS_EMPTY(hold); id = portion_first[hold];
             first = portion_end[hold]);
        if
        :: ok -> STEP(portion_first[hold] = id + 1; portion_end[hold] = first)
        :: else
        fi
#else
        take_from(hold, true)
#endif
    :: else
    fi;
    if
    :: ok
    :: else -> take_from_left(hold)
    fi;
    if
    :: ok || OWN_ONLY
    :: else -> take_from(0, false)
    fi;
    if
    :: ok || OWN_ONLY
    :: else -> take_from(1, false)
    fi
}

/* --- running */

inline execute()
{
    STEP(assert(id < nthreads && alive == epoch && !ran[id % N]);
         ran[id % N] = true; ok = id == 1 && nthreads > 2; id = 0);
    if
    :: ok -> ran[2]; ok = false
    :: else
    fi
}

/* The last access to the region: the implicit tasks have been executed before. */
inline leave_gate(tasks, threads)
{
    STEP(assert(unfinished >= (tasks) && inside >= (threads));
         unfinished = unfinished - (tasks); inside = inside - (threads);
         ok = unfinished == 0 && inside == 1; epoch = 0);
    if
    :: ok -> STEP(ok = false; if :: master_waits -> end_word++ :: else fi)
    :: else
    fi
}

/* Takes one, or as many as there are. */
inline run_tickets(hold)
{
    done = 0;
    do
    :: take(hold);
        if
        :: ok -> execute(); done++
        :: else -> break
        fi
    :: done > 0 -> break /* the core is asked back */
    od;
    skip;
    if
    :: done == 0 -> epoch = 0
    :: else ->
#ifdef BUG_GATE_TOO_EARLY
        leave_gate(done, 0);
        STEP(assert(alive == epoch))
#else
        STEP(assert(alive == epoch)); /* gomp_numbers_vacate */
        leave_gate(done, 0)
#endif
    fi;
    done = 0
}

/* --- the master */

/* What portion i begins with is other than in the region before. */
inline renew(i, from, to)
{
    if
    :: begins_first[i] != from || begins_end[i] != to ->
#ifndef BUG_RENEWS_OPEN
        STEP(left_epoch = region; left_dealt = false);
#endif
        STEP(begins_first[i] = from);
        STEP(begins_end[i] = to)
    :: else
    fi
}

inline open_region()
{
#ifdef HELD
    STEP(nthreads = SIZE; ok = want && HOLDS_ALL);
    if
    :: ok -> stop_wanting()
    :: else
    fi;
    ok = false;
#endif
    STEP(alive = region; unfinished = SIZE; inside = 1;
         id = 0; do :: id < N -> ran[id] = false; id++ :: else -> break od;
         id = 0);
#ifdef BUG_LEFT_BEFORE_NUMBER
    STEP(left_epoch = region; left_first = 1; left_end = SIZE);
    STEP(nthreads = SIZE);
#else
    STEP(nthreads = SIZE);
#ifdef ALONE
    STEP(alone = true);
    /* as if it were dealt */
    STEP(portion_epoch[0] = region; portion_first[0] = 1; portion_end[0] = SIZE);
    STEP(left_epoch = region; left_first = SIZE; left_end = SIZE);
#else
#ifdef DEALT
    renew(0, 1, CUT);
    renew(1, CUT, SIZE);
    STEP(left_epoch = region; left_dealt = true);
#else
    STEP(left_epoch = region; left_first = 1; left_end = SIZE);
#endif
#endif
#endif
    if
#ifdef BUG_NO_LOOK_AFTER_OPEN
    :: alone || REGIONS > 0 -> skip
#endif
    :: alone -> skip
    :: !alone -> want_cores()
    fi
}

#define ALL_OVER (unfinished == 0 && inside == 1)

/* ok: closed */
inline close_gate()
{
#ifdef BUG_CLOSE_WITHOUT_CAS
    STEP(ok = ALL_OVER);
    if
    :: ok -> STEP(inside = 0)
    :: else
    fi
#else
    STEP(ok = ALL_OVER;
         if :: ok -> inside = 0 :: else fi)
#endif
}

inline wait_for_end()
{
    STEP(word = end_word);
#ifdef BUG_LOOK_BEFORE_WAITS
    STEP(ok = ALL_OVER);
    STEP(master_waits = true);
#else
    STEP(master_waits = true);
    STEP(ok = ALL_OVER);
#endif
    if
    :: ok
    :: else ->
        STEP(holds[0] = false);
        stop_wanting(); /* its core goes to a worker that finds tickets, or to another process */
        end_word != word;
        STEP(holds[0] = true)
    fi;
    STEP(master_waits = false; ok = false; word = 0)
}

proctype master()
{
    byte region = 0, epoch, id, count, first, at, seen, done, word, w_epoch, w_first, w_end, lo, hi;
    bool ok, again, was_dealt;
    do
    :: region < REGIONS ->
        region++;
        open_region();
        leave_gate(1, 0); /* implicit task 0 */
        ran[0] = true;
        do
        :: close_gate();
            if
            :: ok -> break
            :: else
            fi;
            look_for_tickets(false);
            if
            :: ok -> run_tickets(0)
            :: else -> wait_for_end()
            fi
        od;
        skip;
        STEP(alive = 0; assert(unfinished == 0 && LEFT == 0);
             id = 0; do :: id < SIZE -> assert(ran[id]); id++ :: else -> break od; id = 0)
    :: else -> break
    od;
    over = true;
    bell[1] = true;
    bell[2] = true
}

/* --- workers */

inline help()
{
#ifdef BUG_ENTER_WITHOUT_CAS
    STEP(ok = unfinished > 0 || inside > 0);
    if
    :: ok -> STEP(inside++)
    :: else
    fi;
#else
    STEP(ok = unfinished > 0 || inside > 0;
         if :: ok -> inside++ :: else fi);
#endif
    if
    :: ok ->
        STEP(assert(alive != 0)); /* looks for tasks of the team */
        leave_gate(0, 1)
    :: else
    fi
}

proctype worker(byte me, hold)
{
    byte epoch, id, count, first, at, seen, done, helps = HELPS, w_epoch, w_first, w_end, lo, hi;
    bool ok, again, was_dealt;
    do
    :: over -> break
    :: else ->
        if
        :: helps > 0 -> helps--; help()
        :: true ->
            look_for_tickets(alone);
            if
            :: ok -> run_tickets(hold)
            :: else ->
                STEP(bell[me] = false);
#ifndef BUG_HELD_UNTIL_ASLEEP
                STEP(holds[me] = false);
#endif
                stop_wanting();
                if
                :: ok -> ok = false
                :: else -> holds[me] = false; bell[me] || over
                fi;
                STEP(holds[me] = true)
            fi
        fi
    od
}

proctype watchdog()
{
    do
    :: alone && alive != 0 ->
        STEP(alone = false);
#ifndef BUG_SHARED_UNTOLD
        want_cores()
#endif
    :: over -> break
    od
}

init
{
    atomic {
#ifdef ALONE
        run watchdog();
#endif
        run master();
        run worker(1, 1);
#ifdef NO_PORTION
        run worker(2, NS)
#else
        run worker(2, 1)
#endif
    }
}

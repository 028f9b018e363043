/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * core.pml - the protocol of the core table (core.c, and what core.h asks of a process),
 * for 3 processes on 2 cores, any of which may die between any two steps.
 *
 * Processes 0 and 1 own and hold a core each; process 2 owns none and wants one.  One
 * thread each: it computes, hands a core over, waits in MPI, or parks.  One
 * d_step is one atomic operation on shared memory, or several of which only one matters to
 * other processes.  Compare-and-swap loops that decide by the word alone are one step; where
 * other memory is read between load and swap, the swap fails when the word has moved
 * since (watching[]), which is what the epoch in the word is for.
 *
 * What is checked:
 *  - a process that computes on a core holds it, or was evicted   (assertions in compute)
 *  - no wake-up is lost: when nothing moves any more, no core is free while a live
 *    process is parked and wants one, and no process sleeps whose message has come
 *  - when nothing moves any more, no owner waits for a core of its own
 *  - a dead process holds, owns and reserves nothing              (all in quiescent())
 * "Nothing moves any more" is reached in every execution: the number of steps is bounded by
 * ROUNDS*.  A process may stop moving at any time by computing for ever: politely (it polls)
 * or stubbornly (it does not, and is evicted).  Timers fire only for what they are there
 * for: against a stubborn holder.
 *
 * WITH_ELSEWHERE: rmd moves a core to another domain and back, as rmd/users/users_divide.c does.  Besides:
 *  - while the other domain computes on it, no process of this one has it or takes it
 *  - when nothing moves any more, rmd does not wait for a core that has been left, or whose
 *    holder does not poll
 *
 * WITH_RESTART: rmd is killed between any two of its steps, once, and the next one goes on with
 * what the first has noted (rmd/domain/takeover.c).  Besides:
 *  - when nothing moves any more, each core has the owner that is noted
 *
 * STOPS: this process is stopped between any two steps (SIGSTOP), and goes on later or never; rmd
 * looks now and then and lends what it holds meanwhile (rmd/domain/check.c).  Besides:
 *  - when nothing moves any more, a stopped process holds nothing, and no core is kept for it
 *
 * BLOCKS: the thread of this process sleeps in the kernel while it computes, and wakes up later or never;
 * rmd lends the core for it and returns the core, or takes a borrowed one (rmd/domain/watch/blocked.c).  Besides:
 *  - when nothing moves any more, it holds nothing while it sleeps, and its own core when it runs
 *
 * check.sh says which parts are compiled in together, and breaks each on purpose.
 */
/* How often processes 0, 1 and 2 compute before their last time. */
#ifndef ROUNDS0
#define ROUNDS0 1
#endif
#ifndef ROUNDS1
#define ROUNDS1 1
#endif
#ifndef ROUNDS2
#define ROUNDS2 0
#endif
#ifdef ONE_WAITS
#define ONE_HOLDS /* a smaller search: 1 computes for ever */
#endif
#define NP 3
#define NC 2
#define RMD 3       /* the manager as an offerer */
#define ELSEWHERE 6 /* an owner: another domain (INV_ELSEWHERE) */
#define NONE 7      /* no core */
#define NAME(p) ((p) + 1)

/* --- the table */
byte holder[NC], owner[NC];      /* names: process + 1, 0 none */
bool reclaim[NC], handed[NC];
bool want[NP], parked[NP];
bool worker_bell[NP];             /* bumped since its worker read it */
byte worker_core[NP];
bool bell[NP];                   /* bumped since its main thread read it */
bool sleeping[NP];
byte home[NP];

/* --- what the model knows besides */
byte watching[4];                /* core whose word this process has loaded, unchanged yet */
bool message[NP];                /* what a wait is for has happened */
bool stubborn[NP];
byte computes_on[NP];                   /* core that the thread computes on */
bool evicted[NP];
bool dead[4];                    /* [RMD] never */
#ifdef WITH_RESTART
byte noted[NC];                  /* rmd's notes: owners */
bool noted_reaped;
bool restarted;                  /* rmd has been killed */
#endif
#if defined(STOPS) || defined(BLOCKS)
bool stopped[4];                 /* [RMD] never */
bool noted_stopped, noted_wanted;
#define RUNS(p) (!stopped[p])
#else
#define RUNS(p) true
#endif
#ifdef BLOCKS
byte absent[NC];                 /* name of the process for whose thread it is lent */
byte thread[NC];                 /* name of the process whose thread holds it, as holder_tid says */
bool returned[NC];
bool lent[NC];                   /* what rmd knows */
#endif
#ifdef WITH_ELSEWHERE
bool rmd_bell = true;            /* bumped since rmd read it: for a constraint, at first */
bool asked[NC];                  /* rmd waits until the core is left */
bool away[NC];                   /* another domain computes on it */
#define AWAY(c) away[c]
#else
#define AWAY(c) false
#endif

/* The word of c has moved: epoch + 1. */
inline moved(c)
{
    if :: watching[0] == c -> watching[0] = NONE :: else fi;
    if :: watching[1] == c -> watching[1] = NONE :: else fi;
    if :: watching[2] == c -> watching[2] = NONE :: else fi;
    if :: watching[3] == c -> watching[3] = NONE :: else fi
}

/* A step on shared memory, and a wait.  Before each of them the victim may die, and rmd. */
#if defined(VICTIM) && defined(WITH_RESTART)
#define DIES(p) ((p) == VICTIM || ((p) == RMD && !restarted))
#elif defined(VICTIM)
#define DIES(p) ((p) == VICTIM)
#elif defined(WITH_RESTART)
#define DIES(p) ((p) == RMD && !restarted)
#endif
#if defined(STOPS) || defined(BLOCKS)
#define TURN !stopped[me];
#else
#define TURN
#endif
#ifdef DIES
#define STEP(...) if :: d_step { TURN __VA_ARGS__ } :: DIES(me) -> goto dies fi
#define WAIT(cond) if :: RUNS(me) && (cond) :: DIES(me) -> goto dies fi
#else
#define WAIT(cond) (RUNS(me) && (cond))
#define STEP(...) d_step { TURN __VA_ARGS__ }
#endif

#ifdef WITH_RESTART
#define NOTE(...) STEP(__VA_ARGS__)
#else
#define NOTE(...) skip
#endif

/* --- transitions (core.c), each the body of a d_step */

inline borrow(c, me)
{
    ok = holder[c] == 0 && (!reclaim[c] || owner[c] == NAME(me));
    if
    :: ok -> holder[c] = NAME(me); reclaim[c] = false; moved(c)
    :: else
    fi
}

inline lend(c, me)
{
    ok = holder[c] == NAME(me);
    if
    :: ok -> holder[c] = 0; handed[c] = false; moved(c)
#ifdef BUG_LEND_CLEARS_RECLAIM
             ; reclaim[c] = false
#endif
    :: else
    fi
}

/* ok: it is ours now */
inline reclaim_core(c, me)
{
    ok = false;
    if
    :: owner[c] != NAME(me)
    :: owner[c] == NAME(me) && holder[c] == NAME(me) -> ok = true; handed[c] = false; moved(c)
    :: owner[c] == NAME(me) && holder[c] == 0 ->
        ok = true; holder[c] = NAME(me); reclaim[c] = false; moved(c)
    :: else ->
        if :: !reclaim[c] -> reclaim[c] = true; moved(c) :: else fi
    fi
}

inline claim(c, me)
{
    ok = holder[c] == NAME(me) && handed[c];
    if :: ok -> handed[c] = false; moved(c) :: else fi
}

inline forgo(c, me)
{
    if
    :: holder[c] == NAME(me) && handed[c] -> holder[c] = 0; handed[c] = false
    :: else
    fi;
    if :: owner[c] == NAME(me) -> reclaim[c] = false :: else fi;
    ok = holder[c] == 0;
    moved(c)
}

inline evict(c, me)
{
    ok = owner[c] == NAME(me) && holder[c] != 0 && holder[c] != NAME(me);
    if
    :: ok ->
        evicted[holder[c] - 1] = true;
        holder[c] = NAME(me); reclaim[c] = false; handed[c] = false; moved(c)
    :: else
    fi
}

/* --- offering (inv_core_offer); q and ok are the caller's locals */

/* ok: a parked worker of q was woken for core c */
inline give_to_parked(c, q)
{
    STEP(ok = parked[q]; parked[q] = false);
    if
    :: ok -> STEP(worker_core[q] = c; worker_bell[q] = true)
    :: else
    fi
}

inline give_if_wants(c, q)
{
    STEP(ok = want[q] && !dead[q]);
    if
    :: ok -> give_to_parked(c, q)
    :: else
    fi
}

inline offer(c, me)
{
    do
    :: true -> STEP(seen_holder = holder[c]; seen_owner = owner[c]; seen_reclaim = reclaim[c];
                watching[me] = c);
        if
        :: seen_holder != 0 -> break
#ifdef WITH_ELSEWHERE
        :: seen_holder == 0 && seen_reclaim && seen_owner == ELSEWHERE ->
#ifndef BUG_LEFT_WITHOUT_RINGING
            STEP(rmd_bell = true);
#endif
            break
#endif
        :: seen_holder == 0 && seen_reclaim && seen_owner != ELSEWHERE ->
            q = seen_owner - 1;
            STEP(ok = sleeping[q] && home[q] == c);
            if
            :: ok ->
                STEP(ok = watching[me] == c;
                    if
                    :: ok -> holder[c] = NAME(q); handed[c] = true; reclaim[c] = false; moved(c)
                    :: else
                    fi);
                if
                :: ok -> STEP(bell[q] = true); break
                :: else
                fi
            :: else ->
                give_to_parked(c, q);
                if
                :: ok -> break
                :: else ->
                    STEP(ok = home[q] == c);
                    if
#ifndef BUG_AWAKE_NOT_TOLD
                    :: ok -> STEP(bell[q] = true); break
#else
                    :: ok -> break
#endif
                    :: else -> STEP(ok = want[q])
                    fi;
                    if
                    :: ok -> break
                    :: else
                    fi;
                    STEP(if :: watching[me] == c -> reclaim[c] = false; moved(c) :: else fi)
                fi
            fi
        :: else ->
            ok = false;
            if
            :: seen_owner != 0 -> q = seen_owner - 1; give_if_wants(c, q)
            :: else
            fi;
            if
            :: ok -> break
            :: else
            fi;
            q = (me + 1) % NP;
            give_if_wants(c, q);
            if :: ok -> break :: else fi;
            q = (q + 1) % NP;
            give_if_wants(c, q);
            if
            :: !ok && me == RMD -> q = (q + 1) % NP; give_if_wants(c, q)
            :: else
            fi;
            break
        fi
    od;
    skip; /* a break may not lead into a d_step */
    d_step { q = 0; watching[me] = NONE; seen_holder = 0; seen_owner = 0; seen_reclaim = false; ok = false }
}

inline lend_and_offer(c, me)
{
    STEP(lend(c, me));
    if
#ifdef BUG_LEND_WITHOUT_OFFER
    :: ok
#else
    :: ok -> offer(c, me)
#endif
    :: else
    fi
}

#ifdef BLOCKS
/* --- a thread whose core rmd may have lent (core.h); ok: it has the core */

inline end_absence(c, me, current)
{
    STEP(ok = absent[c] == NAME(me); if :: ok -> absent[c] = 0 :: else fi);
    if
    :: ok ->
        STEP(ok = (holder[c] == NAME(me) && (returned[c] || current)) ||
                  (holder[c] == 0 && owner[c] == NAME(me));
            if
            :: holder[c] == 0 && owner[c] == NAME(me) -> holder[c] = NAME(me); reclaim[c] = false
            :: else
            fi;
#ifndef BUG_ABSENCE_KEEPS_WORD
            moved(c);
#endif
            if :: ok -> thread[c] = NAME(me) :: else fi)
    :: else -> STEP(ok = holder[c] == NAME(me) && (current || thread[c] == NAME(me)))
    fi
}

/* inv_hold_detach; mine becomes NONE when the core is lost */
inline detach(me)
{
    STEP(left = thread[mine] == NAME(me); if :: left -> thread[mine] = 0 :: else fi);
#ifndef BUG_DETACH_WITHOUT_LOOKING
    do
    :: true ->
        STEP(ok = absent[mine] == NAME(me) || !left);
        if
        :: ok -> end_absence(mine, me, left)
        :: else -> break
        fi;
        if
        :: ok -> STEP(left = left || thread[mine] == NAME(me);
                      if :: thread[mine] == NAME(me) -> thread[mine] = 0 :: else fi)
        :: else -> left = false; break
        fi
    od;
    skip;
#endif
    if
    :: left
    :: else -> mine = NONE
    fi;
    d_step { ok = false; left = false }
}
#else
#define detach(me) skip
#endif

/* --- ringing (inv_ring): something that q waits for has happened */
inline ring(whom, me)
{
    STEP(message[whom] = true);
    STEP(bell[whom] = true);
    if
    :: !sleeping[whom]
    :: else ->
        x = home[whom];
        ok = true;
        do
        :: x != NONE ->
            STEP(seen_holder = holder[x]; seen_owner = owner[x]; seen_reclaim = reclaim[x];
                     watching[me] = x);
            if
            :: !(sleeping[whom] && home[whom] == x) || seen_holder == NAME(whom) -> break
            :: else
            fi;
            STEP(ok = true;
                if
                :: seen_holder == 0 && (seen_owner == NAME(whom) || !seen_reclaim) ->
                    if
                    :: watching[me] == x ->
                        holder[x] = NAME(whom); handed[x] = true; reclaim[x] = false; moved(x);
                        x = NONE
                    :: else
                    fi
                :: seen_holder == 0 && seen_owner != NAME(whom) && seen_reclaim -> x = NONE
                :: seen_holder != 0 && seen_owner != NAME(whom) -> x = NONE
                :: seen_holder != 0 && seen_owner == NAME(whom) && seen_reclaim ->
                    ok = false; x = NONE
                :: else ->
                    if
                    :: watching[me] == x -> reclaim[x] = true; moved(x); ok = false; x = NONE
                    :: else
                    fi
                fi)
        :: else -> break
        od;
        if
        :: ok -> STEP(bell[whom] = true)
        :: else
        fi
    fi;
    d_step { x = NONE; watching[me] = NONE; seen_holder = 0; seen_owner = 0; seen_reclaim = false; ok = false }
}

/* --- a process */

/* The owner's timer: a holder that was asked for the core does not poll. */
#define LATE(p) (stubborn[p] || !RUNS(p))
#define TIMER(c, me) \
    (RUNS(me) && owner[c] == NAME(me) && reclaim[c] && holder[c] != 0 && LATE(holder[c] - 1))

/* Take or ask for core c if it is ours, take it if it is free; ok, and mine = the core. */
inline get_core(c, me)
{
    if
#ifndef BUG_ASK_BEFORE_PARKING
    :: owner[c] == NAME(me) -> reclaim_core(c, me)
#endif
    :: else -> borrow(c, me)
    fi;
    mine = (ok -> c : NONE)
}

/* All cores, own ones first. */
inline hold_acquire(me)
{
    STEP(x = (owner[1] == NAME(me) -> 1 : 0); get_core(x, me); x = 1 - x);
    if
    :: ok
    :: else -> STEP(get_core(x, me))
    fi;
    x = NONE
}

/* Park as a worker until it holds a core (inv_worker_park); mine = the core. */
inline park(me)
{
    STEP(want[me] = true);
#ifdef BUG_ASK_BEFORE_PARKING     /* and not at all for cores that are free just now */
    STEP(if :: owner[0] == NAME(me) && holder[0] != 0 -> reclaim_core(0, me) :: else fi);
    STEP(if :: owner[1] == NAME(me) && holder[1] != 0 -> reclaim_core(1, me) :: else fi);
#endif
    do
    :: true -> STEP(worker_bell[me] = false; worker_core[me] = NONE);
#ifdef BUG_NO_FENCE
        hold_acquire(me);             /* the look at the words moves before the store */
        STEP(parked[me] = true);
#else
        STEP(parked[me] = true);
        hold_acquire(me);
#endif
        if
        :: ok ->
            STEP(ok = parked[me]; parked[me] = false);
            if
            :: ok -> break
            :: else ->
                WAIT(worker_bell[me]);   /* another process wakes us with another core */
                STEP(x = worker_core[me]; ok = x != NONE; if :: ok -> borrow(x, me) :: else fi);
                if
                :: ok ->
#ifdef BUG_SECOND_CORE_NOT_OFFERED
                    STEP(lend(x, me))
#else
                    lend_and_offer(x, me)
#endif
                :: else
                fi;
                x = NONE;
                break
            fi
        :: else ->
            x = 0;
            if
            :: WAIT(worker_bell[me])
            :: TIMER(0, me)
            :: TIMER(1, me) -> x = 1
            fi;
            STEP(ok = parked[me]; parked[me] = false);
            if
            :: ok && !worker_bell[me] ->       /* the timer */
                STEP(evict(x, me));
                if
                :: ok -> mine = x; x = NONE; break
                :: else
                fi
            :: ok && worker_bell[me]           /* woken by a reap: look again */
            :: else ->
                WAIT(worker_bell[me]);
                STEP(mine = worker_core[me]; ok = mine != NONE;
                         if :: ok -> borrow(mine, me) :: else fi);
                if
                :: ok -> break
                :: else -> mine = NONE
                fi
            fi;
            x = NONE
        fi
    od;
    skip;
    d_step { x = NONE; ok = false }
}

/* Wait in MPI for a message, having computed on `mine` (inv_wait_*); then mine = the core, or
 * NONE for a process that owns nothing and found nothing. */
inline wait_for_message(me)
{
    STEP(home[me] = mine);
    lend_and_offer(mine, me);
    do
    :: true -> STEP(bell[me] = false);
        if
        :: message[me] -> break
        :: else
        fi;
        STEP(claim(home[me], me));
        if
        :: ok -> lend_and_offer(home[me], me)
        :: else
        fi;
#ifdef BUG_SLEEP_UNSEEN
        STEP(bell[me] = false);
#endif
        STEP(sleeping[me] = true);
        WAIT(bell[me]);
        STEP(sleeping[me] = false)
    od;
    skip;
    STEP(mine = home[me]; claim(mine, me));
    do
    :: ok -> break
    :: else ->
        STEP(bell[me] = false);
        STEP(x = NONE;
            if
            :: owner[0] == NAME(me) && (home[me] == 0 || owner[1] != NAME(me) || home[me] == NONE) -> x = 0
            :: owner[1] == NAME(me) && !(owner[0] == NAME(me) && (home[me] == 0 || home[me] == NONE)) -> x = 1
            :: else
            fi);
        if
        :: x != NONE -> STEP(mine = x; reclaim_core(x, me))
        :: else
        fi;
        if
        :: ok -> break
        :: else -> skip;
            STEP(ok = false; get_core(0, me));
            if
            :: ok -> break
            :: else -> STEP(get_core(1, me))
            fi
        fi;
        if
        :: ok -> break
        :: !ok && x == NONE -> mine = NONE; break
        :: else
        fi;
        STEP(home[me] = x);
        STEP(sleeping[me] = true);
        if
        :: WAIT(bell[me])
        :: TIMER(x, me) -> STEP(evict(x, me); if :: ok -> mine = x :: else fi)
        fi;
        STEP(sleeping[me] = false)
    od;
    skip;
    /* evict and reclaim have moved the word when mine is home */
    STEP(x = home[me]; home[me] = NONE; message[me] = false);
    if
    :: x != NONE && x != mine ->
        STEP(forgo(x, me));
        if :: ok -> offer(x, me) :: else fi
    :: else
    fi;
    d_step { x = NONE; ok = false }
}

#define MAY_COMPUTE(me) \
    ((holder[computes_on[me]] == NAME(me) && !AWAY(computes_on[me])) || evicted[me])

#ifdef BLOCKS /* inv_hold_begin */
#define BEGINS(c, me) if :: holder[c] == NAME(me) -> thread[c] = NAME(me) :: else fi;
#else
#define BEGINS(c, me)
#endif

/* Compute on `mine` for a while or for ever. */
inline compute(me)
{
    skip;
    STEP(evicted[me] = holder[mine] != NAME(me) && evicted[me]; computes_on[me] = mine;
             BEGINS(mine, me)
             assert(MAY_COMPUTE(me)));
    if
    :: skip
    :: WAIT(holder[mine] != NAME(me) || (reclaim[mine] && owner[mine] != NAME(me)))
    :: STEP(stubborn[me] = true); WAIT(holder[mine] != NAME(me)); stubborn[me] = false
    fi;
    STEP(assert(MAY_COMPUTE(me)); computes_on[me] = NONE; evicted[me] = false)
}

proctype process(byte me; byte mine; byte rounds)
{
    byte x = NONE, q, seen_holder, seen_owner;
    bool ok, seen_reclaim;
#ifdef BLOCKS
    bool left;
#endif
    do
        :: mine == NONE -> park(me)
        :: else ->
            if
            :: want[me] -> STEP(want[me] = false);
                /* withdraw what we have asked for and do not need */
                x = 0;
                do
                :: x < NC ->
                    STEP(ok = owner[x] == NAME(me) && reclaim[x];
                        if
                        :: ok -> reclaim[x] = false; moved(x); ok = holder[x] == 0
                        :: else
                        fi);
                    if
                    :: ok -> offer(x, me)
                    :: else
                    fi;
                    x++
                :: else -> break
                od;
                skip;
                d_step { x = NONE; ok = false }
            :: else
            fi;
            compute(me);
            if
            :: rounds == 0 ->
                detach(me);
                if
                :: mine != NONE -> lend_and_offer(mine, me)
                :: else
                fi;
                mine = NONE; break
            :: else -> rounds--
            fi;
#ifdef BLOCKS
            /* inv_hold_poll */
            STEP(left = thread[mine] == NAME(me); ok = left && holder[mine] == NAME(me));
            if
            :: ok
            :: else -> end_absence(mine, me, left)
            fi;
            if
            :: ok -> detach(me)
            :: else -> mine = NONE
            fi;
            d_step { ok = false; left = false };
#endif
            if
            :: mine == NONE
            :: mine != NONE && holder[mine] != NAME(me) -> mine = NONE /* evicted: look for another */
            :: else ->
                if
#ifdef ONE_WAITS              /* a smaller search: 0 waits, 2 rings, and 1 holds a core */
                :: me == 2 -> ring(0, me)
                :: me == 0 -> wait_for_message(me)
#elif defined(WITH_RING)
                :: ring((me + 1) % NP, me)
                :: wait_for_message(me)
#endif
#ifdef WITH_PARKING
                :: lend_and_offer(mine, me); mine = NONE
#endif
                fi
            fi
        od;
    goto end;
dies:
    skip;
    d_step { dead[me] = true; mine = NONE; rounds = 0; x = NONE; q = 0; ok = false;
             seen_holder = 0; seen_owner = 0; seen_reclaim = false };
end: true
}

/* --- the manager: reaping, and ownership moving */

/* x: the name of the process to be told */
#ifdef BUG_ONLY_WHO_ASKED_IS_TOLD
#define DISOWNED(c) x = (reclaim[c] -> owner[c] : 0)
#else
#define DISOWNED(c) x = owner[c]
#endif

#if defined(WITH_RING) || defined(ONE_WAITS)
#define SOMEBODY_SLEEPS true
#else
#define SOMEBODY_SLEEPS false
#endif
/* Wakes sleeping threads of the process named x. */
inline tell()
{
    if
    :: x != 0 && SOMEBODY_SLEEPS -> STEP(bell[x - 1] = true)
    :: else
    fi;
    x = NONE
}

/* q, if it is the owner, wants a core and has not asked for this one.  A core without a holder is
 * reserved only while the worker sleeps */
#ifdef BUG_ASKS_HOLDERS_ONLY
#define UNASKED(c, q) (holder[c] != 0 && holder[c] != NAME(q) && !reclaim[c])
#else
#define UNASKED(c, q) ((holder[c] != 0 || parked[q]) && holder[c] != NAME(q) && !reclaim[c])
#endif
inline ask_for_owner(c, q)
{
    STEP(ok = false; if :: q < NP -> ok = want[q] :: else fi);
    if
    :: ok -> STEP(if
                  :: owner[c] == NAME(q) && UNASKED(c, q) -> reclaim[c] = true; moved(c)
                  :: else
                  fi)
    :: else
    fi
}

inline own(c, new)
{
    STEP(DISOWNED(c); owner[c] = NAME(new); reclaim[c] = false; moved(c));
    tell();
    ask_for_owner(c, new);
    offer(c, RMD);
    NOTE(noted[c] = NAME(new))
}

#ifdef WITH_ELSEWHERE
/* inv_core_withdraw; left: it had no holder */
inline withdraw(c)
{
    d_step {
        DISOWNED(c);
        owner[c] = ELSEWHERE; reclaim[c] = true; moved(c); asked[c] = true;
        left = holder[c] == 0
    };
#ifndef BUG_WITHDRAW_WITHOUT_WAKING
    if
    :: x != 0 -> bell[x - 1] = true
    :: else
    fi;
#endif
    x = NONE
}

inline expel(c)
{
    d_step {
        if
        :: holder[c] != 0 -> evicted[holder[c] - 1] = true
        :: else
        fi;
        holder[c] = 0; handed[c] = false; owner[c] = ELSEWHERE; reclaim[c] = true; moved(c);
        left = true
    }
}

/* inv_core_admit, and the offer of rmd_domain_share */
inline admit(c)
{
    d_step { owner[c] = 0; reclaim[c] = false; moved(c); asked[c] = false };
#ifndef BUG_ADMIT_WITHOUT_OFFER
    offer(c, RMD)
#endif
}

#endif

#ifdef BUG_REAP_KEEPS_WORD
#define MOVED_IN_ANY_CASE(c)
#else
#define MOVED_IN_ANY_CASE(c) moved(c)
#endif
inline reap_core(c)
{
    STEP(
        if
        :: holder[c] == NAME(gone) -> holder[c] = 0; handed[c] = false; moved(c)
        :: else
        fi;
        if
        :: owner[c] == NAME(gone) -> owner[c] = 0; reclaim[c] = false; moved(c)
        :: else
        fi;
        MOVED_IN_ANY_CASE(c)
    )
}

inline reap_slot()
{
    STEP(parked[gone] = false; sleeping[gone] = false; home[gone] = NONE)
}

#ifdef BUG_REAP_WAKES_SLEEPERS_ONLY
#define MAY_SLEEP(p) (!dead[p] && sleeping[p])
#else
#define MAY_SLEEP(p) SOMEBODY_SLEEPS
#endif
inline wake_stranded(p)
{
    STEP(if :: !dead[p] && !parked[p] -> worker_bell[p] = true :: else fi;
         if :: MAY_SLEEP(p) -> bell[p] = true :: else fi)
}

inline wake_all_stranded()
{
    wake_stranded(0);
#ifndef ONE_HOLDS
    wake_stranded(1);
#endif
    wake_stranded(2)
}

inline reap()
{
    gone = VICTIM;
#ifdef BLOCKS /* rmd_blocked_forget */
    STEP(if :: absent[0] == NAME(gone) -> absent[0] = 0; lent[0] = false :: else fi;
         if :: absent[1] == NAME(gone) -> absent[1] = 0; lent[1] = false :: else fi);
#endif
    STEP(want[gone] = false);
#ifndef BUG_REAP_CORES_FIRST
    reap_slot();
#endif
    reap_core(0);
    reap_core(1);
#ifdef BUG_REAP_CORES_FIRST
    reap_slot();
#endif
#ifndef BUG_REAP_WITHOUT_WAKING
    wake_all_stranded();
    offer(0, RMD);
    offer(1, RMD);
#endif
    d_step { stubborn[gone] = false; computes_on[gone] = NONE; reaped = true };
    NOTE(noted_reaped = true;
         if :: noted[0] == NAME(gone) -> noted[0] = 0 :: else fi;
         if :: noted[1] == NAME(gone) -> noted[1] = 0 :: else fi);
    gone = 0
}

#if defined(WITH_RESTART) || defined(STOPS)
inline ask_if_parked(c)
{
#ifndef BUG_RESCUE_WITHOUT_ASKING
    q = owner[c] - 1;
    STEP(ok = false; if :: q < NP -> ok = parked[q] :: else fi);
    if
    :: ok -> ask_for_owner(c, q)
    :: else
    fi;
#endif
    q = 0
}

inline rescue()
{
    wake_all_stranded();
    ask_if_parked(0);
    ask_if_parked(1);
    offer(0, RMD);
    offer(1, RMD)
}
#endif

#ifdef WITH_RESTART
inline repair(c)
{
    STEP(ok = owner[c] != noted[c];
         if
         :: ok -> x = owner[c]; owner[c] = noted[c]; reclaim[c] = false; moved(c)
         :: else
         fi);
    if
    :: ok ->
        tell();
#ifndef BUG_RESCUE_WITHOUT_ASKING
        q = noted[c] - 1;
        ask_for_owner(c, q);
#endif
        offer(c, RMD)
    :: else
    fi
}

#ifdef BLOCKS /* rmd_blocked_open: a core that was lent is no loan of the next rmd, which takes one of which no thread knows */
inline forget_loan(c)
{
    STEP(if :: !returned[c] -> absent[c] = 0 :: else fi);
#ifndef BUG_ADOPT_WITHOUT_THREAD
    STEP(if
         :: holder[c] != 0 && !handed[c] && thread[c] == 0 && absent[c] == 0 ->
             evicted[holder[c] - 1] = true;
             if :: owner[c] == holder[c] -> reclaim[c] = false :: else fi;
             holder[c] = 0; moved(c)
         :: else
         fi)
#else
    skip
#endif
}
#endif

/* The next rmd goes on with what this one has noted. */
inline takeover()
{
#ifdef BLOCKS
    forget_loan(0);
    forget_loan(1);
#endif
#ifndef BUG_ADOPT_WITHOUT_REPAIR
    repair(0);
    repair(1);
#endif
#ifdef VICTIM
    if
    :: dead[VICTIM] && !reaped -> reap()
    :: else
    fi;
#endif
#ifndef BUG_ADOPT_WITHOUT_RESCUE
    rescue()
#else
    skip
#endif
}
#endif

#ifdef STOPS
/* --- what rmd sees when it looks at the process that may be stopped */

inline lend_core(c)
{
    STEP(ok = holder[c] == NAME(STOPS);
         if
         :: ok ->
             evicted[STOPS] = true; holder[c] = 0; handed[c] = false; moved(c);
             if :: owner[c] == NAME(STOPS) -> reclaim[c] = false :: else fi
         :: else
         fi);
    if
    :: ok -> offer(c, RMD)
    :: else
    fi;
#ifndef BUG_KEPT_FOR_THE_STOPPED
    STEP(ok = owner[c] == NAME(STOPS) && reclaim[c];
         if
         :: ok -> reclaim[c] = false; moved(c); ok = holder[c] == 0
         :: else
         fi);
    if
    :: ok -> offer(c, RMD)
    :: else
    fi
#endif
}

inline lend_what_it_holds()
{
    STEP(ok = want[STOPS]);
    if
    :: ok -> wanted = true; NOTE(noted_wanted = true); STEP(want[STOPS] = false)
    :: else
    fi;
    lend_core(0);
    lend_core(1)
}

inline take_back()
{
    STEP(if :: wanted -> want[STOPS] = true :: else fi);
    wanted = false;
#ifndef BUG_GOES_ON_WITHOUT_RESCUE
    rescue();
#endif
    NOTE(noted_stopped = false; noted_wanted = false)
}

inline look_at()
{
    if
    :: stopped[STOPS] && !was ->
        was = true;
        NOTE(noted_stopped = true);
        lend_what_it_holds();
#ifndef BUG_STOPPED_WITHOUT_RESCUE
        rescue()
#endif
    :: stopped[STOPS] && was -> lend_what_it_holds()
    :: else ->
        was = false;
#ifdef BUG_GOES_ON_NOTED_FIRST
        NOTE(noted_stopped = false);
#endif
        take_back()
    fi
}

#ifdef BUG_KEPT_FOR_THE_STOPPED
#define KEPT(c) false
#else
#define KEPT(c) (owner[c] == NAME(STOPS) && reclaim[c])
#endif
#define HAS(c) (holder[c] == NAME(STOPS) || KEPT(c))
#define TO_LOOK_AT (stopped[STOPS] != was || (was && (want[STOPS] || HAS(0) || HAS(1))))

proctype kernel()
{
    stopped[STOPS] = true;
    if
    :: stopped[STOPS] = false
    :: skip
    fi
}
#endif

#ifdef BLOCKS
/* --- threads that sleep in the kernel while they compute */

#ifndef SLEEPS
#define SLEEPS 1 /* how often at most */
#endif

/* ok: c is lent for the thread */
inline lend_for(c)
{
    STEP(ok = holder[c] == NAME(BLOCKS) && owner[c] == NAME(BLOCKS) && !handed[c]; watching[RMD] = c);
    if
    :: ok ->
        STEP(again = returned[c] && absent[c] == NAME(BLOCKS));
        if
        :: again
        :: else -> STEP(absent[c] = NAME(BLOCKS)); STEP(ok = thread[c] == NAME(BLOCKS))
        fi;
        if
        :: ok -> STEP(ok = watching[RMD] == c;
                      if
                      :: ok ->
                          evicted[BLOCKS] = true; holder[c] = 0; reclaim[c] = false;
                          returned[c] = false; moved(c)
                      :: else
                      fi)
        :: else
        fi;
        if
        :: ok -> lent[c] = true; offer(c, RMD)
        :: !ok && !again -> STEP(if :: absent[c] == NAME(BLOCKS) -> absent[c] = 0 :: else fi)
        :: else
        fi
    :: else
    fi;
    d_step { ok = false; again = false; watching[RMD] = NONE }
}

inline return_to(c)
{
    lent[c] = false;
    do
    :: true ->
        STEP(seen_holder = holder[c]; seen_owner = owner[c]; watching[RMD] = c);
#ifdef BUG_RETURN_UNASKED
        STEP(ok = true);
#else
        STEP(ok = absent[c] == NAME(BLOCKS));
#endif
        if
        :: !ok -> break
        :: ok && (seen_owner != NAME(BLOCKS) || seen_holder == NAME(BLOCKS)) ->
            STEP(if :: absent[c] == NAME(BLOCKS) -> absent[c] = 0 :: else fi);
            break
        :: else
        fi;
        STEP(ok = watching[RMD] == c;
            if
            :: ok ->
                if :: holder[c] != 0 -> evicted[holder[c] - 1] = true :: else fi;
                holder[c] = NAME(BLOCKS); handed[c] = false; reclaim[c] = false;
                returned[c] = true; moved(c)
            :: else
            fi);
        if
        :: ok -> break
        :: else
        fi
    od;
    skip;
    d_step { ok = false; watching[RMD] = NONE; seen_holder = 0; seen_owner = 0 }
}

/* Of a core that the thread has borrowed: holder_tid, then inv_core_seize */
inline forget_borrower(c)
{
    STEP(ok = thread[c] == NAME(BLOCKS); if :: ok -> thread[c] = 0 :: else fi)
}

inline take_borrowed(c)
{
#ifndef BUG_TAKEN_BEFORE_FORGOTTEN
    forget_borrower(c);
#else
    ok = true;
#endif
    if
    :: ok -> STEP(ok = holder[c] == NAME(BLOCKS);
                  if
                  :: ok ->
                      evicted[BLOCKS] = true; holder[c] = 0; handed[c] = false; moved(c);
#ifdef BUG_TAKEN_WITH_ITS_RECLAIM
                      reclaim[c] = false
#else
                      if :: owner[c] == NAME(BLOCKS) -> reclaim[c] = false :: else fi
#endif
                  :: else
                  fi)
    :: else
    fi;
#ifdef BUG_TAKEN_BEFORE_FORGOTTEN
    if :: ok -> forget_borrower(c); ok = true :: else fi;
#endif
    if
#ifndef BUG_TAKEN_WITHOUT_OFFER
    :: ok -> offer(c, RMD)
#else
    :: ok
#endif
    :: else
    fi;
    ok = false
}

#define SLEEPS_HOLDING(c) (stopped[BLOCKS] && holder[c] == NAME(BLOCKS) && !handed[c])
#define SLEEPS_ON(c) \
    (SLEEPS_HOLDING(c) && owner[c] == NAME(BLOCKS) && \
     (thread[c] == NAME(BLOCKS) || absent[c] == NAME(BLOCKS)))
#define SLEEPS_ON_BORROWED(c) \
    (SLEEPS_HOLDING(c) && owner[c] != NAME(BLOCKS) && thread[c] == NAME(BLOCKS))

proctype kernel()
{
    byte times;
    do
    :: times < SLEEPS -> atomic { computes_on[BLOCKS] != NONE -> stopped[BLOCKS] = true };
        if
        :: stopped[BLOCKS] = false; times++
        :: break
        fi
    :: else -> break
    od
}
#endif

#ifdef WITH_ELSEWHERE
/* The core goes to another domain and comes back; with ASK_BACK perhaps before it is left. */
inline elsewhere(c)
{
    withdraw(c);
    do
    :: left -> break
    :: !left && rmd_bell -> rmd_bell = false;
#ifdef BUG_RING_IS_TAKEN_FOR_LEFT
        left = true
#else
        left = holder[c] == 0
#endif
    :: !left && holder[c] != 0 && stubborn[holder[c] - 1] -> expel(c) /* its bound has passed */
#ifdef ASK_BACK
    :: !left -> break
#endif
#ifdef VICTIM
    :: !left && dead[VICTIM] && !reaped -> reap()
#endif
    od;
    if
    :: left ->
        d_step { assert(holder[c] == 0); away[c] = true; asked[c] = false };
        d_step { assert(holder[c] == 0); away[c] = false }
    :: else
    fi;
    admit(c);
    left = false
}
#endif

proctype rmd()
{
    byte me = RMD, x = NONE, q, seen_holder, seen_owner, gone;
    bool ok, seen_reclaim, reaped;
#ifdef STOPS
    bool was, wanted;
#endif
#ifdef BLOCKS
    bool again;
#endif
#ifdef WITH_ELSEWHERE
    bool left;
#ifdef CORE
    elsewhere(CORE);
#else
    if
    :: elsewhere(0)
    :: elsewhere(1)
    fi;
#endif
#endif
#ifdef WITH_MOVE
    if
    :: own(0, 1)
    :: own(0, 2)
    :: skip
    fi;
#endif
looks:
    do
#ifdef VICTIM
    :: dead[VICTIM] && !reaped -> reap()
#endif
#ifdef STOPS
    :: TO_LOOK_AT -> look_at()
#endif
#ifdef BLOCKS
    :: SLEEPS_ON(0) && !lent[0] -> lend_for(0)
    :: SLEEPS_ON(1) && !lent[1] -> lend_for(1)
    :: SLEEPS_ON_BORROWED(0) -> take_borrowed(0)
    :: SLEEPS_ON_BORROWED(1) -> take_borrowed(1)
    :: !stopped[BLOCKS] && lent[0] -> return_to(0)
    :: !stopped[BLOCKS] && lent[1] -> return_to(1)
#endif
#ifdef WITH_RESTART
    :: !restarted -> goto dies
#endif
    :: false
    od;
dies:
    skip;
#ifdef WITH_RESTART
    d_step {
        restarted = true; reaped = noted_reaped;
#ifdef STOPS
        was = noted_stopped; wanted = noted_wanted;
#endif
#ifdef BLOCKS
        lent[0] = false; lent[1] = false; again = false;
#endif
        watching[RMD] = NONE; x = NONE; q = 0; seen_holder = 0; seen_owner = 0; gone = 0;
        ok = false; seen_reclaim = false
    };
    takeover();
    goto looks;
#endif
end: true
}

/* --- when nothing moves any more */

#define WAITS(p) (!dead[p] && RUNS(p) && parked[p])
#define ANY_WAITS (WAITS(0) || WAITS(1) || WAITS(2))
#define OWNED(c) (owner[c] != 0 && owner[c] != ELSEWHERE)

inline quiescent(c)
{
#ifdef WITH_ELSEWHERE
    /* rmd waits for a core only while it is held, and polled for */
    assert(!asked[c] || (holder[c] != 0 && !stubborn[holder[c] - 1]));
#endif
    /* no free core beside a process that wants it, and none kept for one that does not come */
    assert(!(holder[c] == 0 && ANY_WAITS));
    /* a core on which no process computes is free */
    assert(holder[c] == 0 || computes_on[holder[c] - 1] == c);
    assert(holder[c] == 0 || (!dead[holder[c] - 1] && RUNS(holder[c] - 1)));
    assert(!OWNED(c) || !dead[owner[c] - 1]);
#ifdef BLOCKS
    assert(!(RUNS(BLOCKS) && computes_on[BLOCKS] == c && owner[c] == NAME(BLOCKS)) ||
           holder[c] == NAME(BLOCKS));
#endif
#ifdef WITH_RESTART
    assert(owner[c] == noted[c]);
#endif
    /* the owner has its core or does not want it */
    assert(!OWNED(c) || holder[c] == owner[c] || !WAITS(owner[c] - 1));
    assert(!OWNED(c) || holder[c] == owner[c] || dead[owner[c] - 1] ||
           !(sleeping[owner[c] - 1] && message[owner[c] - 1]))
}

init
{
    byte p = 0;
    d_step {
        do
        :: p < NP ->
            worker_core[p] = NONE; home[p] = NONE; watching[p] = NONE; computes_on[p] = NONE; p++
        :: else -> break
        od;
        watching[RMD] = NONE;
        owner[0] = NAME(0); holder[0] = NAME(0);
        owner[1] = NAME(1); holder[1] = NAME(1);
        p = 0
    };
    atomic {
#ifdef WITH_RESTART
        noted[0] = NAME(0); noted[1] = NAME(1);
#endif
#ifdef ONE_HOLDS
        computes_on[1] = 1;
#ifdef BLOCKS
        thread[1] = NAME(1);
#endif
#else
        run process(1, 1, ROUNDS1);
#endif
#if defined(STOPS) || defined(BLOCKS)
        run kernel();
#endif
        run process(0, 0, ROUNDS0); run process(2, NONE, ROUNDS2); run rmd()
    };
    timeout;
    d_step { quiescent(0); quiescent(1);
             assert(!(sleeping[0] && message[0]) && !(sleeping[1] && message[1]) &&
                    !(sleeping[2] && message[2])) };
end: true
}

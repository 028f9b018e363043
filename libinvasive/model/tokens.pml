/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tokens.pml - the protocol of anonymous mode (inv_token_* of core.c, and what hold.c, parked.c and
 * wait.c do with it): more processes than cores, so that free cores are only counted.
 *
 * NP processes share TOKENS of them.  Each has a main thread, which computes, makes work for a
 * worker, does that itself or waits in MPI, and a worker, which parks until there is
 * work and a token for it.  One d_step is one atomic operation on shared memory, or several of which
 * only one matters to other threads.
 *
 * What is checked:
 *  - a process that takes or returns a token and dies between the two numbers that it changes leaves
 *    one too many, never one too few; otherwise none is lost or made        (tokens_add_up)
 *  - no wake-up is lost: when nothing moves any more, no token is free while a live process is
 *    parked and has work, and each process with work has a token, or more than there are would be
 *    taken
 *  - a waker that has taken a worker's bit wakes it, or rmd does                    (quiescent)
 * "Nothing moves any more" is reached in every execution, as in core.pml: a thread may compute or
 * wait for ever, and while it computes gives up a token of which there are too few, or does not.
 *
 * VICTIM: this process dies between any two steps.  STOPS: this one is stopped there (SIGSTOP), and
 * goes on later or never; what it has taken is lent meanwhile (rmd/domain/check.c).  Besides:
 *  - when nothing moves any more, other processes have as many tokens as it has taken
 * WITH_SHARE: the domain gets a core more, or one less (rmd/domain/cores.c).
 * WITH_REPAIR: rmd counts now and then what should be free.  It may find a process between the two
 * numbers once, and take that for good.  Besides:
 *  - when nothing moves any more, there are as many as there should be
 * WITH_RESTART, which needs that: rmd is killed between any two of its steps, once, and the next one
 * goes on with what the first has noted (rmd/domain/takeover.c).
 *
 * check.sh says which parts are compiled in together, and breaks each on purpose.
 */
#ifndef NP
#define NP 2
#endif
#ifndef TOKENS
#define TOKENS 1
#endif
/* How often the main threads of processes 0 and 1 make work.  2 has no worker, and waits once. */
#ifndef ROUNDS0
#define ROUNDS0 1
#endif
#ifndef ROUNDS1
#define ROUNDS1 1
#endif
#ifdef WITH_RESTART
#define WITH_REPAIR
#endif

/* --- the table */
#define RMD NP                      /* the manager as a waker */
short free_tokens = TOKENS - NP;    /* each main thread has one, whether there are as many or not */
short tokens[NP];
bool want[NP], parked[NP];
bool bell[NP];                      /* bumped since the worker has read it */
bool reaped[NP];                    /* the slot is not live */

/* --- a process's own */
bool work[NP];                      /* for the worker, or the main thread */
bool handed[NP];                    /* a token that the main thread has taken for the worker */

/* --- rmd's */
short domain_tokens = TOKENS;
short loan;                         /* what others have of the tokens of the one that is stopped */

/* --- what the model knows besides */
bool asleep[NP];                    /* the worker, on its bell */
bool polls[NP];                     /* the worker computes, and looks at the table */
byte between[NP];                   /* threads that have changed one number and not the other */
bool dead[NP + 1], stopped[NP + 1]; /* [RMD] never */
#ifdef WITH_RESTART
short noted_tokens = TOKENS, noted_loan;
bool noted_stopped, noted_wanted, noted_reaped;
bool restarted;                     /* rmd has been killed */
#endif

#define RUNS(p) (!dead[p] && !stopped[p])
#define WAIT(cond) (RUNS(me) && (cond))
/* A step on shared memory.  Before each of them rmd may be killed. */
#ifdef WITH_RESTART
#define STEP(...)                           \
    if                                      \
    :: d_step { RUNS(me); __VA_ARGS__ }     \
    :: me == RMD && !restarted -> goto dies \
    fi
#define NOTE(...) STEP(__VA_ARGS__)
#else
#define STEP(...) d_step { RUNS(me); __VA_ARGS__ }
#define NOTE(...) skip
#endif

/* What rmd finds too many, were no process between the two numbers (rmd_domain_surplus). */
#if NP == 2
#define SUM(of) (of[0] + of[1])
#else
#define SUM(of) (of[0] + of[1] + of[2])
#endif
#define SURPLUS (free_tokens - domain_tokens - loan + SUM(tokens))

/* --- waking a parked worker; q, n and ok are the caller's locals */

inline give_if_wants(whom)
{
    STEP(ok = want[whom] && !reaped[whom] && parked[whom];
         if :: ok -> parked[whom] = false :: else fi);
    if
    :: ok -> STEP(bell[whom] = true)
    :: else
    fi
}

inline give_in_turn()
{
    q = 0;
    ok = false;
    do
    :: !ok && q < NP -> give_if_wants(q); q++
    :: else -> break
    od;
    q = 0
}

/* inv_token_offer */
inline offer()
{
    STEP(n = free_tokens);
    ok = true;
    do
    :: n > 0 && ok -> give_in_turn(); n--
    :: else -> break
    od;
    n = 0;
    ok = false
}

/* --- taking and returning */

/* inv_token_take; ok: it is ours */
inline take()
{
    STEP(ok = free_tokens > 0);
    if
    :: ok ->
#ifdef BUG_TAKEN_BEFORE_NOTED
        STEP(ok = free_tokens > 0; if :: ok -> free_tokens-- :: else fi);
        if
        :: ok -> STEP(tokens[me]++)
        :: else
        fi
#else
        STEP(tokens[me]++; between[me]++);
        STEP(ok = free_tokens > 0; if :: ok -> free_tokens--; between[me]-- :: else fi);
        if
        :: ok
        :: else -> STEP(tokens[me]--; between[me]--)
        fi
#endif
    :: else
    fi
}

inline force()
{
    STEP(tokens[me]++; between[me]++);
    STEP(free_tokens--; between[me]--);
    ok = true
}

/* inv_hold_acquire */
inline try()
{
    STEP(ok = tokens[me] > 0);
    if
    :: ok -> take();
#ifndef BUG_NO_SECOND_LOOK
        if
        :: ok
        :: else ->
            STEP(ok = tokens[me] == 0);
            if
            :: ok -> force()
            :: else
            fi
        fi
#endif
    :: else -> force()
    fi
}

/* inv_token_return */
inline give_back()
{
    STEP(free_tokens++; between[me]++; n = free_tokens);
    STEP(tokens[me]--; between[me]--; last = tokens[me] == 0);
#ifdef BUG_LAST_ONE_FOR_OTHERS
    last = false;
#endif
    ok = false;
    if
    :: n > 0 || last -> give_if_wants(me)
    :: else
    fi;
    if
#ifndef BUG_RETURN_WITHOUT_OFFER
    :: n > 0 && !ok -> give_in_turn()
#endif
    :: else
    fi;
    d_step { n = 0; ok = false; last = false }
}

/* --- a process */

/* A worker that has been woken (hold_of_woken); ok: it has a token. */
inline woken()
{
    STEP(asleep[me] = false; ok = handed[me]; handed[me] = false);
    if
    :: ok
    :: else ->
        STEP(ok = want[me]);
        if
        :: ok -> try()
        :: else
        fi;
#ifndef BUG_WOKEN_IN_VAIN
        if
        :: ok
        :: else -> offer()
        fi
#endif
    fi
}

/* Park until there is a token (inv_worker_park); ok: there is, else look for work again. */
inline park()
{
    STEP(bell[me] = false);
#ifdef BUG_LOOKS_BEFORE_PARKING
    ok = false;
    if
    :: want[me] -> try()
    :: else
    fi;
    STEP(parked[me] = true);
#else
    STEP(parked[me] = true);
    STEP(ok = want[me]);
    if
    :: ok -> try()
    :: else
    fi;
#endif
    if
    :: ok ->
        STEP(ok = parked[me]; parked[me] = false);
        if
        :: ok
        :: else ->                /* a waker is waking us for another one */
            WAIT(bell[me]);
            woken();
            if
            :: ok -> give_back()
            :: else
            fi;
            ok = true
        fi
    :: else ->
        STEP(asleep[me] = true);
        WAIT(bell[me]);
        woken()
    fi
}

proctype worker(byte me)
{
    byte q;
    short n;
    bool ok, last;
    do
    :: park();
        do
        :: !ok -> break
        :: ok ->
            STEP(ok = work[me]; work[me] = false);
            if
            :: !ok ->
                STEP(want[me] = false);
                STEP(ok = work[me]; if :: ok -> want[me] = true :: else fi);
                if
                :: ok
                :: else -> give_back()
                fi
            :: ok ->
                if
                :: skip
                :: STEP(skip) -> WAIT(false) /* computes for ever, and does not look at the table */
                :: STEP(polls[me] = true) ->
#ifndef BUG_KEPT_WHEN_OVERDRAWN
                    WAIT(free_tokens < 0 && tokens[me] > 1);
#else
                    WAIT(false);
#endif
                    STEP(polls[me] = false; work[me] = true);
                    give_back();
                    STEP(want[me] = true);   /* gomp_hold_handover */
                    try()
                fi
            fi
        od
    od;
dies:
    skip
}

/* Work for the worker, and a token for that if there is one (gomp_want_cores). */
inline make_work()
{
    STEP(work[me] = true);
    STEP(want[me] = true);
    take();
    if
    :: ok ->
        STEP(ok = parked[me];
             if :: ok -> parked[me] = false; handed[me] = true; bell[me] = true :: else fi);
        if
        :: ok
        :: else -> give_back()
        fi
    :: else
    fi
}

inline do_it_oneself()
{
    STEP(work[me] = false);
    STEP(want[me] = false);
    STEP(if :: work[me] -> want[me] = true :: else fi)
}

proctype process(byte me; byte rounds)
{
    byte q;
    short n;
    bool ok, last;
    do
    :: rounds > 0 ->
        rounds--;
        make_work();
        if
        :: skip
        :: do_it_oneself()
        fi;
#ifndef ONE_WAITS             /* a smaller search: only process 2 does */
        STEP(if :: work[me] -> want[me] = true :: else fi);
        give_back();              /* a wait in MPI */
        if
        :: skip
        :: STEP(skip) -> WAIT(false)
        fi;
        force()
#endif
    :: rounds == 0 -> break       /* computes for ever */
    od;
dies:
    skip
}

#if NP > 2
proctype lone(byte me)
{
    byte q;
    short n;
    bool ok, last;
    give_back();
dies:
    skip
}
#endif

/* --- the manager */

/* A process that wants a token and has none takes one although none is free. */
inline wake_who_has_none(whom)
{
    STEP(ok = tokens[whom] == 0);
    if
    :: ok -> give_if_wants(whom)
    :: else
    fi
}

/* Woken besides the worker that is offered a token: a waker that took its bit may not have rung. */
inline wake_stranded(whom)
{
    STEP(if :: !reaped[whom] && !parked[whom] -> bell[whom] = true :: else fi)
}

inline wake_all_stranded()
{
    wake_stranded(0);
    wake_stranded(1);
#if NP > 2
    wake_stranded(2)
#endif
}

inline rescue()
{
    wake_all_stranded();
#ifndef BUG_RESCUE_OFFERS_ONLY
    wake_who_has_none(0);
    wake_who_has_none(1);
#endif
    offer()
}

#ifdef VICTIM
inline reap()
{
    STEP(reaped[VICTIM] = true);
#ifndef BUG_REAPED_WITH_ITS_LOAN
    STEP(free_tokens = free_tokens - loan);
#endif
    STEP(want[VICTIM] = false);
    STEP(parked[VICTIM] = false);
    STEP(n = tokens[VICTIM]; tokens[VICTIM] = 0);
    STEP(free_tokens = free_tokens + n);
    wake_all_stranded();
#ifdef BUG_REAP_OFFERS_ITS_OWN    /* as many as it had: it may have returned one and died */
    ok = true;
    do
    :: n > 0 && ok -> give_in_turn(); n--
    :: else -> break
    od;
#else
    offer();
#endif
    NOTE(noted_reaped = true; noted_loan = 0);
    d_step { n = 0; ok = false; loan = 0; was_reaped = true; was = false }
}
#endif

#ifdef STOPS
inline lend_what_it_holds()
{
    STEP(ok = want[STOPS]);
    if
    :: ok -> wanted = true; NOTE(noted_wanted = true); STEP(want[STOPS] = false)
    :: else
    fi;
    n = tokens[STOPS] - loan;
    loan = loan + n;
    if
    :: n != 0 ->
        STEP(free_tokens = free_tokens + n);
        offer();
        NOTE(noted_loan = loan)
    :: else
    fi;
    n = 0
}

inline take_back()
{
#ifndef BUG_LOAN_NOT_TAKEN_BACK
    STEP(free_tokens = free_tokens - loan);
#endif
    loan = 0;
    STEP(if :: wanted -> want[STOPS] = true :: else fi);
    wanted = false;
#ifndef BUG_GOES_ON_WITHOUT_RESCUE
    rescue();
#endif
    NOTE(noted_stopped = false; noted_wanted = false; noted_loan = 0)
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
    :: else -> was = false; take_back()
    fi
}

#define TO_LOOK_AT                  \
    (!reaped[STOPS] &&              \
     (stopped[STOPS] != was || (was && (want[STOPS] || tokens[STOPS] != loan))))
#else
#define TO_LOOK_AT false
#endif

#ifdef WITH_SHARE
inline share(by)
{
    STEP(free_tokens = free_tokens + by);
    domain_tokens = domain_tokens + by;
    NOTE(noted_tokens = domain_tokens);
#ifndef BUG_SHARED_WITHOUT_OFFER
    if
    :: by > 0 -> offer()
    :: else
    fi
#endif
}
#endif

#ifdef WITH_REPAIR
inline repair()
{
    n = SURPLUS;
    STEP(free_tokens = free_tokens - n);
    n = 0;
    offer()
}

/* No process that runs is between the two numbers. */
#ifdef VICTIM
#define NOBODY_BETWEEN (SUM(between) == (dead[VICTIM] -> between[VICTIM] : 0))
#else
#define NOBODY_BETWEEN (SUM(between) == 0)
#endif
#endif

#ifdef WITH_RESTART
/* The next rmd goes on with what this one has noted; without one that counts again its checks
 * would, but later. */
inline takeover()
{
#ifdef VICTIM
    if
    :: dead[VICTIM] && !was_reaped -> reap()
    :: else
    fi;
#endif
    n = SURPLUS;
    STEP(free_tokens = free_tokens - n);
    n = 0;
#ifndef BUG_ADOPT_WITHOUT_RESCUE
    rescue()
#endif
}
#endif

proctype rmd()
{
    byte me = RMD, q;
    short n;
    bool ok, was, wanted, was_reaped;
#ifdef WITH_REPAIR
    bool early = true;            /* may still count at a bad moment */
#endif
#ifdef WITH_SHARE
    if
    :: share(1)
    :: share(-1)
    fi;
#endif
looks:
    do
#ifdef VICTIM
    :: dead[VICTIM] && !was_reaped -> reap()
#endif
#ifdef STOPS
    :: TO_LOOK_AT -> look_at()
#endif
#ifdef WITH_REPAIR
    :: !was && SURPLUS != 0 && NOBODY_BETWEEN -> repair()
    :: !was && SURPLUS != 0 && early -> early = false; repair()
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
        restarted = true; was_reaped = noted_reaped; was = noted_stopped; wanted = noted_wanted;
        loan = noted_loan; domain_tokens = noted_tokens;
        q = 0; n = 0; ok = false
    };
    takeover();
    goto looks;
#endif
end: true
}

#ifdef VICTIM
proctype killer()
{
    dead[VICTIM] = true
}
#endif

#ifdef STOPS
proctype kernel()
{
    stopped[STOPS] = true;
    if
    :: stopped[STOPS] = false
    :: skip
    fi
}
#endif

/* --- when nothing moves any more */

inline quiescent(p)
{
    if
    :: RUNS(p) ->
        assert(!(parked[p] && want[p] && free_tokens > 0));
        assert(!(asleep[p] && work[p] && tokens[p] == 0));
        assert(!asleep[p] || parked[p]);
        assert(!(polls[p] && free_tokens < 0 && tokens[p] > 1))
    :: else
    fi
}

inline tokens_add_up()
{
#ifdef STOPS
    assert(!stopped[STOPS] || dead[STOPS] || loan == tokens[STOPS]);
#endif
#ifndef WITH_REPAIR
    assert(SURPLUS == SUM(between))
#elif defined(STOPS)
    assert(SURPLUS == 0 || stopped[STOPS])
#else
    assert(SURPLUS == 0)
#endif
}

init
{
    d_step {
        tokens[0] = 1; tokens[1] = 1;
#if NP > 2
        tokens[2] = 1
#endif
    };
    atomic {
#ifdef VICTIM
        run killer();
#endif
#ifdef STOPS
        run kernel();
#endif
        run process(0, ROUNDS0); run worker(0); run process(1, ROUNDS1); run worker(1);
#if NP > 2
        run lone(2);
#endif
        run rmd()
    };
    timeout;
    d_step {
        quiescent(0); quiescent(1); tokens_add_up();
#if NP > 2
        quiescent(2)
#endif
    };
end: true
}

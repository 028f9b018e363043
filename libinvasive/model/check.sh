#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
# check.sh - check core.pml and tokens.pml with spin, part by part and in full (no bitstate
# hashing), and then break the protocols on purpose, in each way that is known or likely:
# the models must find every one, or they check less than they say.
#
#   check.sh [--quick] [DIRECTORY]
#     --quick    the smaller half of it
#     DIRECTORY  where to work (default: a temporary one, removed afterwards)
#
# One line of PASS or FAIL each; exit code 0 when all pass.  All of it takes some minutes of
# processor time and 1.5 GB, --quick less than two.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/spin.sh"
pan_compile='-DMEMLIM=2000 -DVECTORSZ=256'
pan_run='-m20000 -E'
quick=no
if [ "${1:-}" = --quick ]; then
    quick=yes
    shift
fi
work_in "$@"

# --- cores that are only counted
model=$here/tokens.pml
half=-DROUNDS1=0 # process 1 only computes
[ $quick = no ] || optimize=-O0
holds 'tokens: take, force, return, park' $half -DTOKENS=2
holds 'tokens, there are more or fewer of them' $half -DWITH_SHARE
holds 'tokens, process 0 dies at any step' $half -DTOKENS=2 -DVICTIM=0
finds TAKEN_BEFORE_NOTED $half -DTOKENS=2 -DVICTIM=0
finds LAST_ONE_FOR_OTHERS
finds LOOKS_BEFORE_PARKING
finds KEPT_WHEN_OVERDRAWN
finds RETURN_WITHOUT_OFFER -DTOKENS=2
finds SHARED_WITHOUT_OFFER $half -DWITH_SHARE -DTOKENS=2
finds LOAN_NOT_TAKEN_BACK $half -DSTOPS=1
finds GOES_ON_WITHOUT_RESCUE $half -DSTOPS=0
finds RESCUE_OFFERS_ONLY $half -DSTOPS=0
finds REAPED_WITH_ITS_LOAN $half -DSTOPS=1 -DVICTIM=1
if [ $quick = no ]; then
    three='-DNP=3 -DTOKENS=3 -DONE_WAITS'
    holds 'tokens, more than there are are taken' -DTOKENS=1
    holds 'tokens, process 1 dies at any step' $half -DTOKENS=2 -DVICTIM=1
    holds 'tokens, process 0 is stopped at any step' $half -DSTOPS=0
    holds 'tokens, process 1 is stopped at any step' $half -DSTOPS=1
    holds 'tokens, process 1 is stopped at any step, and may be killed' $half -DSTOPS=1 -DVICTIM=1
    holds 'tokens, rmd counts them, process 0 dies at any step' \
        $half -DWITH_REPAIR -DTOKENS=2 -DVICTIM=0
    holds 'tokens, more or fewer of them, rmd is killed at any step' $half -DWITH_SHARE -DWITH_RESTART
    finds NO_SECOND_LOOK
    finds WOKEN_IN_VAIN $three
    finds REAP_OFFERS_ITS_OWN $three $half -DVICTIM=2
    finds ADOPT_WITHOUT_RESCUE $half -DWITH_RESTART -DWITH_SHARE
fi

# --- cores with a word each
optimize=-O1
model=$here/core.pml
holds 'parked workers and waiting' -DWITH_PARKING -DWITH_RING -DROUNDS1=0 -DROUNDS2=1
holds 'parked workers, process 0 dies at any step' -DWITH_PARKING -DROUNDS1=0 -DVICTIM=0
elsewhere='-DWITH_ELSEWHERE -DROUNDS0=0 -DROUNDS1=0'
sleeper='-DONE_WAITS -DWITH_ELSEWHERE -DROUNDS2=1'
holds 'waiting, a core goes to another domain' $sleeper
finds NO_FENCE -DWITH_PARKING
finds LEND_WITHOUT_OFFER -DWITH_PARKING
finds SLEEP_UNSEEN -DWITH_RING -DROUNDS2=1
finds AWAKE_NOT_TOLD -DWITH_RING -DROUNDS2=1
finds REAP_WITHOUT_WAKING -DWITH_PARKING -DROUNDS1=0 -DVICTIM=0
finds REAP_KEEPS_WORD -DWITH_RING -DWITH_MOVE -DROUNDS1=0 -DROUNDS2=1 -DVICTIM=0
finds LEFT_WITHOUT_RINGING -DWITH_PARKING $elsewhere
finds ONLY_WHO_ASKED_IS_TOLD $sleeper
one_holds='-DONE_HOLDS -DWITH_PARKING'
brief="$one_holds -DROUNDS0=0"
optimize=-O0 # as in finds
holds 'a core is moved, rmd is killed at any step' $brief -DWITH_RESTART -DWITH_MOVE
holds 'process 2 is stopped at any step' $brief -DSTOPS=2
holds 'process 0 sleeps in the kernel, rmd lends its core' $brief -DBLOCKS=0
holds 'process 2 sleeps in the kernel, rmd takes the core that it has borrowed' $one_holds -DBLOCKS=2
holds 'process 0 sleeps in the kernel, rmd is killed at any step' $brief -DBLOCKS=0 -DWITH_RESTART
borrower='-DONE_WAITS -DROUNDS2=1 -DBLOCKS=2'
finds TAKEN_BEFORE_FORGOTTEN $borrower
finds TAKEN_WITH_ITS_RECLAIM $borrower
finds TAKEN_WITHOUT_OFFER $one_holds -DBLOCKS=2
finds ADOPT_WITHOUT_THREAD $one_holds -DBLOCKS=2 -DWITH_RESTART
finds RETURN_UNASKED $brief -DBLOCKS=0
finds ABSENCE_KEEPS_WORD $brief -DBLOCKS=0
finds DETACH_WITHOUT_LOOKING $brief -DBLOCKS=0
finds ADOPT_WITHOUT_REPAIR $brief -DWITH_RESTART -DWITH_MOVE
finds ADOPT_WITHOUT_RESCUE $brief -DWITH_RESTART -DWITH_MOVE
finds STOPPED_WITHOUT_RESCUE $brief -DSTOPS=0
[ $quick = no ] || exit $failed
optimize=-O1

holds 'parked workers: lend, park, offer, reclaim, evict' -DWITH_PARKING
holds 'waiting: sleep, ring, home core' -DWITH_RING -DROUNDS2=1
holds 'parked workers, a core goes to another domain, or is asked back' -DWITH_PARKING -DASK_BACK $elsewhere
holds 'parked workers, ownership moves' -DWITH_PARKING -DWITH_MOVE -DROUNDS0=0 -DROUNDS1=0
holds 'waiting, ownership moves' -DWITH_RING -DWITH_MOVE -DROUNDS1=0
for victim in 1 2; do
    holds "parked workers, process $victim dies at any step" -DWITH_PARKING -DROUNDS1=0 -DVICTIM=$victim
done
for victim in 0 1 2; do
    holds "waiting, process $victim dies at any step" \
        -DWITH_RING -DROUNDS1=0 -DROUNDS2=1 -DVICTIM=$victim
done
for victim in 0 1 2; do
    holds "a core goes to another domain, process $victim dies at any step" \
        -DWITH_PARKING $elsewhere -DVICTIM=$victim
done
finds WITHDRAW_WITHOUT_WAKING $sleeper
finds RING_IS_TAKEN_FOR_LEFT -DWITH_PARKING $elsewhere
finds ADMIT_WITHOUT_OFFER -DWITH_PARKING $elsewhere
finds SECOND_CORE_NOT_OFFERED -DWITH_PARKING
finds LEND_CLEARS_RECLAIM -DWITH_PARKING
finds ASK_BEFORE_PARKING -DWITH_PARKING
finds REAP_CORES_FIRST -DWITH_RING -DVICTIM=1
finds REAP_WAKES_SLEEPERS_ONLY -DWITH_RING -DROUNDS1=0 -DROUNDS2=1 -DVICTIM=2

optimize=-O0 # the compiler takes minutes else
holds 'parked workers, ownership moves, rmd is killed at any step' $one_holds -DWITH_RESTART -DWITH_MOVE
for victim in 0 2; do
    holds "rmd is killed at any step, process $victim dies at any step" \
        $one_holds -DWITH_RESTART -DVICTIM=$victim
done
for stops in 0 2; do
    holds "parked workers, process $stops is stopped at any step" $one_holds -DSTOPS=$stops
    holds "process $stops is stopped, rmd is killed at any step" \
        $brief -DSTOPS=$stops -DWITH_RESTART
done
holds 'process 0 sleeps in the kernel twice' $brief -DBLOCKS=0 -DSLEEPS=2
holds 'process 0 sleeps in the kernel, process 2 computes twice' $one_holds -DROUNDS2=1 -DBLOCKS=0
holds 'process 0 sleeps in the kernel, and dies at any step' $brief -DBLOCKS=0 -DVICTIM=0
holds 'process 0 sleeps in the kernel, ownership moves' $brief -DWITH_MOVE -DBLOCKS=0
holds 'process 0 sleeps in the kernel, and waits' -DONE_WAITS -DROUNDS2=1 -DBLOCKS=0
holds 'process 2 sleeps in the kernel on a borrowed core, its owner waits' $borrower
holds 'process 2 sleeps in the kernel on a borrowed core, ownership moves' $one_holds -DWITH_MOVE -DBLOCKS=2
holds 'process 2 sleeps in the kernel on a borrowed core, and dies at any step' $one_holds -DBLOCKS=2 -DVICTIM=2
holds 'process 2 sleeps in the kernel on a borrowed core, rmd is killed at any step' \
    $one_holds -DBLOCKS=2 -DWITH_RESTART
holds 'process 0 sleeps in the kernel, ownership moves, rmd is killed at any step' \
    $brief -DWITH_MOVE -DBLOCKS=0 -DWITH_RESTART
finds ASKS_HOLDERS_ONLY $one_holds -DWITH_MOVE -DROUNDS2=1
finds RESCUE_WITHOUT_ASKING $one_holds -DWITH_RESTART -DWITH_MOVE
finds KEPT_FOR_THE_STOPPED $one_holds -DSTOPS=0 -DROUNDS2=1
finds GOES_ON_NOTED_FIRST $brief -DSTOPS=2 -DWITH_RESTART
finds GOES_ON_WITHOUT_RESCUE $one_holds -DSTOPS=0
exit $failed

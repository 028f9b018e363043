#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
# check.sh - check a model with spin, in full, and then with the faults that its BUG_* flags put
# in: the model must find every one, or it checks less than it says.
#
#   check.sh MODEL [--full] [DIRECTORY]
#     MODEL      deque, tickets, contexts, handover, or eviction
#     --full     all but deque: also what takes minutes
#     DIRECTORY  where to work (default: a temporary one, removed afterwards)
#
# One line of PASS or FAIL each; exit code 0 when all pass.  Each takes at most a minute of
# processor time and 0.8 GB; with --full, some minutes and 3 GB.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../libinvasive/model/spin.sh"
which=${1:?which model: deque, tickets, contexts, handover or eviction}
model=$here/$which.pml
pan_compile='-DMEMLIM=3000 -DVECTORSZ=512'
shift
full=no
if [ "${1:-}" = --full ]; then
    full=yes
    shift
fi
work_in "$@"

check_deque() {
    pan_run=-m100000 # no -E: an invalid end state is a thread that sleeps for ever
    holds 'no task is taken twice or lost, no thief sleeps while one is queued'
    for bug in PUSH_LOOKS_RELAXED POP_LOOKS_RELAXED LAST_WITHOUT_CAS STEAL_WITHOUT_CAS \
        LOOK_BEFORE_ASLEEP; do
        finds $bug
    done
}

check_tickets() {
    pan_run=-m100000 # as above
    holds 'two regions'
    holds 'a worker without a portion' -DREGIONS=1 -DNO_PORTION
    holds 'workers that help' -DREGIONS=1 -DHELPS=1
    holds 'two regions that are left to one core' -DALONE
    holds 'two regions that are dealt to the cores' -DDEALT
    holds 'two regions, no core is called while each has one' -DHELD
    finds HELD_UNTIL_ASLEEP -DHELD
    finds NO_SECOND_LOOK -DDEALT
    finds RENEWS_OPEN -DDEALT
    finds SHARED_UNTOLD -DREGIONS=1 -DALONE
    finds NO_LOOK_AFTER_OPEN -DREGIONS=1 -DALONE
    for bug in PUT_UNTOLD OWN_WITHOUT_CAS GATE_TOO_EARLY LOOK_BEFORE_WAITS; do
        finds $bug -DREGIONS=1
    done
    finds PUT_OVERWRITES -DREGIONS=1 -DN=5
    finds LEFT_BEFORE_NUMBER
    finds ENTER_WITHOUT_CAS -DREGIONS=1 -DHELPS=1
    finds CLOSE_WITHOUT_CAS -DREGIONS=1 -DHELPS=1
    [ $full = yes ] || return
    holds 'two regions, workers that help' -DHELPS=1
    holds 'more tickets' -DN=4 -DREGIONS=1
    holds 'two regions that are dealt alike' -DDEALT -DSAME
    holds 'regions that are dealt, no core is called while each has one' -DHELD -DDEALT
    holds 'regions that are left to one core, likewise' -DHELD -DALONE
}

check_contexts() {
    pan_run=-m100000 # no -E: an invalid end state is a context that waits for ever
    holds '3 contexts on 2 carriers'
    holds '3 contexts meet at a barrier' -DBARRIER
    holds 'a nested region of 3 threads ends' -DNESTED
    finds SLEEP_UNCOUNTED -DN=2 -DBARRIER
    finds END_UNCOUNTED -DN=2 -DNESTED
    finds LOOK_BEFORE_WAITS -DN=2 -DNESTED
    for bug in LOOK_BEFORE_SLEEPERS STEAL_FRESH NO_PUBLISH_NO_CALL NO_LOOK_AFTER_STOP; do
        finds $bug -DN=2
    done
    [ $full = yes ] || return
    holds '5 contexts' -DN=5
    holds '5 contexts meet at a barrier' -DN=5 -DBARRIER
    holds 'a nested region of 5 threads ends' -DN=5 -DNESTED
}

check_handover() {
    pan_run='-m100000 -E' # the model looks at the end states itself
    optimize=-O0          # the compiler takes half a minute with -O1
    holds '2 threads, a barrier' -DNT=2 -DROUNDS=1
    holds '2 threads, a barrier twice' -DNT=2 -DROUNDS=2 -DPINNED
    holds '2 threads, a lock' -DNT=2 -DROUNDS=1 -DWITH_LOCK
    holds '2 threads, a stranger takes cores' -DNT=2 -DROUNDS=1 -DSTRANGER=1
    holds '2 threads, a lock, threads that pause' -DNT=2 -DROUNDS=1 -DWITH_LOCK -DPAUSES
    for bug in SLEEP_OVERWRITES LOOK_BEFORE_SLEEPER; do
        finds $bug -DNT=2 -DROUNDS=1
    done
    finds NO_LOOK_AFTER_STOP -DNT=3 -DROUNDS=1 -DCOARSE
    [ $full = yes ] || return
    optimize=-O1
    holds '3 threads, a barrier' -DNT=3 -DROUNDS=1 -DCOARSE -DPINNED
    holds '3 threads, a barrier, pinned nowhere yet' -DNT=3 -DROUNDS=1 -DCOARSE
    holds '3 threads, a barrier, parked workers in full' -DNT=3 -DROUNDS=1 -DPINNED
    holds '3 threads, a barrier, threads that pause' -DNT=3 -DROUNDS=1 -DCOARSE -DPINNED -DPAUSES
    holds '2 threads, a lock twice, a stranger' -DNT=2 -DROUNDS=2 -DWITH_LOCK -DSTRANGER=1
}

# handover.pml, with a core that is another process's
check_eviction() {
    pan_run='-m100000 -E'
    optimize=-O0
    model=$here/handover.pml
    owner='-DNT=2 -DROUNDS=1 -DPINNED'
    holds 'the owner takes a core back' $owner -DOWNER=1 -DCOARSE
    finds LOST_LOOKS_AWAY $owner -DOWNER=2 -DCOARSE
    [ $full = yes ] || return
    optimize=-O1
    holds 'the owner takes a core back twice' $owner -DOWNER=2 -DCOARSE
    holds 'the owner takes a core back, threads that pause' $owner -DOWNER=1 -DCOARSE -DPAUSES
    holds 'the owner takes a core back, a lock' $owner -DOWNER=1 -DCOARSE -DWITH_LOCK
}

case $which in
deque | tickets | contexts | handover | eviction) "check_$which" ;;
*) echo "check.sh: no model $which: deque, tickets, contexts, handover or eviction" >&2; exit 2 ;;
esac
exit $failed

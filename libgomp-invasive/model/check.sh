#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
# check.sh - check deque.pml with spin, in full, and then with the faults that its BUG_* flags put
# in: the model must find every one, or it checks less than it says.
#
#   check.sh [DIRECTORY]     where to work (default: a temporary one, removed afterwards)
#
# One line of PASS or FAIL each; exit code 0 when all pass.
set -u
model=$(cd "$(dirname "$0")" && pwd)/deque.pml
if [ $# -gt 0 ]; then
    work=$1
else
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
fi
cd "$work" || exit 1
failed=0

# pan FLAG... - sets $errors to pan's count, empty when it could not finish.  No -E: an invalid end
# state is somebody who sleeps for ever.
pan() {
    rm -f pan pan.* ./*.trail
    spin -a "$@" "$model" >spin.log 2>&1 &&
        ${CC:-cc} -O1 -w -DSAFETY -DCOLLAPSE -DMEMLIM=1000 -o pan pan.c &&
        ./pan -m100000 >pan.log 2>&1
    errors=$(sed -n 's/.*depth reached.*errors: \([0-9]*\)$/\1/p' pan.log)
    grep -q -e 'error: max search depth' -e 'Search not completed' -e 'memory limit' pan.log &&
        [ "${errors:-0}" = 0 ] && errors=
}

verdict() {
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
    printf '%s  %s (%s states)\n' "$1" "$2" "${states:-?}"
    [ "$1" = PASS ] || { failed=1; cat spin.log; head -n 20 pan.log; }
}

pan
if [ "$errors" = 0 ]; then
    verdict PASS 'no task is taken twice or lost, nobody sleeps while one is queued'
else
    verdict FAIL 'the deque'
fi
for bug in PUSH_WITHOUT_FENCE POP_WITHOUT_FENCE LAST_WITHOUT_CAS STEAL_WITHOUT_CAS \
    LOOK_BEFORE_ASLEEP; do
    pan "-DBUG_$bug"
    if [ "${errors:-0}" -gt 0 ]; then
        verdict PASS "finds $bug"
    else
        verdict FAIL "does not find $bug"
    fi
done
exit $failed

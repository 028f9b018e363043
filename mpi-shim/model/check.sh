#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
# check.sh - check doorbell.pml with spin, and then with each fault that a BUG_* flag puts in.  The
# model must find every fault, or it checks less than it says.
#
#   check.sh [DIRECTORY]
#     DIRECTORY  where to work (default: a temporary one, removed afterwards)
#
# One line of PASS or FAIL each; exit code 0 when all pass.  Some seconds of processor time.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../libinvasive/model/spin.sh"
model=$here/doorbell.pml
pan_compile='-DMEMLIM=1000'
pan_run=-m100000 # no -E: in an invalid end state a rank sleeps for ever
work_in "$@"

holds 'two posters without fences: no long sleep beside a message'
holds 'an arrival barrier to which two ranks come last' -DARRIVAL
for bug in BELL_AFTER_CHECK LONG_FIRST LONG_AFTER_RING BELL_READ_TWICE CLEAR_AFTER_RING \
    LATE_WAKE_ENDS_SLICE WAKE_ONLY; do
    finds $bug
done
finds CHECKS_ONCE -DARRIVAL
exit $failed

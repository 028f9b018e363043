# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
# spin.sh - what the check.sh of each directory of models shares; sourced, not run.  The caller sets
#
#   model         the file
#   pan_compile   flags for the compiler: limits of memory and of a state's size
#   pan_run       flags for the search: its depth, -E where the model judges end states itself
#   optimize      -O1, or -O0 where the compiler takes longer than the search does without
#
# One line of PASS or FAIL each; $failed is 1 when one has failed.
failed=0
optimize=-O1

# work_in [DIRECTORY] - go there, or to a temporary one that is removed afterwards
work_in() {
    if [ $# -gt 0 ]; then
        work=$1
    else
        work=$(mktemp -d) || exit 1
        trap 'rm -rf "$work"' EXIT
    fi
    cd "$work" || exit 1
}

# pan FLAG... - sets $errors to pan's count, empty when it could not finish
pan() {
    rm -f pan pan.* ./*.trail
    spin -a "$@" "$model" >spin.log 2>&1 &&
        ${CC:-cc} $optimize -w -DSAFETY -DCOLLAPSE $pan_compile -o pan pan.c &&
        ./pan $pan_run >pan.log 2>&1
    errors=$(sed -n 's/.*depth reached.*errors: \([0-9]*\)$/\1/p' pan.log)
    # a search that was cut short has proved nothing
    grep -q -e 'error: max search depth' -e 'Search not completed' -e 'memory limit' pan.log &&
        [ "${errors:-0}" = 0 ] && errors=
}

verdict() {
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
    printf '%s  %s (%s states)\n' "$1" "$2" "${states:-?}"
    [ "$1" = PASS ] || { failed=1; cat spin.log; head -n 20 pan.log; }
}

# holds NAME FLAG...
holds() {
    name=$1
    shift
    pan "$@"
    if [ "$errors" = 0 ]; then verdict PASS "$name"; else verdict FAIL "$name"; fi
}

# finds BUG FLAG...
finds() {
    bug=$1
    shift
    usual=$optimize
    optimize=-O0 # a fault is found soon: most of the time is the compiler's
    pan "-DBUG_$bug" "$@"
    optimize=$usual
    if [ "${errors:-0}" -gt 0 ]; then
        verdict PASS "finds $bug"
    else
        verdict FAIL "does not find $bug"
    fi
}

# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
#
# upstream.sh - what the overlay takes for granted of a GCC release, in one place: what is edited in
# the copy of its source, and which parts of it exist in some releases only.  build.sh sources this
# with $tree (the copy), $release (GCC's version number), $features (the header to write) and die().
#
# Releases are told apart by what is in their files, not by their numbers.  A rule holds no line of
# upstream: it names a file, a pattern, and what is added there.  A rule that does not match as it
# should stops the build and says what has moved.

# Stop: upstream is not what a rule expects.  FILE WHAT-WAS-FOUND MESSAGE
moved() {
    die "GCC $release: $3 ($1: $2); see libgomp-invasive/upstream.sh"
}

# How many lines of FILE match PATTERN (extended regular expression).
matches() {
    [ -f "$tree/$1" ] || moved "$1" "no such file" "$3"
    grep -cE -e "$2" "$tree/$1" || :
}

# edit FILE PATTERN SED-COMMANDS MESSAGE - carry out the commands on the one line that matches.
edit() {
    count=$(matches "$1" "$2" "$4")
    [ "$count" -eq 1 ] || moved "$1" "$count lines match $2" "$4"
    bar=$(printf '\001') # a delimiter that no pattern contains
    sed -E "\\$bar$2$bar { $3
}" "$tree/$1" >"$tree/$1.edited"
    mv "$tree/$1.edited" "$tree/$1"
}

# insert_member FILE STRUCT TEXT MESSAGE - TEXT becomes the first member of the struct: the last one
# may be an array of any length.
insert_member() {
    count=$(matches "$1" "^struct $2\$" "$4")
    [ "$count" -eq 1 ] || moved "$1" "$count definitions of struct $2" "$4"
    sed -n "/^struct $2\$/ { n; p; }" "$tree/$1" | grep -q '^{' ||
        moved "$1" "no { after struct $2" "$4"
    edit "$1" "^struct $2\$" "n; s|^\\{|{\\n  $3|" "$4"
}

# add_version VERSION MESSAGE SYMBOL... - the linker map defines VERSION with these symbols.  Either
# the release has the version and all of them, or it has neither; then VERSION is added as the newest
# of its family, which is the part of the name before the number.
add_version() {
    map=libgomp/libgomp.map version=$1 message=$2
    shift 2
    there=$(matches $map "^$version \\{" "$message")
    for symbol; do
        count=$(matches $map "^[[:space:]]*$symbol;" "$message")
        [ "$count" -eq "$there" ] ||
            moved $map "$there definitions of $version, but $count lines name $symbol" "$message"
    done
    [ "$there" -eq 0 ] || return 0
    family=${version%%[0-9]*}
    newest=$(sed -nE "s/^($family[0-9.]+) \\{.*/\\1/p" "$tree/$map" | tail -n 1)
    [ -n "$newest" ] || moved $map "no version $family*" "$message"
    printf '\n%s {\n  global:\n' "$version" >>"$tree/$map"
    printf '    %s;\n' "$@" >>"$tree/$map"
    printf '} %s;\n' "$newest" >>"$tree/$map"
}

# expect FILE PATTERN MESSAGE - something that must be there and that no compiler would miss.
expect() {
    count=$(matches "$1" "$2" "$3")
    [ "$count" -gt 0 ] || moved "$1" "nothing matches $2" "$3"
}

# feature NAME FILE PATTERN - define NAME to 1 if a line of FILE matches, else to 0.
feature() {
    count=$(matches "$2" "$3" "$1 cannot be found out")
    [ "$count" -eq 0 ] || count=1
    echo "#define $1 $count" >>"$features"
}

# member_feature NAME FILE STRUCT PATTERN - the same between the braces of a struct.
member_feature() {
    count=$(matches "$2" "^struct $3\$" "$1 cannot be found out")
    [ "$count" -eq 1 ] || moved "$2" "$count definitions of struct $3" "$1 cannot be found out"
    if sed -n "/^struct $3\$/,/^};/p" "$tree/$2" | grep -qE -e "$4"; then
        echo "#define $1 1" >>"$features"
    else
        echo "#define $1 0" >>"$features"
    fi
}

# --- the rules

# Edits of the copy.  Every rule ends with the message for the release that it does not fit.
edit_upstream() {
    insert_member libgomp/libgomp.h gomp_task "struct gomp_task_own own;" \
        "our task scheduler has no place in struct gomp_task"
    insert_member libgomp/libgomp.h gomp_team "struct gomp_team_own own;" \
        "our task scheduler has no place in struct gomp_team"
    insert_member libgomp/libgomp.h gomp_taskgroup "struct gomp_taskgroup_own own;" \
        "our task scheduler has no place in struct gomp_taskgroup"
    insert_member libgomp/libgomp.h gomp_task_icv "bool size_is_asked_for;" \
        "that a program sets the size of its teams has no place in struct gomp_task_icv"
    edit libgomp/libgomp.h '^ +return &gomp_global_icv;$' 's/&gomp_global_icv/gomp_default_icv ()/' \
        "the control variables of a thread without a task do not come from gomp_icv any more"
    edit libgomp/libgomp.h '^ +return &gomp_tls_data;$' \
        's/&gomp_tls_data/gomp_current ? gomp_current : \&gomp_tls_data/' \
        "gomp_thread does not return the kernel thread's own struct any more"
    # The public functions of GCC 13: task/newer.c.
    add_version OMP_5.1.1 "omp_target_memcpy_async and its like have no place in the map" \
        omp_get_mapped_ptr omp_target_is_accessible omp_target_memcpy_async \
        omp_target_memcpy_rect_async
    add_version OMP_5.2 "omp_in_explicit_task has no place in the map" \
        omp_in_explicit_task omp_in_explicit_task_
    add_version GOMP_5.1.1 "GOMP_taskwait_depend_nowait has no place in the map" \
        GOMP_taskwait_depend_nowait
}

# What differs between the known releases; used by program/upstream.h.
find_features() {
    echo "/* made by build.sh from GCC $release */" >"$features"
    member_feature UPSTREAM_THREAD_HAS_TEAM_NUM libgomp/libgomp.h gomp_thread 'unsigned int team_num;'
    feature UPSTREAM_HAS_IN_EXPLICIT_TASK libgomp/fortran.c '^omp_in_explicit_task_ \('
    feature UPSTREAM_HAS_TARGET_MEMCPY_ASYNC libgomp/target.c '^omp_target_memcpy_async \('
}

# What the overlay relies on, and no compiler would miss, but only programs.
check_upstream() {
    expect libgomp/env.c '\bgomp_init_num_threads \(\)' \
        "env.c does not ask proc.c for the default team size any more"
    expect libgomp/env.c '\bgomp_init_affinity \(\)' \
        "env.c does not bind the initial thread by gomp_init_affinity any more"
    expect libgomp/env.c '\bstderr\b' "what OMP_DISPLAY_ENV shows is not printed by env.c any more"
    expect libgomp/error.c '\bstderr\b' "messages are not printed by error.c any more"
    expect libgomp/config/linux/affinity.c '^gomp_init_affinity \(' \
        "the initial thread is not bound by gomp_init_affinity of affinity.c any more"
    expect libgomp/icv.c '^omp_get_max_threads \(' "omp_get_max_threads is not in icv.c any more"
    expect libgomp/icv.c '^omp_set_nested \(' "omp_set_nested is not in icv.c any more"
    expect libgomp/icv.c '^omp_set_max_active_levels \(' \
        "omp_set_max_active_levels is not in icv.c any more"
    expect libgomp/parallel.c '\bgomp_dynamic_max_threads \(\)' \
        "parallel.c does not ask proc.c for the size of a dynamic team any more"
    expect libgomp/parallel.c '\bgomp_team_start \(' \
        "regions do not begin with gomp_team_start of team.c any more"
    expect libgomp/parallel.c '\bgomp_team_end \(\)' \
        "regions do not end with gomp_team_end of team.c any more"
    expect libgomp/ordered.c '^GOMP_ordered_end \(' \
        "the end of an ordered region is not in ordered.c any more"
    expect libgomp/loop.c '\bgomp_iter_dynamic_next_locked \(' \
        "ordered loops do not begin with gomp_iter_dynamic_next_locked any more"
    expect libgomp/loop_ull.c '\bgomp_iter_ull_dynamic_next_locked \(' \
        "ordered loops of unsigned long long do not begin as expected any more"
    expect libgomp/env.c '\bgomp_managed_threads\b' \
        "the count of threads that throttles spinning is not gomp_managed_threads any more"
}

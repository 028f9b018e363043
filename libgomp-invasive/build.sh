#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
#
# Build the fork: the packaged libgomp source with the overlay in front of it.
#
#   build.sh --source=FILE|DIR --overlay=DIR --libinvasive=DIR --include=DIR
#            --builddir=DIR --out=FILE [--cflags=FLAGS] [--host=SYSTEM] [-jN] [--prepare]
#
#   --source       gcc-VERSION*.tar.xz, or a GCC source tree
#   --prepare      only make the copy and edit it
#   --host         what to build for, as configure is told; CC and GFORTRAN make programs for it
#   --libinvasive  where libinvasive-process.so is; --include: the directory above its headers
#
# Nothing of upstream is kept in this repository: the source is copied to --builddir,
# edited there by the rules of upstream.sh, and libgomp's own Makefile builds it with
# `search_path` naming the overlay first, so that its files replace or wrap upstream's of
# the same name.  Files that upstream does not know, in the folders beside it, are linked as LIBS.
set -eu

# Folders of files that upstream does not have, from below.  The tests read this line.
folders="program threads context sched region implicit task loop"

here=$(cd "$(dirname "$0")" && pwd)
die() { echo "libgomp-invasive/build.sh: $*" >&2; exit 1; }

cflags="-O2 -g" jobs=-j2 prepare= host=
gfortran=${GFORTRAN:-gfortran}
for arg; do
    case $arg in
    --source=*) source=${arg#*=} ;;
    --overlay=*) overlay=$(cd "${arg#*=}" && pwd) ;;
    --libinvasive=*) libinvasive=$(cd "${arg#*=}" && pwd) ;;
    --include=*) include=$(cd "${arg#*=}" && pwd) ;;
    --builddir=*) builddir=${arg#*=} ;;
    --out=*) out=${arg#*=} ;;
    --cflags=*) cflags=${arg#*=} ;;
    --host=*) host=${arg#*=} ;;
    -j*) jobs=$arg ;;
    --prepare) prepare=yes ;;
    *) die "unknown argument $arg" ;;
    esac
done
for name in source overlay libinvasive include builddir out; do
    eval "[ -n \"\${$name:-}\" ]" || die "--$name is missing"
done

# The parts of a GCC release that libgomp needs to configure and build.
parts() {
    for part in libgomp include config 'config.*' config-ml.in configure '*.m4' ltmain.sh install-sh \
        missing depcomp mkinstalldirs move-if-change multilib.am libtool-ldflags gcc/BASE-VER \
        gcc/DATESTAMP; do
        printf '%s/%s\n' "$1" "$part"
    done
}

unpack_archive() {
    top=$(tar tf "$source" | head -n 1 | cut -d/ -f1) || die "cannot read $source"
    parts "$top" >"$builddir/parts"
    tar xf "$source" -C "$tree" --strip-components=1 --wildcards --no-wildcards-match-slash \
        --exclude="$top/libgomp/testsuite/libgomp[.]*" -T "$builddir/parts" ||
        die "$source does not hold libgomp: is it a GCC release?"
    apply_distribution_fixes
}

# A tree is copied too: it may be read-only, and the copy is edited.
copy_tree() {
    for part in $(cd "$source" && parts . | while read -r pattern; do echo $pattern; done); do
        [ ! -e "$source/$part" ] || echo "$part"
    done >"$builddir/parts"
    tar cf - -C "$source" --exclude='./libgomp/testsuite/libgomp[.]*' -T "$builddir/parts" |
        tar xf - -C "$tree" --no-same-permissions || die "cannot copy $source"
    chmod -R u+w "$tree"
}

# The distribution's later fixes to libgomp's own C files, from the package's patch.
apply_distribution_fixes() {
    fixes=$(dirname "$source")/patches/git-updates.diff
    [ -f "$fixes" ] || return 0
    awk '/^diff / { keep = 0 }
         /^--- / { keep = ($2 ~ /\/libgomp\/[a-z_]*\.[ch]$/) }
         keep' "$fixes" >"$builddir/fixes.diff"
    [ -s "$builddir/fixes.diff" ] || return 0
    # a/src/libgomp/x.c: strip as many directories as lie before libgomp/
    depth=$(sed -n 's/^--- \([^ \t]*\)libgomp\/.*/\1/p' "$builddir/fixes.diff" | head -n 1 | tr -cd / | wc -c)
    patch -s -d "$tree" "-p$depth" <"$builddir/fixes.diff" ||
        die "the fixes in $fixes do not apply to $source"
}

# Changes with whatever the copy, its edits and its configuration are made from.
stamp() {
    if [ -d "$source" ]; then
        (cd "$source" && find libgomp include config gcc/BASE-VER -path libgomp/testsuite -prune -o \
            -type f -printf '%p %s %T@\n' | sort)
    else
        stat -L -c '%s %Y' "$source"
    fi
    echo "$source ${CC:-cc} $cflags $host"
    cat "$here/build.sh" "$here/upstream.sh"
}

mkdir -p "$builddir"
builddir=$(cd "$builddir" && pwd)
case $out in /*) ;; *) out=$PWD/$out ;; esac
if [ -d "$source" ]; then
    source=$(cd "$source" && pwd)
    [ -f "$source/libgomp/team.c" ] || die "$source is no GCC source tree (no libgomp/team.c)"
else
    [ -f "$source" ] || die "no such file: $source (Debian: package gcc-12-source)"
    source=$(cd "$(dirname "$source")" && pwd)/$(basename "$source")
fi

src=$builddir/src
work=$builddir/libgomp-build
features=$src/upstream-features.h
now=$(stamp | cksum)
if [ "$now" != "$(cat "$src/stamp" 2>/dev/null)" ]; then
    rm -rf "$src" "$src.new" "$work"
    tree=$src.new
    mkdir -p "$tree"
    if [ -d "$source" ]; then copy_tree; else unpack_archive; fi
    rm -f "$builddir/parts"
    release=$(cat "$tree/gcc/BASE-VER" 2>/dev/null) || die "$source does not say its version (gcc/BASE-VER)"
    features=$tree/upstream-features.h
    . "$here/upstream.sh"
    check_upstream
    edit_upstream
    find_features
    echo "$now" >"$tree/stamp"
    mv "$tree" "$src"
fi
release=$(cat "$src/gcc/BASE-VER")
[ -z "$prepare" ] || exit 0

mkdir -p "$work"
cd "$work"
if [ ! -f Makefile ]; then
    # Unset: a jobserver of the calling make is not for configure's little makes.
    command -v "$gfortran" >/dev/null ||
        die "no gfortran (Debian: package gfortran): libgomp has symbols that are written in Fortran"
    env -u MAKEFLAGS -u MAKELEVEL GFORTRAN="$(command -v "$gfortran")" "$src/libgomp/configure" ${host:+--host="$host"} --disable-multilib \
        --enable-shared --disable-static --with-gnu-ld \
        --disable-maintainer-mode --enable-symvers=gnu --enable-tls --prefix=/usr \
        CFLAGS="$cflags" >configure.log 2>&1 ||
        die "libgomp's configure failed; see $work/configure.log"
fi
cpu=$(sed -n 's/^config_path = //p' Makefile)
[ -n "$cpu" ] || die "libgomp's Makefile has no config_path any more: this GCC release needs a look"
path="$overlay $overlay/worksharing"
for part in $folders; do path="$path $(dirname "$overlay")/$part"; done
for part in $cpu; do path="$path $src/libgomp/config/$part"; done
path="$path $src/libgomp $src/include $src $include"
for file in icv.c env.c error.c affinity.c bar.c task.c team.c mutex.c sem.c ptrlock.c lock.c proc.c parallel.c sections.c loop.c loop_ull.c iter.c iter_ull.c ordered.c; do
    grep -q "\b${file%.c}\.lo\b" Makefile ||
        die "GCC $release: libgomp does not build $file any more, which the overlay replaces"
done
ours="busy_wait.lo messages.lo objects.lo overflow.lo thread_limits.lo use.lo \
    context.lo cores.lo free_workers.lo hold.lo park.lo parking.lo ready.lo sleepers.lo spin.lo spinlock.lo suspended.lo threads.lo \
    unheld.lo watchdog.lo work_source.lo workers.lo \
    blas.lo carrier.lo costs.lo history.lo join.lo team_thread.lo open.lo places.lo points.lo progress.lo region.lo run.lo tickets.lo tls.lo tuned_team.lo first_use.lo waiting.lo \
    bound.lo help.lo taskqueue.lo sharedqueue.lo taskpool.lo taskpoint.lo taskrun.lo taskdeps.lo taskgroup.lo taskloop.lo tasktarget.lo newer.lo \
    loop_split.lo loop_auto.lo"
# The Makefile knows what its own objects were made from; this tells it the same of the fork's.
for object in $ours; do echo "-include .deps/${object%.lo}.Plo"; done >ours.mk
env -u MAKEFLAGS -u MAKELEVEL make -f Makefile -f ours.mk $jobs search_path="$path" \
    EXTRA_libgomp_la_DEPENDENCIES="$ours" \
    LIBS="$ours -L$libinvasive -l:libinvasive-process.so" \
    XLDFLAGS="-Wl,-z,defs -Wl,-z,nodelete -Wl,-z,lazy -Wl,-z,noseparate-code -Wl,-rpath,'\$\$ORIGIN'" \
    libgomp.la >make.log 2>&1 ||
    { tail -n 30 make.log >&2; die "building libgomp failed; see $work/make.log"; }
# If a release has such a header beside its sources, upstream's would silently replace the overlay's.
for header in bar.h simple-bar.h doacross.h; do
    user=$(grep -lE "$src/[^ ]*/$header" .deps/*.Plo | head -n 1)
    [ -z "$user" ] || die "GCC $release: $(basename "$user" .Plo).c includes upstream's $header, not the overlay's"
done
mkdir -p "$(dirname "$out")"
cp .libs/libgomp.so.1.0.0 "$out.new"
mv "$out.new" "$out"

#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
#
# Build the fork: the packaged libgomp source with our overlay in front of it.
#
#   build.sh --source=FILE|DIR --overlay=DIR --libinvasive=DIR --include=DIR
#            --builddir=DIR --out=FILE [--cflags=FLAGS] [-jN]
#
#   --source       gcc-VERSION*.tar.xz, or a GCC source tree
#   --libinvasive  where libinvasive.so.0 is; --include: the directory above its headers
#
# Nothing of upstream is kept in this repository: the source is unpacked below
# --builddir, and libgomp's own Makefile builds it with `search_path` naming our
# overlay first, so that our files replace or wrap upstream's of the same name.
# Our additional files are linked in as LIBS.
set -eu

die() { echo "libgomp-invasive/build.sh: $*" >&2; exit 1; }

cflags="-O2 -g" jobs=-j2
for arg; do
    case $arg in
    --source=*) source=${arg#*=} ;;
    --overlay=*) overlay=$(cd "${arg#*=}" && pwd) ;;
    --libinvasive=*) libinvasive=$(cd "${arg#*=}" && pwd) ;;
    --include=*) include=$(cd "${arg#*=}" && pwd) ;;
    --builddir=*) builddir=${arg#*=} ;;
    --out=*) out=${arg#*=} ;;
    --cflags=*) cflags=${arg#*=} ;;
    -j*) jobs=$arg ;;
    *) die "unknown argument $arg" ;;
    esac
done
for name in source overlay libinvasive include builddir out; do
    eval "[ -n \"\${$name:-}\" ]" || die "--$name is missing"
done

# The parts of a GCC release that libgomp needs to configure and build.
unpack() {
    top=$(tar tf "$source" | head -n 1 | cut -d/ -f1) || die "cannot read $source"
    rm -rf "$builddir/src.new"
    mkdir -p "$builddir/src.new"
    tar xf "$source" -C "$builddir/src.new" --strip-components=1 --wildcards \
        --no-wildcards-match-slash --exclude="$top/libgomp/testsuite/libgomp[.]*" \
        "$top/libgomp" "$top/include" "$top/config" "$top/config.*" "$top/config-ml.in" \
        "$top/configure" "$top/*.m4" "$top/ltmain.sh" "$top/install-sh" "$top/missing" "$top/depcomp" \
        "$top/mkinstalldirs" "$top/move-if-change" "$top/multilib.am" "$top/libtool-ldflags" \
        "$top/gcc/BASE-VER" "$top/gcc/DATESTAMP" ||
        die "$source does not hold libgomp: is it a GCC release?"
    apply_distribution_fixes
    rm -rf "$builddir/src"
    mv "$builddir/src.new" "$builddir/src"
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
    patch -s -d "$builddir/src.new" "-p$depth" <"$builddir/fixes.diff" ||
        die "the fixes in $fixes do not apply to $source"
}

mkdir -p "$builddir"
builddir=$(cd "$builddir" && pwd)
case $out in /*) ;; *) out=$PWD/$out ;; esac
if [ -d "$source" ]; then
    src=$(cd "$source" && pwd)
    [ -f "$src/libgomp/team.c" ] || die "$source is no GCC source tree (no libgomp/team.c)"
else
    [ -f "$source" ] || die "no such file: $source (Debian: package gcc-12-source)"
    [ -f "$builddir/src/libgomp/team.c" ] && [ "$builddir/src" -nt "$source" ] || unpack
    touch "$builddir/src"
    src=$builddir/src
fi

work=$builddir/libgomp-build
mkdir -p "$work"
cd "$work"
if [ ! -f Makefile ]; then
    # Unset: a jobserver of the calling make is not for configure's little makes.
    command -v gfortran >/dev/null ||
        die "no gfortran (Debian: package gfortran): libgomp has symbols that are written in Fortran"
    env -u MAKEFLAGS -u MAKELEVEL GFORTRAN="$(command -v gfortran)" "$src/libgomp/configure" --disable-multilib \
        --enable-shared --disable-static --with-gnu-ld \
        --disable-maintainer-mode --enable-symvers=gnu --enable-tls --prefix=/usr \
        CFLAGS="$cflags" >configure.log 2>&1 ||
        die "libgomp's configure failed; see $work/configure.log"
fi
cpu=$(sed -n 's/^config_path = //p' Makefile)
[ -n "$cpu" ] || die "libgomp's Makefile has no config_path any more: this GCC release needs a look"
path="$overlay"
for part in $cpu; do path="$path $src/libgomp/config/$part"; done
path="$path $src/libgomp $src/include $include"
for file in bar.c team.c mutex.c sem.c ptrlock.c lock.c proc.c loop.c loop_ull.c iter.c iter_ull.c; do
    grep -q "\b${file%.c}\.lo\b" Makefile ||
        die "libgomp does not build $file any more: this GCC release needs a look"
done
ours="parking.lo workers.lo region.lo progress.lo places.lo tls.lo loop_split.lo loop_auto.lo"
env -u MAKEFLAGS -u MAKELEVEL make $jobs search_path="$path" \
    EXTRA_libgomp_la_DEPENDENCIES="$ours" \
    LIBS="$ours -L$libinvasive -l:libinvasive.so.0" \
    XLDFLAGS="-Wl,-z,nodelete -Wl,-rpath,'\$\$ORIGIN:\$\$ORIGIN/..'" libgomp.la >make.log 2>&1 ||
    { tail -n 30 make.log >&2; die "building libgomp failed; see $work/make.log"; }
mkdir -p "$(dirname "$out")"
cp .libs/libgomp.so.1.0.0 "$out.new"
mv "$out.new" "$out"

#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# build.sh DIR - build the whole for aarch64 in DIR, on another processor.
#
# The compilers are the distribution's (packages.txt, section [full]).  Libraries of that processor
# are not installed: their packages are unpacked below DIR/sysroot, so that nothing changes on this
# machine.  DIR/run, made at the end, runs a program of that processor under qemu-user:
#
#   DIR/run [-E NAME=VALUE]... PROGRAM ARGUMENT...
#
# qemu carries out atomic operations by those of this processor, and lets a load-acquire (ldar) pass a
# store-release (stlr) before it, which that processor does not: on x86 it makes plain moves of both.
# DIR/as/as, an assembler for the option -B of the compiler, has a barrier follow each store-release.
# What is right under qemu on x86 need not be right on aarch64, whose memory order is weaker: this tests
# the code, not the orders.  Its processor has no SME, with which the OpenMP runtime does not switch
# contexts.
set -eu
top=$(cd "$(dirname "$0")/../../../.." && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
host=aarch64-linux-gnu
root=$dir/sysroot
libraries=$root/usr/lib/$host:$root/lib/$host

unpacked="libhwloc15 libhwloc-dev libjansson4 libjansson-dev libncursesw6 libncurses6 libtinfo6
    libncurses-dev libsystemd0 libsystemd-dev liblz4-1 liblzma5 libzstd1 libcap2 libgcrypt20
    libgpg-error0 libudev1 libnuma1 libltdl7 libmpich12 libmpich-dev libucx0 libgfortran5"

# apt-get with lists and a state of its own, for that processor.
apt() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$dir/apt" \
        -o Dir::State::status="$dir/apt/status" -o Dir::Cache="$dir/apt/cache" -o Debug::NoLocking=1 \
        -o APT::Sandbox::User= "$@"
}

make_sysroot() {
    rm -rf "$dir/apt" "$root"
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/apt/packages" "$root"
    : >"$dir/apt/status"
    apt update
    (cd "$dir/apt/packages" && apt download $unpacked)
    for package in "$dir"/apt/packages/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    rm -rf "$dir/apt"
    echo "$unpacked" >"$root/complete"
}

# What configure asks of a compiler wrapper; that of the package is a program for that processor.
make_mpicc() {
    cat >"$dir/mpicc" <<END
#!/bin/sh
echo "$host-gcc -B$dir/as -I$root/usr/include/$host/mpich -L$root/usr/lib/$host -lmpich"
END
    chmod +x "$dir/mpicc"
}

# The last argument is the file, or there is none: then GCC has a pipe.
make_as() {
    mkdir -p "$dir/as"
    cat >"$dir/as/as" <<END
#!/bin/sh
for file; do :; done
case \$file in *.s) sed -i 's/^\\s*stlr[bh]\\?\\s.*/&\\n\\tdmb ish/' "\$file" ;; esac
exec $host-as "\$@"
END
    chmod +x "$dir/as/as"
}

make_run() {
    cat >"$dir/run" <<END
#!/bin/sh
exec qemu-aarch64 -cpu max,sme=off,pauth-impdef=on -L /usr/$host \\
    -E LD_LIBRARY_PATH="$dir/lib/invasive:$dir/lib:$libraries" "\$@"
END
    chmod +x "$dir/run"
}

[ "$(cat "$root/complete" 2>/dev/null)" = "$unpacked" ] || make_sysroot
make_mpicc
make_as
make_run
cd "$dir"
# Also for make, which may configure again.
export PKG_CONFIG=pkg-config PKG_CONFIG_LIBDIR="$root/usr/lib/$host/pkgconfig" \
    PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_PATH=
[ config.status -nt "$top/configure" ] ||
    "$top/configure" --host=$host --with-mpi=mpich --without-swe --with-systemdsystemunitdir=no \
        CC="$host-gcc -B$dir/as" MPICH_MPICC="$dir/mpicc" CPPFLAGS="-I$root/usr/include/$host" \
        LDFLAGS="-L$root/usr/lib/$host -L$root/lib/$host -Wl,-rpath-link,$libraries"
make -j"$(nproc)" all
make mpi-shim/tests/phases mpi-shim/tests/calls testsuite/rmd/programs/rmd_policy

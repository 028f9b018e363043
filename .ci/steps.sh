# SPDX-License-Identifier: GPL-3.0-or-later
# steps.sh - what run-tests and quickstart have in common; they source it with $top set.

# The names in packages.txt that dpkg does not know as installed.
missing_packages() {
    sed 's/#.*//' "$top/packages.txt" | while read -r package; do
        [ -n "$package" ] || continue
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
        [ "$state" = installed ] || echo "$package"
    done
}

install_packages() {
    command -v dpkg-query >/dev/null || {
        echo "no dpkg here: install the equivalents of packages.txt, then use --no-install" >&2
        return 0
    }
    packages=$(missing_packages)
    [ -n "$packages" ] || return 0
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || {
            echo "to be installed, by root: apt-get install" $packages >&2
            return 1
        }
        sudo=sudo
    fi
    echo "installing:" $packages
    # The lists may be missing or old: try, update, try again.
    apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends"
    $apt install $packages >/dev/null 2>&1 && return
    $apt update >/dev/null && $apt install $packages >/dev/null
}

# sanitized_build ORDINARY-BUILD NAME SANITIZERS: libinvasive, rmd and the tools in
# ORDINARY-BUILD/NAME; what is preloaded into programs is the ordinary build's.  -O1 takes the
# compiler half the time, and has it warn of other things.
sanitized_build() {
    configure_and_build "$1/$2" --enable-sanitizers="$3" --disable-werror CFLAGS="${CFLAGS:--O1 -g}"
    [ -L "$1/$2/lib" ] || rm -rf "$1/$2/lib"
    ln -sfn ../lib "$1/$2/lib"
}

# configure_and_build DIR CONFIGURE-OPTION...: a line before and one after it, unless it fails; the
# log stays in DIR.
configure_and_build() {
    dir=$1
    shift
    mkdir -p "$dir"
    log=$dir/build.log
    echo "building in $dir: some minutes the first time; log: $log"
    {
        [ -x "$top/configure" ] && [ "$top/configure" -nt "$top/configure.ac" ] ||
            "$top/autogen.sh"
    } >"$log" 2>&1 || { cat "$log" >&2; return 1; }
    {
        # Configure again when it has changed; make does the rest.
        [ "$dir/config.status" -nt "$top/configure" ] || (cd "$dir" && "$top/configure" "$@")
        make -C "$dir" -j"$(nproc)" all && make -C "$dir" -j"$(nproc)" check-programs
    } >>"$log" 2>&1 || {
        tail -n 60 "$log" >&2
        echo "the build in $dir failed; the whole log: $log" >&2
        return 1
    }
    echo "built $dir"
}

# SPDX-License-Identifier: GPL-3.0-or-later
# steps.sh - what run-tests and quickstart have in common; they source it with $top and $build set.

# refuse_path PATH: make, libgomp's rules and LD_PRELOAD take no path with blanks, colons or
# characters of the shell.
refuse_path() {
    case $1 in
    *[[:space:]]* | *[\"\#\$\&\'\`\\:%]*)
        printf '%s\n' "'$1' has a blank or one of \"#\$%&':\`\\ in it, which make or the dynamic\
 linker cannot take: move the checkout, or set INVASIVE_BUILD for the build" >&2
        exit 2
        ;;
    esac
}
refuse_path "$top"
refuse_path "$build"

# packages SECTION...: the names in these sections of packages.txt.
packages() {
    awk -v sections=" $* " '{ sub(/#.*/, "") }
        /^\[/ { wanted = index(sections, " " substr($1, 2, length($1) - 2) " "); next }
        wanted && NF { print $1 }' "$top/packages.txt"
}

# missing_packages SECTION...: those of them that dpkg does not know as installed.
missing_packages() {
    packages "$@" | while read -r package; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
        [ "$state" = installed ] || echo "$package"
    done
}

# install_packages SECTION...
install_packages() {
    command -v dpkg-query >/dev/null || {
        echo "no dpkg here: install the equivalents of packages.txt, then use --no-install" >&2
        return 0
    }
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || {
            echo "to be installed, by root: apt-get install" $missing >&2
            return 1
        }
        sudo=sudo
    fi
    echo "installing:" $missing
    # The lists may be missing or old: try, update, try again.
    apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends"
    $apt install $missing >/dev/null 2>&1 && return
    $apt update >/dev/null && $apt install $missing >/dev/null
}

# sanitized_build ORDINARY-BUILD NAME SANITIZERS: libinvasive, rmd and the tools in
# ORDINARY-BUILD/NAME; what is preloaded into programs is the ordinary build's.  -O1 takes the
# compiler half the time, and has it warn of other things; -g1 has the lines that sanitizers say.
sanitized_build() {
    configure_and_build "$1/$2" "all check-programs" --enable-assertions --enable-sanitizers="$3" --disable-werror \
        CFLAGS="${CFLAGS:--O1 -g1}"
    [ -L "$1/$2/lib" ] || rm -rf "$1/$2/lib"
    ln -sfn ../lib "$1/$2/lib"
}

# What configure's answers depend on: its options, and which packages are there.
configured_for() {
    echo "$@"
    ! command -v dpkg-query >/dev/null || missing_packages run build test
}

# configure_if_needed DIR OPTION...: when configure has changed, or what it would find; make notices
# all else.
configure_if_needed() {
    dir=$1
    shift
    now=$(configured_for "$@")
    [ "$dir/config.status" -nt "$top/configure" ] &&
        [ "$now" = "$(cat "$dir/configured-for" 2>/dev/null)" ] && return
    (cd "$dir" && "$top/configure" "$@") && echo "$now" >"$dir/configured-for"
}

# make_targets DIR TARGET...: one after the other.
make_targets() {
    dir=$1
    shift
    for target; do
        make -C "$dir" -j"$(nproc)" "$target" || return
    done
}

# configure_and_build DIR "TARGET..." CONFIGURE-OPTION...: prints a line before and one after it,
# unless it fails; the log stays in DIR.
configure_and_build() {
    dir=$1 targets=$2
    shift 2
    mkdir -p "$dir"
    log=$dir/build.log
    echo "building in $dir: some minutes the first time; log: $log"
    {
        [ -x "$top/configure" ] && [ "$top/configure" -nt "$top/configure.ac" ] ||
            "$top/autogen.sh"
    } >"$log" 2>&1 || { cat "$log" >&2; return 1; }
    { configure_if_needed "$dir" "$@" && make_targets "$dir" $targets; } >>"$log" 2>&1 || {
        tail -n 60 "$log" >&2
        echo "the build in $dir failed; the whole log: $log" >&2
        return 1
    }
    echo "built $dir"
}

dnl SPDX-License-Identifier: GPL-3.0-or-later
dnl invasive.m4 - the checks of configure.ac, one macro for each.  Every macro ends by adding a
dnl line to the summary, which INV_SUMMARY prints after config.status has run.

dnl INV_FOUND(WHAT, VALUE) - a line of the summary.
AC_DEFUN([INV_FOUND], [
inv_value="$2"
inv_line=`printf '  %-16s %s' "$1" "$inv_value"`
inv_summary="$inv_summary
$inv_line"
])

dnl INV_MISSING(WHAT, PACKAGE) - stop, naming the Debian package that has it.
AC_DEFUN([INV_MISSING], [AC_MSG_ERROR([$1 was not found: install package $2 (apt-get install $2), or see ./configure --help])])

AC_DEFUN([INV_WARNINGS], [
AC_ARG_ENABLE([werror],
  [AS_HELP_STRING([--disable-werror], [let warnings in our own code pass])], [], [enable_werror=yes])
INV_CFLAGS="-std=gnu17 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
AS_IF([test "x$enable_werror" != xno], [INV_CFLAGS="$INV_CFLAGS -Werror"])
INV_CXXFLAGS="-std=c++17 -Wall -Wextra -Wshadow"
AS_IF([test "x$enable_werror" != xno], [INV_CXXFLAGS="$INV_CXXFLAGS -Werror"])
AC_SUBST([INV_CFLAGS])
AC_SUBST([INV_CXXFLAGS])
])

dnl Sanitized builds are for libinvasive, rmd, the tools and their tests.  What is preloaded into
dnl programs that are not sanitized themselves is left out of them: the OpenMP runtime and the MPI shim.
AC_DEFUN([INV_SANITIZERS], [
AC_ARG_ENABLE([sanitizers],
  [AS_HELP_STRING([--enable-sanitizers=LIST],
    [build libinvasive, rmd and the tools with these: address,undefined or thread])],
  [], [enable_sanitizers=no])
SANITIZER_CFLAGS=
AS_CASE([$enable_sanitizers],
  [no], [],
  [yes], [enable_sanitizers=address,undefined])
AS_IF([test "x$enable_sanitizers" != xno], [
  SANITIZER_CFLAGS="-fsanitize=$enable_sanitizers -fno-omit-frame-pointer -fno-sanitize-recover=all"
  inv_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $SANITIZER_CFLAGS"
  AC_MSG_CHECKING([whether the compiler can -fsanitize=$enable_sanitizers])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers does not work with $CC: install package gcc with its libasan, libubsan and libtsan])])
  CFLAGS=$inv_saved_CFLAGS
  # ThreadSanitizer does not model fences and GCC says so; the stress test knows.
  AS_CASE([$enable_sanitizers], [*thread*], [SANITIZER_CFLAGS="$SANITIZER_CFLAGS -Wno-tsan"])
])
AC_SUBST([SANITIZER_CFLAGS])
AM_CONDITIONAL([SANITIZED], [test "x$enable_sanitizers" != xno])
INV_FOUND([sanitizers], [$enable_sanitizers])
])

dnl What must hold at a transition (libinvasive/base/assertion.h).  Off in what is installed and measured.
AC_DEFUN([INV_ASSERT], [
AC_ARG_ENABLE([assertions],
  [AS_HELP_STRING([--enable-assertions],
    [end a process, with a line on stderr, in which an invariant is broken; make clean after a change])],
  [], [enable_assertions=no])
ASSERTION_CPPFLAGS=
AS_IF([test "x$enable_assertions" != xno], [ASSERTION_CPPFLAGS=-DINV_ASSERTIONS])
AC_SUBST([ASSERTION_CPPFLAGS])
INV_FOUND([assertions], [$enable_assertions])
])

AC_DEFUN([INV_OPENMP], [
AC_MSG_CHECKING([for OpenMP in $CC])
inv_saved_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -fopenmp"
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <omp.h>]], [[return omp_get_max_threads();]])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
   INV_MISSING([an OpenMP that $CC can use], [gcc])])
CFLAGS=$inv_saved_CFLAGS
INV_FOUND([compiler], [$CC `$CC -dumpfullversion 2>/dev/null || $CC -dumpversion`])
])

AC_DEFUN([INV_HWLOC], [
AC_CHECK_TOOL([PKG_CONFIG], [pkg-config], [no])
AS_IF([test "x$PKG_CONFIG" = xno], [INV_MISSING([pkg-config], [pkg-config])])
AC_MSG_CHECKING([for hwloc 2])
AS_IF([$PKG_CONFIG --exists 'hwloc >= 2.0'],
  [HWLOC_CFLAGS=`$PKG_CONFIG --cflags hwloc`
   HWLOC_LIBS=`$PKG_CONFIG --libs hwloc`
   inv_hwloc=`$PKG_CONFIG --modversion hwloc`
   AC_MSG_RESULT([$inv_hwloc])],
  [AC_MSG_RESULT([no])
   INV_MISSING([hwloc 2], [libhwloc-dev])])
AC_SUBST([HWLOC_CFLAGS])
AC_SUBST([HWLOC_LIBS])
INV_FOUND([hwloc], [$inv_hwloc])
])

dnl What `invade --report=FILE.json` and `rmctl --json` write with.
AC_DEFUN([INV_JANSSON], [
AC_MSG_CHECKING([for jansson])
AS_IF([$PKG_CONFIG --exists 'jansson >= 2.10'],
  [JANSSON_CFLAGS=`$PKG_CONFIG --cflags jansson`
   JANSSON_LIBS=`$PKG_CONFIG --libs jansson`
   inv_jansson=`$PKG_CONFIG --modversion jansson`
   AC_MSG_RESULT([$inv_jansson])],
  [AC_MSG_RESULT([no])
   INV_MISSING([jansson], [libjansson-dev])])
AC_SUBST([JANSSON_CFLAGS])
AC_SUBST([JANSSON_LIBS])
INV_FOUND([jansson], [$inv_jansson])
])

dnl What `rmctl top` draws with.
AC_DEFUN([INV_NCURSES], [
AC_MSG_CHECKING([for ncurses])
AS_IF([$PKG_CONFIG --exists 'ncursesw >= 6'],
  [NCURSES_CFLAGS=`$PKG_CONFIG --cflags ncursesw`
   NCURSES_LIBS=`$PKG_CONFIG --libs ncursesw`
   inv_ncurses=`$PKG_CONFIG --modversion ncursesw`
   AC_MSG_RESULT([$inv_ncurses])],
  [AC_MSG_RESULT([no])
   INV_MISSING([ncurses], [libncurses-dev])])
AC_SUBST([NCURSES_CFLAGS])
AC_SUBST([NCURSES_LIBS])
INV_FOUND([ncurses], [$inv_ncurses])
])

dnl systemd: sd_notify and its like for rmd, and where its units go.  Below another prefix than /usr
dnl they go below that, so that a user can install them without rights elsewhere; also where the
dnl prefix is given to make only (make install prefix=DIR), unless a directory was given here.
AC_DEFUN([INV_SYSTEMD], [
AC_ARG_WITH([libsystemd],
  [AS_HELP_STRING([--without-libsystemd], [rmd does not talk to systemd])],
  [], [with_libsystemd=yes])
AC_ARG_WITH([systemdsystemunitdir],
  [AS_HELP_STRING([--with-systemdsystemunitdir=DIR|no],
    [where systemd units are installed @<:@as pkg-config systemd says, below the prefix@:>@])],
  [], [with_systemdsystemunitdir=yes])
LIBSYSTEMD_CFLAGS=
SYSTEMD_TYPE=exec
inv_systemd="no (rmd does not notify it: install package libsystemd-dev)"
AC_MSG_CHECKING([for libsystemd])
AS_IF([test "x$with_libsystemd" != xno && $PKG_CONFIG --exists 'libsystemd >= 227'],
  [LIBSYSTEMD_CFLAGS=`$PKG_CONFIG --cflags libsystemd`
   SYSTEMD_TYPE=notify
   inv_systemd=`$PKG_CONFIG --modversion libsystemd`
   AC_DEFINE([HAVE_LIBSYSTEMD], [1], [systemd/sd-daemon.h is there])
   AC_MSG_RESULT([$inv_systemd])],
  [AC_MSG_RESULT([no])])
AC_MSG_CHECKING([where systemd units go])
inv_prefix=$prefix
inv_units_below=
AS_IF([test "x$inv_prefix" = xNONE], [inv_prefix=$ac_default_prefix])
AS_IF([test "x$with_systemdsystemunitdir" = xyes], [
  inv_defines=
  AS_IF([test "x$inv_prefix" != x/usr],
    [inv_defines="--define-variable=prefix=$inv_prefix --define-variable=root_prefix=$inv_prefix --define-variable=rootprefix=$inv_prefix"])
  with_systemdsystemunitdir=`$PKG_CONFIG $inv_defines --variable=systemdsystemunitdir systemd 2>/dev/null`
  AS_IF([test "x$with_systemdsystemunitdir" = x],
    [with_systemdsystemunitdir=$inv_prefix/lib/systemd/system])
  inv_units_below=$inv_prefix])
AC_MSG_RESULT([$with_systemdsystemunitdir])
AS_CASE([$with_systemdsystemunitdir],
  [no], [systemdsystemunitdir=; sysusersdir=],
  [/*], [systemdsystemunitdir=$with_systemdsystemunitdir
         sysusersdir=`dirname "$systemdsystemunitdir"`
         sysusersdir=`dirname "$sysusersdir"`/sysusers.d
         AS_IF([test "x$sysusersdir" = x/lib/sysusers.d], [sysusersdir=/usr/lib/sysusers.d])],
  [AC_MSG_ERROR([--with-systemdsystemunitdir=$with_systemdsystemunitdir: a path from / on, or no])])
dnl On one side of the comma as make has it, on the other as configure has; /lib/systemd is not below
dnl /usr, but another prefix takes the place of that.
AS_IF([test "x$inv_units_below" != x], [
  systemdsystemunitdir="\$(if \$(filter-out $inv_units_below,\$(prefix)),\$(prefix)/lib/systemd/system,$systemdsystemunitdir)"
  sysusersdir="\$(if \$(filter-out $inv_units_below,\$(prefix)),\$(prefix)/lib/sysusers.d,$sysusersdir)"])
AM_CONDITIONAL([SYSTEMD_UNITS], [test "x$with_systemdsystemunitdir" != xno])
AC_SUBST([LIBSYSTEMD_CFLAGS])
AC_SUBST([SYSTEMD_TYPE])
AC_SUBST([systemdsystemunitdir])
AC_SUBST([sysusersdir])
INV_FOUND([systemd], [$inv_systemd, units in $with_systemdsystemunitdir])
])

dnl INV_ONE_MPI(NAME, PREFIX, PACKAGES) - the flags of one MPI, from its compiler wrapper's -show.
AC_DEFUN([INV_ONE_MPI], [
AC_PATH_PROGS([$2_MPICC], [mpicc.$1], [no])
AC_PATH_PROGS([$2_MPIEXEC], [mpiexec.$1], [no])
AS_IF([test "x$$2_MPICC" = xno], [INV_MISSING([mpicc.$1], [$3])])
AS_IF([test "x$$2_MPIEXEC" = xno], [INV_MISSING([mpiexec.$1], [$3])])
inv_show=`$$2_MPICC -show`
$2_CPPFLAGS=
$2_LIBS=
for inv_word in $inv_show; do
  case $inv_word in
    -I*|-D*) $2_CPPFLAGS="$$2_CPPFLAGS $inv_word" ;;
    -l*|-L*|-Wl,-rpath*|-pthread) $2_LIBS="$$2_LIBS $inv_word" ;;
  esac
done
AC_SUBST([$2_CPPFLAGS])
AC_SUBST([$2_LIBS])
INV_FOUND([$1], [$$2_MPICC, $$2_MPIEXEC])
])

dnl Both MPIs where both are installed, unless the user says which.
AC_DEFUN([INV_MPI], [
AC_ARG_WITH([mpi],
  [AS_HELP_STRING([--with-mpi=mpich|openmpi|both|no],
    [the MPIs that the shim is built for @<:@those that are installed@:>@])],
  [], [with_mpi=yes])
AS_IF([test "x$with_mpi" = xyes], [
  AC_MSG_CHECKING([which MPIs are installed])
  inv_mpich=no
  inv_openmpi=no
  AS_IF([(command -v mpicc.mpich && command -v mpiexec.mpich) >/dev/null 2>&1], [inv_mpich=yes])
  AS_IF([(command -v mpicc.openmpi && command -v mpiexec.openmpi) >/dev/null 2>&1], [inv_openmpi=yes])
  AS_CASE([$inv_mpich-$inv_openmpi],
    [yes-yes], [with_mpi=both],
    [no-yes], [with_mpi=openmpi],
    [with_mpi=mpich])
  AC_MSG_RESULT([$with_mpi])])
AS_CASE([$with_mpi],
  [mpich|openmpi|both|no], [],
  [AC_MSG_ERROR([--with-mpi=$with_mpi: mpich, openmpi, both or no])])
AS_CASE([$with_mpi], [mpich|both], [INV_ONE_MPI([mpich], [MPICH], [mpich libmpich-dev])])
AS_CASE([$with_mpi], [openmpi|both],
  [INV_ONE_MPI([openmpi], [OPENMPI], [openmpi-bin libopenmpi-dev])])
AM_CONDITIONAL([MPICH], [test "x$with_mpi" = xmpich || test "x$with_mpi" = xboth])
AM_CONDITIONAL([OPENMPI], [test "x$with_mpi" = xopenmpi || test "x$with_mpi" = xboth])
AM_CONDITIONAL([BOTH_MPIS], [test "x$with_mpi" = xboth])
AM_CONDITIONAL([MPI], [test "x$with_mpi" != xno])
# The applications and test programs of plain names are for MPICH when there is a choice; those
# for Open MPI are called NAME.openmpi then.
AS_CASE([$with_mpi],
  [mpich|both], [MPI_CPPFLAGS=$MPICH_CPPFLAGS; MPI_LIBS=$MPICH_LIBS; MPIEXEC=$MPICH_MPIEXEC],
  [openmpi], [MPI_CPPFLAGS=$OPENMPI_CPPFLAGS; MPI_LIBS=$OPENMPI_LIBS; MPIEXEC=$OPENMPI_MPIEXEC],
  [MPI_CPPFLAGS=; MPI_LIBS=; MPIEXEC=])
AC_SUBST([MPI_CPPFLAGS])
AC_SUBST([MPI_LIBS])
AC_SUBST([MPIEXEC])
AC_SUBST([with_mpi])
dnl A program of bench/ is in Fortran.  It is left out where the MPI has no wrapper for that, and of a
dnl build for another processor, whose module for Fortran the wrapper does not find.
AS_CASE([$with_mpi],
  [openmpi], [AC_PATH_PROGS([MPIFORT], [mpifort.openmpi], [no])],
  [AC_PATH_PROGS([MPIFORT], [mpifort.mpich], [no])])
AM_CONDITIONAL([MPI_FORTRAN], [test "x$with_mpi" != xno && test "x$MPIFORT" != xno &&
  test "x$cross_compiling" != xyes && $MPIFORT --version >/dev/null 2>&1])
AS_CASE([$with_mpi], [both], [DISTCHECK_MPI=mpich], [DISTCHECK_MPI=$with_mpi])
AC_SUBST([DISTCHECK_MPI])
])

dnl apps/swe, a program in C++ with a configuration in TOML and files in NetCDF.  Not installed, so
dnl a build of the rest does not need its libraries.
AC_DEFUN([INV_SWE], [
AC_ARG_WITH([swe],
  [AS_HELP_STRING([--with-swe], [build the tsunami simulation apps/swe @<:@if its libraries are there@:>@])],
  [], [with_swe=maybe])
inv_swe=no
AS_IF([test "x$with_swe" != xno && test "x$with_mpi" != xno], [
  AC_MSG_CHECKING([for toml++, NetCDF and zlib])
  AS_IF([$PKG_CONFIG --exists 'tomlplusplus >= 3.1' && $PKG_CONFIG --exists netcdf zlib],
    [SWE_CPPFLAGS=`$PKG_CONFIG --cflags tomlplusplus netcdf`
     SWE_LIBS=`$PKG_CONFIG --libs tomlplusplus netcdf zlib`
     inv_swe="toml++ `$PKG_CONFIG --modversion tomlplusplus`, NetCDF `$PKG_CONFIG --modversion netcdf`"],
    [AS_IF([test "x$with_swe" != xmaybe],
       [INV_MISSING([what --with-swe needs (toml++, NetCDF, zlib)], [libtomlplusplus-dev libnetcdf-dev zlib1g-dev])])])
  AC_MSG_RESULT([$inv_swe])
  AC_MSG_CHECKING([for Threading Building Blocks])
  AS_IF([$PKG_CONFIG --exists tbb],
    [TBB_LIBS=`$PKG_CONFIG --libs tbb`
     inv_tbb=yes],
    [inv_tbb=no])
  AC_MSG_RESULT([$inv_tbb])])
AM_CONDITIONAL([SWE], [test "x$inv_swe" != xno])
AM_CONDITIONAL([SWE_TBB], [test "x$inv_swe" != xno && test "x$inv_tbb" = xyes])
AC_SUBST([SWE_CPPFLAGS])
AC_SUBST([SWE_LIBS])
AC_SUBST([TBB_LIBS])
INV_FOUND([apps/swe], [$inv_swe])
])

dnl The gas simulation.  It has the reader of configurations in common with apps/swe, and compresses
dnl its files as that does.
AC_DEFUN([INV_EULER], [
AC_ARG_WITH([euler],
  [AS_HELP_STRING([--with-euler], [build the gas simulation apps/euler @<:@if its libraries are there@:>@])],
  [], [with_euler=maybe])
inv_euler=no
AS_IF([test "x$with_euler" != xno && test "x$with_mpi" != xno], [
  AC_MSG_CHECKING([for toml++ and zlib])
  AS_IF([$PKG_CONFIG --exists 'tomlplusplus >= 3.1' && $PKG_CONFIG --exists zlib],
    [EULER_CPPFLAGS=`$PKG_CONFIG --cflags tomlplusplus zlib`
     EULER_LIBS=`$PKG_CONFIG --libs tomlplusplus zlib`
     inv_euler="toml++ `$PKG_CONFIG --modversion tomlplusplus`"],
    [AS_IF([test "x$with_euler" != xmaybe],
       [INV_MISSING([what --with-euler needs (toml++, zlib)], [libtomlplusplus-dev zlib1g-dev])])])
  AC_MSG_RESULT([$inv_euler])])
AM_CONDITIONAL([EULER], [test "x$inv_euler" != xno])
AC_SUBST([EULER_CPPFLAGS])
AC_SUBST([EULER_LIBS])
INV_FOUND([apps/euler], [$inv_euler])
])

dnl The source of libgomp: a GCC source tree or archive.  By default the newest that the
dnl distribution has installed for the compiler's major version.
AC_DEFUN([INV_GCC_SOURCE], [
AC_ARG_WITH([gcc-source],
  [AS_HELP_STRING([--with-gcc-source=FILE|DIR],
    [GCC source archive or tree with libgomp in it @<:@newest /usr/src/gcc-N/gcc-N.*.tar.xz for the compiler's major version N@:>@])],
  [], [with_gcc_source=yes])
AC_PATH_PROGS([XZ], [xz], [no])
AC_MSG_CHECKING([for libgomp's source])
GCC_MAJOR=`$CC -dumpversion | $SED 's/\..*//'`
AS_CASE([$with_gcc_source],
  [yes], [GCC_SOURCE=`ls /usr/src/gcc-$GCC_MAJOR/gcc-$GCC_MAJOR.*.tar.xz 2>/dev/null | sort -V | tail -n 1`],
  [no], [GCC_SOURCE=no],
  [/*], [GCC_SOURCE=$with_gcc_source],
  [GCC_SOURCE=`pwd`/$with_gcc_source])
AS_IF([test "x$GCC_SOURCE" != x && test "x$GCC_SOURCE" != xno && test ! -e "$GCC_SOURCE"],
  [AC_MSG_RESULT([no])
   AC_MSG_ERROR([--with-gcc-source=$with_gcc_source: no such file or directory])])
AS_IF([test "x$GCC_SOURCE" = x],
  [AC_MSG_RESULT([no])
   INV_MISSING([the source of libgomp (/usr/src/gcc-$GCC_MAJOR/gcc-$GCC_MAJOR.*.tar.xz)],
     [gcc-$GCC_MAJOR-source])])
AC_MSG_RESULT([$GCC_SOURCE])
AS_CASE([$GCC_SOURCE], [*.xz],
  [AS_IF([test "x$XZ" = xno], [INV_MISSING([xz], [xz-utils])])])
# Some of libgomp's symbols are written in Fortran.
AC_PATH_TOOL([GFORTRAN], [gfortran], [no])
AS_IF([test "x$GCC_SOURCE" != xno && test "x$GFORTRAN" = xno], [INV_MISSING([gfortran], [gfortran])])
AC_PATH_PROGS([PATCH], [patch], [no])
AS_IF([test "x$GCC_SOURCE" != xno && test "x$PATCH" = xno], [INV_MISSING([patch], [patch])])
AC_SUBST([GCC_SOURCE])
AC_SUBST([GCC_MAJOR])
AM_CONDITIONAL([LIBGOMP], [test "x$GCC_SOURCE" != xno && test "x$enable_sanitizers" = xno])
INV_FOUND([libgomp source], [$GCC_SOURCE])
])

AC_DEFUN([INV_PYTHON], [
AM_PATH_PYTHON([3.9], [], [INV_MISSING([Python 3.9 or later], [python3])])
AC_MSG_CHECKING([for pytest])
# A Python from elsewhere may stand first in PATH without pytest; then the system's may have it.
inv_pytest=no
for inv_python in "$PYTHON" /usr/bin/python3; do
  AS_IF([test "$inv_pytest" = no && "$inv_python" -c 'import pytest' 2>/dev/null],
    [PYTHON=$inv_python
     inv_pytest=`$PYTHON -c 'import pytest; print(pytest.__version__)'`])
done
AC_MSG_RESULT([$inv_pytest])
AM_CONDITIONAL([PYTEST], [test "x$inv_pytest" != xno])
AS_IF([test "x$inv_pytest" = xno],
  [INV_FOUND([pytest], [no (make check needs it: install package python3-pytest)])],
  [INV_FOUND([pytest], [$inv_pytest, $PYTHON])])
AC_MSG_CHECKING([for matplotlib])
inv_matplotlib=no
TRACE_PYTHON=$PYTHON
for inv_python in "$PYTHON" /usr/bin/python3; do
  AS_IF([test "$inv_matplotlib" = no && "$inv_python" -c 'import numpy, matplotlib' 2>/dev/null],
    [TRACE_PYTHON=$inv_python
     inv_matplotlib=`$TRACE_PYTHON -c 'import matplotlib; print(matplotlib.__version__)'`])
done
AC_MSG_RESULT([$inv_matplotlib])
AC_SUBST([TRACE_PYTHON])
AS_IF([test "x$inv_matplotlib" = xno],
  [INV_FOUND([matplotlib], [no (invade-trace needs it for pictures: install package python3-matplotlib)])],
  [INV_FOUND([matplotlib], [$inv_matplotlib, $TRACE_PYTHON])])
])

dnl Tools that only some tests need.
AC_DEFUN([INV_OPTIONAL_TOOLS], [
AC_PATH_PROGS([SPIN], [spin], [no])
AS_IF([test "x$SPIN" = xno],
  [INV_FOUND([spin], [no (the model of the protocol is not checked: install package spin)])],
  [INV_FOUND([spin], [$SPIN])])
AC_PATH_PROGS([DEJAGNU], [runtest], [no])
AS_IF([test "x$DEJAGNU" = xno],
  [INV_FOUND([DejaGnu], [no (libgomp's own tests are not run: install package dejagnu)])],
  [INV_FOUND([DejaGnu], [$DEJAGNU])])
])

AC_DEFUN([INV_SUMMARY], [
cat <<INV_EOF

$PACKAGE $VERSION will be installed in $prefix.  Found:$inv_summary

Next: make, make check, make install.
INV_EOF
])

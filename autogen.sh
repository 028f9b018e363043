#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# autogen.sh - make ./configure and Makefile.in from configure.ac and Makefile.am.
set -e
cd "$(dirname "$0")"
exec autoreconf --install --force --warnings=all,no-obsolete

# SPDX-License-Identifier: GPL-3.0-or-later
"""Users that have no entry in /etc/passwd."""

ALICE, BOB, CAROL = 65534, 60001, 60002

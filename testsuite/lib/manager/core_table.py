# SPDX-License-Identifier: GPL-3.0-or-later
"""What members print of a core table, where a process is its slot, and what seals the table."""

from lib.building.layout import CONSTANTS

# A core's word has the slot + 1.
NOBODY, ELSEWHERE = CONSTANTS.INV_NOBODY - 1, CONSTANTS.INV_ELSEWHERE - 1
PINNED, ANONYMOUS = CONSTANTS.INV_MODE_PINNED, CONSTANTS.INV_MODE_ANONYMOUS
F_SEAL_FUTURE_WRITE = 16  # linux/fcntl.h

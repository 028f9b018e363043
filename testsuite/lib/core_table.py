# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of a core table as members print them, and what seals it."""

from __future__ import annotations

NOBODY = -1
PINNED, ANONYMOUS = 0, 1
ELSEWHERE = 0xFFFE
F_SEAL_FUTURE_WRITE = 16  # linux/fcntl.h

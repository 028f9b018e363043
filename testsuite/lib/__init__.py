# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests share: one concept a file.  pytest explains assertions in here as those of tests."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite(*(f"lib.{file.stem}" for file in Path(__file__).parent.glob("*.py")))

# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests share, one concept a file: of the manager and its members in manager/, of the source
tree and its build in building/.  pytest explains assertions in here as those of tests."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytest.register_assert_rewrite(*(".".join(("lib", *file.relative_to(HERE).with_suffix("").parts))
                                 for file in HERE.rglob("*.py")))

# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests know of the machine that they run on."""

import os

# invade's option for two cores, or the only one.
TWO_CORES = "--cores=" + ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:2])

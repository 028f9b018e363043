# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages between rmd and its clients."""

from __future__ import annotations

import struct

MAGIC, VERSION, JOIN, OBSERVE, LEAVE, REPORT = 0x44564E49, 7, 1, 2, 3, 4
REQUEST, REPLY = struct.Struct("=IIIiiii12x64s"), struct.Struct("=IIIII128s")
EVENTS = 17  # enum inv_request_kind
CONTROL, METRICS, ADMIN_SNAPSHOT, TRACE = 16, 18, 19, 32
LIMIT, UNSAID = 4, 2**32 - 1


def request(kind, program=b"p"):
    return REQUEST.pack(MAGIC, VERSION, kind, -1, -1, -1, -1, program)


def limit(cores):
    """struct inv_control; the client does not wait for the effect"""
    return request(CONTROL) + struct.pack("=IIiIIIII128x", LIMIT, 0, 0, UNSAID, cores, UNSAID,
                                          0, 0)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Structures and constants of the C headers, as the layout program of the build (layout.c) tells
them."""

import json
import struct
import subprocess
from types import SimpleNamespace

from lib.building.build import BUILD

PROGRAM = BUILD / "testsuite/lib/building/layout"


class Structure:
    """pack(FIELD=VALUE, ...) and unpack(BYTES): fields that are not given are 0."""

    def __init__(self, size, fields):
        self.size = size
        self.fields = fields  # {name: (offset, format)}

    def pack(self, **values):
        data = bytearray(self.size)
        for name, value in values.items():
            offset, form = self.fields[name]
            struct.pack_into(f"={form}", data, offset, value)
        return bytes(data)

    def unpack(self, data):
        """The fields as attributes, also of a message that is longer."""
        return SimpleNamespace(**{name: struct.unpack_from(f"={form}", data, offset)[0]
                                  for name, (offset, form) in self.fields.items()})

    def format(self):
        """The whole, as struct.Struct takes it, for a structure with all its fields."""
        return "=" + "".join(form for _, form in self.fields.values())


def read():
    if not PROGRAM.exists():
        raise RuntimeError(f"no build in {BUILD}: run ./run-tests, or set INVASIVE_BUILD")
    told = json.loads(subprocess.run([PROGRAM], check=True, stdout=subprocess.PIPE, timeout=60,
                                     text=True).stdout)
    return ({name: Structure(one["size"], one["fields"])
             for name, one in told["structures"].items()}, SimpleNamespace(**told["constants"]))


STRUCTURES, CONSTANTS = read()

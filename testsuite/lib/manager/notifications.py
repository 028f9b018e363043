# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service tells systemd, without it."""

import array
import os
import socket

import pytest

from lib.manager.rmd import counter
from lib.waiting import PATIENCE_S


class Notifications:
    """A socket for NOTIFY_SOCKET, which reads the notifications."""

    def __init__(self, public):
        self.path = str(public / f"notify{next(counter)}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(PATIENCE_S)
        self.kept = {}

    def next(self):
        data, control, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(64))
        fields = dict(line.split("=", 1) for line in data.decode().splitlines())
        for level, kind, payload in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(payload[:len(payload) - len(payload) % fds.itemsize])
                if "FDSTORE" in fields:
                    self.kept[fields["FDNAME"]] = fds[0]
                else:  # a barrier: it waits until we close it
                    for fd in fds:
                        os.close(fd)
        return fields

    def until(self, key):
        while key not in (fields := self.next()):
            pass
        return fields

    def close(self):
        for fd in self.kept.values():
            os.close(fd)
        self.socket.close()


@pytest.fixture
def notifications(public, make_variable):
    if make_variable("SYSTEMD_TYPE") != "notify":
        pytest.skip("built without libsystemd (package libsystemd-dev)")
    one = Notifications(public)
    yield one
    one.close()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages between rmd and its clients (protocol.h, control_protocol.h), and between rmd and its
descriptor holder (fd_holder.h)."""

import array
import socket

from lib.building.layout import CONSTANTS, STRUCTURES
from lib.waiting import PATIENCE_S

REQUEST, REPLY = STRUCTURES["inv_request"], STRUCTURES["inv_reply"]
REPORT_OF_PROCESS, OUTCOME = STRUCTURES["inv_report"], STRUCTURES["inv_outcome"]
HOLDER_MESSAGE = STRUCTURES["rmd_holder_message"]

MAGIC, VERSION = CONSTANTS.INV_PROTOCOL_MAGIC, CONSTANTS.INV_PROTOCOL_VERSION
JOIN = CONSTANTS.INV_JOIN
OBSERVE = CONSTANTS.INV_OBSERVE
LEAVE = CONSTANTS.INV_LEAVE
REPORT = CONSTANTS.INV_REPORT
CONTROL = CONSTANTS.INV_CONTROL
EVENTS = CONSTANTS.INV_EVENTS
METRICS = CONSTANTS.INV_METRICS
ADMIN_SNAPSHOT = CONSTANTS.INV_ADMIN_SNAPSHOT
TRACE = CONSTANTS.INV_TRACE
OK, E_PROTOCOL, E_UID = CONSTANTS.INV_OK, CONSTANTS.INV_E_PROTOCOL, CONSTANTS.INV_E_UID
NOT_YET, REFUSED = CONSTANTS.INV_NOT_YET, CONSTANTS.INV_REFUSED
UNSAID = CONSTANTS.INV_UNSAID
STORE = CONSTANTS.RMD_HOLDER_STORE
DROP = CONSTANTS.RMD_HOLDER_DROP
ALL = CONSTANTS.RMD_HOLDER_ALL
HOLDER_SUFFIX = f".keep{CONSTANTS.RMD_STATE_VERSION}"  # of the name of rmd's socket


def request(kind, rank=-1, size=-1, local_size=-1, local_rank=-1, program=b"p", magic=MAGIC,
            version=VERSION):
    return REQUEST.pack(magic=magic, version=version, kind=kind, rank=rank, size=size,
                        local_size=local_size, local_rank=local_rank, program=program)


def join(**more):
    """The request of the only process of a program on its node."""
    return request(**{"kind": JOIN, "rank": 0, "size": 1, "local_size": 1, "local_rank": 0, **more})


def limit(cores):
    """Limits the client's user to so many cores; the client does not wait for the effect."""
    return STRUCTURES["inv_control"].pack(
        request=request(CONTROL), verb=CONSTANTS.INV_LIMIT, uid=UNSAID, cores=cores,
        job_cores=UNSAID)


def follow(since):
    """All events from this number on, and those to come."""
    return STRUCTURES["inv_watch"].pack(request=request(EVENTS, program=b""), since=since,
                                        follow=1)


def observe_another(uid):
    """The core table of this user, for an operator."""
    return STRUCTURES["inv_about"].pack(request=request(OBSERVE), uid=uid)


def exchange(name, data):
    """Status and descriptors of the answer of the rmd of this name; None when it hangs up without
    one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(PATIENCE_S)
        s.connect("\0" + name[1:] if name.startswith("@") else name)
        s.send(data)
        room = array.array("i").itemsize
        answer, control, _, _ = s.recvmsg(REPLY.size, socket.CMSG_SPACE(room))
    passed = array.array("i")
    for _, _, payload in control:
        passed.frombytes(payload[:room])
    return (REPLY.unpack(answer).status if answer else None), list(passed)


def holder_message(kind, uid=0, what=0):
    return HOLDER_MESSAGE.pack(kind=kind, uid=uid, what=what)


def read_holder_message(data):
    """kind, uid, what"""
    message = HOLDER_MESSAGE.unpack(data)
    return message.kind, message.uid, message.what

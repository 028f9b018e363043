# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The public interface for Python: the functions of invasive.h, where each is described.

    import invasive

    with invasive.lent():  # the core of this thread is others' meanwhile
        field.tofile(name)

Under `invade` the functions are libinvasive's.  Elsewhere they answer as that does without a
resource manager, whether it is installed or not: nothing fails.  A process becomes a member of its
domain at its first parallel region, in MPI_Init, or by invade() or announce_workload(); before that
there is nothing to lend.  No call holds Python's global lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import NamedTuple

__all__ = ["Claim", "announce_workload", "claim_now", "control_point", "core_speed", "invade",
           "lend", "lent", "reclaim", "retreat"]

_POINTS = 8  # INV_SCALABILITY_POINTS


class Claim(NamedTuple):
    owned_cores: int
    held_cores: int
    managed: bool


class _Claim(ctypes.Structure):
    _fields_ = [("owned_cores", ctypes.c_uint), ("held_cores", ctypes.c_uint),
                ("managed", ctypes.c_bool)]


class _Point(ctypes.Structure):
    _fields_ = [("cores", ctypes.c_uint), ("speedup", ctypes.c_float)]


class _Constraint(ctypes.Structure):
    _fields_ = [("min_cores", ctypes.c_uint), ("max_cores", ctypes.c_uint),
                ("workload", ctypes.c_double), ("scalability", _Point * _POINTS),
                ("iteration_s", ctypes.c_double)]


def _find_library():
    """What `invade` has loaded into the process; else None: the process is unmanaged."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        library.inv_lend.restype = library.inv_reclaim.restype = ctypes.c_bool
        library.inv_claim_now.restype = _Claim
        library.inv_core_speed.restype = ctypes.c_double
        library.inv_announce_workload.argtypes = [ctypes.c_double]
        library.inv_control_point.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int,
                                              ctypes.POINTER(ctypes.c_int)]
        library.inv_invade.argtypes = [ctypes.POINTER(_Constraint), ctypes.c_int,
                                       ctypes.POINTER(_Claim)]
    except AttributeError:
        return None
    return library


_library = _find_library()


def _raise_errno():
    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error))


def lend():
    """The calling thread is about to wait: lends its core.  True: lent; False: it holds none."""
    return _library is not None and _library.inv_lend()


def reclaim():
    """Has a core again.  True: the thread had lent its core, and holds one."""
    return _library is not None and _library.inv_reclaim()


@contextlib.contextmanager
def lent():
    """The core of the calling thread is lent in the block, whose thread is to wait there."""
    is_lent = lend()
    try:
        yield is_lent
    finally:
        if is_lent:
            reclaim()


def claim_now():
    """The cores that this process owns and holds now."""
    if _library is None:
        cores = len(os.sched_getaffinity(0))
        return Claim(cores, cores, False)
    claim = _library.inv_claim_now()
    return Claim(claim.owned_cores, claim.held_cores, claim.managed)


def core_speed():
    """The speed of the core that the calling thread holds, as a part of the fastest cores'."""
    return 1.0 if _library is None else _library.inv_core_speed()


def invade(min_cores=0, max_cores=0, workload=0.0, blocking=True):
    """Asks for cores under a constraint, and returns the claim.

    OSError has EINVAL where the constraint is none, and ETIMEDOUT where rmd has not decided within
    a second."""
    constraint = _Constraint(min_cores=min_cores, max_cores=max_cores, workload=workload)
    if _library is not None and _library.inv_invade(ctypes.byref(constraint), int(blocking), None):
        _raise_errno()
    return claim_now()


def retreat():
    """One core is enough from now on."""
    if _library is not None:
        _library.inv_retreat()


def announce_workload(workload):
    """The workload, in any unit that is the same in all processes of the job; OSError has EINVAL
    where it is negative or not finite."""
    if _library is not None and _library.inv_announce_workload(workload):
        _raise_errno()


def control_point(name, low, high, value):
    """The value to use in the iteration that begins, of a parameter that is tuned by the time from
    call to call; `value` is the program's own at first, then what the call before has returned.

    ValueError: low > high, or a name that has not 1 to 47 bytes.  OSError has ENOSPC where there
    are 8 control points already."""
    if low > high:
        raise ValueError(f"control point {name!r}: low {low} is larger than high {high}")
    if not 0 < len(name.encode()) < 48:
        raise ValueError(f"the name of control point {name!r} must have 1 to 47 bytes")
    now = ctypes.c_int(min(max(value, low), high))
    if _library is not None and _library.inv_control_point(name.encode(), low, high, now):
        _raise_errno()
    return now.value

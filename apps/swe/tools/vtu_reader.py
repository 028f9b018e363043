# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the VTK files that swe writes (output/vtu.cc), and no others: XML with arrays in base64 of
zlib blocks.  Needs numpy alone, so that pictures need no VTK."""

from __future__ import annotations

import base64
import binascii
import xml.etree.ElementTree as ElementTree
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TYPES = {"Float64": "<f8", "Int64": "<i8", "Int32": "<i4", "UInt8": "u1"}
CELL_DATA = ("h", "hu", "hv", "bed", "surface", "depth", "cluster", "rank")


class ReadError(Exception):
    """The file and what is wrong with it."""


@dataclass
class Frame:
    """A grid with its water.  Points of different ranks at one place are one point."""

    time: float
    points: np.ndarray     # [points, 2] m
    triangles: np.ndarray  # [cells, 3] points, counterclockwise
    data: dict             # CELL_DATA: [cells]


def parse(path: Path, kind: str) -> ElementTree.Element:
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}") from None
    except ElementTree.ParseError as error:
        raise ReadError(f"{path}: not XML, or cut off: {error}") from None
    if root.tag != "VTKFile" or root.get("type") != kind:
        raise ReadError(f"{path}: not a VTK file of type {kind}")
    return root


def decode(text: str) -> bytes:
    """Header of 3 + blocks numbers, in base64 by itself; then the compressed blocks."""
    blocks = int(np.frombuffer(base64.b64decode(text[:32]), "<u8")[0])
    if blocks > len(text):
        raise ValueError("more blocks than bytes")
    length = -(-8 * (3 + blocks) // 3) * 4
    sizes = np.frombuffer(base64.b64decode(text[:length]), "<u8", 3 + blocks)[3:]
    compressed = base64.b64decode(text[length:])
    parts, begin = [], 0
    for size in sizes.tolist():
        parts.append(zlib.decompress(compressed[begin:begin + size]))
        begin += size
    return b"".join(parts)


def array(path: Path, parent: ElementTree.Element, name: str) -> np.ndarray:
    element = parent.find(f".//DataArray[@Name='{name}']")
    if element is None:
        raise ReadError(f"{path}: has no array {name}")
    if element.get("format") != "binary" or element.get("type") not in TYPES:
        raise ReadError(f"{path}: array {name} is not as swe writes it")
    try:
        return np.frombuffer(decode((element.text or "").strip()), TYPES[element.get("type")])
    except (ValueError, IndexError, zlib.error, binascii.Error) as error:
        raise ReadError(f"{path}: array {name} is damaged: {error}") from None


def read_piece(path: Path) -> Frame:
    root = parse(path, "UnstructuredGrid")
    points = array(path, root, "points").reshape(-1, 3)[:, :2]
    triangles = array(path, root, "connectivity").reshape(-1, 3)
    data = {name: array(path, root, name) for name in CELL_DATA}
    if any(len(values) != len(triangles) for values in data.values()):
        raise ReadError(f"{path}: arrays of different lengths")
    if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(points):
        raise ReadError(f"{path}: corners that are no points")
    return Frame(float(array(path, root, "TimeValue")[0]), points, triangles, data)


def join(pieces: list[Frame]) -> Frame:
    """One grid; equal points, which are equal to the bit, become one."""
    first = np.cumsum([0] + [len(piece.points) for piece in pieces])
    points = np.concatenate([piece.points for piece in pieces])
    points, number = np.unique(points, axis=0, return_inverse=True)
    triangles = np.concatenate([p.triangles + f for p, f in zip(pieces, first)])
    data = {name: np.concatenate([p.data[name] for p in pieces]) for name in CELL_DATA}
    return Frame(pieces[0].time, points, number.reshape(-1)[triangles], data)


def read_frame(path: Path) -> Frame:
    """A .pvtu with all its pieces, or one .vtu."""
    if path.suffix == ".vtu":
        return join([read_piece(path)])
    root = parse(path, "PUnstructuredGrid")
    names = [piece.get("Source", "") for piece in root.iter("Piece")]
    if not names:
        raise ReadError(f"{path}: names no pieces")
    frame = join([read_piece(path.parent / name) for name in names])
    if not len(frame.triangles):
        raise ReadError(f"{path}: has no cells")
    return frame


def frames_of(path: Path) -> list[Path]:
    """The files of a .pvd series; a .pvtu or .vtu is a series of one."""
    if path.suffix in (".vtu", ".pvtu"):
        return [path]
    if path.suffix != ".pvd":
        raise ReadError(f"{path}: not a .pvd, .pvtu or .vtu file")
    frames = [path.parent / s.get("file", "") for s in parse(path, "Collection").iter("DataSet")]
    if not frames:
        raise ReadError(f"{path}: a series without frames")
    return frames

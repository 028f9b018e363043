# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of invade-trace, see invade-trace(1)."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import copy
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

try:
    from . import check, chrome, dump, paraver, series, workload
    from . import format as fmt
except ModuleNotFoundError as missing:
    if missing.name != "numpy":
        raise
    sys.exit("invade-trace: numpy is missing (Debian's package is python3-numpy)")

NO_MATPLOTLIB = "matplotlib is missing (Debian's package is python3-matplotlib)"


def spare(trace: Path, path: Path) -> None:
    """Refuses an output file that is the trace itself, under any name."""
    if path.exists() and trace.exists() and path.samefile(trace):
        raise fmt.TraceError(f"{path} is the trace itself: name another file with --output")


class Output:
    """An output file that appears as a whole or not at all; "-" is standard output."""

    def __init__(self, args: argparse.Namespace, suffix: str):
        name = args.output
        self.path = None if name == "-" else Path(name or args.file.with_suffix(suffix))
        if self.path is not None:
            spare(args.file, self.path)

    def beside(self, args: argparse.Namespace, suffix: str) -> Output:
        """Another file, of the same name."""
        other = copy.copy(self)
        other.path = self.path.with_suffix(suffix)
        spare(args.file, other.path)
        return other

    @contextlib.contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Opens the file for its content; prints where it is."""
        if self.path is None:
            yield sys.stdout.buffer
            return
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        device = self.path.exists() and not self.path.is_file()  # is written, not replaced
        try:
            with (self.path if device else new).open("wb") as file:
                yield file
            if not device:
                new.replace(self.path)
        except OSError as error:
            raise fmt.TraceError(f"cannot write {self.path}: {error.strerror}") from error
        finally:
            with contextlib.suppress(OSError):
                new.unlink()
        print(self.path)

    def write(self, content: str | bytes) -> None:
        with self.opened() as file:
            file.write(content.encode() if isinstance(content, str) else content)


def do_check(args: argparse.Namespace) -> int:
    findings, lines = check.check(fmt.load(args.file))
    print("\n".join([*lines, *findings] or ["no core table was there"]))
    return 1 if findings else 0


def do_dump(args: argparse.Namespace) -> int:
    dump.write(fmt.load(args.file), sys.stdout)
    return 0


def picture_of_rows(args: argparse.Namespace, kind: str) -> bytes:
    from . import rows
    files = [*args.above, args.file]
    titles = args.title or [str(file) for file in files]
    if len(titles) != len(files):
        raise fmt.TraceError(f"{len(titles)} titles for {len(files)} traces")
    return rows.render([series.whole(fmt.load(file)) for file in files], titles, kind)


def do_picture(args: argparse.Namespace) -> int:
    from . import picture
    if args.above and not args.rows:
        raise fmt.TraceError("--above needs --rows")
    out = Output(args, ".png")
    kind = out.path.suffix[1:].lower() if out.path else "svg"
    if kind not in ("png", "svg"):
        raise fmt.TraceError(f"{out.path}: pictures are .png or .svg")
    for trace in args.above if out.path else []:
        spare(trace, out.path)
    out.write(picture_of_rows(args, kind) if args.rows else
              picture.render(series.whole(fmt.load(args.file)), kind))
    return 0


def do_chrome(args: argparse.Namespace) -> int:
    trace = fmt.load(args.file)
    out = Output(args, ".chrome.json")  # not .json: that is probably the file of --report
    with out.opened() as file:
        chrome.write(trace, codecs.getwriter("utf-8")(file))
    return 0


def do_paraver(args: argparse.Namespace) -> int:
    first = Output(args, ".prv")
    if first.path is None or first.path.suffix != ".prv":
        raise fmt.TraceError(f"{args.output}: Paraver's files are .prv, .pcf and .row; "
                             "name the first")
    outputs = {".row": first.beside(args, ".row"), ".pcf": first.beside(args, ".pcf"),
               ".prv": first}
    texts = paraver.texts(fmt.load(args.file))
    with contextlib.ExitStack() as stack:  # old files stay until all new ones are complete
        for suffix, out in outputs.items():
            file = stack.enter_context(out.opened())
            file.write(texts[suffix].encode())
            file.flush()
    return 0


def do_html(args: argparse.Namespace) -> int:
    from . import html
    out = Output(args, ".html")
    out.write(html.page(fmt.load(args.file), args.file.name))
    return 0


def do_workload(args: argparse.Namespace) -> int:
    text = workload.text(fmt.load(args.file), args.file, round(args.piece_ms * 1e6))
    Output(args, ".csv").write(text)
    return 0


def piece_ms(text: str) -> float:
    if not (re.fullmatch(r"\d+(\.\d*)?", text) and float(text) <= 1e6):
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 0 to 1000000")
    return float(text)


COMMANDS = {
    "check": (do_check, "prove that no event is missing, and that no core had two holders"),
    "picture": (do_picture, "cores over time, stacked by process (.png or .svg)"),
    "html": (do_html, "a report for a browser: picture, efficiency, hot waits"),
    "chrome": (do_chrome, "for Perfetto and chrome://tracing (.chrome.json)"),
    "paraver": (do_paraver, "for Paraver (.prv, .pcf, .row)"),
    "workload": (do_workload, "what was computed, for rmctl simulate (.csv)"),
    "dump": (do_dump, "every event as a line of text"),
}


def parse(argv: list[str], version: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="invade-trace",
                                     description="Shows what `invade --trace=FILE` has written.")
    parser.add_argument("-V", "--version", action="version", version=f"invade-trace {version}")
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (function, about) in COMMANDS.items():
        verb = verbs.add_parser(name, help=about, description=about)
        verb.add_argument("file", type=Path, metavar="FILE")
        if name not in ("check", "dump"):
            verb.add_argument("-o", "--output", metavar="OUT",
                              help="where to (default: beside FILE; -: standard output)")
        if name == "picture":
            verb.add_argument("--rows", action="store_true",
                              help="a row for each core, whose colour is the process that holds it")
            verb.add_argument("--above", type=Path, action="append", default=[], metavar="FILE",
                              help="with --rows: another trace above it, on the same axis of time")
            verb.add_argument("--title", action="append", metavar="TEXT",
                              help="with --rows: of each trace, from the top (default: its file)")
        if name == "workload":
            verb.add_argument("--piece-ms", type=piece_ms, default=1, metavar="MS",
                              help="pieces of work take so long at least (default: 1)")
        verb.set_defaults(function=function)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None, version: str = "(version unknown)") -> int:
    args = parse(sys.argv[1:] if argv is None else argv, version)
    try:
        return args.function(args)
    except fmt.TraceError as error:
        print(f"invade-trace: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        print(f"invade-trace: {NO_MATPLOTLIB}", file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"invade-trace: cannot write {error.filename or 'this'}: {error.strerror}",
              file=sys.stderr)
    return 2

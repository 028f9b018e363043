# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of gdb for the implicit tasks of a program that runs with libgomp-invasive.

    info invasive               lists the implicit tasks of all teams, with what each waits for
    invasive bt ID|all          backtraces of implicit tasks, also of suspended ones
    invasive apply ID|all CMD   executes a command of gdb on the stack of implicit tasks

ID is TEAM.NUMBER, or NUMBER of team 1; NUMBER is what omp_get_thread_num returns.  gdb loads the
file with libgomp.so.1 if its auto-load safe-path allows that, else by `source`.

The stack of a suspended implicit task belongs to no kernel thread (context/context.h).  An unwinder
pretends that the selected thread's innermost frame has been called by the function that the
implicit task is suspended in.  It reads the registers from where the switch of contexts has saved
them (context/switch_*.h).  So nothing is written, and core files work like processes."""

from __future__ import annotations

import contextlib
import os
import re

import gdb
from gdb.unwinder import Unwinder, register_unwinder

# What context/switch_*.h has on a stack that is suspended: offsets of registers from its stack
# pointer, and the size of all, above which the stack pointer is after the switch.
LAYOUTS = {
    "x86-64": ({"r15": 8, "r14": 16, "r13": 24, "r12": 32, "rbx": 40, "rbp": 48, "rip": 56},
               "rsp", 64),
    "aarch64": ({"x29": 0, "pc": 8, **{f"x{19 + i}": 16 + 8 * i for i in range(10)}}, "sp", 176),
}
# What a function of the runtime, which the program has called, is for.  The first match counts.
WAITS = [(re.compile(pattern), name) for pattern, name in (
    (r"critical|_lock|atomic_start", "lock"), (r"taskwait", "taskwait"),
    (r"taskgroup", "taskgroup"), (r"taskyield", "taskyield"), (r"ordered|doacross", "ordered"),
    (r"barrier|GOMP_(loop|sections|workshare)_end|single_copy", "barrier"),
    (r"^GOMP_parallel|^gomp_team_end|^GOMP_teams", "a nested region"))]
# Functions of the runtime that call the code of an implicit task: in a context or a worker, and in
# the thread that begins the region.
RUNS_TASK = "gomp_team_thread_run"
CALLS = re.compile(rf"parallel|^GOMP_teams|^{RUNS_TASK}$")
FAILURES = (gdb.error, gdb.GdbError)  # of gdb, and of these commands


class Runtime:
    """libgomp-invasive of the program, by its debug information.  Raises gdb.GdbError if that is
    missing."""

    def __init__(self):
        loaded = [o for o in gdb.objfiles()
                  if os.path.basename(o.filename or "").startswith("libgomp.so")]
        found = [o for o in loaded if o.lookup_global_symbol("gomp_all_suspended")]
        if not found:
            stripped = [o.filename for o in loaded
                        if os.path.basename(os.path.dirname(o.filename)) == "invasive"]
            raise gdb.GdbError(
                f"{stripped[0]} is stripped: implicit tasks cannot be listed without its debug "
                "information." if stripped else "The program does not run with libgomp-invasive.")
        self.objfile = found[0].owner or found[0]  # owner: of a separate debug file
        self.contexts = self.variable("gomp_contexts")
        self.context = self.contexts["unused"].type.target()
        self.suspended = self.variable("gomp_all_suspended")
        self.carrier = gdb.lookup_type("struct gomp_carrier")
        self.guard_offset = next(f.bitpos // 8 for f in self.context.fields() if f.name == "guard")

    def variable(self, name):
        """A variable of the library; if it is thread-local, that of the selected thread."""
        symbol = (self.objfile.lookup_global_symbol(name)
                  or self.objfile.lookup_static_symbol(name))
        return symbol.value(gdb.newest_frame()) if symbol.needs_frame else symbol.value()

    def has(self, frame):
        """Is the frame's function one of the library?"""
        function = frame.function()
        if function is None:
            return False
        objfile = function.symtab.objfile
        return (objfile.owner or objfile) == self.objfile

    def all_contexts(self):
        """All that have been made, by the guards of their stacks."""
        guard = self.variable("overflow")["guards"]
        while int(guard):
            address = int(guard) - self.guard_offset
            yield gdb.Value(address).cast(self.context.pointer()).dereference()
            guard = guard.dereference()["older"]

    def carriers(self):
        each = self.suspended["first"]
        while int(each):
            carrier = gdb.Value(int(each)).cast(self.carrier.pointer()).dereference()
            yield carrier
            each = carrier["here"]["next"]

    def unused(self):
        """Addresses of contexts without an implicit task."""
        found = {int(carrier["ended"]) for carrier in self.carriers()}
        for first in (self.contexts["unused"], *(c["spares"] for c in self.carriers())):
            found.update(int(context.address) for context in linked(first))
        return found


def linked(pointer):
    while int(pointer):
        yield pointer.dereference()
        pointer = pointer.dereference()["next"]


def could_run(context):
    """As gomp_context_could_run: what the context waits for has come."""
    return not int(context["addr"]) or int(context["addr"].dereference()) != int(context["val"])


# --- stacks


@contextlib.contextmanager
def selection_kept():
    """The user's thread and frame are selected again afterwards."""
    thread, frame = gdb.selected_thread(), gdb.selected_frame()
    level = frame.level() if hasattr(frame, "level") else sum(1 for _ in newer(frame))
    try:
        yield
    finally:
        if thread.is_valid():
            thread.switch()
            gdb.execute(f"select-frame {level}", to_string=True)


def newer(frame):
    while frame := frame.newer():
        yield frame


def older(frame):
    while frame is not None:
        yield frame
        frame = frame.older()


class FrameId:
    """What create_unwind_info takes."""

    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class SuspendedStack(Unwinder):
    """While a stack is in use: the innermost frame of the selected thread has been called there.
    (The frame itself has to stay, since its registers cannot be changed in a core file.)"""

    def __init__(self):
        super().__init__("invasive")
        self.sp = None  # of the stack in use
        self.replaced = None  # sp, pc of the innermost frame
        self.layout = None

    def __call__(self, pending):
        if self.sp is None:
            return None
        pc = pending.read_register("pc")
        if (int(pending.read_register("sp")), int(pc)) != self.replaced:
            return None
        # With an address of that stack: gdb takes frames whose addresses fall for corrupt.
        info = pending.create_unwind_info(FrameId(gdb.Value(self.sp).cast(pc.type), pc))
        offsets, sp_name, size = self.layout
        for name, offset in offsets.items():
            kind = pending.read_register(name).type
            where = gdb.Value(self.sp + offset).cast(kind.pointer())
            info.add_saved_register(name, where.dereference())
        kind = pending.read_register(sp_name).type
        info.add_saved_register(sp_name, gdb.Value(self.sp + size).cast(kind))
        return info

    @contextlib.contextmanager
    def use(self, sp):
        """sp: the stack pointer that the switch has saved"""
        frame = gdb.newest_frame()
        name = frame.architecture().name()
        layout = next((each for key, each in LAYOUTS.items() if key in name), None)
        if layout is None:
            raise gdb.GdbError(f"Suspended implicit tasks are not known on {name}.")
        try:
            gdb.selected_inferior().read_memory(sp, layout[2])
        except gdb.MemoryError as error:
            raise gdb.GdbError(f"The stack at {sp:#x} is not readable.") from error
        self.layout = layout
        self.replaced = int(frame.read_register("sp")), int(frame.pc())
        self.sp = sp
        gdb.invalidate_cached_frames()
        try:
            yield
        finally:
            self.stop()
            gdb.invalidate_cached_frames()

    def stop(self, _event=None):
        self.sp = None

    def first(self):
        """The innermost frame of the stack in use."""
        top = self.sp + self.layout[2]
        found = next((f for f in older(gdb.newest_frame())
                      if int(f.read_register("sp")) == top), None)
        if found is None:
            raise gdb.GdbError(f"gdb finds no frame on the stack at {self.sp:#x}.")
        return found


unwinder = SuspendedStack()


@contextlib.contextmanager
def stack(thread, sp):
    """Selects the innermost frame of the thread, and gives it; thread None: of the suspended stack
    whose stack pointer that is."""
    with selection_kept():
        if thread is None:
            with unwinder.use(sp):
                frame = unwinder.first()
                frame.select()
                yield frame
        else:
            thread.switch()
            frame = gdb.newest_frame()
            frame.select()
            yield frame


# --- implicit tasks


class Task:
    """An implicit task that has begun and has not ended.

    team, number   address of its struct gomp_team; thread number there
    thread         the kernel thread whose stack it is on, and which runs it; None: it is suspended
    sp             the stack pointer that was saved, if it is suspended
    ready          suspended, and could go on"""

    def __init__(self, team, number, thread, sp, ready):
        self.team, self.number = team, number
        self.thread, self.sp, self.ready = thread, sp, ready
        self.depth = 0  # implicit tasks on the same stack in nested regions that it has begun
        self.stacked = 1  # how many implicit tasks are on the stack
        self.id = ""

    def stack(self):
        return stack(self.thread, self.sp)

    def state(self, waits):
        if self.depth > 0:
            return "in a nested region"
        if self.thread is not None:
            return f"on thread {self.thread.num} {waits}".rstrip()
        return f"{'ready' if self.ready else 'suspended'} {waits}".rstrip()


def split(runtime, frame):
    """The frames of a stack by implicit task, the innermost task first.  A stack has several where
    an implicit task has begun a nested region, whose thread number 0 it is."""
    found, frames, between = [], [], False
    for each in older(frame):
        ours = runtime.has(each)
        if between and not ours:
            found.append(frames)
            frames, between = [], False
        between = between or (ours and bool(CALLS.search(each.name() or "")))
        if not between:
            frames.append(each)
    return [*found, frames] if between else found


def describe(runtime, frames):
    """Which function of the runtime the code of the implicit task has called, "": none.  And where
    that is; None: there is no code of the implicit task."""
    inside = next((i for i in reversed(range(len(frames))) if runtime.has(frames[i])), -1)
    waits = ""
    if inside >= 0:
        name = frames[inside].name() or ""
        other = name if name.startswith(("GOMP_", "omp_")) else "the runtime"
        waits = "in " + next((what for pattern, what in WAITS if pattern.search(name)), other)
        if any("._omp_fn" in (f.name() or "") for f in frames[:inside]):
            waits += " (explicit task)"
    code = frames[inside + 1:]
    if not code:
        return waits, None
    own = next((f for f in code if f.find_sal().symtab), code[0])
    sal = own.find_sal()
    where = f" at {sal.symtab.filename}:{sal.line}" if sal.symtab else ""
    return waits, f"{own.name() or hex(own.pc())}{where}"


def function_of(team):
    """Name of the outlined function of the team's region, and where it begins; "": not known."""
    region = team["barrier"]["region"]
    if not int(region):
        return "", ""
    function = region.dereference()["start"]["fn"]
    name = re.search("<(.*)>", function.format_string(symbols=True))
    sal = gdb.find_pc_line(int(function))
    where = f" ({sal.symtab.filename}:{sal.line})" if sal.symtab else ""
    return (name.group(1) if name else hex(int(function))), where


class Snapshot:
    """The implicit tasks of all teams while the program is stopped."""

    def __init__(self):
        if gdb.selected_thread() is None:
            raise gdb.GdbError("The program is not running.")
        self.runtime = Runtime()
        self.teams = {}  # address: struct gomp_team
        self.tasks = []
        with selection_kept():
            self.find()
        order = sorted(self.teams, key=lambda a: (self.depth(a), a))
        self.tasks.sort(key=lambda t: (order.index(t.team), t.number))
        for task in self.tasks:
            task.id = f"{1 + order.index(task.team)}.{task.number}"
        self.order = order  # of the teams: outer ones first

    def depth(self, address):
        """Teams around the team, counted by their masters."""
        return int(self.teams[address]["prev_ts"]["level"])

    def add(self, thread_struct, thread, sp=None, ready=False):
        """The implicit task of a struct gomp_thread, and those in whose nested regions it is."""
        state, found = thread_struct["ts"], []
        while int(state["team"]):
            team, number = state["team"].dereference(), int(state["team_id"])
            self.teams[int(team.address)] = team
            task = Task(int(team.address), number, thread, sp, ready)
            task.depth = len(found)
            found.append(task)
            if number != 0:
                break
            state = team["prev_ts"]
        for task in found:
            task.stacked = len(found)
        self.tasks += found

    def find(self):
        runtime = self.runtime
        contexts = {int(c.address): c for c in runtime.all_contexts()}
        running = {}
        for thread in gdb.selected_inferior().threads():
            if not thread.is_stopped():
                continue
            thread.switch()
            sp = int(gdb.newest_frame().read_register("sp"))
            context = next((a for a, c in contexts.items()
                            if int(c["guard"]["first"]) <= sp < a), None)
            if context is not None:
                running[context] = thread
            self.add_thread(thread, context)
        unused = runtime.unused() - set(running)
        for address, context in contexts.items():
            if address not in unused:
                self.add_context(context, running.get(address))

    def add_thread(self, thread, context):
        """Adds the implicit task on the kernel thread's own stack, if there is one.  It is
        suspended while the thread executes a context."""
        try:
            own = self.runtime.variable("gomp_tls_data")
            carrier = int(self.runtime.variable("gomp_own_suspended"))
        except gdb.error:
            return  # the thread has no thread-local data yet
        if context is None:
            self.add(own, thread)
        elif carrier:
            loop = gdb.Value(carrier).cast(self.runtime.carrier.pointer())["loop"]
            self.add(own, None, int(loop["sp"]), bool(int(loop["addr"])) and could_run(loop))

    def add_context(self, context, thread):
        """Adds what the context runs; nothing, if it is between two implicit tasks."""
        sp = None if thread else int(context["sp"])
        try:
            with stack(thread, sp) as frame:
                runs = any(f.name() == RUNS_TASK for f in older(frame))
        except FAILURES:
            runs = True
        if runs:
            self.add(context["thread"], thread, sp, thread is None and could_run(context))

    def chosen(self, word):
        if word == "all":
            return self.tasks
        wanted = word if "." in word else f"1.{word}"
        found = [t for t in self.tasks if t.id == wanted]
        if not found:
            raise gdb.GdbError(f"There is no implicit task {word}: see `info invasive`.")
        return found

    def describe(self, task):
        function, _ = function_of(self.teams[task.team])
        try:
            with task.stack() as frame:
                parts = split(self.runtime, frame)
                if len(parts) == task.stacked + 1:  # a nested region is about to begin
                    parts[:2] = [parts[0] + parts[1]]
                frames = parts[task.depth] if task.depth < len(parts) else []
                waits, where = describe(self.runtime, frames)
        except FAILURES:
            return task.state(""), "its stack is not readable"
        if where is None and task.number == 0:
            waits = "at the region's end"
        return task.state(waits), where or function


def ranges(numbers):
    """Sorted numbers as text: 1-3,7."""
    found = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


# --- commands


class InfoInvasive(gdb.Command):
    """List the implicit tasks of all teams of libgomp-invasive: ID, state, and where they are.
A suspended implicit task waits without a kernel thread.  One that is ready waits for a core."""

    def __init__(self):
        super().__init__("info invasive", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        snapshot = Snapshot()
        if not snapshot.tasks:
            print("No implicit tasks: the program is in no parallel region.")
        for index, address in enumerate(snapshot.order):
            team = snapshot.teams[address]
            function, where = function_of(team)
            size = int(team["nthreads"])
            print(f"Team {index + 1}: {size} implicit task{'s' * (size != 1)}"
                  + (f" of {function}{where}" if function else ""))
            here = [t for t in snapshot.tasks if t.team == address]
            states = [snapshot.describe(task) for task in here]
            width = max(len(state) for state, _ in states)
            for task, (state, where) in zip(here, states):
                print(f"  {task.id:<6} {state:<{width}}  {where}")
            missing = sorted(set(range(size)) - {t.number for t in here})
            if missing:
                print(f"  {index + 1}.{ranges(missing)}: not begun, or ended")


class Invasive(gdb.Command):
    """Commands for implicit tasks of libgomp-invasive."""

    def __init__(self):
        super().__init__("invasive", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)


def apply(word, execute):
    """Executes on the stacks of the chosen implicit tasks; goes on after an error, as `thread apply
    -c` does."""
    snapshot = Snapshot()
    for task in snapshot.chosen(word):
        state, _ = snapshot.describe(task)
        print(f"\nImplicit task {task.id} ({state}):")
        try:
            with task.stack() as frame:
                execute(frame)
        except FAILURES as error:
            print(error)


def backtrace(frame, options):
    """gdb counts from the outermost frame if the number is negative.  Without filters, since these
    may leave frames out."""
    count = sum(1 for _ in older(frame))
    gdb.execute(f"backtrace {options} -no-filters -{count}")


class Bt(gdb.Command):
    """Print backtraces of implicit tasks: invasive bt ID|all [OPTIONS OF BACKTRACE]
Frames of a suspended one are numbered from 1: `invasive apply ID frame 5` shows one of them."""

    def __init__(self):
        super().__init__("invasive bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        word, _, options = argument.partition(" ")
        if not word:
            raise gdb.GdbError("invasive bt ID|all [OPTIONS]")
        apply(word, lambda frame: backtrace(frame, options))


class Apply(gdb.Command):
    """Execute a command on the stack of implicit tasks: invasive apply ID|all COMMAND
For example `invasive apply 1.3 frame apply level 5 info locals`.  Thread-local variables are
those of the selected thread."""

    def __init__(self):
        super().__init__("invasive apply", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        word, _, command = argument.partition(" ")
        if not command.strip():
            raise gdb.GdbError("invasive apply ID|all COMMAND")
        apply(word, lambda frame: gdb.execute(command))


register_unwinder(None, unwinder, True)
gdb.events.cont.connect(unwinder.stop)  # if a command of `invasive apply` lets the program go on
for command in (InfoInvasive, Invasive, Bt, Apply):
    command()

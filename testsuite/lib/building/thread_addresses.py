# SPDX-License-Identifier: GPL-3.0-or-later
"""thread_addresses.py LIBRARY [OBJDUMP]: where a library that switches contexts keeps the address
of a thread-local variable, or of the thread's block of them, across a call after which the caller
may be on another kernel thread (libgomp-invasive/program/own.h).

Compilers take the thread pointer for a constant of a function.  They may compute an address once,
keep it in a register that calls preserve or on the stack, and use it after the call.  So this
follows such addresses through the machine code of each function: from the instruction that reads
the thread pointer, over additions, copies and stack slots, along all branches.  Each call that may
lead to the switch makes what is kept stale.  A stale address that is used or passed on is reported.

A call may lead to the switch when its target does, by the graph of direct calls, or is unknown.
Calls of other libraries do not.  Addresses of variables in MAY_BE_KEPT are not reported.
"""

import re
import subprocess
import sys
from collections import defaultdict

SWITCH = "gomp_context_swap"
# gomp_thread() is this one's address on a kernel thread that executes no context.  Such a caller is
# on the same thread after each call.
MAY_BE_KEPT = {"gomp_tls_data"}
# Functions whose unknown callees do not switch: those of a device's plugin, and of the C++ runtime.
CALL_NO_SWITCH = {"goacc_attach_host_thread_to_device", "gomp_contexts_find_state"}
UNKNOWN = "the thread pointer"
# Functions that return such an address.
ADDRESS_OF = {"__errno_location": "errno", "__tls_get_addr": "a thread's variable"}

# An abstract value is a set of what a register may hold: ("address", VARIABLE, CALL), where CALL is
# None, or that which has made it stale; ("offset", VARIABLE), to be added to the thread pointer;
# ("page", ADDRESS) on aarch64, which comes to the table of offsets in two steps.
NOTHING = frozenset()


def moved(value, call):
    return frozenset((*item[:2], item[2] or call) for item in value if item[0] == "address")


def added(a, b):
    """The sum of two values."""
    names = {item[1] for item in a | b if item[0] == "offset"}
    return frozenset(
        (item[0], name if item[1] == UNKNOWN else item[1], item[2])
        for item in a | b if item[0] == "address" for name in (names or {UNKNOWN}))


class X86:
    """Instructions as objdump writes them for x86-64: sources first."""

    preserved = {"rbx", "rbp", "r12", "r13", "r14", "r15", "rsp"}
    result = "rax"
    offsets = "R_X86_64_TPOFF64"
    arguments = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")

    def __init__(self, variables):
        self.variables = variables  # by the address of the word that holds the variable's offset

    @staticmethod
    def split(text):
        return re.findall(r"(?:\([^)]*\)|[^,(])+", text)

    @staticmethod
    def name(register):
        name = re.sub(r"^(r\d+)[dwb]$", r"\1", register.lstrip("%*"))
        return re.sub(r"^e?([abcds][xip]|bp)$", r"r\1", name)

    def flow(self, line):
        """(kind, target): kind is call, jump, branch, end or None; target an address, or None."""
        word = line.mnemonic
        target = re.match(r"([0-9a-f]+) <", line.operands)
        address = int(target[1], 16) if target else None
        if word.startswith("call"):
            return "call", address
        if word == "jmp":
            return "jump", address
        if word.startswith("j"):
            return "branch", address
        return ("end", None) if word.startswith(("ret", "ud2", "hlt")) else (None, None)

    def memory(self, operand, state):
        """(slot, value of the address) of a memory operand: slot is that of the stack, or None."""
        match = re.match(r"(-?0x[0-9a-f]+|)\((%\w+)?(?:,(%\w+))?", operand)
        if not match:
            return None, NOTHING
        base = self.name(match[2]) if match[2] else None
        if base == "rsp" and not match[3]:
            return state["depth"] + int(match[1] or "0", 16), NOTHING
        value = state.get(base, NOTHING)
        if match[3]:
            index = state.get(self.name(match[3]), NOTHING)
            value = added(value, index) if value or index else NOTHING
        return None, value

    def read(self, operand, line, state, used):
        if operand == "%fs:0x0":
            return frozenset({("address", UNKNOWN, None)})
        if operand.startswith("%fs:"):
            return NOTHING
        if operand.startswith("%"):
            return state.get(self.name(operand), NOTHING)
        if "(%rip)" in operand and line.comment in self.variables:
            return frozenset({("offset", self.variables[line.comment])})
        slot, address = self.memory(operand, state)
        used |= address
        return state.get(slot, NOTHING) if slot is not None else NOTHING

    def write(self, operand, value, state, used):
        if operand.startswith("%fs"):
            return
        if operand.startswith("%"):
            state[self.name(operand)] = value
            return
        slot, address = self.memory(operand, state)
        used |= address
        if slot is not None:
            state[slot] = value
        else:
            used |= value  # kept in memory

    def step(self, line, state):
        """Carry the instruction out.  Returns the values that it uses as addresses or keeps in
        memory."""
        used = set()
        word, operands = line.mnemonic, self.split(line.operands)
        if word == "push":
            value = self.read(operands[0], line, state, used)
            state["depth"] -= 8
            state[state["depth"]] = value
        elif word == "pop":
            self.write(operands[0], state.get(state["depth"], NOTHING), state, used)
            state["depth"] += 8
        elif operands and operands[-1] == "%rsp":
            number = re.match(r"\$(-?0x[0-9a-f]+)", operands[0])
            if number and word in ("sub", "add"):
                state["depth"] += int(number[1], 16) * (1 if word == "add" else -1)
        elif word == "lea":
            state[self.name(operands[1])] = self.memory(operands[0], state)[1]
        elif word in ("add", "sub") and len(operands) == 2:
            value = self.read(operands[0], line, state, used)
            if operands[1].startswith("%"):
                before = state.get(self.name(operands[1]), NOTHING)
                state[self.name(operands[1])] = added(before, value)
            else:
                self.read(operands[1], line, state, used)
        elif word.startswith("mov") and len(operands) == 2:
            self.write(operands[1], self.read(operands[0], line, state, used), state, used)
        elif word.startswith("cmov"):
            value = self.read(operands[0], line, state, used)
            state[self.name(operands[1])] = state.get(self.name(operands[1]), NOTHING) | value
        else:
            for operand in operands:
                if "(" in operand:
                    used |= self.memory(operand, state)[1]
            only_reads = word.startswith(("cmp", "test", "j", "call"))
            if operands and operands[-1].startswith("%") and not only_reads:
                state[self.name(operands[-1])] = NOTHING
        return used


class Arm:
    """Instructions as objdump writes them for aarch64: the destination first."""

    preserved = {f"x{number}" for number in range(19, 30)} | {"sp"}
    arguments = tuple(f"x{number}" for number in range(8))
    result = "x0"
    offsets = "R_AARCH64_TLS_TPREL64"

    def __init__(self, variables):
        self.variables = variables

    @staticmethod
    def split(text):
        return [part.strip() for part in re.findall(r"(?:\[[^\]]*\]!?|[^,\[])+", text)]

    @staticmethod
    def name(register):
        return re.sub(r"^w(\d+)$", r"x\1", register)

    def flow(self, line):
        word = line.mnemonic
        target = re.search(r"([0-9a-f]+) <", line.operands)
        address = int(target[1], 16) if target else None
        if word in ("bl", "blr"):
            return "call", address
        if word in ("b", "br"):
            return "jump", address
        if word.startswith(("b.", "cb", "tb")):
            return "branch", address
        return ("end", None) if word in ("ret", "udf", "brk") else (None, None)

    @staticmethod
    def number(text):
        match = re.match(r"#?(-?(?:0x[0-9a-f]+|\d+))$", text)
        return int(match[1], 0) if match else None

    def slot(self, base, state):
        if base == "sp":
            return state["depth"]
        return state.get("frame") if base == "x29" else None

    def access(self, line, operands, state, store):
        registers = [part for part in operands if re.match(r"[xw](\d+|zr)$", part)]
        place = next(part for part in operands if part.startswith("["))
        parts = [part.strip() for part in place.strip("[]!").split(",")]
        base = parts[0]
        step = self.number(parts[1]) if len(parts) > 1 else 0
        after = self.number(operands[-1]) if operands[-1].startswith("#") else None
        if place.endswith("!") and base == "sp":
            state["depth"] += step
            step = 0
        used, slot = set(), self.slot(base, state)
        value = state.get(base, NOTHING)
        if len(parts) > 1 and step is None:
            index = state.get(self.name(parts[1]), NOTHING)
            value = added(value, index) if value or index else NOTHING
            slot = None
        used |= {item for item in value if item[0] == "address"}
        for index, register in enumerate(registers):
            name = self.name(register)
            if store:
                kept = state.get(name, NOTHING)
                if slot is not None and step is not None:
                    state[slot + step + 8 * index] = kept
                else:
                    used |= {item for item in kept if item[0] == "address"}
            elif slot is not None and step is not None:
                state[name] = state.get(slot + step + 8 * index, NOTHING)
            else:
                places = {item[1] + (step or 0) for item in value if item[0] == "page"}
                state[name] = frozenset(("offset", self.variables[place]) for place in places
                                        if place in self.variables)
        if after is not None and base == "sp":
            state["depth"] += after
        return used

    def step(self, line, state):
        word, operands = line.mnemonic, self.split(line.operands)
        if word == "mrs" and operands[1] == "tpidr_el0":
            state[operands[0]] = frozenset({("address", UNKNOWN, None)})
        elif word == "adrp":
            page = int(re.match(r"[0-9a-f]+", operands[1])[0], 16)
            state[operands[0]] = frozenset({("page", page)})
        elif any(part.startswith("[") for part in operands):
            return self.access(line, operands, state, word.startswith("st"))
        elif word in ("add", "sub") and operands[0] == "sp":
            number = self.number(operands[2])
            if number is not None:
                state["depth"] += number if word == "add" else -number
        elif word == "mov" and operands == ["x29", "sp"]:
            state["frame"] = state["depth"]
        elif word in ("add", "sub") and len(operands) >= 3:
            first = state.get(self.name(operands[1]), NOTHING)
            second = state.get(self.name(operands[2]), NOTHING)
            state[self.name(operands[0])] = added(first, second)
        elif word == "mov" and len(operands) == 2:
            state[self.name(operands[0])] = state.get(self.name(operands[1]), NOTHING)
        elif word.startswith("csel"):
            state[self.name(operands[0])] = (state.get(self.name(operands[1]), NOTHING) |
                                             state.get(self.name(operands[2]), NOTHING))
        elif operands and not word.startswith(("cmp", "cmn", "tst", "ccmp", "cb", "tb", "b")):
            state[self.name(operands[0])] = NOTHING
        return set()


class Line:
    """One instruction."""

    def __init__(self, address, text):
        self.address = address
        text, _, comment = text.partition(" # " if " # " in text else "\t// ")
        found = re.match(r"[0-9a-f]+", comment.strip())
        self.comment = int(found[0], 16) if found else None
        words = text.split(None, 1)
        while len(words) == 2 and words[0] in ("lock", "notrack", "bnd", "rep", "repz", "repnz"):
            words = words[1].split(None, 1)
        self.mnemonic = words[0] if words else ""
        self.operands = words[1].strip() if len(words) == 2 else ""


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def thread_variables(library, readelf, kind):
    """Variables by the address of the word of the table that has their offset."""
    names, variables = {}, {}
    for line in output(readelf, "-W", "-s", library).splitlines():
        words = line.split()
        if len(words) > 7 and words[3] == "TLS" and words[6] != "UND" and words[7][:4] != "_TLS":
            names[int(words[1], 16)] = words[7]
    for line in output(readelf, "-W", "-r", library).splitlines():
        words = line.split()
        if len(words) >= 4 and words[2] == kind:
            if len(words) == 4:
                variables[int(words[0], 16)] = names.get(int(words[3], 16), "?")
            else:
                variables[int(words[0], 16)] = words[4].split("@")[0]
    return variables


class Code:
    """The functions of a library, and those of them that may switch."""

    def __init__(self, library, objdump):
        readelf = objdump.replace("objdump", "readelf")
        arm = "AArch64" in output(readelf, "-h", library)
        self.cpu = (Arm if arm else X86)(
            thread_variables(library, readelf, (Arm if arm else X86).offsets))
        self.lines, self.function, self.start, self.plt = {}, {}, {}, {}
        self.next = {}
        self.parse(output(objdump, "-d", "--no-show-raw-insn", library))
        self.switching = self.find_switching()

    def parse(self, text):
        current, before = None, None
        for row in text.splitlines():
            head = re.match(r"([0-9a-f]+) <(.+)>:$", row)
            if head:
                address, before = int(head[1], 16), None
                name = head[2].split("@@")[0]
                if "@plt" in name:
                    self.plt[address] = name.split("@plt")[0] if name.endswith("@plt") else ""
                current = (address, re.sub(r"\.cold$", "", name), name.endswith(".cold"))
                continue
            match = re.match(r"\s+([0-9a-f]+):\t(.*)$", row)
            if not match or current is None:
                continue
            line = Line(int(match[1], 16), match[2])
            self.lines[line.address] = line
            self.function[line.address] = current
            if before is not None:
                self.next[before] = line.address
            else:
                self.start[line.address] = current
            before = line.address

    def callee(self, target):
        """The address of the function that a call of this address executes; None: another
        library's; UNKNOWN."""
        if target is None:
            return UNKNOWN
        name = self.plt.get(target)
        if name is None:
            return target
        base = name.split("@")[0]
        return next((address for address, (_, own, _) in self.start.items()
                     if own.split("@")[0] == base and address not in self.plt), None)

    def find_switching(self):
        callers, todo = defaultdict(set), []
        for address, line in self.lines.items():
            if address in self.plt or self.function[address][0] in self.plt:
                continue
            kind, target = self.cpu.flow(line)
            own = self.function[address]
            outside = target is not None and not self.same(target, own)
            if kind == "call" or (kind in ("jump", "branch") and outside):
                callers[self.callee(target)].add(own[0])
        switch = [address for address, own in self.start.items() if own[1] == SWITCH]
        if not switch:
            raise SystemExit(f"there is no {SWITCH} in the library")
        switching, todo = set(), [*switch, UNKNOWN]
        while todo:
            one = todo.pop()
            if one not in switching:
                switching.add(one)
                todo.extend(callers[one])
        return switching

    def same(self, target, own):
        other = self.function.get(target)
        return other is not None and (other == own or (other[1] == own[1] and
                                                       (other[2] or own[2])))

    def name_of(self, callee):
        return "an unknown function" if callee == UNKNOWN else self.function[callee][1]

    def called(self, line, target, state):
        callee = self.callee(target)
        switching = callee in self.switching and not (
            callee == UNKNOWN and self.function[line.address][1] in CALL_NO_SWITCH)
        call = f"the call of {self.name_of(callee)} at {line.address:x}" if switching else None
        for place, value in list(state.items()):
            if place in ("depth", "frame"):
                continue
            if isinstance(place, str) and place not in self.cpu.preserved:
                state[place] = NOTHING
            elif switching:
                state[place] = moved(value, call)
        if self.plt.get(target) in ADDRESS_OF:
            variable = ADDRESS_OF[self.plt[target]]
            state[self.cpu.result] = frozenset({("address", variable, None)})

    def orphans(self, own):
        """Where a jump through a table may lead."""
        return [address for address, of in self.function.items() if of == own]

    def audit_function(self, start, reports):
        states, todo = {}, [(start, {"depth": 0})]
        own = self.function[start]
        while todo:
            address, came = todo.pop()
            state = states.get(address)
            if state is not None:
                merged = {**came, **state}
                for place in came:
                    if place not in ("depth", "frame"):
                        merged[place] = state.get(place, NOTHING) | came[place]
                if merged == state:
                    continue
                came = merged
            states[address] = dict(came)
            state, line = dict(came), self.lines[address]
            kind, target = self.cpu.flow(line)
            used = self.cpu.step(line, state)
            if kind == "call":
                used = used.union(*(state.get(name, NOTHING) for name in self.cpu.arguments))
            for item in used:
                if item[0] == "address" and item[2] and item[1] not in MAY_BE_KEPT:
                    reports.add((own[1], address, item[1], item[2]))
            if kind == "call":
                self.called(line, target, state)
            inside = target is not None and self.same(target, own) and target != start
            if kind in ("jump", "branch") and (inside or target == start):
                todo.append((target, state))
            if kind == "jump" and target is None:
                todo.extend((one, state) for one in self.orphans(own) if one not in states)
            if kind not in ("jump", "end") and address in self.next:
                todo.append((self.next[address], state))

    def audit(self):
        reports = set()
        for start, own in self.start.items():
            if start not in self.plt and not own[2]:
                self.audit_function(start, reports)
        return sorted(reports)


def audit(library, objdump="objdump"):
    """Lines that say where a stale address is used."""
    return [f"{function}, at {address:x}: the address of {variable} is from before {call}"
            for function, address, variable, call in Code(library, objdump).audit()]


if __name__ == "__main__":
    FOUND = audit(*sys.argv[1:])
    print("\n".join(FOUND))
    sys.exit(1 if FOUND else 0)

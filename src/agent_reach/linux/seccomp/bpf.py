"""Classic BPF as seccomp(2) takes it: an assembler with labels, a disassembler, and a simulator.

Everything here is pure: a policy is tested by running its program on made-up calls, without a kernel.
Source: Documentation/networking/filter.rst and seccomp_check_filter() of the kernel, which admits fewer
instructions than socket filters have; only those that the compiler emits are known here.
"""

from __future__ import annotations

from struct import iter_unpack, pack, unpack_from

from agent_reach._util.record import Record
from agent_reach.linux.abi.seccomp import (
    BPF_ALU_AND_K,
    BPF_JMP_JA,
    BPF_JMP_JEQ_K,
    BPF_JMP_JGE_K,
    BPF_JMP_JGT_K,
    BPF_JMP_JSET_K,
    BPF_LD_W_ABS,
    BPF_MAXINSNS,
    BPF_RET_K,
    DATA_BYTES,
)

INSTRUCTION = "=HBBI"
INSTRUCTION_BYTES = 8
LONGEST_JUMP = 255
NAMES = {
    BPF_LD_W_ABS: "ld",
    BPF_ALU_AND_K: "and",
    BPF_JMP_JA: "ja",
    BPF_JMP_JEQ_K: "jeq",
    BPF_JMP_JGT_K: "jgt",
    BPF_JMP_JGE_K: "jge",
    BPF_JMP_JSET_K: "jset",
    BPF_RET_K: "ret",
}
CONDITIONS = (BPF_JMP_JEQ_K, BPF_JMP_JGT_K, BPF_JMP_JGE_K, BPF_JMP_JSET_K)


class BpfError(ValueError):
    """A program that the kernel would not take, or that cannot be assembled."""


class Instruction(Record):
    """One instruction, struct sock_filter.

    Args:
        code: operation.
        jt: instructions to skip when a condition holds.
        jf: instructions to skip when it does not.
        k: operand.
    """

    code: int
    jt: int
    jf: int
    k: int


class Branch(Record):
    """A conditional jump before its distances are known; an empty label means the next instruction."""

    code: int
    k: int
    then: str
    otherwise: str


class Jump(Record):
    """An unconditional jump to a label."""

    label: str


class Label(Record):
    """A place in the program."""

    name: str


class Assembler:
    """Collects instructions and labels, and lays them out."""

    def __init__(self) -> None:
        self._items: list[Instruction | Branch | Jump | Label] = []

    def load(self, offset: int) -> None:
        """Load 32 bits of struct seccomp_data at an offset in bytes."""
        self._items.append(Instruction(BPF_LD_W_ABS, 0, 0, offset))

    def mask(self, bits: int) -> None:
        """Keep only these bits of what was loaded."""
        self._items.append(Instruction(BPF_ALU_AND_K, 0, 0, bits))

    def branch(self, code: int, k: int, then: str = "", otherwise: str = "") -> None:
        """Compare what was loaded with `k` and go to one of two labels; an empty label is what follows."""
        self._items.append(Branch(code, k, then, otherwise))

    def jump(self, label: str) -> None:
        """Go to a label."""
        self._items.append(Jump(label))

    def ret(self, action: int) -> None:
        """End with a SECCOMP_RET_* value."""
        self._items.append(Instruction(BPF_RET_K, 0, 0, action))

    def label(self, name: str) -> None:
        """Name the next instruction."""
        self._items.append(Label(name))

    def assemble(self) -> bytes:
        """Return the program.

        A conditional jump reaches 255 instructions. One that has further to go gets an unconditional jump
        behind it, which may push others out of reach: the layout is repeated until nothing changes.

        Raises:
            BpfError: a label is missing or lies behind, or the program is too long for the kernel.
        """
        far: set[tuple[int, str]] = set()
        while True:
            places, labels = self._lay_out(far)
            added = {
                (index, side)
                for index, item in enumerate(self._items)
                if isinstance(item, Branch)
                for side in ("then", "otherwise")
                if (label := getattr(item, side)) and (index, side) not in far
                # Two more: its own trampolines stand between the jump and what it counts from.
                if _distance(places[index], labels, label) + 2 > LONGEST_JUMP
            }
            if not added:
                return encode(tuple(self._emit(places, labels, far)))
            far |= added

    def _lay_out(self, far: set[tuple[int, str]]) -> tuple[list[int], dict[str, int]]:
        """Return the position of every item and of every label."""
        position, places, labels = 0, [], {}
        for index, item in enumerate(self._items):
            places.append(position)
            if isinstance(item, Label):
                if item.name in labels:
                    raise BpfError(f"label {item.name!r} is given twice")
                labels[item.name] = position
            else:
                position += 1 + ((index, "then") in far) + ((index, "otherwise") in far)
        return places, labels

    def _emit(self, places: list[int], labels: dict[str, int], far: set[tuple[int, str]]) -> list[Instruction]:
        """Return the instructions of a layout in which every jump reaches its target."""
        out: list[Instruction] = []
        for index, item in enumerate(self._items):
            if isinstance(item, Branch):
                out += _emit_branch(item, index, places[index], labels, far)
            elif isinstance(item, Jump):
                out.append(Instruction(BPF_JMP_JA, 0, 0, _distance(places[index], labels, item.label)))
            elif isinstance(item, Instruction):
                out.append(item)
        return out


def _distance(position: int, labels: dict[str, int], label: str) -> int:
    """Return how many instructions lie between a jump and its target."""
    if label not in labels:
        raise BpfError(f"there is no label {label!r}")
    distance = labels[label] - position - 1
    if distance < 0:
        raise BpfError(f"label {label!r} lies behind the jump; BPF jumps forward only")
    return distance


def _emit_branch(
    item: Branch, index: int, position: int, labels: dict[str, int], far: set[tuple[int, str]]
) -> list[Instruction]:
    """Return a conditional jump and the unconditional jumps that carry it further."""
    trampolines: list[Instruction] = []
    size = ((index, "then") in far) + ((index, "otherwise") in far)
    skips: list[int] = []
    for side in ("then", "otherwise"):
        label = getattr(item, side)
        if (index, side) in far:
            skips.append(len(trampolines))
            here = position + 1 + len(trampolines)
            trampolines.append(Instruction(BPF_JMP_JA, 0, 0, _distance(here, labels, label)))
        else:
            skips.append(_distance(position, labels, label) if label else size)
    return [Instruction(item.code, skips[0], skips[1], item.k), *trampolines]


def encode(instructions: tuple[Instruction, ...]) -> bytes:
    """Return the bytes of a program.

    Raises:
        BpfError: more than the kernel's 4,096 instructions, or none.
    """
    if not 0 < len(instructions) <= BPF_MAXINSNS:
        raise BpfError(f"a program has 1 to {BPF_MAXINSNS} instructions, this one {len(instructions)}")
    return b"".join(pack(INSTRUCTION, one.code, one.jt, one.jf, one.k) for one in instructions)


def decode(program: bytes) -> tuple[Instruction, ...]:
    """Return the instructions of a program.

    Raises:
        BpfError: not a whole number of instructions.
    """
    if len(program) % INSTRUCTION_BYTES:
        raise BpfError(f"{len(program)} bytes are not a whole number of instructions")
    return tuple(Instruction(*fields) for fields in iter_unpack(INSTRUCTION, program))


def disassemble(program: bytes) -> str:
    """Return one line for each instruction, with absolute jump targets."""
    return "\n".join(f"{index:4d}: {_describe(index, one)}" for index, one in enumerate(decode(program)))


def _describe(index: int, one: Instruction) -> str:
    """Return an instruction as text."""
    name = NAMES.get(one.code, f"op{one.code:#x}")
    if one.code in CONDITIONS:
        return f"{name} {one.k:#x} ? {index + 1 + one.jt} : {index + 1 + one.jf}"
    if one.code == BPF_JMP_JA:
        return f"{name} {index + 1 + one.k}"
    return f"{name} [{one.k}]" if one.code == BPF_LD_W_ABS else f"{name} {one.k:#x}"


def call_data(number: int, arch: int, args: tuple[int, ...] = ()) -> bytes:
    """Return struct seccomp_data of a call.

    Args:
        number: system call number; taken modulo 2**32.
        arch: AUDIT_ARCH_* value.
        args: up to six arguments; taken modulo 2**64.
    """
    padded = [value & 0xFFFF_FFFF_FFFF_FFFF for value in (*args, 0, 0, 0, 0, 0, 0)[:6]]
    return pack("=IIQ6Q", number & 0xFFFF_FFFF, arch, 0, *padded)


def simulate(program: bytes, data: bytes) -> tuple[int, int]:
    """Run a program on struct seccomp_data.

    Returns:
        The SECCOMP_RET_* value, and how many instructions it took.

    Raises:
        BpfError: an instruction that the kernel refuses, or a jump out of the program.
    """
    accumulator = position = cost = 0
    while 0 <= position < len(program) // INSTRUCTION_BYTES:
        code, jt, jf, k = unpack_from(INSTRUCTION, program, position * INSTRUCTION_BYTES)
        position += 1
        cost += 1
        if code == BPF_RET_K:
            return k, cost
        if code == BPF_LD_W_ABS:
            if k % 4 or k >= DATA_BYTES:
                raise BpfError(f"load from offset {k}")
            (accumulator,) = unpack_from("=I", data, k)
        elif code == BPF_ALU_AND_K:
            accumulator &= k
        elif code == BPF_JMP_JA:
            position += k
        else:
            position += jt if _holds(code, accumulator, k) else jf
    raise BpfError(f"the program runs out at instruction {position}")


def _holds(code: int, accumulator: int, k: int) -> bool:
    """Return whether the condition of a jump is met."""
    if code == BPF_JMP_JEQ_K:
        return accumulator == k
    if code == BPF_JMP_JGE_K:
        return accumulator >= k
    if code == BPF_JMP_JGT_K:
        return accumulator > k
    if code == BPF_JMP_JSET_K:
        return bool(accumulator & k)
    raise BpfError(f"unknown instruction {code:#x}")

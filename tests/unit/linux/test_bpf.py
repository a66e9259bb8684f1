"""The assembler, the disassembler and the simulator of classic BPF."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_reach.linux.abi.seccomp import (
    BPF_JMP_JEQ_K,
    BPF_JMP_JGE_K,
    BPF_JMP_JGT_K,
    BPF_JMP_JSET_K,
    BPF_MAXINSNS,
    DATA_ARGS,
)
from agent_reach.linux.seccomp import bpf

ARCH = 0xC000_003E


def assemble(build):
    out = bpf.Assembler()
    build(out)
    return out.assemble()


@pytest.mark.parametrize(
    ("code", "operand", "number", "held"),
    [
        (BPF_JMP_JEQ_K, 5, 5, True),
        (BPF_JMP_JEQ_K, 5, 6, False),
        (BPF_JMP_JGE_K, 5, 5, True),
        (BPF_JMP_JGE_K, 5, 4, False),
        (BPF_JMP_JGT_K, 5, 6, True),
        (BPF_JMP_JGT_K, 5, 5, False),
        (BPF_JMP_JSET_K, 6, 4, True),
        (BPF_JMP_JSET_K, 6, 1, False),
        (BPF_JMP_JGE_K, 0x4000_0000, -1, True),  # numbers are unsigned: -1 is the largest
    ],
)
def test_a_condition_compares_unsigned_numbers(code, operand, number, held):
    def build(out):
        out.load(0)
        out.branch(code, operand, otherwise="no")
        out.ret(1)
        out.label("no")
        out.ret(2)

    assert bpf.simulate(assemble(build), bpf.call_data(number, ARCH)) == ((1, 3) if held else (2, 3))


def test_a_load_takes_one_half_of_an_argument():
    def build(offset):
        def inner(out):
            out.load(offset)
            out.mask(0xFF)
            out.branch(BPF_JMP_JEQ_K, 0x11, otherwise="no")
            out.ret(1)
            out.label("no")
            out.ret(2)

        return assemble(inner)

    data = bpf.call_data(0, ARCH, (0, 0xFFFF_FF22_FFFF_FF11))
    assert bpf.simulate(build(DATA_ARGS + 8), data)[0] == 1
    assert bpf.simulate(build(DATA_ARGS + 12), data)[0] == 2


@given(
    gaps=st.lists(st.integers(min_value=0, max_value=400), min_size=1, max_size=6),
    sides=st.lists(st.sampled_from(["then", "otherwise", "both"]), min_size=6, max_size=6),
    number=st.integers(min_value=0, max_value=7),
)
@settings(max_examples=150, deadline=None)
def test_jumps_of_any_length_arrive(gaps, sides, number):
    """Branch i goes to target i when the number is i; the targets lie behind fillers of any length."""
    out = bpf.Assembler()
    out.load(0)
    for index, _gap in enumerate(gaps):
        side = sides[index]
        then = f"hit {index}" if side != "otherwise" else ""
        otherwise = f"next {index}" if side != "then" else ""
        out.branch(BPF_JMP_JEQ_K, index, then=then, otherwise=otherwise)
        if side == "otherwise":
            out.jump(f"hit {index}")
        if otherwise:
            out.label(otherwise)
    out.ret(99)
    for index, gap in enumerate(gaps):
        for _ in range(gap):
            out.ret(98)
        out.label(f"hit {index}")
        out.ret(index)
    program = out.assemble()
    assert bpf.simulate(program, bpf.call_data(number, ARCH))[0] == (number if number < len(gaps) else 99)
    assert bpf.encode(bpf.decode(program)) == program


def test_both_sides_of_a_jump_may_be_far():
    def build(out):
        out.load(0)
        out.branch(BPF_JMP_JEQ_K, 7, then="seven", otherwise="other")
        for _ in range(300):
            out.ret(98)
        out.label("seven")
        out.ret(7)
        for _ in range(300):
            out.ret(98)
        out.label("other")
        out.ret(8)

    program = assemble(build)
    assert bpf.simulate(program, bpf.call_data(7, ARCH)) == (7, 4)
    assert bpf.simulate(program, bpf.call_data(9, ARCH)) == (8, 4)


@pytest.mark.parametrize("distance", [250, 252, 253, 254, 255, 256, 257, 258])
def test_jumps_at_the_limit_of_eight_bits_arrive(distance):
    def build(out):
        out.load(0)
        out.branch(BPF_JMP_JEQ_K, 1, then="far")
        for _ in range(distance):
            out.ret(98)
        out.label("far")
        out.ret(1)

    program = assemble(build)
    assert bpf.simulate(program, bpf.call_data(1, ARCH))[0] == 1
    assert bpf.simulate(program, bpf.call_data(2, ARCH))[0] == 98


def test_the_disassembly_shows_absolute_targets():
    def build(out):
        out.load(4)
        out.branch(BPF_JMP_JSET_K, 0x10, otherwise="no")
        out.mask(0xFF)
        out.jump("no")
        out.label("no")
        out.ret(0x7FFF_0000)

    assert bpf.disassemble(assemble(build)).splitlines() == [
        "   0: ld [4]",
        "   1: jset 0x10 ? 2 : 4",
        "   2: and 0xff",
        "   3: ja 4",
        "   4: ret 0x7fff0000",
    ]


def backward(out):
    out.label("here")
    out.load(0)
    out.jump("here")


def missing(out):
    out.jump("nowhere")


def doubled(out):
    out.label("a")
    out.ret(0)
    out.label("a")
    out.ret(0)


def endless(out):
    for _ in range(BPF_MAXINSNS + 1):
        out.ret(0)


@pytest.mark.parametrize("build", [backward, missing, doubled, endless, lambda _out: None])
def test_what_the_kernel_would_not_take_is_not_assembled(build):
    with pytest.raises(bpf.BpfError):
        assemble(build)


@pytest.mark.parametrize(
    "program",
    [
        bpf.encode((bpf.Instruction(0x20, 0, 0, 64), bpf.Instruction(0x06, 0, 0, 0))),  # behind the data
        bpf.encode((bpf.Instruction(0x20, 0, 0, 2), bpf.Instruction(0x06, 0, 0, 0))),  # not aligned
        bpf.encode((bpf.Instruction(0x20, 0, 0, 0),)),  # runs out
        bpf.encode((bpf.Instruction(0x28, 0, 0, 0),)),  # 16-bit load, which seccomp refuses
    ],
)
def test_the_simulator_refuses_what_the_kernel_refuses(program):
    with pytest.raises(bpf.BpfError):
        bpf.simulate(program, bpf.call_data(0, ARCH))


def test_a_program_is_a_whole_number_of_instructions():
    with pytest.raises(bpf.BpfError):
        bpf.decode(bytes(9))

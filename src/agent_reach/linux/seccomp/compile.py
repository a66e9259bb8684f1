"""From the policy to the filter: deterministic, pure, and for either architecture on any machine."""

from __future__ import annotations

from agent_reach._util.record import Record
from agent_reach.linux.abi import table
from agent_reach.linux.abi.seccomp import (
    BPF_JMP_JEQ_K,
    BPF_JMP_JGE_K,
    BPF_JMP_JSET_K,
    DATA_ARCH,
    DATA_ARGS,
    DATA_NR,
    X32_SYSCALL_BIT,
)
from agent_reach.linux.seccomp.bpf import Assembler
from agent_reach.linux.seccomp.policy import KILL, build_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.linux.seccomp.options import FilterOptions
    from agent_reach.linux.seccomp.policy import Case, Policy, Rule

# Calls that programs make most and whose arguments matter. The kernel keeps a bitmap of the calls that a
# filter always allows and does not run the program for those (Linux 5.11): the rest is what costs.
HOT = ("futex", "openat", "fcntl", "ioctl", "sendto", "sendmsg")
ARGUMENT_BYTES = 8


class Span(Record):
    """Consecutive call numbers under one rule.

    Args:
        start: first number; the span ends where the next begins.
        rule: what happens to them.
    """

    start: int
    rule: Rule


def build(machine: str, options: FilterOptions) -> bytes:
    """Return the filter program of a machine under some options.

    Args:
        machine: ``x86_64`` or ``aarch64``.
        options: what the plan varies.

    Raises:
        KeyError: a machine without a table.
        ValueError: an option that is not one of the choices.
    """
    return compile_policy(build_policy(machine, options))


def filter_digest(program: bytes) -> str:
    """Return a short name of a program's content, for receipts and plan digests."""
    import hashlib

    return hashlib.blake2b(program, digest_size=16).hexdigest()


def compile_policy(policy: Policy) -> bytes:
    """Return the program that decides as the policy does.

    The architecture comes first, since a number means nothing without it; then the bit of x32; then the hot
    calls; then a binary search over ranges of numbers.
    """
    out = Assembler()
    blocks: dict[Rule, str] = {}
    out.load(DATA_ARCH)
    out.branch(BPF_JMP_JEQ_K, policy.arch, otherwise="foreign")
    out.load(DATA_NR)
    out.branch(BPF_JMP_JGE_K, X32_SYSCALL_BIT, then="unknown")
    numbers = table(policy.machine)
    for call in HOT:
        out.branch(BPF_JMP_JEQ_K, numbers[call], then=_block(blocks, policy.rules[numbers[call]]))
    _search(out, _spans(policy), blocks)
    for rule, label in blocks.items():
        out.label(label)
        _emit_rule(out, rule, label)
    out.label("unknown")
    out.ret(policy.unknown)
    out.label("foreign")
    out.ret(KILL)
    return out.assemble()


def _block(blocks: dict[Rule, str], rule: Rule) -> str:
    """Return the label of a rule's instructions; calls with equal rules share them."""
    return blocks.setdefault(rule, f"rule {len(blocks)}")


def _spans(policy: Policy) -> list[Span]:
    """Return the numbers from 0 upwards as spans of one rule each; the last has no end."""
    from agent_reach.linux.seccomp.policy import Rule

    unknown = Rule((), policy.unknown)
    spans: list[Span] = []
    for number in range(max(policy.rules) + 2):
        rule = policy.rules.get(number, unknown)
        if not spans or spans[-1].rule != rule:
            spans.append(Span(number, rule))
    return spans


def _search(out: Assembler, spans: list[Span], blocks: dict[Rule, str]) -> None:
    """Emit a balanced tree of comparisons whose leaves are actions or jumps to blocks."""
    if len(spans) == 1:
        rule = spans[0].rule
        if rule.cases:
            out.jump(_block(blocks, rule))
        else:
            out.ret(rule.action)
        return
    middle = len(spans) // 2
    right = f"from {spans[middle].start}"
    out.branch(BPF_JMP_JGE_K, spans[middle].start, then=right)
    _search(out, spans[:middle], blocks)
    out.label(right)
    _search(out, spans[middle:], blocks)


def _emit_rule(out: Assembler, rule: Rule, prefix: str) -> None:
    """Emit the cases of a rule, one behind the other."""
    for index, case in enumerate(rule.cases):
        _emit_case(out, case, f"{prefix} case {index}")
    out.ret(rule.action)


def _emit_case(out: Assembler, case: Case, prefix: str) -> None:
    """Emit the tests of a case; whichever fails goes on to the next case."""
    failed = f"{prefix} failed"
    for index, test in enumerate(case.tests):
        passed = f"{prefix} passed {index}"
        out.load(DATA_ARGS + ARGUMENT_BYTES * test.arg)  # the low half: both architectures are little-endian
        if not test.values:
            out.branch(BPF_JMP_JSET_K, test.mask, otherwise=failed)
            continue
        if test.mask != 0xFFFF_FFFF:
            out.mask(test.mask)
        for value in test.values[:-1]:
            out.branch(BPF_JMP_JEQ_K, value, then=passed)
        out.branch(BPF_JMP_JEQ_K, test.values[-1], otherwise=failed)
        out.label(passed)
    out.ret(case.action)
    out.label(failed)

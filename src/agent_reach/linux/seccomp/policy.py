"""The system call policy as data, and what it says about one call.

A policy gives every call of a machine's table one rule. A rule is a list of cases, each a few tests of
arguments and an action; the first case whose tests all hold decides, else the rule's own action. All tests
are on registers: memory that a pointer leads to can change after the filter has looked.
"""

from __future__ import annotations

from agent_reach._util.record import Record
from agent_reach.linux.abi import table
from agent_reach.linux.abi.seccomp import AUDIT_ARCHES, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, X32_SYSCALL_BIT
from agent_reach.linux.abi.seccomp import SECCOMP_RET_KILL_PROCESS as KILL
from agent_reach.linux.abi.seccomp import SECCOMP_RET_USER_NOTIF as NOTIFY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.linux.seccomp.options import FilterOptions

__all__ = ["ALLOW", "ENOSYS", "EPERM", "KILL", "NOTIFY", "Case", "Policy", "Rule", "Test", "build_policy", "errno"]

ALLOW = SECCOMP_RET_ALLOW
LOW_32_BITS = 0xFFFF_FFFF


def errno(number: int) -> int:
    """Return the action that makes a call fail with an error number; 0 makes it succeed without effect."""
    return SECCOMP_RET_ERRNO | number


EPERM = errno(1)
ENOSYS = errno(38)


class Test(Record):
    """A test of one argument.

    Every argument that a rule looks at is 32 bits wide in the kernel, which ignores the upper half of the
    register; so do the tests, or a caller could set a high bit and slip past.

    Args:
        arg: index of the argument, 0 to 5.
        values: the masked argument is one of these; empty: any bit of the mask is set.
        mask: bits that are looked at.
    """

    arg: int
    values: tuple[int, ...] = ()
    mask: int = LOW_32_BITS

    def holds(self, args: tuple[int, ...]) -> bool:
        """Return whether the test holds for the arguments of a call."""
        masked = args[self.arg] & self.mask & LOW_32_BITS
        return masked in self.values if self.values else masked != 0


class Case(Record):
    """An action for the calls that pass every test.

    Args:
        tests: all of them must hold.
        action: SECCOMP_RET_* value.
    """

    tests: tuple[Test, ...]
    action: int


class Rule(Record):
    """What happens to one call.

    Args:
        cases: the first that holds decides.
        action: SECCOMP_RET_* value when none does.
    """

    cases: tuple[Case, ...]
    action: int

    def decide(self, args: tuple[int, ...]) -> int:
        """Return the action for a call with six arguments."""
        for case in self.cases:
            if all(test.holds(args) for test in case.tests):
                return case.action
        return self.action


class Policy(Record):
    """The rules of one machine.

    Args:
        machine: ``x86_64`` or ``aarch64``.
        arch: AUDIT_ARCH_* value of the only architecture that may call.
        rules: call number to rule, for every call that the table knows.
        unknown: action for all other numbers.
    """

    machine: str
    arch: int
    rules: Mapping[int, Rule]
    unknown: int

    def decide(self, number: int, arch: int, args: tuple[int, ...]) -> int:
        """Return the action for a call.

        Args:
            number: call number, 32 bits.
            arch: AUDIT_ARCH_* value that the caller entered the kernel by.
            args: six arguments of 64 bits.
        """
        if arch != self.arch:
            return KILL
        # x32 shares the architecture of x86-64 and marks its numbers by one bit: CVE-2019-7303 of snapd.
        if number >= X32_SYSCALL_BIT or number not in self.rules:
            return self.unknown
        return self.rules[number].decide(args)


def build_policy(machine: str, options: FilterOptions) -> Policy:
    """Return the policy of a machine under some options.

    Raises:
        KeyError: a machine without a table.
        ValueError: an option that is not one of the choices.
    """
    from agent_reach.linux.seccomp.allow_list import ABSENT, EXPECTED, MEASURED
    from agent_reach.linux.seccomp.rules import argument_rules

    options.check()
    ruled = argument_rules(options)
    allowed = MEASURED | EXPECTED

    def rule_of(call: str) -> Rule:
        if call in ABSENT:
            return Rule((), ENOSYS)
        if call in ruled:
            return ruled[call]
        return Rule((), ALLOW if call in allowed else EPERM)

    rules = {number: rule_of(call) for call, number in table(machine).items()}
    return Policy(machine, AUDIT_ARCHES[machine], rules, ENOSYS)

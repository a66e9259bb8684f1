"""The call numbers: the short table agrees with the long ones, and the lists name real calls."""

from __future__ import annotations

import pytest

from agent_reach.linux import _syscalls
from agent_reach.linux.abi import fcntl, prctl, run_path, sched, seccomp, table
from agent_reach.linux.seccomp import allow_list

MACHINES = ("x86_64", "aarch64")
FIRST_SHARED_NUMBER = 424  # Linux 5.1 began to give new calls one number for all architectures


@pytest.mark.parametrize("machine", MACHINES)
def test_the_run_path_knows_the_same_numbers(machine):
    assert run_path.NUMBERS[machine].items() <= table(machine).items()


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_is_given_twice(machine):
    assert len(set(table(machine).values())) == len(table(machine))


def test_new_calls_have_one_number_everywhere():
    both = table("x86_64").keys() & table("aarch64").keys()
    differ = {call for call in both if table("x86_64")[call] != table("aarch64")[call]}
    assert all(max(table(machine)[call] for machine in MACHINES) < FIRST_SHARED_NUMBER for call in differ)


@pytest.mark.parametrize(
    ("call", "x86_64", "aarch64"),
    [("read", 0, 63), ("openat", 257, 56), ("newfstatat", 262, 79), ("clone", 56, 220), ("mseal", 462, 462)],
)
def test_well_known_numbers(call, x86_64, aarch64):
    assert (table("x86_64")[call], table("aarch64")[call]) == (x86_64, aarch64)


def test_the_lists_name_real_calls_and_do_not_overlap():
    known = table("x86_64").keys() | table("aarch64").keys()
    allowed = allow_list.MEASURED | allow_list.EXPECTED
    assert allowed <= known
    assert known >= allow_list.ABSENT
    assert not allowed & allow_list.ABSENT
    assert not allow_list.MEASURED & allow_list.EXPECTED


def test_an_unknown_machine_has_no_table():
    with pytest.raises(KeyError):
        table("riscv64")


def test_the_syscall_module_repeats_the_header_values_it_uses():
    for name, module in {
        "CLONE_CHILD_CLEARTID": sched,
        "CLONE_CHILD_SETTID": sched,
        "PR_GET_TID_ADDRESS": prctl,
        "LINUX_CAPABILITY_VERSION_3": prctl,
        "SECCOMP_SET_MODE_FILTER": seccomp,
        "SECCOMP_FILTER_FLAG_NEW_LISTENER": seccomp,
        "AT_FDCWD": fcntl,
    }.items():
        assert getattr(_syscalls, name) == getattr(module, name)

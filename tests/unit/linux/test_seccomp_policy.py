"""The policy and its compiler: every call of every architecture, and what each rule is there to stop."""

from __future__ import annotations

import random

import pytest

from agent_reach.linux.abi import fcntl, ioctls, prctl, sched, socket, table
from agent_reach.linux.abi.seccomp import AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM, AUDIT_ARCH_I386, AUDIT_ARCH_X86_64
from agent_reach.linux.seccomp import bpf
from agent_reach.linux.seccomp.compile import HOT, build, filter_digest
from agent_reach.linux.seccomp.options import FilterOptions
from agent_reach.linux.seccomp.policy import ALLOW, ENOSYS, EPERM, KILL, NOTIFY, build_policy, errno

MACHINES = {"x86_64": AUDIT_ARCH_X86_64, "aarch64": AUDIT_ARCH_AARCH64}
FULL = FilterOptions()
REDUCED = FilterOptions(tier="reduced")
STRICTEST = FilterOptions(
    tier="reduced",
    notify_signals=True,
    notify_forks=True,
    notify_socket=True,
    notify_branches=True,
    no_memfd=True,
    metadata="refuse",
    refuse_truncate=True,
    uid=1000,
    gid=0,
)
VARIANTS = [FULL, REDUCED, STRICTEST, FilterOptions(metadata="notify", notify_branches=True)]
HIGH = 0xFFFF_FFFF_0000_0000
EAFNOSUPPORT, EPROTONOSUPPORT, EOPNOTSUPP, EBUSY = errno(97), errno(93), errno(95), errno(16)


@pytest.fixture(scope="module")
def programs():
    """Return the program of a machine and options, built once."""
    built = {}

    def program(machine, options):
        key = (machine, options)
        if key not in built:
            built[key] = build(machine, options)
        return built[key]

    return program


def samples(rule, chooser):
    """Return argument lists on both sides of every test of a rule, with and without high bits."""
    edges = [{0, 1, 0xFFFF_FFFF} for _ in range(6)]
    for case in rule.cases:
        for test in case.tests:
            for value in test.values or (test.mask, test.mask & -test.mask):
                edges[test.arg] |= {value, value ^ 1, value | (~test.mask & 0xFFFF_FFFF)}
    choices = [sorted(values) for values in edges]
    wanted = 200 if rule.cases else 2
    for _ in range(wanted):
        args = tuple(chooser.choice(values) for values in choices)
        yield args
        yield tuple(value | HIGH for value in args)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("options", VARIANTS, ids=FilterOptions.key)
def test_the_program_decides_as_the_policy_for_every_call(programs, machine, options):
    policy, program = build_policy(machine, options), programs(machine, options)
    chooser = random.Random(machine + options.key())
    for number, rule in policy.rules.items():
        for args in samples(rule, chooser):
            wanted = policy.decide(number, policy.arch, args)
            action, _cost = bpf.simulate(program, bpf.call_data(number, policy.arch, args))
            assert action == wanted, (number, [hex(value) for value in args])


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_without_a_call_are_unknown(programs, machine):
    program, known = programs(machine, FULL), set(table(machine).values())
    gaps = [number for number in range(700) if number not in known]
    for number in (*gaps, 0x3FFF_FFFF, 0x7FFF_FFFF, 0x8000_0000, -1):
        assert bpf.simulate(program, bpf.call_data(number, MACHINES[machine]))[0] == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("arch", [AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, 0])
def test_another_architecture_kills(programs, machine, arch):
    if arch == MACHINES[machine]:
        assert bpf.simulate(programs(machine, FULL), bpf.call_data(table(machine)["read"], arch))[0] == ALLOW
        return
    for number in range(600):
        assert bpf.simulate(programs(machine, FULL), bpf.call_data(number, arch))[0] == KILL


def test_x32_numbers_do_not_exist(programs):
    program = programs("x86_64", FULL)
    for number in range(600):
        assert bpf.simulate(program, bpf.call_data(0x4000_0000 | number, AUDIT_ARCH_X86_64))[0] == ENOSYS


# The upper half of a register means nothing to a 32-bit argument: the table is run with it set and clear.
CASES = [
    # set-id bits, in every mode argument
    ("chmod", (0, 0o755), ALLOW),
    ("chmod", (0, 0o4755), EPERM),
    ("chmod", (0, 0o2755), EPERM),
    ("chmod", (0, 0o1777), ALLOW),
    ("fchmod", (0, 0o644), ALLOW),
    ("fchmod", (0, 0o6755), EPERM),
    ("fchmodat", (0, 0, 0o644), ALLOW),
    ("fchmodat", (0, 0, 0o4755), EPERM),
    ("fchmodat2", (0, 0, 0o644, 0), ALLOW),
    ("fchmodat2", (0, 0, 0o2755, 0), EPERM),
    ("creat", (0, 0o600), ALLOW),
    ("creat", (0, 0o4700), EPERM),
    ("open", (0, fcntl.O_CREAT, 0o600), ALLOW),
    ("open", (0, fcntl.O_CREAT, 0o4700), EPERM),
    ("open", (0, 0, 0o4700), ALLOW),  # no file is made: the kernel does not read the register
    ("openat", (0, 0, 0x80241, 0o666), ALLOW),
    ("openat", (0, 0, fcntl.O_CREAT, 0o4700), EPERM),
    ("openat", (0, 0, fcntl.TMPFILE_BIT | 0o200000 | 2, 0o2600), EPERM),
    ("openat", (0, 0, fcntl.TMPFILE_BIT | 0o200000 | 2, 0o600), ALLOW),
    ("openat", (0, 0, 0x80000, 0o6777), ALLOW),
    ("mkdir", (0, 0o755), ALLOW),
    ("mkdir", (0, 0o2755), EPERM),
    ("mkdirat", (0, 0, 0o755), ALLOW),
    ("mkdirat", (0, 0, 0o4755), EPERM),
    ("mknod", (0, 0o100644), ALLOW),
    ("mknod", (0, 0o104755), EPERM),
    ("mknodat", (0, 0, 0o010600), ALLOW),  # a FIFO
    ("mknodat", (0, 0, 0o140600), ALLOW),  # a socket
    ("mknodat", (0, 0, 0o600), ALLOW),  # no type is a regular file
    ("mknodat", (0, 0, 0o020666), EPERM),  # a character device
    ("mknodat", (0, 0, 0o060666), EPERM),
    ("openat2", (0, 0, 0, 24), ENOSYS),  # the mode is in memory
    ("fcntl", (0, 3), ALLOW),
    ("fcntl", (0, fcntl.F_SETLEASE), EPERM),
    ("fcntl", (0, fcntl.F_NOTIFY), EPERM),
    ("splice", (), ENOSYS),
    ("copy_file_range", (), ALLOW),
    # namespaces and privilege
    ("clone", (sched.CLONE_VM | sched.CLONE_VFORK | 17,), ALLOW),
    ("clone", (0x3D0F00,), ALLOW),  # pthread_create
    *(("clone", (flag | 17,), EPERM) for flag in (sched.CLONE_NEWNS, sched.CLONE_NEWUSER, sched.CLONE_NEWNET)),
    *(("clone", (flag | 17,), EPERM) for flag in (sched.CLONE_NEWPID, sched.CLONE_NEWIPC, sched.CLONE_NEWUTS)),
    ("clone", (sched.CLONE_NEWCGROUP | 17,), EPERM),
    ("clone3", (0, 88), ENOSYS),
    *((call, (), EPERM) for call in ("unshare", "setns", "mount", "umount2", "pivot_root", "chroot")),
    *((call, (), EPERM) for call in ("open_tree", "move_mount", "mount_setattr", "fsopen", "open_by_handle_at")),
    *((call, (), EPERM) for call in ("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp")),
    *((call, (), EPERM) for call in ("bpf", "perf_event_open", "userfaultfd", "fanotify_init", "init_module")),
    *((call, (), EPERM) for call in ("setuid", "setgid", "setgroups", "capset", "shmget", "msgget", "semget")),
    *((call, (), ENOSYS) for call in ("io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key")),
    ("setresuid", (0xFFFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFF), ALLOW),
    ("setresuid", (0xFFFF_FFFF, 0, 0xFFFF_FFFF), EPERM),
    # processes
    ("kill", (1, 9), ALLOW),
    ("execveat", (), ALLOW),
    ("memfd_create", (), ALLOW),
    ("personality", (0xFFFF_FFFF,), ALLOW),
    ("personality", (0,), ALLOW),
    ("personality", (0x0040000,), EPERM),  # ADDR_NO_RANDOMIZE
    ("personality", (8,), EPERM),
    ("prctl", (prctl.PR_SET_NAME,), ALLOW),
    ("prctl", (prctl.PR_SET_PDEATHSIG, 9), ALLOW),
    ("prctl", (prctl.PR_SET_DUMPABLE, 0), errno(0)),
    ("prctl", (prctl.PR_SET_DUMPABLE, 1), errno(0)),
    ("prctl", (prctl.PR_SET_SECCOMP, 2), EPERM),
    ("prctl", (prctl.PR_SET_MM, 1), EPERM),
    ("prctl", (prctl.PR_SET_PTRACER, -1), EPERM),
    ("prctl", (prctl.PR_SET_CHILD_SUBREAPER, 1), EPERM),
    ("prctl", (prctl.PR_CAP_AMBIENT, 2), EPERM),
    ("seccomp", (1, 0), ALLOW),
    ("seccomp", (1, 1), ALLOW),
    ("seccomp", (1, 8), EBUSY),
    ("seccomp", (1, 0x39), EBUSY),
    ("landlock_create_ruleset", (), ALLOW),
    ("futex", (0, 0x80), ALLOW),  # WAIT | PRIVATE
    ("futex", (0, 0x189), ALLOW),  # WAIT_BITSET | PRIVATE | CLOCK_REALTIME
    *(("futex", (0, operation), ENOSYS) for operation in (6, 7, 8, 11, 12, 13, 0x86, 0x18B, 0x18D, 14, 0x206)),
    ("sched_setscheduler", (0, sched.SCHED_OTHER), ALLOW),
    ("sched_setscheduler", (0, sched.SCHED_BATCH | sched.SCHED_RESET_ON_FORK), ALLOW),
    ("sched_setscheduler", (0, sched.SCHED_FIFO), EPERM),
    ("sched_setscheduler", (0, sched.SCHED_RR), EPERM),
    ("sched_setscheduler", (0, sched.SCHED_DEADLINE), EPERM),
    # terminals
    *(("ioctl", (0, request), ALLOW) for request in (ioctls.TCGETS, ioctls.TIOCGWINSZ, ioctls.FIOCLEX)),
    *(("ioctl", (0, request), ALLOW) for request in (ioctls.TIOCSCTTY, ioctls.TIOCGPTPEER, ioctls.TIOCNOTTY)),
    *(("ioctl", (0, request), EPERM) for request in (ioctls.TIOCSTI, ioctls.TIOCLINUX, ioctls.TIOCSETD)),
    *(("ioctl", (0, request), EPERM) for request in (ioctls.TIOCCONS, ioctls.FIOASYNC, 0x8901, 0x6601, 0xAA00)),
    ("ioctl", (0, ioctls.SIOCGIFINDEX), ALLOW),
    ("ioctl", (0, ioctls.FICLONE), EOPNOTSUPP),
    ("ioctl", (0, 0xC018_2101), EPERM),  # answering a notification
    # network
    ("connect", (3, 0, 16), NOTIFY),
    ("listen", (3, 5), NOTIFY),
    ("bind", (3, 0, 16), ALLOW),
    ("socket", (2, 1 | 0x80800, 0), ALLOW),
    ("socket", (10, 1, 6), ALLOW),
    ("socket", (2, 2, 17), ALLOW),
    ("socket", (2, 1, socket.IPPROTO_MPTCP), EPROTONOSUPPORT),
    ("socket", (2, 2, 1), EPROTONOSUPPORT),  # ping
    ("socket", (2, 3, 1), EPERM),  # raw
    ("socket", (2, 10, 3), EPERM),  # SOCK_PACKET
    ("socket", (1, 1, 0), ALLOW),
    ("socket", (1, 5 | 0x80000, 0), ALLOW),
    ("socket", (1, 2, 0), EPERM),
    ("socket", (1, 3, 0), EPERM),  # becomes a datagram socket
    ("socket", (16, 3 | 0x80000, 0), ALLOW),
    ("socket", (16, 3, 9), EAFNOSUPPORT),  # audit
    ("socket", (16, 3, 12), EAFNOSUPPORT),  # netfilter
    *(("socket", (family, 1, 0), EAFNOSUPPORT) for family in (17, 38, 40, 29, 31, 44)),
    ("socketpair", (1, 1 | 0x80000, 0), ALLOW),
    ("socketpair", (1, 5, 0), ALLOW),
    ("socketpair", (1, 2, 0), EPERM),
    ("socketpair", (2, 1, 0), EOPNOTSUPP),
    ("sendto", (3, 0, 0, 0x4000), ALLOW),
    ("sendto", (3, 0, 0, socket.MSG_FASTOPEN), EOPNOTSUPP),
    ("sendmsg", (3, 0, 0x4000), ALLOW),
    ("sendmsg", (3, 0, 0x4000 | socket.MSG_FASTOPEN), EOPNOTSUPP),
    ("sendmmsg", (3, 0, 1, 0), ALLOW),
    ("sendmmsg", (3, 0, 1, socket.MSG_FASTOPEN), EOPNOTSUPP),
    *(("setsockopt", (3, 1, option), ALLOW) for option in (2, 7, 8, 9, 15, 20)),
    *(("setsockopt", (3, 1, option), EPERM) for option in (25, 26, 36, 50, 51, 52, 60, 62)),
    *(("setsockopt", (3, 6, option), ALLOW) for option in (1, 4, 5, 6, 18)),
    *(("setsockopt", (3, 6, option), EPERM) for option in (14, 19, 30, 31)),
    ("setsockopt", (3, 0, 1), ALLOW),
    ("setsockopt", (3, 0, socket.IP_OPTIONS), EPERM),  # a source route
    ("setsockopt", (3, 0, 64), EPERM),
    ("setsockopt", (3, 41, 26), ALLOW),
    ("setsockopt", (3, 41, 67), ALLOW),  # the traffic class
    ("setsockopt", (3, 41, socket.IPV6_RTHDR), EPERM),
    ("setsockopt", (3, 41, 64), EPERM),
    ("setsockopt", (3, 17, 103), ALLOW),
    ("setsockopt", (3, 17, socket.UDP_ENCAP), EPERM),
    *(("setsockopt", (3, level, 1), EPERM) for level in (282, 270, 279, 132, 255)),
    ("arch_prctl", (prctl.ARCH_SET_FS,), ALLOW),
    ("arch_prctl", (prctl.ARCH_REQ_XCOMP_PERM, 18), ALLOW),
    ("arch_prctl", (prctl.ARCH_SET_GS,), EPERM),
    ("arch_prctl", (0x1012,), EPERM),  # turns cpuid off
    *((call, (), EPERM) for call in ("modify_ldt", "iopl", "ioperm")),
]


def check(program, machine, call, args, action):
    """Compare the action of a call that the machine has, with the upper halves clear and set."""
    number = table(machine).get(call)
    if number is None:
        return
    padded = (*args, 0, 0, 0, 0, 0, 0)[:6]
    for high in (0, HIGH, 1 << 32):
        given = tuple((value & 0xFFFF_FFFF) | high for value in padded)
        assert bpf.simulate(program, bpf.call_data(number, MACHINES[machine], given))[0] == action, (call, args, high)


@pytest.mark.parametrize("machine", MACHINES)
def test_full_tier(programs, machine):
    for call, args, action in CASES:
        check(programs(machine, FULL), machine, call, args, action)


def test_every_call_of_the_table_of_cases_exists_somewhere():
    known = table("x86_64").keys() | table("aarch64").keys()
    assert {call for call, _args, _action in CASES} <= known


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "args", "action"),
    [
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (1234, 7), EPERM),
        ("setpriority", (0, 0, 5), ALLOW),
        ("setpriority", (0, 1234, 5), EPERM),
        ("setpriority", (2, 0, 5), EPERM),  # every process of the user
        ("ioprio_set", (1, 0), ALLOW),
        ("ioprio_set", (3, 0), EPERM),
        ("sched_setaffinity", (0,), ALLOW),
        ("sched_setaffinity", (1234,), EPERM),
        ("sched_setparam", (0,), ALLOW),
        ("sched_setparam", (1234,), EPERM),
        ("sched_setscheduler", (0, 0), ALLOW),
        ("sched_setscheduler", (1234, 0), EPERM),
        ("sched_setscheduler", (0, 1), EPERM),
        ("socket", (2, 1, 0), ALLOW),
        ("socket", (2, 2, 0), EPERM),
        ("socket", (2, 1, 17), EPROTONOSUPPORT),
        ("socket", (16, 3, 0), EAFNOSUPPORT),
        ("socket", (1, 1, 0), ALLOW),
        ("ioctl", (0, ioctls.SIOCGIFCONF), EPERM),
        ("ioctl", (0, ioctls.TCGETS), ALLOW),
        ("fcntl", (0, fcntl.F_SETOWN, 1234), EPERM),
        ("fcntl", (0, fcntl.F_SETSIG, 9), EPERM),
        ("fcntl", (0, fcntl.F_SETOWN_EX), EPERM),
        ("fcntl", (0, fcntl.F_SETLEASE), EPERM),
        ("fcntl", (0, 4), ALLOW),
        ("kill", (1234, 15), ALLOW),  # Landlock scopes it
        ("chmod", (0, 0o644), ALLOW),
        ("chmod", (0, 0o4755), EPERM),
    ],
)
def test_reduced_tier_reaches_no_foreign_process(programs, machine, call, args, action):
    check(programs(machine, REDUCED), machine, call, args, action)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("options", "call", "args", "action"),
    [
        ({"notify_signals": True}, "kill", (1, 9), NOTIFY),
        ({"notify_signals": True}, "tgkill", (1, 1, 9), NOTIFY),
        ({"notify_signals": True}, "pidfd_send_signal", (3, 9), NOTIFY),
        ({"notify_signals": True}, "rt_sigqueueinfo", (1, 9), NOTIFY),
        ({"notify_forks": True}, "clone", (17,), NOTIFY),
        ({"notify_forks": True}, "clone", (0x3D0F00,), ALLOW),
        ({"notify_forks": True}, "clone", (sched.CLONE_NEWUSER | 17,), EPERM),
        ({"notify_forks": True}, "vfork", (), NOTIFY),
        ({}, "vfork", (), ALLOW),
        ({"notify_branches": True}, "clone", (sched.CLONE_NEWUSER | sched.CLONE_NEWNS | 17,), NOTIFY),
        ({"notify_branches": True}, "clone", (sched.CLONE_NEWUSER | 17,), EPERM),
        ({"notify_branches": True}, "clone", (sched.CLONE_NEWUSER | sched.CLONE_NEWNS | sched.CLONE_NEWNET,), EPERM),
        ({"notify_socket": True}, "socket", (2, 1, 0), NOTIFY),
        ({"notify_socket": True}, "socket", (1, 1, 0), ALLOW),
        ({"notify_socket": True}, "socket", (17, 3, 0), EAFNOSUPPORT),
        ({"uid": 1000}, "setuid", (1000,), ALLOW),
        ({"uid": 1000}, "setuid", (0,), EPERM),
        ({"uid": 0}, "setuid", (0,), ALLOW),
        ({"uid": 1000}, "setresuid", (-1, 1000, -1), ALLOW),
        ({"uid": 1000}, "setresuid", (1000, 1000, 0), EPERM),
        ({"uid": 1000}, "setreuid", (1000, -1), ALLOW),
        ({"uid": 1000}, "setgid", (1000,), EPERM),
        ({"gid": 1000}, "setresgid", (1000, 1000, 1000), ALLOW),
        ({"gid": 1000}, "setregid", (1000, 100), EPERM),
        ({"uid": 1000, "gid": 1000}, "setgroups", (), EPERM),
        ({"no_memfd": True}, "memfd_create", (), ENOSYS),
        ({"refuse_truncate": True}, "truncate", (), EPERM),
        ({"refuse_truncate": True}, "ftruncate", (), ALLOW),
        ({"metadata": "refuse"}, "chmod", (0, 0o644), EPERM),
        ({"metadata": "refuse"}, "fchown", (), EPERM),
        ({"metadata": "refuse"}, "utimensat", (), EPERM),
        ({"metadata": "refuse"}, "setxattr", (), EPERM),
        ({"metadata": "notify"}, "fchmodat", (0, 0, 0o644), NOTIFY),
        ({"metadata": "notify"}, "fchmodat", (0, 0, 0o4755), EPERM),
        ({"metadata": "notify"}, "lremovexattr", (), NOTIFY),
    ],
)
def test_options(programs, machine, options, call, args, action):
    check(programs(machine, FilterOptions(**options)), machine, call, args, action)


@pytest.mark.parametrize("wrong", [{"tier": "Full"}, {"metadata": "deny"}])
def test_a_misspelt_option_is_no_weaker_filter(wrong):
    with pytest.raises(ValueError, match="is one of"):
        build("x86_64", FilterOptions(**wrong))


@pytest.mark.parametrize("machine", MACHINES)
def test_frequent_calls_are_decided_in_few_instructions(programs, machine):
    program, numbers = programs(machine, FULL), table(machine)

    def cost(call, *args):
        action, count = bpf.simulate(program, bpf.call_data(numbers[call], MACHINES[machine], args))
        assert action == ALLOW
        return count

    assert cost("read") <= 20
    assert max(cost(call) for call in ("write", "close", "newfstatat", "mmap", "recvfrom", "epoll_pwait")) <= 20
    assert cost("futex", 0, 0x80) <= 10
    assert cost("openat", 0, 0, 0x80000) <= 12
    assert cost("ioctl", 0, ioctls.TCGETS) <= 16
    assert len(program) // 8 <= 700


def test_hot_calls_have_rules_on_arguments():
    policy = build_policy("x86_64", FULL)
    assert all(policy.rules[table("x86_64")[call]].cases for call in HOT)


def test_the_program_is_the_same_every_time():
    assert build("x86_64", FULL) == build("x86_64", FilterOptions())
    digests = {filter_digest(build(machine, options)) for machine in MACHINES for options in VARIANTS}
    assert len(digests) == len(MACHINES) * len(VARIANTS)
    assert len({options.key() for options in VARIANTS}) == len(VARIANTS)


def test_the_disassembly_has_a_line_for_each_instruction(programs):
    program = programs("x86_64", STRICTEST)
    assert len(bpf.disassemble(program).splitlines()) == len(program) // 8
    assert bpf.encode(bpf.decode(program)) == program

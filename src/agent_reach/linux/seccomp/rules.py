"""The rules that look at arguments, and those that the options change. Data, but for `argument_rules`."""

from __future__ import annotations

from agent_reach.linux.abi import fcntl, ioctls, prctl, sched, seccomp, socket
from agent_reach.linux.seccomp.policy import ALLOW, ENOSYS, EPERM, NOTIFY, Case, Rule, Test, errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.linux.seccomp.options import FilterOptions

EBUSY = errno(16)
EPROTONOSUPPORT = errno(93)
EOPNOTSUPP = errno(95)
EAFNOSUPPORT = errno(97)
NO_EFFECT = errno(0)
MINUS_ONE = 0xFFFF_FFFF


def _is(arg: int, *values: int, mask: int = 0xFFFF_FFFF) -> Test:
    """Test that an argument is one of some values."""
    return Test(arg, values, mask)


def _has(arg: int, bits: int) -> Test:
    """Test that an argument has any of some bits."""
    return Test(arg, (), bits)


def _only(*tests: Test, otherwise: int = EPERM) -> Rule:
    """Allow the calls that pass every test."""
    return Rule((Case(tests, ALLOW),), otherwise)


def _never(*tests: Test, action: int = EPERM) -> Rule:
    """Refuse the calls that pass every test, and allow the others."""
    return Rule((Case(tests, action),), ALLOW)


# --- files ----------------------------------------------------------------------------------------------
# A set-id program that the payload plants in a writable grant belongs to the run's identity on the host,
# behind an id-mapped mount even to root: whoever starts it outside runs the payload's code.
SET_ID_BITS = fcntl.S_ISUID | fcntl.S_ISGID
CREATES = fcntl.O_CREAT | fcntl.TMPFILE_BIT  # the kernel reads the mode only then
# mknod passes its type with the mode; 0 is a regular file. Devices, whiteouts among them, stay out.
NODE_TYPES = (0, fcntl.S_IFREG, fcntl.S_IFIFO, fcntl.S_IFSOCK)


def _node(mode: int) -> Rule:
    """Return the rule of mknod: no set-id bits, no devices."""
    return Rule(
        (Case((_has(mode, SET_ID_BITS),), EPERM), Case((_is(mode, *NODE_TYPES, mask=fcntl.S_IFMT),), ALLOW)), EPERM
    )


FILES = {
    "chmod": _never(_has(1, SET_ID_BITS)),
    "fchmod": _never(_has(1, SET_ID_BITS)),
    "fchmodat": _never(_has(2, SET_ID_BITS)),
    "fchmodat2": _never(_has(2, SET_ID_BITS)),
    "creat": _never(_has(1, SET_ID_BITS)),
    "open": _never(_has(1, CREATES), _has(2, SET_ID_BITS)),
    "openat": _never(_has(2, CREATES), _has(3, SET_ID_BITS)),
    "mkdir": _never(_has(1, SET_ID_BITS)),
    "mkdirat": _never(_has(2, SET_ID_BITS)),
    "mknod": _node(1),
    "mknodat": _node(2),
    # A lease stalls other openers of a shared file; dnotify is old code that nobody needs.
    "fcntl": _never(_is(1, fcntl.F_SETLEASE, fcntl.F_NOTIFY)),
}

# --- terminals and devices ------------------------------------------------------------------------------
# The hottest first. TIOCSTI, TIOCLINUX, TIOCSETD and TIOCCONS act on whoever else holds the terminal.
TERMINAL_IOCTLS = (
    ioctls.TCGETS,
    ioctls.FIONBIO,
    ioctls.FIOCLEX,
    ioctls.FIONREAD,
    ioctls.TIOCGWINSZ,
    ioctls.FIONCLEX,
    ioctls.TCSETS,
    ioctls.TCSETSW,
    ioctls.TCSETSF,
    ioctls.TCGETS2,
    ioctls.TCSETS2,
    ioctls.TCSETSW2,
    ioctls.TCSETSF2,
    ioctls.TCSBRK,
    ioctls.TCSBRKP,
    ioctls.TCXONC,
    ioctls.TCFLSH,
    ioctls.TIOCSCTTY,
    ioctls.TIOCNOTTY,
    ioctls.TIOCGPGRP,
    ioctls.TIOCSPGRP,
    ioctls.TIOCGSID,
    ioctls.TIOCOUTQ,
    ioctls.TIOCSWINSZ,
    ioctls.TIOCGPTN,
    ioctls.TIOCSPTLCK,
    ioctls.TIOCGPTLCK,
    ioctls.TIOCGPTPEER,
)
INTERFACE_IOCTLS = (
    ioctls.SIOCGIFNAME,
    ioctls.SIOCGIFCONF,
    ioctls.SIOCGIFFLAGS,
    ioctls.SIOCGIFADDR,
    ioctls.SIOCGIFBRDADDR,
    ioctls.SIOCGIFNETMASK,
    ioctls.SIOCGIFMTU,
    ioctls.SIOCGIFHWADDR,
    ioctls.SIOCGIFINDEX,
)


def _ioctl(allowed: tuple[int, ...]) -> Rule:
    """Return the rule of ioctl.

    A copy-on-write copy is answered as by a filesystem without it: pathlib of Python 3.14 copies the
    ordinary way after EOPNOTSUPP, and gives up after EPERM.
    """
    clones = _is(1, ioctls.FICLONE, ioctls.FICLONERANGE)
    return Rule((Case((_is(1, *allowed),), ALLOW), Case((clones,), EOPNOTSUPP)), EPERM)


# --- processes ------------------------------------------------------------------------------------------
NEW_NAMESPACE = _has(0, sched.CLONE_NEW_ANY)
# By a priority-inheriting lock ordinary code reaches rtmutex, which it never needs (CVE-2026-43499).
# Listed are WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET and WAKE_BITSET.
FUTEX_OPERATIONS = (0, 1, 9, 10, 5, 4, 3)
FUTEX_COMMAND_MASK = 0xFFFF_FE7F  # without PRIVATE_FLAG and CLOCK_REALTIME
ORDINARY_POLICIES = _is(
    1, sched.SCHED_OTHER, sched.SCHED_BATCH, sched.SCHED_IDLE, mask=~sched.SCHED_RESET_ON_FORK & 0xFFFF_FFFF
)
PRCTL_OPERATIONS = (
    prctl.PR_SET_NAME,
    prctl.PR_GET_NAME,
    prctl.PR_SET_VMA,
    prctl.PR_SET_PDEATHSIG,
    prctl.PR_GET_PDEATHSIG,
    prctl.PR_GET_DUMPABLE,
    prctl.PR_GET_SECCOMP,
    prctl.PR_CAPBSET_READ,
    prctl.PR_GET_SECUREBITS,
    prctl.PR_SET_TIMERSLACK,
    prctl.PR_GET_TIMERSLACK,
    prctl.PR_GET_CHILD_SUBREAPER,
    prctl.PR_SET_NO_NEW_PRIVS,
    prctl.PR_GET_NO_NEW_PRIVS,
    prctl.PR_GET_TID_ADDRESS,
    prctl.PR_SET_THP_DISABLE,
    prctl.PR_GET_THP_DISABLE,
    prctl.PR_GET_AUXV,
)
# Thread pointers, shadow stacks, and the permission for AMX registers that numerical libraries ask for.
ARCH_PRCTL_OPERATIONS = (
    prctl.ARCH_SET_FS,
    prctl.ARCH_GET_FS,
    prctl.ARCH_GET_XCOMP_SUPP,
    prctl.ARCH_GET_XCOMP_PERM,
    prctl.ARCH_REQ_XCOMP_PERM,
    prctl.ARCH_CET_STATUS,
    prctl.ARCH_SHSTK_ENABLE,
    prctl.ARCH_SHSTK_DISABLE,
    prctl.ARCH_SHSTK_LOCK,
    prctl.ARCH_SHSTK_STATUS,
)

PROCESSES = {
    "clone": _never(NEW_NAMESPACE),
    "futex": _only(_is(1, *FUTEX_OPERATIONS, mask=FUTEX_COMMAND_MASK), otherwise=ENOSYS),
    # Dumpable stays as set up: without it the broker could not read the caller's memory.
    "prctl": Rule(
        (Case((_is(0, prctl.PR_SET_DUMPABLE),), NO_EFFECT), Case((_is(0, *PRCTL_OPERATIONS),), ALLOW)), EPERM
    ),
    "arch_prctl": _only(_is(0, *ARCH_PRCTL_OPERATIONS)),
    "personality": _only(_is(0, prctl.PERSONALITY_QUERY, prctl.PER_LINUX)),
    # libzmq aborts the process when SCHED_OTHER is refused.
    "sched_setscheduler": _only(ORDINARY_POLICIES),
    # A second listener would take the broker's place; the kernel says the same when it sees one.
    "seccomp": _never(_has(1, seccomp.SECCOMP_FILTER_FLAG_NEW_LISTENER), action=EBUSY),
}

# --- network --------------------------------------------------------------------------------------------
INTERNET = _is(0, socket.AF_INET, socket.AF_INET6)
LOCAL = _is(0, socket.AF_UNIX)
# A datagram socket sends to any path by sendmsg, whose address no filter sees. SOCK_RAW means it here too.
CONNECTED = _is(1, socket.SOCK_STREAM, socket.SOCK_SEQPACKET, mask=socket.SOCK_TYPE_MASK)
FAST_OPEN_REFUSED = EOPNOTSUPP  # what the kernel answers when net.ipv4.tcp_fastopen is off
# A BPF filter, a mark, another interface than the broker chose, and zero copy, which has had its holes.
SOCKET_OPTIONS_REFUSED = (
    socket.SO_BINDTODEVICE,
    socket.SO_ATTACH_FILTER,
    socket.SO_MARK,
    socket.SO_LOCK_FILTER,
    socket.SO_ATTACH_BPF,
    socket.SO_ATTACH_REUSEPORT_CBPF,
    socket.SO_ATTACH_REUSEPORT_EBPF,
    socket.SO_ZEROCOPY,
    socket.SO_TXTIME,
    socket.SO_BINDTOIFINDEX,
)
PACKET_FILTER_OPTIONS = tuple(range(socket.XT_SO_FIRST, socket.XT_SO_LAST + 1))
# A source route on a connected socket sends its packets by way of any host that the payload names: the
# broker would have connected to an allowed address, and the bytes would go elsewhere.
IP_OPTIONS_REFUSED = (socket.IP_OPTIONS, socket.IP_UNICAST_IF, *PACKET_FILTER_OPTIONS)
IPV6_OPTIONS_REFUSED = (
    socket.IPV6_RTHDR,
    socket.IPV6_2292RTHDR,
    socket.IPV6_2292PKTOPTIONS,
    socket.IPV6_UNICAST_IF,
    *PACKET_FILTER_OPTIONS[:2],  # 66 and 67 are the traffic class
)
# TCP_ULP loads kernel TLS; FASTOPEN_CONNECT turns a later send into a connect that is not notified.
TCP_OPTIONS_REFUSED = (
    socket.TCP_MD5SIG,
    socket.TCP_REPAIR,
    socket.TCP_FASTOPEN_CONNECT,
    socket.TCP_ULP,
    socket.TCP_MD5SIG_EXT,
)
LEVELS = (socket.SOL_SOCKET, socket.IPPROTO_TCP, socket.IPPROTO_IP, socket.IPPROTO_IPV6, socket.IPPROTO_UDP)


def _refused_options(level: int, options: tuple[int, ...]) -> Case:
    """Refuse some socket options of a level."""
    return Case((_is(1, level), _is(2, *options)), EPERM)


def _socket(tier: str, internet: int) -> Rule:
    """Return the rule of socket.

    The errors are the kernel's own for what it was built without, so that programs try the next best: Go
    asks for MPTCP first. MPTCP would carry one connection over addresses that the broker never saw.

    Args:
        tier: ``reduced`` has neither UDP nor netlink, which reach past the broker in the host's network.
        internet: action for a permitted internet socket.
    """
    full = tier == "full"
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM) if full else (socket.SOCK_STREAM,)
    protocols = (0, socket.IPPROTO_TCP, socket.IPPROTO_UDP) if full else (0, socket.IPPROTO_TCP)
    kind = _is(1, *kinds, mask=socket.SOCK_TYPE_MASK)
    netlink = (Case((_is(0, socket.AF_NETLINK), _is(2, socket.NETLINK_ROUTE)), ALLOW),) if full else ()
    return Rule(
        (
            Case((INTERNET, kind, _is(2, *protocols)), internet),
            Case((LOCAL, CONNECTED, _is(2, 0)), ALLOW),
            *netlink,
            Case((INTERNET, kind), EPROTONOSUPPORT),
            Case((_is(0, socket.AF_UNIX, socket.AF_INET, socket.AF_INET6),), EPERM),
        ),
        EAFNOSUPPORT,
    )


NETWORK = {
    "connect": Rule((), NOTIFY),
    "listen": Rule((), NOTIFY),
    "socketpair": Rule((Case((LOCAL, CONNECTED, _is(2, 0)), ALLOW), Case((LOCAL,), EPERM)), EOPNOTSUPP),
    "sendto": _never(_has(3, socket.MSG_FASTOPEN), action=FAST_OPEN_REFUSED),
    "sendmsg": _never(_has(2, socket.MSG_FASTOPEN), action=FAST_OPEN_REFUSED),
    "sendmmsg": _never(_has(3, socket.MSG_FASTOPEN), action=FAST_OPEN_REFUSED),
    "setsockopt": Rule(
        (
            _refused_options(socket.SOL_SOCKET, SOCKET_OPTIONS_REFUSED),
            _refused_options(socket.IPPROTO_TCP, TCP_OPTIONS_REFUSED),
            _refused_options(socket.IPPROTO_IP, IP_OPTIONS_REFUSED),
            _refused_options(socket.IPPROTO_IPV6, IPV6_OPTIONS_REFUSED),
            _refused_options(socket.IPPROTO_UDP, (socket.UDP_ENCAP,)),
            Case((_is(1, *LEVELS),), ALLOW),
        ),
        EPERM,
    ),
}

# --- tier reduced ---------------------------------------------------------------------------------------
# In the host's pid namespace these reach every process of the same user; 0 is the caller itself.
SELF = _is(0, 0)
FOREIGN_PROCESSES = {
    "prlimit64": _only(SELF),
    "sched_setaffinity": _only(SELF),
    "sched_setparam": _only(SELF),
    "sched_setscheduler": _only(SELF, ORDINARY_POLICIES),
    "setpriority": _only(_is(0, sched.PRIO_PROCESS), _is(1, 0)),
    "ioprio_set": _only(_is(0, sched.IOPRIO_WHO_PROCESS), _is(1, 0)),
    # An owner and a signal of choice turn readiness of a descriptor into a kill of any process.
    "fcntl": _never(_is(1, fcntl.F_SETLEASE, fcntl.F_NOTIFY, fcntl.F_SETOWN, fcntl.F_SETSIG, fcntl.F_SETOWN_EX)),
}
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
METADATA = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "fchownat", "lchown"),
    *("utime", "utimes", "utimensat", "setxattr", "lsetxattr", "fsetxattr"),
    *("removexattr", "lremovexattr", "fremovexattr"),
)


def argument_rules(options: FilterOptions) -> dict[str, Rule]:
    """Return the rules of all calls that are not simply allowed or refused, by name."""
    full = options.tier == "full"
    rules = {
        **FILES,
        **PROCESSES,
        **NETWORK,
        "ioctl": _ioctl(TERMINAL_IOCTLS + INTERFACE_IOCTLS if full else TERMINAL_IOCTLS),
        **_identity(options.uid, options.gid),
        "socket": _socket(options.tier, NOTIFY if options.notify_socket else ALLOW),
    }
    if not full:
        rules |= FOREIGN_PROCESSES
    if options.notify_signals:
        rules |= dict.fromkeys(SIGNALS, Rule((), NOTIFY))
    if options.metadata != "allow":
        action = NOTIFY if options.metadata == "notify" else EPERM
        rules |= {call: Rule(rules[call].cases if call in rules else (), action) for call in METADATA}
    if options.no_memfd:
        rules["memfd_create"] = Rule((), ENOSYS)
    if options.refuse_truncate:
        rules["truncate"] = Rule((), EPERM)
    return rules | _forks(options)


def _identity(uid: int, gid: int) -> dict[str, Rule]:
    """Return the rules of setuid and its relatives: to the ids that one has, or -1, which keeps them.

    The run has no capability to change them; refused here, the error is EPERM as without privileges, and
    not the EINVAL that the kernel has for an id which the run's user namespace does not map.
    """
    users = tuple(sorted({MINUS_ONE, uid & MINUS_ONE}))
    groups = tuple(sorted({MINUS_ONE, gid & MINUS_ONE}))
    return {
        **({"setuid": _only(_is(0, uid))} if uid >= 0 else {}),
        **({"setgid": _only(_is(0, gid))} if gid >= 0 else {}),
        "setreuid": _only(*(_is(arg, *users) for arg in range(2))),
        "setregid": _only(*(_is(arg, *groups) for arg in range(2))),
        "setresuid": _only(*(_is(arg, *users) for arg in range(3))),
        "setresgid": _only(*(_is(arg, *groups) for arg in range(3))),
    }


def _forks(options: FilterOptions) -> dict[str, Rule]:
    """Return the rules of clone and its relatives. A thread dies with its process and needs no notification."""
    branch = Case((_is(0, sched.CLONE_NEWUSER | sched.CLONE_NEWNS, mask=sched.CLONE_NEW_ANY),), NOTIFY)
    thread = Case((_has(0, sched.CLONE_THREAD),), ALLOW)
    cases = (*((branch,) if options.notify_branches else ()), Case((NEW_NAMESPACE,), EPERM))
    if not options.notify_forks:
        return {"clone": Rule(cases, ALLOW)}
    asked = Rule((), NOTIFY)
    return {"clone": Rule((*cases, thread), NOTIFY), "fork": asked, "vfork": asked}

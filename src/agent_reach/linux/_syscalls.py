"""Direct system calls: the one place where the package talks to the kernel below Python's `os`.

Importing `ctypes` costs 2 to 5 ms, mostly for classes that nobody here uses; `_ctypes`, the C half that it
is built on, costs 0.3 ms. The few types needed are declared by hand below, and the whole of `ctypes` serves
where an interpreter lacks one of them.
"""

from __future__ import annotations

import os
import sys
from struct import pack

from agent_reach.errors import Unavailable
from agent_reach.linux.abi.run_path import NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Argument = int | str | bytes | bytearray | None

AT_FDCWD = -100
SIGCHLD = 17
CLONE_CHILD_CLEARTID = 0x0020_0000
CLONE_CHILD_SETTID = 0x0100_0000
PR_GET_TID_ADDRESS = 40
LINUX_CAPABILITY_VERSION_3 = 0x2008_0522
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_TSYNC = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
EBUSY = 16
BPF_INSTRUCTION_BYTES = 8


class SyscallError(OSError):
    """A system call was refused.

    The name of the call is looked up when somebody asks: on the way to a run refusals are expected, such as
    those of the self-test, and the table of names is not worth its import there.

    Args:
        errno: error number.
        call: name of the call, or its number on this machine.
        arguments: its arguments; messages show buffers by their length only.
    """

    def __init__(self, errno: int, call: str | int, arguments: tuple[Argument, ...] = ()) -> None:
        super().__init__(errno, os.strerror(errno))
        self._call = call
        self.arguments = arguments

    @property
    def call(self) -> str:
        """Name of the call."""
        return self._call if isinstance(self._call, str) else name_of(self._call)

    def __str__(self) -> str:
        """Render ``[Errno 1] mount('/a', ...): Operation not permitted``."""
        shown = ", ".join(_show(argument) for argument in self.arguments)
        return f"[Errno {self.errno}] {self.call}({shown}): {self.strerror}"


class _Libc:
    """The C library as far as this module needs it.

    Args:
        syscall: `syscall(2)`, without the interpreter lock, errno kept per thread.
        locked_syscall: the same, holding the interpreter lock across the call.
        long: the C type long; a bare int would be cut to 32 bits.
        integer: the C type int.
        char: the C type char.
        addressof: address of a C object.
        get_errno: errno of the last call of this thread.
        hooks: `PyOS_BeforeFork`, `PyOS_AfterFork_Child` and `PyOS_AfterFork_Parent`.
    """

    __slots__ = ("addressof", "char", "get_errno", "hooks", "integer", "locked_syscall", "long", "syscall")

    def __init__(
        self,
        function: Callable[[str, int, Any], Callable[..., int]],
        types: tuple[Any, Any, Any],
        addressof: Callable[[Any], int],
        get_errno: Callable[[], int],
        flags: tuple[int, int, int],
    ) -> None:
        cdecl, python_api, use_errno = flags
        self.char, self.integer, self.long = types
        self.addressof, self.get_errno = addressof, get_errno
        self.syscall = function("syscall", cdecl | use_errno, self.long)
        self.locked_syscall = function("syscall", cdecl | python_api | use_errno, self.long)
        self.hooks = tuple(
            function(name, cdecl | python_api, None)
            for name in ("PyOS_BeforeFork", "PyOS_AfterFork_Child", "PyOS_AfterFork_Parent")
        )


def _load_small() -> _Libc:
    """Declare the few C types on top of `_ctypes`.

    Raises:
        AttributeError: this interpreter's `_ctypes` lacks a part.
    """
    import _ctypes

    handle = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is the program itself
    base: Any = _ctypes._SimpleCData  # noqa: SLF001 - this is what ctypes itself derives its types from

    def function(name: str, flags: int, result: object) -> Callable[..., int]:
        kind = type("Function", (_ctypes.CFuncPtr,), {"_flags_": flags, "_restype_": result})
        loaded: Callable[..., int] = kind(_ctypes.dlsym(handle, name))
        return loaded

    return _Libc(
        function,
        (
            type("char", (base,), {"_type_": "c"}),
            type("int", (base,), {"_type_": "i"}),
            type("long", (base,), {"_type_": "l"}),
        ),
        _ctypes.addressof,
        _ctypes.get_errno,
        (_ctypes.FUNCFLAG_CDECL, _ctypes.FUNCFLAG_PYTHONAPI, _ctypes.FUNCFLAG_USE_ERRNO),
    )


def _load_whole() -> _Libc:
    """Take the same parts from `ctypes`."""
    import ctypes

    python_api = 4

    def function(name: str, flags: int, result: Any) -> Callable[..., int]:  # noqa: ANN401 - restype takes what Any is
        library = ctypes.PyDLL(None, use_errno=True) if flags & python_api else ctypes.CDLL(None, use_errno=True)
        loaded = library[name]
        loaded.restype = result
        return loaded

    return _Libc(
        function, (ctypes.c_char, ctypes.c_int, ctypes.c_long), ctypes.addressof, ctypes.get_errno, (0, python_api, 0)
    )


def _libc() -> _Libc:
    """Return the C library, loaded at the first call and kept: the one memo of this module."""
    loaded: _Libc | None = getattr(_libc, "memo", None)
    if loaded is None:
        try:
            loaded = _load_small()
        except (AttributeError, ImportError, TypeError):
            loaded = _load_whole()
        _libc.memo = loaded  # type: ignore[attr-defined]
    return loaded


def machine() -> str:
    """Return ``x86_64`` or ``aarch64``.

    Raises:
        Unavailable: any other machine, or a 32-bit interpreter.
    """
    found = os.uname().machine
    if found not in NUMBERS or sys.maxsize < 1 << 32:
        raise Unavailable(
            "this processor", found=f"{found}, {sys.maxsize.bit_length() + 1} bits", fix="use 64-bit x86-64 or aarch64"
        )
    return found


def number(call: str) -> int:
    """Return the number of a call of the run path on this machine."""
    return NUMBERS[machine()][call]


def name_of(call_number: int) -> str:
    """Return the name of a call on this machine, for messages; imports the whole table."""
    from agent_reach.linux.abi import table

    for name, value in table(machine()).items():
        if value == call_number:
            return name
    return f"syscall {call_number}"


def syscall(call_number: int, *arguments: Argument) -> int:
    """Make a system call.

    Args:
        call_number: number of the call on this machine.
        arguments: at most six. Ints are passed as 64 bits, None as a null pointer, str as a path that may
            not hold a null byte, bytes and bytearray as pointers to their first byte. The kernel writes
            only into a bytearray.

    Returns:
        What the kernel returned, never negative.

    Raises:
        SyscallError: the kernel refused the call.
    """
    libc = _libc()
    result = libc.syscall(libc.long(call_number), *[_to_c(libc, argument) for argument in arguments])
    if result < 0:
        raise SyscallError(libc.get_errno(), call_number, arguments)
    return result


def address_of(buffer: bytearray) -> int:
    """Return the address of a buffer, for structs that hold pointers.

    The address holds as long as the caller keeps the buffer and its length.
    """
    libc = _libc()
    return libc.addressof(libc.char.from_buffer(buffer)) if buffer else 0


def _to_c(libc: _Libc, argument: Argument) -> object:
    """Return an argument as `_ctypes` takes it."""
    if isinstance(argument, int):
        return libc.long(argument)
    if isinstance(argument, str):
        encoded = os.fsencode(argument)
        if b"\0" in encoded:  # The kernel would stop there and work on another path than the caller checked.
            raise ValueError(f"a path holds a null byte: {argument!r}")
        return encoded
    if isinstance(argument, bytearray):
        return libc.long(libc.addressof(libc.char.from_buffer(argument))) if argument else None
    return argument


def _show(argument: Argument) -> str:
    """Return an argument for a message, without the content of buffers, which may be secret."""
    if isinstance(argument, bytes | bytearray):
        return f"<{len(argument)} bytes>"
    if isinstance(argument, int) and argument > 255:
        return hex(argument)
    return repr(argument)


def prctl(operation: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
    """Set or get an attribute of the process by prctl."""
    return syscall(number("prctl"), operation, a, b, c, d)


def unshare(flags: int) -> None:
    """Move the calling thread into new namespaces."""
    syscall(number("unshare"), flags)


def setns(fd: int, kind: int) -> None:
    """Enter the namespace behind a descriptor.

    Args:
        fd: descriptor of a namespace file or a pidfd.
        kind: CLONE_NEW* flags that are expected of it; 0 takes any namespace file.
    """
    syscall(number("setns"), fd, kind)


def mount(source: str | None, target: str, fstype: str | None, flags: int, data: str | None = None) -> None:
    """Mount a filesystem."""
    syscall(number("mount"), source, target, fstype, flags, data)


def umount2(target: str, flags: int) -> None:
    """Unmount."""
    syscall(number("umount2"), target, flags)


def pivot_root(new_root: str, put_old: str) -> None:
    """Exchange the root of the mount namespace."""
    syscall(number("pivot_root"), new_root, put_old)


def open_tree(dirfd: int, path: str, flags: int) -> int:
    """Return a descriptor of a mount or of a detached copy of one, Linux 5.2."""
    return syscall(number("open_tree"), dirfd, path, flags)


def move_mount(from_fd: int, from_path: str, to_fd: int, to_path: str, flags: int) -> None:
    """Attach a mount at a path, Linux 5.2."""
    syscall(number("move_mount"), from_fd, from_path, to_fd, to_path, flags)


def mount_setattr(  # noqa: PLR0917 - the kernel's own order
    fd: int, path: str, flags: int, attr_set: int, attr_clr: int = 0, propagation: int = 0, userns_fd: int = 0
) -> None:
    """Change the attributes of a mount or, with AT_RECURSIVE, of a tree, Linux 5.12."""
    attr = pack("=4Q", attr_set, attr_clr, propagation, userns_fd)
    syscall(number("mount_setattr"), fd, path, flags, attr, len(attr))


def capset_empty() -> None:
    """Give up every effective, permitted and inheritable capability of the calling thread."""
    syscall(number("capset"), pack("=Ii", LINUX_CAPABILITY_VERSION_3, 0), bytes(24))


def close_range(first: int, last: int, flags: int = 0) -> None:
    """Close descriptors `first` to `last`, both included, Linux 5.9."""
    syscall(number("close_range"), first, last, flags)


def pidfd_open(pid: int, flags: int = 0) -> int:
    """Return a descriptor of a process, close-on-exec, Linux 5.3."""
    return syscall(number("pidfd_open"), pid, flags)


def pidfd_send_signal(pidfd: int, signal: int, flags: int = 0) -> None:
    """Send a signal to the process behind a pidfd, Linux 5.1."""
    syscall(number("pidfd_send_signal"), pidfd, signal, None, flags)


def openat2(dirfd: int, path: str, flags: int, mode: int = 0, resolve: int = 0) -> int:
    """Open a path under RESOLVE_* rules, Linux 5.6.

    Args:
        dirfd: directory that a relative path starts in.
        path: what to open.
        flags: O_* flags; O_CLOEXEC is the caller's to give.
        mode: permission bits of a created file, 0 when none is created.
        resolve: RESOLVE_* flags.
    """
    how = pack("=3Q", flags, mode, resolve)
    return syscall(number("openat2"), dirfd, path, how, len(how))


def landlock_create_ruleset(attr: bytes | None, size: int, flags: int = 0) -> int:
    """Return a ruleset's descriptor, or with LANDLOCK_CREATE_RULESET_VERSION the ABI version; Linux 5.13."""
    return syscall(number("landlock_create_ruleset"), attr, size, flags)


def landlock_add_rule(ruleset_fd: int, kind: int, attr: bytes, flags: int = 0) -> None:
    """Add a rule to a ruleset, Linux 5.13."""
    syscall(number("landlock_add_rule"), ruleset_fd, kind, attr, flags)


def landlock_restrict_self(ruleset_fd: int, flags: int = 0) -> None:
    """Enforce a ruleset on the calling thread, Linux 5.13."""
    syscall(number("landlock_restrict_self"), ruleset_fd, flags)


def seccomp_install(program: bytes, flags: int = 0) -> int:
    """Install a filter on the calling thread.

    Args:
        program: BPF instructions of 8 bytes each.
        flags: SECCOMP_FILTER_FLAG_* bits.

    Returns:
        The notification descriptor with SECCOMP_FILTER_FLAG_NEW_LISTENER, else 0.

    Raises:
        SyscallError: refused; EBUSY when SECCOMP_FILTER_FLAG_TSYNC found a thread with a filter of its own.
    """
    code = bytearray(program)
    fprog = pack("@HxxxxxxQ", len(code) // BPF_INSTRUCTION_BYTES, address_of(code))
    result = syscall(number("seccomp"), SECCOMP_SET_MODE_FILTER, flags, fprog)
    if result > 0 and not flags & SECCOMP_FILTER_FLAG_NEW_LISTENER:
        # A thread that cannot be synchronised is reported by its id as a success; nothing was installed.
        raise SyscallError(EBUSY, "seccomp", (SECCOMP_SET_MODE_FILTER, flags, result))
    return result


def clone_fork(flags: int) -> int:
    """Fork into new namespaces in one step, as os.fork() does and clone(2) alone does not.

    Without CLONE_CHILD_SETTID the C library of the child would go on with its parent's thread id in its
    own records, which recursive and robust locks compare. CPython's hooks re-create the locks of the child.
    The interpreter lock is held across the call. For callers with a single thread.

    Args:
        flags: CLONE_NEW* flags.

    Returns:
        0 in the child, the child's pid in the parent.

    Raises:
        SyscallError: no child was made.
    """
    libc = _libc()
    here = machine()
    tid_address = _thread_id_address(libc)
    settid = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID if tid_address else 0
    # aarch64 has CONFIG_CLONE_BACKWARDS: the thread pointer comes before the address of the child's id.
    tail = (tid_address, 0) if here == "x86_64" else (0, tid_address)
    call = [libc.long(value) for value in (NUMBERS[here]["clone"], flags | SIGCHLD | settid, 0, 0, *tail)]
    before, in_child, in_parent = libc.hooks
    before()
    pid = libc.locked_syscall(*call)
    if pid == 0:
        in_child()
        return 0
    error = libc.get_errno()
    in_parent()
    if pid < 0:
        raise SyscallError(error, "clone", (flags | SIGCHLD,))
    return pid


def _thread_id_address(libc: _Libc) -> int:
    """Return where the C library keeps this thread's id, 0 when the kernel or the library does not tell.

    musl points the kernel at a lock instead, whose value is not the thread's id: it must not be written.
    """
    answer = bytearray(8)
    try:
        syscall(NUMBERS[machine()]["prctl"], PR_GET_TID_ADDRESS, answer, 0, 0, 0)
    except SyscallError:  # a kernel without CONFIG_CHECKPOINT_RESTORE
        return 0
    address = int.from_bytes(answer, sys.byteorder)
    if not address or libc.integer.from_address(address).value != syscall(NUMBERS[machine()]["gettid"]):
        return 0
    return address

"""Direct system calls: the hand-made C types, errors, and forking by clone."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import threading

import pytest

from agent_reach.errors import Unavailable
from agent_reach.linux import _syscalls
from agent_reach.linux.abi import sched, table
from filtered import in_child

SMALL, WHOLE = _syscalls._load_small, _syscalls._load_whole


@pytest.fixture(params=[SMALL, WHOLE], ids=["_ctypes", "ctypes"])
def library(request):
    """Serve a test once with the few types of our own and once with ctypes."""
    before = getattr(_syscalls._libc, "memo", None)
    _syscalls._libc.memo = request.param()
    yield
    _syscalls._libc.memo = before


def raw(call, *args):
    return _syscalls.syscall(table(_syscalls.machine())[call], *args)


@pytest.mark.usefixtures("library")
def test_integers_keep_64_bits():
    descriptor = os.memfd_create("x")
    try:
        os.ftruncate(descriptor, 1 << 40)
        assert raw("lseek", descriptor, (1 << 40) - 1, os.SEEK_SET) == (1 << 40) - 1
        with pytest.raises(_syscalls.SyscallError) as caught:
            raw("lseek", descriptor, -1, os.SEEK_SET)
        assert caught.value.errno == errno.EINVAL
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("library")
def test_the_kernel_writes_into_a_bytearray():
    name = bytearray(6 * 65)
    raw("uname", name)
    assert bytes(name).split(b"\0", 1)[0] == b"Linux"
    assert raw("getrandom", bytearray(), 0, 0) == 0


@pytest.mark.usefixtures("library")
def test_errors_are_read_from_the_return_value_and_belong_to_the_thread():
    with pytest.raises(OSError, match="No such file") as caught:
        _syscalls.mount("/nowhere", "/nowhere", None, 0x1000)
    assert isinstance(caught.value, _syscalls.SyscallError)
    assert str(caught.value).startswith("[Errno 2] mount('/nowhere', '/nowhere', None, 0x1000, None)")
    seen = []

    def fail(descriptor, wanted):
        for _ in range(300):
            try:
                _syscalls.pidfd_send_signal(descriptor, 0)
            except _syscalls.SyscallError as error:
                seen.append(error.errno == wanted)

    threads = [threading.Thread(target=fail, args=pair) for pair in ((-1, errno.EBADF), (0, errno.EBADF))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(seen)
    assert len(seen) == 600


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("flags", [0, sched.CLONE_NEWUSER | sched.CLONE_NEWPID])
def test_a_forked_child_knows_its_own_thread_and_can_start_others(flags):
    def child():
        try:
            pid = _syscalls.clone_fork(flags)
        except _syscalls.SyscallError as error:
            return error.strerror
        if pid == 0:
            os._exit(child_of_clone(flags))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    status = in_child(child)
    if flags and isinstance(status, str):
        pytest.skip(f"kernel without user namespaces for us: {status}")
    assert status == 0


def child_of_clone(flags):
    """Return 0 when everything that a fork has to renew was renewed, else the number of what was not."""
    seen = []
    thread = threading.Thread(target=seen.append, args=(1,))
    thread.start()
    thread.join()
    address = _syscalls._thread_id_address(_syscalls._libc())
    inner = os.fork()
    if inner == 0:
        os._exit(7)
    checks = (
        not flags or os.getpid() == 1,
        threading.get_native_id() == os.getpid(),
        # Recursive locks of the C library compare the thread id that it keeps there.
        not address or ctypes.c_int.from_address(address).value == os.getpid(),
        seen == [1],
        subprocess.run(["true"], check=False).returncode == 0,
        os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) == 7,
    )
    return 0 if all(checks) else 1 + checks.index(False)


@pytest.mark.usefixtures("library")
def test_a_fork_that_the_kernel_refuses_leaves_the_caller_as_it_was():
    impossible = sched.CLONE_NEWNS | sched.CLONE_FS
    with pytest.raises(_syscalls.SyscallError) as caught:
        _syscalls.clone_fork(impossible)
    assert (caught.value.errno, caught.value.call) == (errno.EINVAL, "clone")
    import importlib

    importlib.reload(importlib.import_module("colorsys"))  # the import lock was given back


@pytest.mark.usefixtures("library")
def test_handlers_registered_for_fork_run_once():
    def child():
        order = []
        os.register_at_fork(
            before=lambda: order.append("before"),
            after_in_parent=lambda: order.append("parent"),
            after_in_child=lambda: order.append("child"),
        )
        reader, writer = os.pipe()
        pid = _syscalls.clone_fork(0)
        if pid == 0:
            os.write(writer, ",".join(order).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        return order, os.read(reader, 100)

    assert in_child(child) == (["before", "parent"], b"before,child")


def test_every_interpreter_can_use_the_small_types(interpreters):
    """Reach itself runs on 3.11 and newer; none of those may fall back to the costly import unnoticed."""
    code = """if True:
        import sys
        from agent_reach.linux import _syscalls
        pid = _syscalls.clone_fork(0)
        if pid == 0:
            import os
            os._exit(5)
        import os
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "ctypes" in sys.modules)
    """
    source = os.path.dirname(os.path.dirname(os.path.dirname(_syscalls.__file__)))
    for version, python in interpreters.items():
        if version in {"3.9", "3.10"}:
            continue
        command = [python, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {source!r})\n{code}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "5 False\n", (version, done.stderr)


def test_importing_does_nothing():
    code = f"""if True:
        import sys
        sys.path.insert(0, {os.path.dirname(os.path.dirname(os.path.dirname(_syscalls.__file__)))!r})
        import agent_reach.linux._syscalls as s
        assert "_ctypes" not in sys.modules and not hasattr(s._libc, "memo")
        from agent_reach.linux import fdpass, memory, pidfd
        from agent_reach.linux.seccomp import notify, options, precompiled
        heavy = {{"typing", "dataclasses", "enum", "re", "socket", "ctypes", "collections.abc", "signal", "hashlib"}}
        assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
        policy = {{"agent_reach.linux.seccomp." + name for name in ("policy", "rules", "compile", "bpf", "allow_list")}}
        assert not policy & sys.modules.keys()
    """
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=60)


def test_a_processor_that_we_do_not_know_is_named(monkeypatch):
    uname = os.uname()
    monkeypatch.setattr(os, "uname", lambda: type(uname)((*uname[:4], "riscv64")))
    with pytest.raises(Unavailable, match="riscv64"):
        _syscalls.number("mount")


def test_capabilities_are_given_up():
    def child():
        _syscalls.capset_empty()
        with open("/proc/self/status", encoding="ascii") as status:
            return [line.split()[1] for line in status if line.startswith(("CapEff", "CapPrm", "CapInh"))]

    assert in_child(child) == ["0000000000000000"] * 3


def test_descriptors_are_closed_by_range():
    def child():
        one = os.dup2(0, 500)
        two = os.dup2(0, 600)
        _syscalls.close_range(400, 550)
        return os.path.exists(f"/proc/self/fd/{one}"), os.path.exists(f"/proc/self/fd/{two}")

    assert in_child(child) == (False, True)


def test_openat2_holds_a_path_below_its_start(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "up").symlink_to("..")
    start = os.open(tmp_path / "inside", os.O_PATH)
    try:
        os.close(_syscalls.openat2(start, ".", os.O_RDONLY | os.O_CLOEXEC, resolve=0x8))
        for path in ("up", "..", "/"):
            with pytest.raises(_syscalls.SyscallError) as caught:
                _syscalls.openat2(start, path, os.O_RDONLY, resolve=0x8)
            assert caught.value.errno == errno.EXDEV
    finally:
        os.close(start)


def test_signals_are_sent_by_descriptor():
    child = os.fork()
    if child == 0:
        signal.pause()
    descriptor = _syscalls.pidfd_open(child)
    assert not os.get_inheritable(descriptor)
    _syscalls.pidfd_send_signal(descriptor, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    os.close(descriptor)

"""What ordinary Python does works under the filter, on every interpreter of this machine.

A program that breaks here broke because the policy became tighter, or because a new CPython or C library
makes a call that the policy does not know.
"""

from __future__ import annotations

import os
import stat
import textwrap

import pytest

from agent_reach.linux.seccomp.options import FilterOptions
from filtered import run_program

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")

WORKLOADS = {
    "subprocess": """
        import subprocess, sys, os
        assert subprocess.check_output([sys.executable, "-c", "print(6 * 7)"]) == b"42\\n"
        assert subprocess.run("echo $((40 + 2)); exit 3", shell=True, stdout=subprocess.PIPE).returncode == 3
        echoed = subprocess.run(["cat"], input=b"x" * 100000, stdout=subprocess.PIPE, close_fds=False)
        assert echoed.stdout == b"x" * 100000
        child = subprocess.Popen(["sleep", "30"], start_new_session=True)
        child.terminate()
        assert child.wait() == -15
        assert os.system("true") == 0
        pid = os.posix_spawn("/bin/true", ["true"], {})
        assert os.waitpid(pid, 0)[1] == 0
    """,
    "multiprocessing": """
        import math, multiprocessing as m, sys
        from multiprocessing import shared_memory
        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                with m.get_context(method).Pool(2) as pool:
                    assert pool.map(math.factorial, range(6)) == [1, 1, 2, 6, 24, 120]
            with m.Manager() as manager:
                shared = manager.dict(a=1)
                assert dict(shared) == {"a": 1}
            block = shared_memory.SharedMemory(create=True, size=4096)
            block.buf[0] = 7
            block.close()
            block.unlink()
            with m.Lock():
                pass
    """,
    "threads": """
        import concurrent.futures, queue, threading, faulthandler
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(abs, range(-100, 0))) == 5050
        box, lock, condition = queue.Queue(), threading.RLock(), threading.Condition()
        threads = [threading.Thread(target=box.put, args=(n,)) for n in range(50)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert box.qsize() == 50
        with condition:
            assert not condition.wait(0.01)
        assert not threading.Event().wait(0.01)
        assert threading.get_native_id()
    """,
    "asyncio": """
        import asyncio, socket, sys
        async def serve(reader, writer):
            writer.write((await reader.readline()).upper())
            await writer.drain()
            writer.close()
        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\\n")
            assert await reader.readline() == b"HELLO\\n"
            writer.close()
            server.close()
            child = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
            assert (await child.communicate())[0] == b"hi\\n"
            loop = asyncio.get_running_loop()
            assert await loop.run_in_executor(None, sum, [1, 2]) == 3
            loop.add_signal_handler(10, lambda: None)
            await loop.getaddrinfo("localhost", 80)
        asyncio.run(main())
    """,
    "files": """
        import os, pathlib, shutil, tempfile, sqlite3, glob, fcntl
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a").write_text("text")
            shutil.copy2(root / "a", root / "b")
            shutil.copytree(root, folder + "-copy")
            shutil.make_archive(folder + "-archive", "zip", folder)
            shutil.rmtree(folder + "-copy")
            os.unlink(folder + "-archive.zip")
            os.link(root / "a", root / "c"), os.symlink("a", root / "d"), os.replace(root / "c", root / "e")
            os.chmod(root / "a", 0o600), os.utime(root / "a", (1, 2)), os.truncate(root / "a", 2)
            os.mkfifo(root / "f"), os.makedirs(root / "g/h/i"), list(os.scandir(root)), list(os.walk(root))
            with open(root / "a", "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX), fcntl.lockf(file, fcntl.LOCK_EX)
                os.fsync(file.fileno()), os.posix_fallocate(file.fileno(), 0, 100)
                os.sendfile(file.fileno(), file.fileno(), 0, 1), os.statvfs(folder)
            db = sqlite3.connect(root / "db")
            db.execute("pragma journal_mode = wal"), db.execute("create table t (x)")
            db.executemany("insert into t values (?)", [(n,) for n in range(1000)]), db.commit()
            assert db.execute("select sum(x) from t").fetchone() == (499500,)
            db.close()
            with tempfile.TemporaryFile() as file, tempfile.NamedTemporaryFile() as named:
                file.write(b"x"), named.write(b"x")
    """,
    "terminal": """
        import fcntl, os, pty, termios, tty, struct
        pid, master = pty.fork()
        if pid == 0:
            os.write(1, b"%d %d" % (os.isatty(0), os.tcgetpgrp(0) == os.getpgrp()))
            os._exit(0)
        assert os.read(master, 10) == b"1 1"
        os.waitpid(pid, 0)
        ours, theirs = os.openpty()
        tty.setraw(theirs), tty.setcbreak(theirs), termios.tcflush(theirs, termios.TCIOFLUSH)
        termios.tcdrain(theirs), termios.tcsendbreak(theirs, 0), termios.tcflow(theirs, termios.TCOON)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        assert os.get_terminal_size(theirs) == (80, 24)
        assert fcntl.ioctl(ours, 0x5441, os.O_RDWR | os.O_NOCTTY) > 2
        with open(os.path.devnull) as null:
            assert not null.isatty()
    """,
    "memory": """
        import ctypes, gc, mmap, resource, array
        area = mmap.mmap(-1, 1 << 20)
        area[:5] = b"hello"
        area.madvise(mmap.MADV_DONTNEED), area.resize(1 << 21), area.flush(), area.close()
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
        numbers = (ctypes.c_int * 4)(3, 1, 4, 1)
        ctypes.CDLL(None).qsort(numbers, 4, 4, compare(lambda a, b: a[0] - b[0]))
        assert list(numbers) == [1, 1, 3, 4]
        resource.getrlimit(resource.RLIMIT_NOFILE), resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.getrusage(resource.RUSAGE_SELF)
        resource.prlimit(0, resource.RLIMIT_NOFILE)
        big = [bytearray(1 << 20) for _ in range(30)]
        del big
        gc.collect()
    """,
    "signals": """
        import os, select, signal, time
        seen = []
        signal.signal(signal.SIGALRM, lambda *a: seen.append(a))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        time.sleep(0.05), signal.alarm(1), signal.alarm(0)
        assert seen
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        os.kill(os.getpid(), signal.SIGUSR1)
        assert signal.sigwaitinfo({signal.SIGUSR1}).si_signo == signal.SIGUSR1
        signal.sigtimedwait({signal.SIGUSR2}, 0), signal.sigpending(), signal.siginterrupt(signal.SIGUSR1, False)
        reader, writer = os.pipe()
        poll = select.epoll()
        poll.register(reader, select.EPOLLIN), os.write(writer, b"x")
        assert poll.poll(1) == [(reader, select.EPOLLIN)]
        assert select.select([reader], [], [], 1)[0] and os.getpriority(os.PRIO_PROCESS, 0) is not None
        os.sched_getaffinity(0), os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)), os.nice(1)
        if hasattr(os, "pidfd_open"):
            os.close(os.pidfd_open(os.getpid()))
    """,
    "network": """
        import socket, ssl, urllib.request, http.server, threading, socketserver
        assert socket.getaddrinfo("localhost", 80)
        assert len(ssl.create_default_context().get_ca_certs()) >= 0 and ssl.RAND_bytes(8)
        assert socket.if_nameindex() and socket.if_nametoindex("lo")
        http.server.SimpleHTTPRequestHandler.log_message = lambda *a: None
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert opener.open("http://127.0.0.1:%d/" % server.server_address[1], timeout=20).status == 200
        server.shutdown(), server.server_close()
        one, two = socket.socketpair()
        one.sendmsg([b"a", b"b"]), one.close()
        assert two.recv(2) == b"ab"
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0)), udp.sendto(b"x", udp.getsockname())
        assert udp.recvfrom(1)[0] == b"x"
        for sock in (socket.socket(), socket.socket(socket.AF_INET6)):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, b"\\0" * 16)
            sock.settimeout(1)
            sock.close()
    """,
    "identity": """
        import os, pwd, platform, getpass, time, uuid, random, locale, logging.handlers, syslog
        os.getresuid(), os.getgroups(), os.getlogin if 0 else None, os.uname(), os.times(), os.getloadavg()
        pwd.getpwuid(0), platform.platform(), time.clock_getres(time.CLOCK_MONOTONIC), uuid.uuid4(), uuid.uuid1()
        time.sleep(0.001), os.urandom(8), os.cpu_count(), os.sysconf("SC_NPROCESSORS_ONLN"), time.localtime()
        syslog.syslog("nobody reads this")
        locale.setlocale(locale.LC_ALL, "C.UTF-8")
        os.setresuid(-1, -1, -1)
        try:
            os.setgid(12345)
        except PermissionError:
            pass
        else:
            raise AssertionError("the group changed")
    """,
}


@pytest.fixture(scope="module", params=VERSIONS)
def python(request, interpreters):
    if request.param not in interpreters:
        pytest.skip(f"interpreter not readable here: CPython {request.param}")
    return interpreters[request.param]


def run(python, tmp_path, workload, options):
    script = tmp_path / "workload.py"
    script.write_text(textwrap.dedent(workload) + "\nif __name__ == '__main__':\n    print('done')\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8", "TMPDIR": str(tmp_path)}
    return run_program([python, "-X", "faulthandler", str(script)], options, cwd=str(tmp_path), env=environment)


@pytest.mark.parametrize("name", WORKLOADS)
def test_full_tier(python, tmp_path, name):
    status, output = run(python, tmp_path, WORKLOADS[name], FilterOptions())
    assert (status, output) == (0, "done\n")


@pytest.mark.parametrize("name", ["subprocess", "threads", "memory", "signals"])
def test_reduced_tier(python, tmp_path, name):
    options = FilterOptions(tier="reduced", metadata="refuse", refuse_truncate=True)
    status, output = run(python, tmp_path, WORKLOADS[name], options)
    assert (status, output) == (0, "done\n")


def test_a_copied_set_id_program_is_refused_and_a_plain_copy_is_not(tmp_path):
    """Copying with the mode: the bytes arrive, the bits do not."""
    source = tmp_path / "source"
    source.touch()
    source.chmod(0o4755)
    status, output = run_program(["/bin/cp", "-p", str(source), str(tmp_path / "copy")])
    assert status == 1, output
    assert not os.stat(tmp_path / "copy").st_mode & (stat.S_ISUID | stat.S_ISGID)
    source.chmod(0o755)
    status, output = run_program(["/bin/cp", "-p", str(source), str(tmp_path / "second")])
    assert (status, output) == (0, "")

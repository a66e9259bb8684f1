"""Run a helper process for a provider: bounded in time and in output, and gone afterwards."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress

from agent_reach.providers.faults import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CHUNK = 65536


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    stdin: bytes,
    seconds: float,
    limit: int,
) -> tuple[int, bytes]:
    """Run `argv` to its end and return its status and standard output.

    Standard error stays the caller's, so that a tool can say what it misses. The process leads a session of its
    own: whatever it started is killed with it, and it cannot ask questions on the terminal.

    Args:
        argv: program, found on the PATH of `env`, and its arguments; no shell.
        env: environment of the process.
        cwd: working directory.
        stdin: bytes for its standard input, then end of file.
        seconds: most time that it may take.
        limit: most bytes that it may write.

    Raises:
        SourceError: it cannot be started, takes too long or writes too much.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SourceError(f"cannot start {argv[0]}: {error.strerror}") from None
    try:
        output = _converse(process, stdin, time.monotonic() + seconds, limit)
        return process.wait(timeout=seconds), output
    except (TimeoutError, subprocess.TimeoutExpired):
        raise SourceError(f"no answer within {seconds:g} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _converse(process: subprocess.Popen[bytes], stdin: bytes, deadline: float, limit: int) -> bytes:
    """Write the input and read the output at the same time, so that neither pipe can fill and block.

    Raises:
        TimeoutError: the deadline passed.
        SourceError: the output is too long.
    """
    source, sink = process.stdout, process.stdin
    if source is None or sink is None:
        raise SourceError("the helper process has no pipes")
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        os.set_blocking(sink.fileno(), False)
        selector.register(source, selectors.EVENT_READ)
        selector.register(sink, selectors.EVENT_WRITE)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for key, _events in selector.select(left):
                if key.fileobj is sink:
                    stdin = _feed(sink.fileno(), stdin)
                    if not stdin:
                        selector.unregister(sink)
                        sink.close()
                    continue
                part = os.read(source.fileno(), _CHUNK)
                output += part
                if len(output) > limit:
                    raise SourceError(f"the answer is longer than {limit} bytes")
                if not part:
                    selector.unregister(source)
    return bytes(output)


def _feed(fd: int, data: bytes) -> bytes:
    """Write what the pipe takes and return the rest; a reader that has gone wants no more."""
    try:
        return data[os.write(fd, data[:_CHUNK]) :] if data else data
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""

"""Descriptors over a Unix socket, SCM_RIGHTS.

The standard library has these two functions in `socket`, whose import costs 8 ms; `_socket` costs 0.2.
Source: unix(7), cmsg(3).
"""

from __future__ import annotations

import os
from errno import EPROTO
from struct import iter_unpack, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

SOL_SOCKET = 1
SCM_RIGHTS = 1
MSG_CTRUNC = 0x8
MSG_NOSIGNAL = 0x4000
MSG_CMSG_CLOEXEC = 0x4000_0000
MOST_DESCRIPTORS = 253  # SCM_MAX_FD of the kernel


def send(sock: socket, data: bytes, descriptors: tuple[int, ...] = ()) -> int:
    """Send bytes with copies of descriptors.

    Args:
        sock: connected Unix socket.
        data: at least one byte, or a stream would carry no descriptors.
        descriptors: at most 253.

    Returns:
        How many bytes went; the descriptors go with the first.

    Raises:
        ValueError: nothing to send, or too many descriptors.
        OSError: as sendmsg(2); a peer that has gone is EPIPE, without a signal.
    """
    if not data or len(descriptors) > MOST_DESCRIPTORS:
        raise ValueError(f"{len(data)} bytes and {len(descriptors)} descriptors cannot be sent together")
    rights = [(SOL_SOCKET, SCM_RIGHTS, pack(f"@{len(descriptors)}i", *descriptors))] if descriptors else []
    return sock.sendmsg([data], rights, MSG_NOSIGNAL)


def receive(sock: socket, length: int, most: int, flags: int = 0) -> tuple[bytes, tuple[int, ...]]:
    """Receive bytes with descriptors, which close on exec.

    Args:
        sock: connected Unix socket.
        length: most bytes.
        most: how many descriptors there may be. A peer that sends more is refused whole: descriptors that
            nobody expects would stay open for good.
        flags: more MSG_* flags, such as MSG_DONTWAIT.

    Returns:
        The bytes, empty at the end of the stream, and the descriptors, which are the caller's to close.

    Raises:
        OSError: as recvmsg(2); EPROTO when more than `most` descriptors came, all of which are closed.
    """
    from _socket import CMSG_SPACE

    # One more than expected fits, so that too many are noticed and not cut off silently.
    space = CMSG_SPACE(4 * (most + 1))
    data, messages, seen, _address = sock.recvmsg(length, space, flags | MSG_CMSG_CLOEXEC)
    descriptors = [
        descriptor
        for level, kind, content in messages
        if (level, kind) == (SOL_SOCKET, SCM_RIGHTS)
        for (descriptor,) in iter_unpack("@i", content[: len(content) - len(content) % 4])
    ]
    if len(descriptors) > most or seen & MSG_CTRUNC:
        for descriptor in descriptors:
            os.close(descriptor)
        raise OSError(EPROTO, f"{len(descriptors)} descriptors came where {most} were expected")
    return data, tuple(descriptors)

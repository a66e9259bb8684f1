"""The two things a new network namespace needs: its loopback up, and a whole range routed to itself."""

from __future__ import annotations

import os
from struct import pack, unpack_from

_AF_INET = 2
_AF_INET6 = 10
_AF_NETLINK = 16
_SOCK_RAW = 3
_SOCK_CLOEXEC = 0o2000000
_RTM_NEWLINK = 16
_RTM_NEWROUTE = 24
_NLM_F_REQUEST_ACK = 0x5
_NLM_F_CREATE_EXCL = 0x600
_RT_TABLE_LOCAL = 255
_RTPROT_STATIC = 4
_RT_SCOPE_HOST = 254
_RTN_LOCAL = 2
_RTA_DST = 1
_RTA_OIF = 4
_LOOPBACK_INDEX = 1  # the first device of every network namespace
_IFF_UP = 1


def bring_up(ranges: tuple[tuple[bytes, int], ...]) -> None:
    """Bring `lo` up and route the ranges to this host itself.

    Args:
        ranges: address of 4 or 16 bytes and prefix length.

    Raises:
        OSError: a request was refused (rtnetlink(7)); an IPv6 range is passed over where IPv6 is off.
    """
    import _socket

    link = _socket.socket(_AF_NETLINK, _SOCK_RAW | _SOCK_CLOEXEC, 0)
    try:
        _request(link, _RTM_NEWLINK, 0, pack("=BxHiII", 0, 0, _LOOPBACK_INDEX, _IFF_UP, _IFF_UP))
        for address, length in ranges:
            family = _AF_INET if len(address) == 4 else _AF_INET6
            # struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags
            body = pack(
                "=BBBBBBBBI", family, length, 0, 0, _RT_TABLE_LOCAL, _RTPROT_STATIC, _RT_SCOPE_HOST, _RTN_LOCAL, 0
            )
            body += pack("=HH", 4 + len(address), _RTA_DST) + address + pack("=HHI", 8, _RTA_OIF, _LOOPBACK_INDEX)
            try:
                _request(link, _RTM_NEWROUTE, _NLM_F_CREATE_EXCL, body)
            except OSError:
                if family == _AF_INET:
                    raise
    finally:
        link.close()


def _request(link: object, kind: int, flags: int, body: bytes) -> None:
    """Send one request and raise the error of its acknowledgement."""
    header = pack("=IHHII", 16 + len(body), kind, _NLM_F_REQUEST_ACK | flags, 1, 0)
    link.send(header + body)  # type: ignore[attr-defined]  # _socket.socket, not imported at module level
    error = unpack_from("=i", link.recv(4096), 16)[0]  # type: ignore[attr-defined]
    if error:
        raise OSError(-error, os.strerror(-error))

"""TCP sockets of our own that take the place of the caller's: same options, another network namespace."""

from __future__ import annotations

import _socket as socket
import sys

SO_COOKIE = 57
SO_NETNS_COOKIE = 71  # Linux 5.14
SO_BUF_LOCK = 72  # Linux 5.14; bit 0: the program has set the send buffer, bit 1: the receive buffer
MPTCP = 262

SYN_SENT = 2
SYN_RECEIVED = 3
CLOSED = 7
LISTENING = 10

_PRIVILEGED_PORTS = 1024
_COOKIE_BYTES = 8
_STRUCT_BYTES = 16
_INTEGERS = (
    (socket.SOL_SOCKET, socket.SO_REUSEADDR),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    (socket.SOL_SOCKET, socket.SO_OOBINLINE),
    (socket.SOL_SOCKET, socket.SO_RCVLOWAT),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
    (socket.IPPROTO_TCP, socket.TCP_SYNCNT),
    (socket.IPPROTO_TCP, socket.TCP_LINGER2),
    (socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT),
    (socket.IPPROTO_TCP, socket.TCP_CORK),
    (socket.IPPROTO_IP, socket.IP_TOS),
    (socket.IPPROTO_IP, socket.IP_TTL),
)
_INTEGERS6 = (
    (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY),
    (socket.IPPROTO_IPV6, socket.IPV6_TCLASS),
    (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS),
)
_STRUCTS = (
    (socket.SOL_SOCKET, socket.SO_LINGER),
    (socket.SOL_SOCKET, socket.SO_RCVTIMEO),
    (socket.SOL_SOCKET, socket.SO_SNDTIMEO),
    (socket.IPPROTO_TCP, socket.TCP_CONGESTION),
)


def netns_cookie(sock: socket.socket) -> int:
    """Return the cookie of the network namespace that a socket was made in."""
    return int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, _COOKIE_BYTES), sys.byteorder)


def identity(sock: socket.socket) -> bytes:
    """Return what is the same for all descriptors of one socket, and for no other socket of this boot."""
    return sock.getsockopt(socket.SOL_SOCKET, SO_COOKIE, _COOKIE_BYTES)


def state(sock: socket.socket) -> int:
    """Return the state of a TCP socket, such as `CLOSED`; the first byte of struct tcp_info."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


def is_tcp(sock: socket.socket) -> bool:
    """Tell whether a socket speaks TCP; multipath TCP counts, its place is taken by plain TCP."""
    return sock.type == socket.SOCK_STREAM and sock.proto in {socket.IPPROTO_TCP, MPTCP}


def send_timeout(sock: socket.socket) -> float:
    """Return SO_SNDTIMEO in seconds, which also bounds a blocking connect; 0 for none."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _STRUCT_BYTES)
    half = _STRUCT_BYTES // 2
    return int.from_bytes(raw[:half], sys.byteorder) + int.from_bytes(raw[half:], sys.byteorder) / 1e6


class Replacer:
    """Makes sockets that stand in for the caller's; remembers what new ones look like, which saves 21 calls each."""

    def __init__(self) -> None:
        self._fresh: dict[int, dict[tuple[int, int], int | bytes | None]] = {}

    def replacement(self, old: socket.socket) -> socket.socket:
        """Return a new non-blocking socket here that stands in for an unconnected one of the caller.

        The protocol is 6 whatever the caller's was: multipath TCP would go around Landlock, and could carry the
        connection over addresses that nobody checked.

        Raises:
            OSError: no more descriptors, or the port that the caller bound cannot be had here.
        """
        kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        new = socket.socket(old.family, kind, socket.IPPROTO_TCP)
        try:
            self._copy_options(old, new)
            _copy_port(old, new)
        except BaseException:
            new.close()
            raise
        return new

    def _copy_options(self, old: socket.socket, new: socket.socket) -> None:
        """Set what the program has changed. What the kernel does not let us set stays at its default."""
        fresh = self._fresh.get(old.family)
        if fresh is None:
            fresh = self._fresh[old.family] = _options(new)
        for (level, option), value in _options(old).items():
            if value is not None and value != fresh[level, option]:
                _set(new, level, option, value)
        locked = _option(old, socket.SOL_SOCKET, SO_BUF_LOCK) or 0
        for bit, option in ((1, socket.SO_SNDBUF), (2, socket.SO_RCVBUF)):
            if locked & bit:  # the kernel reports twice what was set
                _set(new, socket.SOL_SOCKET, option, old.getsockopt(socket.SOL_SOCKET, option) // 2)


def _copy_port(old: socket.socket, new: socket.socket) -> None:
    """Bind to the local port that the program chose, if it did.

    The address is not carried: the addresses inside are not those of the host. A port of the automatic range
    is taken for an automatic one. A port below 1024 proves to some old servers that root speaks: the
    broker may be root, the program is not.
    """
    port = old.getsockname()[1]
    if port and not _is_automatic(port):
        if port < _PRIVILEGED_PORTS:
            raise PermissionError(13, "the program bound a privileged port before it connected")
        new.bind(("", port))


def _is_automatic(port: int) -> bool:
    """Tell whether the kernel gives out this port by itself."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", "rb") as setting:
        low, high = setting.read().split()
    return int(low) <= port <= int(high)


def _options(sock: socket.socket) -> dict[tuple[int, int], int | bytes | None]:
    """Return the options that are carried over, by level and number."""
    integers = _INTEGERS + _INTEGERS6 if sock.family == socket.AF_INET6 else _INTEGERS
    read = sock.getsockopt
    found: dict[tuple[int, int], int | bytes | None] = {}
    for key in integers:
        try:
            found[key] = read(*key)
        except OSError:  # an option that this kernel does not have
            found[key] = None
    for key in _STRUCTS:
        found[key] = read(*key, _STRUCT_BYTES)
    return found


def _option(sock: socket.socket, level: int, option: int) -> int | None:
    """Return an integer option, None when this kernel or socket has none."""
    try:
        return sock.getsockopt(level, option)
    except OSError:
        return None


def _set(sock: socket.socket, level: int, option: int, value: int | bytes) -> None:
    """Set an option if the kernel lets us."""
    try:
        sock.setsockopt(level, option, value)
    except OSError:
        return


def somebody_listens(tid: int, port: int) -> bool:
    """Tell whether anything listens on a TCP port of a thread's network namespace, in either family."""
    wanted = f":{port:04X}"
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{tid}/net/{table}", encoding="ascii") as lines:
                if any(_listens_on(line.split(), wanted) for line in lines):
                    return True
        except OSError:
            continue
    return False


def _listens_on(fields: list[str], port: str) -> bool:
    """Tell whether a line of /proc/net/tcp is a listener on a port; state 0A is TCP_LISTEN."""
    return len(fields) > 3 and fields[1].endswith(port) and fields[3] == "0A"

"""Lay bait outside the sandbox and tell afterwards who took it: python bait.py DIRECTORY, in a network namespace.

Prints one line of JSON with what the probes need to know, then waits for a line on standard input and prints
what happened meanwhile. The addresses 192.0.2.1, 192.0.2.53 and 169.254.169.254 must be on `lo`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys

SECRET = "s3cret-of-the-bait"
TCP_FASTOPEN = 23


def lay(directory):
    """Make the bait; return what to tell the probes, the sockets, and the paths to look at later."""
    port = socket.create_server(("0.0.0.0", 0))
    port.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 5)
    number = port.getsockname()[1]
    sockets = {"tcp": port}
    for name, address in (("udp", ("192.0.2.1", 9)), ("dns", ("192.0.2.53", 53))):
        sockets[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sockets[name].bind(address)
    for name, address in (("unix", f"{directory}/u.sock"), ("abstract", f"\0bait-{os.getpid()}")):
        sockets[name] = socket.socket(socket.AF_UNIX)
        sockets[name].bind(address)
        sockets[name].listen()
    os.chmod(f"{directory}/u.sock", 0o777)
    secret = f"{directory}/secret"
    with open(secret, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(SECRET)
    told = {
        "PROBE_SECRET_FILE": secret,
        "PROBE_UNIX": f"{directory}/u.sock",
        "PROBE_ABSTRACT": f"bait-{os.getpid()}",
        "PROBE_TCP": str(number),
        "PROBE_PID": str(os.getpid()),
        "PROBE_NET": "1",
    }
    return told, sockets, secret


def taken(sockets, secret, before):
    """Return the names of the sockets at which somebody knocked, and whether the secret is what it was."""
    knocked = []
    for name, sock in sockets.items():
        while select.select([sock], [], [], 0)[0]:
            knocked.append(name)
            if sock.type == socket.SOCK_STREAM:
                sock.accept()[0].close()
            else:
                sock.recv(100)
    with open(secret) as file:
        same = file.read() == SECRET
    after = os.stat(secret)
    same = same and (after.st_mode, after.st_mtime_ns, after.st_ino) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ino,
    )
    return {"knocked": sorted(set(knocked)), "secret unchanged": same}


def main():
    """Lay, wait, tell; again for every line."""
    told, sockets, secret = lay(sys.argv[1])
    before = os.stat(secret)
    print(json.dumps(told), flush=True)
    for _line in sys.stdin:
        print(json.dumps(taken(sockets, secret, before)), flush=True)


if __name__ == "__main__":
    main()

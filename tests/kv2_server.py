"""A small key-value server, version 2 of the engine, over real HTTP or HTTPS, for the tests.

It answers the requests that reach makes of a Vault server: reads of ``MOUNT/data/PATH`` and logins with AppRole,
JWT and Kubernetes. Also usable by hand: ``python tests/kv2_server.py PORT`` serves the secrets of case C25.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

CASE_TOKEN = "case-token"
CASE_SECRETS = {"secret/app/db": {"password": "hunter2-case25", "port": 5432, "blank": "", "nothing": None}}


class Kv2Server:
    """A running server; use it as a context manager.

    Args:
        secrets: ``MOUNT/PATH`` to its keys.
        token: the token that may read.
        logins: mount of a login method to the body that it accepts.
        deleted: paths whose newest version is deleted.
        forbidden: paths that answer 403.
        redirect: path to the Location that it answers with status 307.
        namespace: X-Vault-Namespace that requests must carry.
        tls: an `ssl.SSLContext` for HTTPS.
        port: port to listen on, 0 for a free one.
        silent: accept requests and never answer.
    """

    def __init__(
        self,
        secrets=None,
        *,
        token=CASE_TOKEN,
        logins=None,
        deleted=("secret/app/gone",),
        forbidden=("secret/app/forbidden",),
        redirect=None,
        namespace="",
        tls=None,
        port=0,
        silent=False,
    ):
        self.secrets = CASE_SECRETS if secrets is None else secrets
        self.token, self.logins, self.namespace = token, logins or {}, namespace
        self.deleted, self.forbidden, self.redirect = set(deleted), set(forbidden), redirect or {}
        self.requests = []  # "GET /v1/…" in order of arrival
        self.headers = []
        self.hold = threading.Event()
        self.silent = silent
        self.http = _Server(("127.0.0.1", port), _Handler)
        self.http.daemon_threads = True
        self.http.block_on_close = False
        self.http.kv2 = self
        if tls is not None:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "http" if tls is None else "https"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def address(self):
        """Return the value for VAULT_ADDR."""
        host = "127.0.0.1" if self.scheme == "http" else "localhost"
        return f"{self.scheme}://{host}:{self.http.server_address[1]}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.hold.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def reads(self, path):
        """Return how often a ``MOUNT/data/PATH`` was read."""
        return sum(request.split("?")[0] == f"GET /v1/{path}" for request in self.requests)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Stay silent: a client that refuses our certificate is what some tests want."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        kv2 = self.server.kv2
        self.note()
        if self.path in kv2.redirect:
            self.answer(307, None, location=kv2.redirect[self.path])
        elif (
            self.headers.get("X-Vault-Token") != kv2.token or self.headers.get("X-Vault-Namespace", "") != kv2.namespace
        ):
            self.answer(403, {"errors": ["permission denied"]})
        else:
            self.answer(*self.secret())

    def do_POST(self):
        kv2 = self.server.kv2
        self.note()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        mount = self.path.removeprefix("/v1/auth/").removesuffix("/login")
        if kv2.logins.get(mount) == body:
            self.answer(200, {"auth": {"client_token": kv2.token, "lease_duration": 60}})
        else:
            self.answer(400, {"errors": ["invalid role or secret ID"]})

    def secret(self):
        """Return status and body of a read, shaped as the real server shapes them."""
        kv2 = self.server.kv2
        path = unquote(urlsplit(self.path).path).removeprefix("/v1/").replace("/data/", "/", 1)
        if path in kv2.forbidden:
            return 403, {"errors": ["1 error occurred:\n\t* permission denied\n\n"]}
        if path in kv2.deleted:
            metadata = {"deletion_time": "2026-01-01T00:00:00Z", "destroyed": False, "version": 2}
            return 404, {"data": {"data": None, "metadata": metadata}}
        if path not in kv2.secrets:
            return 404, {"errors": []}
        return 200, {"data": {"data": kv2.secrets[path], "metadata": {"version": 3}}}

    def note(self):
        kv2 = self.server.kv2
        kv2.requests.append(f"{self.command} {self.path}")
        kv2.headers.append(dict(self.headers))
        if kv2.silent:
            kv2.hold.wait(30)

    def answer(self, status, body, location=""):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        """Stay silent."""


if __name__ == "__main__":
    with Kv2Server(port=int(sys.argv[1])) as server:
        print(server.address, flush=True)
        threading.Event().wait()

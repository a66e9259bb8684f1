"""Fetching files: what arrives is what was declared, and nothing stays behind."""

from __future__ import annotations

import hashlib
import io
import os
import pty
import re
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agent_reach.contract.model import FileGrant, Origin
from agent_reach.errors import ProviderError
from agent_reach.staging.fetch import stage, stage_all
from agent_reach.staging.progress import Progress
from agent_reach.staging.sources import public_name

DATA = b"id,name\n1,a\n" * 1000
DIGEST = hashlib.sha256(DATA).hexdigest()


def reason(source, *args, **more):
    with pytest.raises(ProviderError) as caught:
        stage(source, *args, **more)
    (problem,) = caught.value.problems
    assert problem.startswith(f"Cannot stage {public_name(source)}: ")
    return problem.split(": ", 1)[1]


# -- file ------------------------------------------------------------------------------------------------


def test_a_file_is_copied_and_its_digest_told(tmp_path):
    (tmp_path / "users.csv").write_bytes(DATA)
    staged = stage("file://./users.csv", base=str(tmp_path))
    assert (staged.size, staged.sha256, staged.source) == (len(DATA), DIGEST, "file://./users.csv")
    (tmp_path / "users.csv").write_bytes(b"changed")
    assert not os.get_inheritable(staged.fd)
    assert os.fstat(staged.fd).st_nlink == 0
    assert staged.take() == DATA


def test_paths_of_file_sources(tmp_path):
    (tmp_path / "a b").write_bytes(DATA)
    assert stage("file://a%20b", DIGEST, base=str(tmp_path)).take() == DATA
    assert stage("file://~/a b", DIGEST.upper(), home=str(tmp_path)).take() == DATA
    assert stage(f"file://{tmp_path}/a b").take() == DATA


def test_another_digest_is_refused(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    assert reason("file://f", DIGEST, base=str(tmp_path)) == (
        f"the content has sha256 {hashlib.sha256(b'x').hexdigest()}, but {DIGEST} is declared"
    )


def test_length_is_bounded(tmp_path):
    (tmp_path / "f").write_bytes(DATA)
    assert reason("file://f", base=str(tmp_path), limit=100) == "it is longer than 100 bytes"
    assert stage("file://f", base=str(tmp_path), limit=len(DATA)).take() == DATA
    assert reason("file:///dev/zero", limit=100) == "/dev/zero: not a regular file"


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert reason("file://fifo", base=str(tmp_path)) == f"{tmp_path}/fifo: not a regular file"
    assert reason("file://none", base=str(tmp_path)) == f"no such file: {tmp_path}/none"
    assert "\x1b" not in reason("file://a%1b[31m", base=str(tmp_path))
    assert reason("file://a%00b") == "/a\\x00b: embedded null byte"


@pytest.mark.parametrize("source", ["users.csv", "file://", "https://h/\x1b", "https://${HOST}/x"])
def test_what_is_no_source(source):
    assert reason(source) == "a source is written scheme://path, and nothing in it is expanded"


@pytest.mark.parametrize("source", ["http://h/x", "ftp://h/x", "data://x", "gopher://x"])
def test_schemes_without_a_fetcher(source):
    assert reason(source).startswith("no fetcher for ")


def test_all_failures_at_once_relative_to_each_document(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "f").write_bytes(DATA)
    origin = Origin(file=str(tmp_path / "base" / "reach.yaml"), line=3)
    good = FileGrant("/data/a", source="file://f", sha256=DIGEST, origin=origin)
    contents, staged = stage_all([(4, good), (5, FileGrant("/plain"))], str(tmp_path))
    assert contents == {4: DATA}
    assert [(file.path, file.source, file.size, file.fd) for file in staged] == [("/data/a", "file://f", len(DATA), -1)]
    bad = [good, FileGrant("/data/b", source="file://none"), FileGrant("/data/c", source="ftp://x/y")]
    with pytest.raises(ProviderError) as caught:
        stage_all(enumerate(bad), str(tmp_path))
    assert caught.value.problems == (
        f"Cannot stage /data/b from file://none: no such file: {tmp_path}/none",
        "Cannot stage /data/c from ftp://x/y: no fetcher for ftp://; reach knows file, https, s3, gs, gcs, az, abfs",
    )


def test_names_for_logs_hold_no_credentials():
    assert public_name("https://user:pw@host:1/p/f?X-Amz-Signature=abc#f") == "https://host:1/p/f"
    assert public_name("s3://bucket/key?versionId=1") == "s3://bucket/key"
    assert public_name("https://h/\x1b[2J") == "https://h/\\x1b[2J"


def test_descriptors_are_closed_after_a_failure(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        reason("file://f", DIGEST, base=str(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before


# -- https -----------------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.path)
        route = self.path.split("?")[0]
        if route in self.server.redirects:
            self.send_response(302)
            self.send_header("Location", self.server.redirects[route])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200 if route in ("/f", "/short", "/unsized") else 404)
        if route != "/unsized":
            self.send_header("Content-Length", str(len(DATA) + (10 if route == "/short" else 0)))
        self.end_headers()
        self.wfile.write(DATA)
        self.close_connection = True

    def log_message(self, *args):
        """Stay silent."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        """Stay silent: a client that refuses our certificate is what some tests want."""


@pytest.fixture
def server(certificate, monkeypatch):
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    http = Server(("127.0.0.1", 0), Handler)
    http.seen, http.redirects = [], {}
    http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    http.url = f"https://localhost:{http.server_address[1]}"
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield http
    http.shutdown()
    thread.join()
    http.server_close()


def test_https(server):
    staged = stage(server.url + "/f?sig=secret#part", DIGEST)
    assert staged.source == server.url + "/f"
    assert staged.take() == DATA
    assert server.seen == ["/f?sig=secret"]
    assert stage(server.url + "/unsized", DIGEST).take() == DATA


def test_https_needs_a_trusted_certificate(server, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")
    assert reason(server.url + "/f").startswith("certificate not trusted: ")


def test_https_failures(server):
    assert reason(server.url + "/none") == "the server answered HTTP 404"
    assert reason(server.url + "/short") == f"{len(DATA)} of {len(DATA) + 10} bytes arrived"
    assert reason(server.url + "/f", limit=100) == "it is longer than 100 bytes"
    assert reason(server.url + "/unsized", limit=100) == "it is longer than 100 bytes"
    assert "a user name in a URL" in reason(server.url.replace("localhost", "u:pw@localhost") + "/f")


def test_https_without_a_server():
    assert reason("https://127.0.0.1:1/f") == "Connection refused"


def test_redirects_stay_on_https(server):
    server.redirects.update(
        {
            "/ok": "/f",
            "/plain": server.url.replace("https", "http") + "/f",
            "/file": "file:///etc/passwd",
            "/ftp": "ftp://localhost/x",
            "/user": server.url.replace("localhost", "u:p@localhost") + "/f",
            "/loop": "/loop",
        }
    )
    assert stage(server.url + "/ok", DIGEST).take() == DATA
    for path in ("/plain", "/user"):
        assert "only https is followed" in reason(server.url + path)
    for path in ("/file", "/ftp", "/loop"):
        assert reason(server.url + path)
    assert server.seen.count("/f") == 1
    assert server.seen.count("/loop") < 10


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::1]", "169.254.169.254", "127.1", "0x7f.1", "10.0.0.8", "a.internal"]
)
def test_a_public_source_cannot_redirect_to_the_inside(host):
    import urllib.request

    from agent_reach.staging.https import _Redirects
    from agent_reach.staging.sources import FetchError

    request = urllib.request.Request("https://example.com/a")
    with pytest.raises(FetchError, match="inside this machine or network"):
        _Redirects("example.com").redirect_request(request, io.BytesIO(), 302, "", {}, f"https://{host}/x")
    followed = _Redirects("example.com").redirect_request(
        request, io.BytesIO(), 302, "", {}, "https://cdn.example.net/x"
    )
    assert followed.full_url == "https://cdn.example.net/x"


# -- stores ----------------------------------------------------------------------------------------------


def test_stores_say_which_package_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert reason("s3://b/k") == "the fsspec package is missing; pip install 'agent-reach-runtime[fsspec]' s3fs"


def test_stores_by_the_interface_of_fsspec(monkeypatch, tmp_path):
    """fsspec is an extra; this module has the one function of it that reach calls."""
    (tmp_path / "object").write_bytes(DATA)
    (tmp_path / "fsspec.py").write_text(
        "class Opened:\n"
        "    def __init__(self, url): self.url = url\n"
        "    def open(self):\n"
        "        if self.url.endswith('denied'): raise PermissionError('signed?secret=hunter2')\n"
        "        if self.url.startswith('az'): raise ImportError('adlfs')\n"
        f"        return open({str(tmp_path)!r} + '/' + self.url.rpartition('/')[2], 'rb')\n"
        "def open_(url, mode): return Opened(url)\n"
        "globals()['open'], open = open_, open\n".replace("globals()['open'], open = open_, open", "")
        + "def __getattr__(name): return open_ if name == 'open' else None\n"
    )
    monkeypatch.delitem(sys.modules, "fsspec", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert stage("s3://bucket/object", DIGEST).take() == DATA
    assert reason("gs://bucket/none") == "there is no such object"
    assert reason("s3://bucket/denied") == "the store refused (PermissionError)"
    assert reason("az://bucket/object") == "fsspec needs the package adlfs; pip install adlfs"
    monkeypatch.delitem(sys.modules, "fsspec")


# -- progress --------------------------------------------------------------------------------------------


def shown(monkeypatch, *updates):
    """Return what a terminal gets."""
    monkeypatch.setattr("agent_reach.staging.progress._AFTER", 0.0)
    monkeypatch.setattr("agent_reach.staging.progress._EVERY", 0.0)
    outer, inner = pty.openpty()
    progress = Progress(inner)
    for update in updates:
        progress.update(*update)
    progress.finish()
    os.write(inner, b"end")
    text = b""
    while not text.endswith(b"end"):
        text += os.read(outer, 4096)
    os.close(outer)
    os.close(inner)
    return text.decode()


def test_progress_on_a_terminal_replaces_itself_and_goes_away(monkeypatch):
    text = shown(monkeypatch, ("https://h/f", 1536, 4 << 20), ("https://h/f", 2 << 20, -1))
    assert "\rreach: fetching https://h/f  1.5 KiB of 4.0 MiB" in text
    assert "\rreach: fetching https://h/f  2.0 MiB" in text
    assert "\x1b" not in text
    assert "\n" not in text
    assert re.search(r"\r +\rend$", text)


def test_progress_writes_nothing_elsewhere_or_before_it_is_slow(tmp_path, monkeypatch):
    with open(tmp_path / "log", "wb") as file:
        progress = Progress(file.fileno())
        progress.update("x", 1, 2)
        progress.finish()
    assert (tmp_path / "log").read_bytes() == b""
    outer, inner = pty.openpty()
    progress = Progress(inner)
    progress.update("x", 1, 2)
    progress.finish()
    os.set_blocking(outer, False)
    with pytest.raises(BlockingIOError):
        os.read(outer, 1)
    os.close(outer)
    os.close(inner)

"""Open an https URL: certificates checked, redirects to https only, and never towards the inside."""

from __future__ import annotations

import http.client
import ipaddress
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager
from urllib.parse import urlsplit

from agent_reach._util.visible import visible
from agent_reach.staging.sources import FetchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

_STALL_SECONDS = 30.0
_REDIRECTS = 5


@contextmanager
def open_https(url: str) -> Iterator[tuple[Callable[[int], bytes], int]]:
    """Ask for a URL and give a function that reads the body, and its length, -1 when that is unknown.

    Args:
        url: an ``https://`` URL without user name.

    Raises:
        FetchError: no connection, no trust, another status than 200, a forbidden redirect or a stall.
    """
    parts = urlsplit(url)
    if parts.username is not None:
        raise FetchError("a user name in a URL ends up in logs; use a signed URL or an object store")
    opener = urllib.request.OpenerDirector()
    # no handler for http, ftp, file or data: a redirect to one of them has nobody to open it
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPSHandler(context=ssl.create_default_context()),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(parts.hostname or ""),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(
        url.partition("#")[0], headers={"User-Agent": "reach", "Accept-Encoding": "identity"}
    )
    with _explained():
        response = opener.open(request, timeout=_STALL_SECONDS)

    def read(size: int) -> bytes:
        with _explained():
            data: bytes = response.read(size)
            return data

    with response:
        length = response.headers.get("Content-Length", "")
        yield read, int(length) if length.isascii() and length.isdecimal() else -1


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects from https to https.

    Args:
        host: host of the declared URL; only from there may a redirect lead to the machine or its network.
    """

    max_redirections = _REDIRECTS
    max_repeats = 2

    def __init__(self, host: str) -> None:
        self._host = host

    def redirect_request(  # noqa: PLR0917 - the base class calls it so
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Check the target of one redirect.

        Raises:
            FetchError: it leaves https, or leads a public source to an inner address.
        """
        parts = urlsplit(newurl)
        target = visible(f"{parts.scheme}://{parts.hostname}", 200)
        if parts.scheme != "https" or not parts.hostname or parts.username is not None:
            fp.close()
            raise FetchError(f"it redirects to {target}; only https is followed")
        if _inner(parts.hostname) and not _inner(self._host):
            fp.close()
            raise FetchError(f"it redirects to {target}, which is inside this machine or network")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _inner(host: str) -> bool:
    """Say whether a host is written as the machine itself or as an address that is not public."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith((".localhost", ".internal", ".local")):
        return True
    try:
        return not ipaddress.ip_address(name).is_global
    except ValueError:
        # 127.1 and 0x7f.1 are addresses to the resolver, too; no name ends in a number
        last = name.rpartition(".")[2]
        return last.isdecimal() or last.startswith("0x")


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what the HTTP client raises into one short reason."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchError(f"the server answered HTTP {error.code}") from None
    except urllib.error.URLError as error:
        raise FetchError(_reason(error.reason)) from None
    except TimeoutError:
        raise FetchError(f"nothing arrived for {_STALL_SECONDS:g} s") from None
    except OSError as error:
        raise FetchError(_reason(error)) from None
    except (http.client.HTTPException, ValueError) as error:
        raise FetchError(f"not an HTTP answer ({type(error).__name__})") from None


def _reason(error: object) -> str:
    """Say why there was no connection."""
    if isinstance(error, TimeoutError):
        return f"nothing arrived for {_STALL_SECONDS:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not trusted: {error.verify_message}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return visible(str(error), 200)

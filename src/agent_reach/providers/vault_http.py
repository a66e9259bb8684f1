"""Talk to a Vault server: one request, one bounded JSON answer, never a word of the token in an error."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from urllib.parse import urlsplit

from agent_reach._util.visible import visible
from agent_reach.providers.content import load_json
from agent_reach.providers.faults import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 10.0
_LIMIT = 4 * 1024 * 1024
_REDIRECTS = 3


class VaultHttp:
    """The server that VAULT_ADDR names.

    Args:
        env: the caller's environment: VAULT_ADDR, VAULT_NAMESPACE, VAULT_CACERT, VAULT_CAPATH.

    Raises:
        SourceError: VAULT_ADDR is not set or is not an address.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        address = env.get("VAULT_ADDR", "")
        if not address:
            raise SourceError("VAULT_ADDR is not set")
        self._secure, self._host, self._port, self._base = _address(address)
        self._env = env
        self._deadline = time.monotonic() + SECONDS
        scheme = "https" if self._secure else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.name = f"VAULT_ADDR {scheme}://{visible(host)}:{self._port}{visible(self._base)}"

    def request(
        self,
        method: str,
        path: str,
        credential: str = "",
        body: object = None,
    ) -> tuple[int, dict[str, object]]:
        """Send one request and return status and JSON object, empty when the answer is none.

        Args:
            method: HTTP method.
            path: path below the address, with query, already quoted.
            credential: token to send, or empty.
            body: JSON document to send, or None.

        Raises:
            SourceError: no connection, no time, a foreign redirect or an answer that is too long.
        """
        for _attempt in range(_REDIRECTS + 1):
            status, location, data = self._exchange(method, self._base + path, credential, body)
            if status not in (301, 302, 307, 308):
                return status, _object(data)
            path = self._follow(location)
        raise SourceError(f"{self.name} redirects without end")

    def _exchange(self, method: str, path: str, credential: str, body: object) -> tuple[int, str, bytes]:
        """Open a connection, ask, and read the bounded answer."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise SourceError(f"{self.name}: no answer within {SECONDS:g} s")
        connection = self._connection(left)
        try:
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, path, payload, self._headers(credential))
            answer = connection.getresponse()
            data = answer.read(_LIMIT + 1)
        except TimeoutError:
            raise SourceError(f"{self.name}: no answer within {SECONDS:g} s") from None
        except ssl.SSLCertVerificationError as error:
            reason = f"{error.verify_message}; name the issuer's certificate in VAULT_CACERT"
            raise SourceError(f"{self.name}: certificate not trusted: {reason}") from None
        except OSError as error:
            raise SourceError(f"{self.name}: {error.strerror or type(error).__name__}") from None
        except (http.client.HTTPException, ValueError) as error:
            # the text of these could quote a header
            raise SourceError(f"{self.name}: not an HTTP answer ({type(error).__name__})") from None
        finally:
            connection.close()
        if len(data) > _LIMIT:
            raise SourceError(f"{self.name}: the answer is longer than {_LIMIT} bytes")
        return answer.status, answer.headers.get("Location", ""), data

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        """Return a connection that is opened by its first request."""
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        cafile, capath = self._env.get("VAULT_CACERT") or None, self._env.get("VAULT_CAPATH") or None
        try:
            context = ssl.create_default_context(cafile=cafile, capath=capath)
        except OSError as error:
            reason = error.strerror or "not a certificate"
            raise SourceError(f"VAULT_CACERT or VAULT_CAPATH cannot be read: {reason}") from None
        return http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=context)

    def _headers(self, credential: str) -> dict[str, str]:
        """Return the headers; X-Vault-Request shows that no browser or proxy was tricked into asking."""
        headers = {"X-Vault-Request": "true", "Accept": "application/json"}
        if credential:
            headers["X-Vault-Token"] = credential
        if self._env.get("VAULT_NAMESPACE"):
            headers["X-Vault-Namespace"] = self._env["VAULT_NAMESPACE"]
        return headers

    def _follow(self, location: str) -> str:
        """Return the path of a redirect that stays on the same server; the token goes nowhere else.

        Raises:
            SourceError: it leads to another server, port or scheme.
        """
        parts = urlsplit(location)
        if parts.scheme or parts.netloc:
            here = ("https" if self._secure else "http", self._host, self._port)
            try:
                there = (parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
            except ValueError:
                there = ("", None, 0)
            if there != here:
                target = visible(f"{parts.scheme}://{parts.hostname}", 200)
                raise SourceError(f"{self.name} redirects to another server ({target}); set VAULT_ADDR to it")
        if not parts.path.startswith(self._base + "/"):
            raise SourceError(f"{self.name} redirects to a path that is not its own")
        return parts.path[len(self._base) :] + (f"?{parts.query}" if parts.query else "")


def _address(address: str) -> tuple[bool, str, int, str]:
    """Take VAULT_ADDR apart into TLS or not, host, port and base path.

    Raises:
        SourceError: it is not an http or https address; the text is not repeated, it could hold a password.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise SourceError("VAULT_ADDR is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError("VAULT_ADDR is written https://HOST:PORT")
    if parts.username is not None or parts.query or parts.fragment:
        raise SourceError("VAULT_ADDR has a user name, a query or a fragment; it is written https://HOST:PORT")
    secure = parts.scheme == "https"
    return secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/")


def _object(data: bytes) -> dict[str, object]:
    """Parse an answer; anything but a JSON object counts as an empty one, the status decides then."""
    try:
        parsed = load_json(data)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}

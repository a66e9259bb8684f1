"""``vault://MOUNT/PATH#FIELD``: HashiCorp Vault or OpenBao, key-value engine version 2.

Without ``#`` the mount is VAULT_KV_MOUNT or ``secret``, the last segment is the field and the rest the path:
``vault://prod/user-sync/db-pass`` is field ``db-pass`` of ``secret/prod/user-sync``.
"""

from __future__ import annotations

from threading import Lock

from agent_reach._util.visible import visible
from agent_reach.providers.faults import NotFoundError, SourceError
from agent_reach.providers.session import no_options
from agent_reach.providers.vault_http import VaultHttp
from agent_reach.providers.vault_login import token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.providers.session import Session
    from agent_reach.providers.uri import Ref


class VaultReader:
    """Reads secrets with one login for the whole run.

    Args:
        session: the resolution; its environment holds VAULT_ADDR and the credentials.
    """

    slow = True
    batched = False

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = Lock()
        self._http: VaultHttp | None = None
        self._token: str | SourceError = ""

    def locate(self, ref: Ref, base: str) -> Ref:  # noqa: ARG002 - same shape as every reader
        """Split mount, path and field, so that all fields of one secret share one read.

        Raises:
            SourceError: the path has too few segments or an empty one.
        """
        no_options(ref, "version")
        for name, value in ref.options:
            if not value.isdecimal():
                raise SourceError(f"option `{name}` is a number")
        segments = ref.path.split("/")
        if any(part in ("", ".", "..") for part in segments):
            raise SourceError("the path has an empty segment, or one that is . or ..")
        if len(segments) < 2:
            raise SourceError("vault:// is followed by MOUNT/PATH#FIELD, or by PATH/FIELD")
        if ref.field:
            return ref
        mount = self._session.caller_env.get("VAULT_KV_MOUNT", "").strip("/") or "secret"
        return ref.replace(path="/".join([mount, *segments[:-1]]), field=segments[-1])

    def read(self, ref: Ref) -> dict[str, object]:
        """Return every key of a secret.

        Raises:
            NotFoundError: there is no such secret, or its version was deleted.
            SourceError: the server cannot be asked, or does not allow it.
        """
        from urllib.parse import quote

        mount, path = self._split(ref.path)
        query = "".join(f"?version={value}" for _name, value in ref.options[-1:])
        where = visible(ref.path)
        http, credential = self._open()
        status, body = http.request("GET", f"/v1/{quote(mount)}/data/{quote(path)}{query}", credential)
        data = body.get("data")
        if status == 404:
            raise NotFoundError(_absent(where, data))
        if status == 403:
            raise SourceError(f"permission denied at `{where}` (HTTP 403)")
        if status != 200:
            raise SourceError(f"{http.name} answered HTTP {status} for `{where}`{_state(status)}")
        fields = data.get("data") if isinstance(data, dict) else None
        if fields is None and isinstance(data, dict) and "metadata" in data:
            raise NotFoundError(_absent(where, data))
        if not isinstance(fields, dict):
            raise SourceError(f"`{where}` is not a secret of a key-value engine version 2")
        return fields

    def describe(self, ref: Ref) -> str:
        """Name mount and path."""
        return visible(ref.path)

    def _split(self, path: str) -> tuple[str, str]:
        """Split mount from path; a mount may itself have slashes when VAULT_KV_MOUNT says so."""
        mount = self._session.caller_env.get("VAULT_KV_MOUNT", "").strip("/")
        if not mount or not path.startswith(mount + "/"):
            mount = path.partition("/")[0]
        return mount, path[len(mount) + 1 :]

    def _open(self) -> tuple[VaultHttp, str]:
        """Log in once, whichever thread comes first; a refused login is refused for all.

        Raises:
            SourceError: VAULT_ADDR or the credentials are missing or refused.
        """
        with self._lock:
            if self._http is None:
                self._http = VaultHttp(self._session.caller_env)
            if not self._token:
                try:
                    self._token = token(self._session, self._http)
                except SourceError as error:
                    self._token = error
            if isinstance(self._token, SourceError):
                raise SourceError(str(self._token))
            return self._http, self._token


def _absent(where: str, data: object) -> str:
    """Tell a deleted version from a path that never was; both are HTTP 404."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict):
        return f"no secret at `{where}` (HTTP 404)"
    version = visible(str(metadata.get("version", "?")), 20)
    when = metadata.get("deletion_time")
    how = "destroyed" if metadata.get("destroyed") is True else "deleted"
    at = f" at {visible(when, 40)}" if isinstance(when, str) and when else ""
    return f"version {version} of `{where}` was {how}{at}"


def _state(status: int) -> str:
    """Explain the statuses by which Vault reports its own condition."""
    known = {429: "too many requests", 472: "standby", 473: "standby", 501: "not initialized", 503: "sealed"}
    return f" ({known[status]})" if status in known else ""

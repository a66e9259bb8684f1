"""How reach proves itself to Vault.

The first of these that is there counts: VAULT_TOKEN · AppRole (VAULT_ROLE_ID, VAULT_SECRET_ID) · JWT
(VAULT_AUTH_ROLE with VAULT_JWT, VAULT_ID_TOKEN or GitHub's OIDC endpoint) · Kubernetes (VAULT_AUTH_ROLE and the
pod's service account) · ``~/.vault-token``. VAULT_AUTH_PATH names the mount of a login method that is not at its
usual place.
"""

from __future__ import annotations

import os

from agent_reach.providers.faults import NotFoundError, SourceError
from agent_reach.providers.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.providers.session import Session
    from agent_reach.providers.vault_http import VaultHttp

_LIMIT = 64 * 1024
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def token(session: Session, http: VaultHttp) -> str:
    """Return a token for the server, logging in where that is needed.

    Args:
        session: the caller's environment and home.
        http: the server.

    Raises:
        SourceError: there are no credentials, or they are refused.
    """
    env = session.caller_env
    if env.get("VAULT_TOKEN"):
        return _clean(env["VAULT_TOKEN"], "VAULT_TOKEN")
    if env.get("VAULT_ROLE_ID"):
        login = {"role_id": env["VAULT_ROLE_ID"]}
        if env.get("VAULT_SECRET_ID"):
            login["secret_id"] = env["VAULT_SECRET_ID"]
        return _login(http, env, "approle", login)
    if env.get("VAULT_AUTH_ROLE"):
        method, jwt = _jwt(env)
        if jwt:
            return _login(http, env, method, {"role": env["VAULT_AUTH_ROLE"], "jwt": jwt})
    path = os.path.join(session.home, ".vault-token")
    try:
        return _clean(os.fsdecode(read_regular(path, _LIMIT)), "~/.vault-token")
    except NotFoundError:
        raise SourceError(
            "no credentials for Vault: set VAULT_TOKEN, or VAULT_ROLE_ID and VAULT_SECRET_ID, or VAULT_AUTH_ROLE "
            "with VAULT_JWT, or run `vault login`"
        ) from None


def _login(http: VaultHttp, env: Mapping[str, str], method: str, body: dict[str, str]) -> str:
    """Exchange credentials for a token."""
    from urllib.parse import quote

    mount = env.get("VAULT_AUTH_PATH", "").strip("/") or method
    status, answer = http.request("POST", f"/v1/auth/{quote(mount)}/login", body=body)
    auth = answer.get("auth")
    issued = auth.get("client_token") if isinstance(auth, dict) else None
    if status == 200 and isinstance(issued, str) and issued:
        return _clean(issued, "the issued token")
    denied = "permission denied: " if status in (400, 401, 403) else ""
    raise SourceError(f"{denied}{http.name} refused the login at auth/{mount} (HTTP {status})")


def _jwt(env: Mapping[str, str]) -> tuple[str, str]:
    """Return login method and token of the platform reach runs on, empty when it has none."""
    for name in ("VAULT_JWT", "VAULT_ID_TOKEN"):
        if env.get(name):
            return "jwt", _clean(env[name], name)
    if env.get("ACTIONS_ID_TOKEN_REQUEST_URL") and env.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN"):
        from agent_reach.providers.vault_github import identity_token

        return "jwt", _clean(identity_token(env), "GitHub's identity token")
    path = env.get("VAULT_K8S_TOKEN_PATH") or _SERVICE_ACCOUNT
    try:
        return "kubernetes", _clean(os.fsdecode(read_regular(path, _LIMIT)), path)
    except NotFoundError:
        return "", ""


def _clean(text: str, name: str) -> str:
    """Return a token without line end; one with other control characters could forge HTTP headers.

    Raises:
        SourceError: it is empty or holds what no token holds.
    """
    cleaned = text.strip()
    if not cleaned:
        raise SourceError(f"{name} is empty")
    if not cleaned.isascii() or not cleaned.isprintable() or " " in cleaned:
        raise SourceError(f"{name} holds characters that no token has")
    return cleaned

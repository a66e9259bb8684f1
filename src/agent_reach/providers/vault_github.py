"""The identity token of a GitHub Actions job, for Vault's JWT login.

https://docs.github.com/en/actions/security-for-github-actions/security-hardening-your-deployments
"""

from __future__ import annotations

import http.client
from urllib.parse import quote, urlsplit

from agent_reach.providers.content import load_json
from agent_reach.providers.faults import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS = 10.0
_LIMIT = 64 * 1024


def identity_token(env: Mapping[str, str]) -> str:
    """Ask the runner for a token; VAULT_AUTH_AUDIENCE sets its audience.

    Args:
        env: the caller's environment with ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN.

    Raises:
        SourceError: the runner gives none.
    """
    where = "GitHub's identity token"
    audience = env.get("VAULT_AUTH_AUDIENCE", "")
    try:
        parts = urlsplit(env["ACTIONS_ID_TOKEN_REQUEST_URL"])
        if parts.scheme != "https" or not parts.hostname:
            raise SourceError("ACTIONS_ID_TOKEN_REQUEST_URL is not an https address")
        connection = http.client.HTTPSConnection(parts.hostname, parts.port or 443, timeout=_SECONDS)
    except ValueError:
        raise SourceError("ACTIONS_ID_TOKEN_REQUEST_URL is not an address") from None
    query = parts.query + (f"&audience={quote(audience, safe='')}" if audience else "")
    try:
        bearer = {"Authorization": f"Bearer {env['ACTIONS_ID_TOKEN_REQUEST_TOKEN']}"}
        connection.request("GET", f"{parts.path}?{query}", headers=bearer)
        answer = connection.getresponse()
        document = load_json(answer.read(_LIMIT))
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SourceError(f"{where}: {getattr(error, 'strerror', None) or type(error).__name__}") from None
    finally:
        connection.close()
    value = document.get("value") if isinstance(document, dict) else None
    if not isinstance(value, str):
        raise SourceError(f"{where}: the runner answered HTTP {answer.status} without a token")
    return value

"""Remove values from messages, as a last net below messages that are written without them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SHORTEST = 4
_TELLING = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "CREDENTIAL", "JWT")


def secrets_of(answers: Iterable[object], caller_env: Mapping[str, str]) -> list[str]:
    """Collect every text that a source answered, and the caller's variables that are named like secrets.

    Texts shorter than four characters are left out: removing ``us`` from messages would only garble them.
    """
    found = {value for name, value in caller_env.items() if any(word in name.upper() for word in _TELLING)}
    for answer in answers:
        parts = answer.values() if isinstance(answer, dict) else (answer,)
        for part in parts:
            text = part.decode("utf-8", "replace") if isinstance(part, bytes) else part
            if isinstance(text, str):
                found.add(text)
                found.add(text.strip())
    return sorted((text for text in found if len(text) >= _SHORTEST), key=len, reverse=True)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a text without any of the secrets, longest first."""
    for secret in secrets:
        text = text.replace(secret, "[removed]")
    return text

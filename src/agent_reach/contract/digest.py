"""Digests without `hashlib`, whose import loads OpenSSL and costs more than the whole reading of a warm contract."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_BYTES = 32


def digest(chunks: Iterable[bytes]) -> str:
    """Return the BLAKE2b digest of several chunks in hexadecimal; each is preceded by its length.

    Args:
        chunks: what goes in, in order; two different sequences never give the same input.
    """
    try:
        from _blake2 import blake2b  # type: ignore[import-not-found, unused-ignore]  # the module behind hashlib
    except ImportError:
        from hashlib import blake2b
    state = blake2b(digest_size=_BYTES)
    for chunk in chunks:
        state.update(len(chunk).to_bytes(8, "little"))
        state.update(chunk)
    text: str = state.hexdigest()
    return text

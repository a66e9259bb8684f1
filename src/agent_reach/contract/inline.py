"""A contract inside a script: the ``[tool.reach]`` table of its inline metadata (PEP 723)."""

from __future__ import annotations

from agent_reach.errors import ContractError, Finding

_START = "# /// script"
_END = "# ///"


def contract_in(source: bytes, name: str) -> bytes | None:
    """Return the contract of a script as a document, or None when it has none.

    Args:
        source: the script.
        name: what messages call it.

    Raises:
        ContractError: the block is no TOML, or stands twice.
    """
    blocks = list(_blocks(source.decode("utf-8", "replace").splitlines()))
    if not blocks:
        return None
    if len(blocks) > 1:
        raise _refusal(name, blocks[1][0], "a second `# /// script` block")
    import json
    import tomllib

    line, text = blocks[0]
    try:
        metadata = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refusal(name, line, f"the script block is no TOML: {error}") from None
    tool = metadata.get("tool")
    contract = tool.get("reach") if isinstance(tool, dict) else None
    if contract is None:
        return None
    if metadata.get("dependencies") and isinstance(contract, dict):
        contract = {**contract, "packages": {"requirements": metadata["dependencies"]}}
    # JSON is YAML: the ordinary reader checks it like any other document.
    return json.dumps(contract, indent=1, default=str).encode()


def _blocks(lines: list[str]) -> list[tuple[int, str]]:
    """Return line number and content of every script block."""
    found: list[tuple[int, str]] = []
    content: list[str] | None = None
    start = 0
    for number, line in enumerate(lines, 1):
        if content is None:
            if line.rstrip() == _START:
                content, start = [], number
        elif line.rstrip() == _END:
            found.append((start, "\n".join(content)))
            content = None
        elif line == "#" or line.startswith("# "):
            content.append(line[2:])
        else:
            content = None  # an unfinished block is none
    return found


def _refusal(name: str, line: int, message: str) -> ContractError:
    """Name what is wrong with the block."""
    return ContractError((Finding("E_SYNTAX", message, file=name, line=line),))

"""The user's own configuration, ``~/.config/reach/config.yaml``, as far as providers need it."""

from __future__ import annotations

import os

from agent_reach._util.record import Record
from agent_reach._util.visible import visible
from agent_reach.errors import ProviderError
from agent_reach.providers.faults import NotFoundError, SourceError
from agent_reach.providers.files import read_with_owner, require_private

_LIMIT = 256 * 1024


class UserConfig(Record):
    """What the user allows and chooses; a contract can change none of it.

    Args:
        python: interpreter for ``~/.reach/providers.py``, absolute, or empty for reach's own.
        allow_cmd: ``cmd://`` may run programs outside the sandbox.
    """

    python: str = ""
    allow_cmd: bool = False


def config_path(home: str) -> str:
    """Return where the configuration lies."""
    return os.path.join(home, ".config", "reach", "config.yaml")


def load_user_config(home: str) -> UserConfig:
    """Read the configuration, or take the defaults when there is none.

    Args:
        home: the caller's home directory, absolute.

    Raises:
        ProviderError: the file belongs to somebody else or cannot be understood.
    """
    try:
        return read_config(home)
    except SourceError as error:
        raise ProviderError((str(error),)) from None


def read_config(home: str) -> UserConfig:
    """Do what `load_user_config` does, failing as a source does.

    Raises:
        SourceError: the file belongs to somebody else or cannot be understood.
    """
    path = config_path(home)
    try:
        data, about = read_with_owner(path, _LIMIT)
    except NotFoundError:
        return UserConfig()
    require_private(about, path)
    return _parse(data, path, home)


def _parse(data: bytes, path: str, home: str) -> UserConfig:
    """Take the ``providers`` mapping; other sections belong to other parts of reach."""
    import yaml

    where = visible(path)
    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise SourceError(f"{where}{line} is not YAML") from None
    section = document.get("providers") if isinstance(document, dict) else document
    if section is None:
        return UserConfig()
    if not isinstance(section, dict):
        raise SourceError(f"{where}: `providers` is a mapping with the keys python and allow_cmd")
    for key in section:
        if key not in ("python", "allow_cmd"):
            raise SourceError(f"{where}: `providers` has no key `{visible(str(key), 64)}`; it has python and allow_cmd")
    return UserConfig(_python(section.get("python", ""), where, home), _flag(section.get("allow_cmd", False), where))


def _python(value: object, where: str, home: str) -> str:
    """Check the interpreter's path; a relative one would depend on where reach was started."""
    if value == "":
        return ""
    if isinstance(value, str):
        path = home + value[1:] if value.startswith("~/") else value
        if os.path.isabs(path):
            return path
    raise SourceError(f"{where}: `providers.python` is an absolute path, or one that starts with ~/")


def _flag(value: object, where: str) -> bool:
    """Check the permission for commands; only a plain true grants it."""
    if isinstance(value, bool):
        return value
    raise SourceError(f"{where}: `providers.allow_cmd` is true or false")

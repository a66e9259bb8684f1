"""Facts as data, so that `plan` stays pure and a test can state them."""

from __future__ import annotations

from agent_reach._util.record import Record


class PathFact(Record):
    """What lies at a path, looked at once.

    Args:
        path: absolute path as declared, without trailing slash.
        real: the same with every symlink resolved.
        kind: ``file``, ``directory``, ``symlink`` (dangling), ``socket``, ``fifo``, ``device``, ``missing``.
        device, inode: identity, compared again when the path is mounted.
        uid, gid, mode: owner and permission bits.
    """

    path: str
    real: str = ""
    kind: str = "missing"
    device: int = 0
    inode: int = 0
    uid: int = 0
    gid: int = 0
    mode: int = 0


class Caller(Record):
    """Who starts the run.

    Args:
        uid, gid: effective ids.
        name: login name, made up from the uid when passwd has no entry.
        home: home directory, ``/home/user`` when there is none.
        cwd: working directory.
        umask: file mode creation mask.
    """

    uid: int
    gid: int
    name: str
    home: str
    cwd: str
    umask: int


class Interpreter(Record):
    """The Python that runs the user's code.

    Args:
        executable: absolute path under which it is started (decides the virtual environment).
        real: the binary behind it.
        version: ``3.11``.
        prefix, base_prefix: as in `sys`.
        stdlib: directory of the standard library.
        search: entries of `sys.path` that exist.
        extra: directories that ``.pth`` files and editable finders name.
        chosen_by: why this one, such as ``--python`` or ``VIRTUAL_ENV``.
    """

    executable: str
    real: str
    version: str
    prefix: str
    base_prefix: str
    stdlib: str
    search: tuple[str, ...]
    extra: tuple[str, ...] = ()
    chosen_by: str = ""


class CommandFact(Record):
    """A granted command as found on this host.

    Args:
        name: name in the contract.
        found: path on the caller's PATH, empty when it is not there.
        files: every file that the grant makes visible: path inside and real path outside.
        directories: directories that ``with`` names.
    """

    name: str
    found: str = ""
    files: tuple[tuple[str, str], ...] = ()
    directories: tuple[str, ...] = ()


class ProjectFact(Record):
    """The project directory and what in it stays hidden.

    Args:
        root: absolute path, empty when only single files are shown.
        files: single files and directories shown when there is no root.
        masks: entries below `root` that stay hidden, with their kind.
        device: identity of `root`, compared again when it is mounted.
        inode: the same.
    """

    root: str = ""
    files: tuple[str, ...] = ()
    masks: tuple[tuple[str, str], ...] = ()
    device: int = 0
    inode: int = 0

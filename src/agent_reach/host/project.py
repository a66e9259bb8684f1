"""The project: the directory that is readable without a grant, minus what must stay hidden."""

from __future__ import annotations

import os

from agent_reach._util.protected import IN_GIT, WHOLE
from agent_reach.errors import Unavailable
from agent_reach.host.model import ProjectFact

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator
    from types import ModuleType

# CONTRACT section 3. Contracts are hidden as well: a program has no use for the list of what it may reach.
_HIDDEN_NAMES = frozenset((".git", "reach.lock", "reach.yaml"))
_HIDDEN_STARTS = (".env", "id_")
_HIDDEN_ENDS = (".pem", ".key", ".reach.yaml", "-reach.yaml")
_CONTRACT_ENDS = (".reach.yaml", "-reach.yaml")
_CODE = (".py", ".pyi", ".pyx", ".pth", ".so", ".typed")
# Looking for hidden names costs about 2 us an entry; a tree beyond this needs `project: {read: code}`.
_MOST_ENTRIES = 50_000
_MOST_GRANTED = 200_000
_GRANT_LESS = "grant the directories below it that the program needs"


def look_at_project(
    root: str, *, skip: tuple[str, ...], contract: str, shown: tuple[str, ...] = (), code_only: bool = False
) -> ProjectFact:
    """List what stays hidden below `root`.

    Args:
        root: absolute, real path of the project.
        skip: directories that other mounts replace (the active virtual environment).
        contract: absolute path of the contract, hidden under whatever name.
        shown: paths that a grant names exactly; they are not hidden.
        code_only: hide every file that is neither Python source nor package data.

    Raises:
        Unavailable: the tree is too large to be looked through.
    """
    masks: list[tuple[str, str]] = []
    about = os.stat(root)
    fix = "write `project: {read: code}`, or put the contract beside the code"
    for directory, entries, pending in _walk(root, _MOST_ENTRIES, "a project", "hidden names", fix):
        for entry in entries:
            kind = _kind(entry)
            if (
                (_hidden(entry, contract) and entry.path not in shown)
                or kind == "special"
                or (code_only and kind == "file" and not _is_code(entry, directory))
            ):
                masks.append((entry.path, kind))
            elif kind == "directory" and entry.path not in skip:
                pending.append(entry.path)
    return ProjectFact(root=root, masks=tuple(masks), device=about.st_dev, inode=about.st_ino)


def _walk(
    root: str, most: int, what: str, sought: str, fix: str
) -> Iterator[tuple[str, list[os.DirEntry[str]], list[str]]]:
    """Yield every directory from `root` down with its entries, none where we may not list it.

    Args:
        root: directory to start from.
        most: most entries to look at.
        what: the root, for the message.
        sought: what is looked for, for the message.
        fix: what to do when there are more.

    Returns:
        Path, entries, and the list to which the caller adds the directories to go into.

    Raises:
        Unavailable: there are more entries.
    """
    pending, seen = [root], 0
    while pending:
        directory = pending.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            entries = []
        seen += len(entries)
        if seen > most:
            needed = f"at most {most} entries below {root} to look for {sought}"
            raise Unavailable(f"{what} of that size", needed=needed, found="more", fix=fix)
        yield directory, entries, pending


def _kind(entry: os.DirEntry[str]) -> str:
    """Tell directories, files, links, and the things that a mount must never carry inside (sockets, FIFOs, devices)."""
    if entry.is_symlink():
        return "symlink"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "special"


def _is_code(entry: os.DirEntry[str], directory: str) -> bool:
    """Say whether a file is Python source, or data inside a package."""
    return entry.name.endswith(_CODE) or os.path.exists(os.path.join(directory, "__init__.py"))


def _hidden(entry: os.DirEntry[str], contract: str) -> bool:
    """Say whether the entry is one of the names that stay hidden."""
    name = entry.name
    return (
        name in _HIDDEN_NAMES
        or name.startswith(_HIDDEN_STARTS)
        or name.endswith(_HIDDEN_ENDS)
        or (entry.path == contract and not name.endswith(".py"))
    )


def special_entries(root: str) -> tuple[tuple[str, str], ...]:
    """List sockets, FIFOs and devices below a granted directory: a bind mount would make them usable inside.

    A connect through a read-only mount, or under Landlock, still reaches the host's service.

    Raises:
        Unavailable: the tree is too large to be looked through.
    """
    found: list[tuple[str, str]] = []
    for _, entries, pending in _walk(root, _MOST_GRANTED, "a granted directory", "sockets and devices", _GRANT_LESS):
        for entry in entries:
            kind = _kind(entry)
            if kind == "special":
                found.append((entry.path, kind))
            elif kind == "directory":
                pending.append(entry.path)
    return tuple(found)


def protected_below(root: str, *, contract: str, environment: str) -> tuple[tuple[str, str], ...]:
    """List existing entries of a writable directory, and of every directory in it, that stay read-only.

    Args:
        root: real path of the directory.
        contract: absolute path of the contract.
        environment: prefix of the active virtual environment; nothing below it is looked at.

    Raises:
        Unavailable: the tree is too large to be looked through.
    """
    found: list[tuple[str, str]] = []
    for directory, entries, pending in _walk(root, _MOST_GRANTED, "a writable grant", "protected names", _GRANT_LESS):
        found += protected_entries(directory, contract=contract, environment=environment)
        pending += [
            entry.path
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and entry.name != ".git" and entry.path != environment
        ]
    return tuple(dict.fromkeys(found))


def protected_entries(root: str, *, contract: str, environment: str) -> tuple[tuple[str, str], ...]:
    """List existing entries of a writable directory that stay read-only.

    Args:
        root: real path of the directory.
        contract: absolute path of the contract.
        environment: prefix of the active virtual environment.
    """
    found = []
    for name in (*WHOLE, *IN_GIT):
        path = os.path.join(root, name)
        if os.path.lexists(path) and not os.path.islink(path):
            found.append((path, "directory" if os.path.isdir(path) else "file"))
    found += _git_directory(root)
    try:
        found += [(entry.path, "file") for entry in os.scandir(root) if _is_contract(entry)]
    except OSError:  # not ours to list: nothing in it is ours to change
        return tuple(found)
    if contract.startswith(root + "/"):
        found.append((contract, "file"))
    if environment.startswith(root + "/"):
        found.append((environment, "directory"))
    return tuple(found)


def _git_directory(root: str) -> list[tuple[str, str]]:
    """List hooks and configuration of the repository that a ``.git`` file points to (a worktree, a submodule)."""
    try:
        with open(os.path.join(root, ".git"), "rb", buffering=0) as stream:
            text = stream.read(4096).decode("utf-8", "surrogateescape")
    except OSError:
        return []
    if not text.startswith("gitdir:"):
        return []
    directory = os.path.realpath(os.path.join(root, text[len("gitdir:") :].strip()))
    entries = ((os.path.join(directory, "hooks"), "directory"), (os.path.join(directory, "config"), "file"))
    return [(path, kind) for path, kind in ((os.path.join(root, ".git"), "file"), *entries) if os.path.exists(path)]


def _is_contract(entry: os.DirEntry[str]) -> bool:
    """Say whether the entry is named like a contract."""
    return entry.is_file() and (entry.name == "reach.yaml" or entry.name.endswith(_CONTRACT_ENDS))


def entries_beside(root: str, hidden: tuple[str, ...], most: int) -> tuple[str, ...]:
    """List what may be read of a directory when some of it is hidden: every entry beside a hidden one.

    Args:
        root: real path of the directory.
        hidden: paths below it.
        most: most entries to list.

    Raises:
        Unavailable: there are more.
    """
    kept = {path for path in hidden if path.startswith(root + "/")}
    if not kept:
        return (root,)
    above = {path[:end] for path in kept for end in range(len(path)) if path[end] == "/"}
    found: list[str] = []
    pending = [root]
    while pending:
        for entry in os.scandir(pending.pop()):
            if entry.path in kept:
                continue
            if entry.path in above:
                pending.append(entry.path)
            else:
                found.append(entry.path)
        if len(found) > most:
            raise Unavailable(
                "hidden names in a directory of that size",
                needed=f"at most {most} entries beside hidden ones in {root}",
                found="more, and tier `reduced` can only list what may be read",
                fix="write `project: {read: none}` and grant the directories that the program needs",
            )
    return tuple(found)


def beside(script: str) -> list[str]:
    """Return the script and, for one outside any project, the modules beside it that it imports, transitively.

    Args:
        script: absolute path.

    Returns:
        Files, and packages with a trailing slash.
    """
    import ast

    directory = os.path.dirname(os.path.realpath(script))
    shown = {script: None, os.path.realpath(script): None}
    pending = [script]
    while pending:
        try:
            with open(pending.pop(), "rb") as stream:
                tree = ast.parse(stream.read(1 << 20))
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        for name in _imported(ast.walk(tree), ast):
            module, package = os.path.join(directory, name + ".py"), os.path.join(directory, name)
            if os.path.isfile(module) and module not in shown:
                shown[module] = None
                pending.append(module)
            elif os.path.isfile(os.path.join(package, "__init__.py")):
                shown[package + "/"] = None
    return list(shown)


def _imported(nodes: Iterable[ast.AST], ast: ModuleType) -> set[str]:
    """Return the top-level names that import statements ask for."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names

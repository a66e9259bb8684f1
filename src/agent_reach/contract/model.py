"""The resolved contract as data: what one profile grants, with the line each part came from."""

from __future__ import annotations

from agent_reach._util.record import Record


class Origin(Record):
    """Where an entry was written.

    Args:
        file: absolute path of the document, or ``cli``, or ``default``.
        line: 1-based line, 0 when there is none.
        profile: the profile that holds it, empty at top level.
    """

    file: str = "default"
    line: int = 0
    profile: str = ""


class Identity(Record):
    """Who runs: type, name and the roles that are claims, never grants."""

    type: str = "service-account"
    name: str = ""
    roles: tuple[str, ...] = ()


class FileGrant(Record):
    """One entry of ``resources.files``.

    Args:
        path: absolute path inside the sandbox (relative and ``~`` already resolved), without trailing slash.
        mode: one of ``r rb w a rw r+`` (``b`` variants kept).
        required: must exist at start.
        directory: the entry was written with a trailing slash.
        source: ``https://…``, ``file://…``, or empty.
        sha256: expected digest of the staged content, or empty.
        glob: the path holds a glob, expanded at start.
        origin: where it was written.
    """

    path: str
    mode: str = "r"
    required: bool = False
    directory: bool = False
    source: str = ""
    sha256: str = ""
    glob: bool = False
    origin: Origin = Origin()


class EnvGrant(Record):
    """One entry of ``resources.env``.

    Args:
        name: variable name; ends with ``*`` for a prefix.
        source: provider URI, or empty.
        default: value used when the source says *not found* (or without a source), None when not given.
        required: a missing value refuses the run.
        allow_empty: an empty value counts as present.
        deliver: ``value`` or ``file``.
        template: text with ``{NAME}`` places, or empty.
        origin: where it was written.
    """

    name: str
    source: str = ""
    default: str | None = None
    required: bool = False
    allow_empty: bool = False
    deliver: str = "value"
    template: str = ""
    origin: Origin = Origin()


class NetRule(Record):
    """One entry of ``resources.network.allow_outbound``.

    Args:
        host: canonical lower-case name without trailing dot, an address, or ``*``.
        port: 1 to 65535.
        protocol: ``tcp``, ``http`` or ``https``.
        origin: where it was written.
    """

    host: str
    port: int
    protocol: str = "tcp"
    origin: Origin = Origin()


class CommandGrant(Record):
    """One entry of ``resources.commands``: a name on the caller's PATH and helpers that come with it."""

    name: str
    with_: tuple[str, ...] = ()
    origin: Origin = Origin()


class Limit(Record):
    """One limit: value in seconds, bytes or a count; `enforced` refuses to run where it is best effort."""

    value: float
    enforced: bool = False
    origin: Origin = Origin()


class Sandbox(Record):
    """``sandbox``: the weakest tier that may be used."""

    minimum: str = "reduced"
    origin: Origin = Origin()


class Options(Record):
    """``options`` that this version understands."""

    context_isolation: bool = True
    disable_pycache: bool = False
    multiprocessing_start_method: str = ""
    on_denial: str = "continue"


class Contract(Record):
    """One resolved contract.

    Args:
        path: absolute path of the document, empty when there is none (nothing granted).
        digest: hex digest of every document that took part.
        profile: chosen profile, empty for the top level.
        targets: chosen targets, in order.
        identity, files, env, network, commands: grants, in order of first appearance.
        limits: name to limit, in the order of the table; ``scratch_inodes``, ``io_read`` and ``io_write`` are names of
            their own.
        sandbox, options: as written or default.
        project_read: ``all``, ``code`` or ``none``.
        python: interpreter asked for, or empty.
        notes: remarks for the receipt, such as a profile taken from REACH_ENV.
    """

    path: str = ""
    digest: str = ""
    profile: str = ""
    targets: tuple[str, ...] = ()
    identity: Identity = Identity()
    files: tuple[FileGrant, ...] = ()
    env: tuple[EnvGrant, ...] = ()
    network: tuple[NetRule, ...] = ()
    commands: tuple[CommandGrant, ...] = ()
    limits: tuple[tuple[str, Limit], ...] = ()
    sandbox: Sandbox = Sandbox()
    options: Options = Options()
    project_read: str = "all"
    python: str = ""
    notes: tuple[str, ...] = ()

    def limit(self, name: str) -> Limit | None:
        """Return the limit of that name, or None."""
        return dict(self.limits).get(name)

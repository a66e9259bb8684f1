"""The one table of every key: the checker, the JSON Schema and docs/contract.md are generated from it.

A path is dotted from its holder: the top level, a profile and a target hold the same sections. ``[]`` is an entry of
a list or a named entry of a mapping.
"""

from __future__ import annotations

from agent_reach._util.record import Record

NOW = "now"
NOT_YET = "not yet"
RESERVED = "reserved"


class Key(Record):
    """One key.

    Args:
        path: dotted path from the holder.
        type: a name of `TYPES`.
        doc: one sentence.
        default: the default as it would be written, or empty.
        values: the allowed words of a ``choice``.
        status: ``now``, ``not yet`` or ``reserved``; the last two are refused with ``E_NOT_YET``.
        planned: what a refused key belongs to.
    """

    path: str
    type: str
    doc: str
    default: str = ""
    values: tuple[str, ...] = ()
    status: str = NOW
    planned: str = ""

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition(".")[2]


TYPES: dict[str, str] = {
    "choice": "one of the words listed",
    "commands": "a list of names or mappings",
    "count": "a whole number from 1",
    "cpus": "a number more than 0, such as 0.5",
    "duration": "a number and a unit: ms, s, m, h",
    "env": "a list of entries, or a mapping `NAME: value` or `NAME: {…}`",
    "flag": "true or false",
    "list": "a list of mappings",
    "mapping": "a mapping",
    "path": "a path; relative to the file that holds it, `~` is the caller's home",
    "port": "a whole number from 1 to 65535",
    "rate": "a size per second, such as 10MiB/s",
    "size": "a number and a unit: KB, MB, GB (by 1000), KiB, MiB, GiB (by 1024)",
    "text": "text; what YAML would read as a number, a flag or null has to be quoted",
    "texts": "a list of texts",
    "value": "text, or a whole number that has one spelling",
    "version": '`"1"` or `"1.0"`',
}

MODES = ("r", "rb", "w", "wb", "a", "ab", "rw", "rwb", "r+", "rb+", "r+b")
TIERS = ("advisory", "reduced", "full")
PROJECT_READ = ("none", "code", "all")

DOCUMENT: tuple[Key, ...] = (
    Key("version", "version", "Version of this format; has to be there."),
    Key("default_profile", "text", "Profile that is used when `--env` names none."),
    Key("profiles", "mapping", "Named variants, chosen by `--env`: `{dev: {…}, prod: {…}}`."),
    Key("targets", "mapping", "Named bundles of the same sections, merged last, chosen by `--target`."),
    Key("scripts", "mapping", "Which profile a script takes.", status=NOT_YET, planned="analysis"),
)

HOLDER: tuple[Key, ...] = (
    Key("extends", "texts", "Profiles, or files `../reach.base.yaml#prod`, that this one builds on; later is nearer."),
    Key("drop", "mapping", "What to take away from the farther layers."),
    Key("drop.files", "texts", "Paths, as they are written there."),
    Key("drop.env", "texts", "Variable names."),
    Key("drop.allow_outbound", "texts", "`host:port`, for every protocol."),
    Key("drop.commands", "texts", "Command names."),
    Key("identity", "mapping", "Who runs; claims for the record, never grants."),
    Key("identity.type", "text", "Kind of identity.", "service-account"),
    Key("identity.name", "text", "Name of the identity."),
    Key("identity.roles", "texts", "Roles that it claims."),
    Key("allowed_files", "list", "Alias of `resources.files`."),
    Key("resources", "mapping", "What may be reached."),
    Key("resources.files", "list", "Files and directories; everything else is absent."),
    Key("resources.files[].path", "path", "Where it is; a trailing `/` is a directory; globs with mode `r` only."),
    Key("resources.files[].mode", "choice", "What may be done with it; `b` changes nothing in the kernel.", "r", MODES),
    Key("resources.files[].required", "flag", "Whether it has to exist at start.", "false"),
    Key("resources.files[].source", "text", "Where its content comes from: `https://…`, `file://…`, `s3://…`."),
    Key("resources.files[].sha256", "text", "Digest of the content of `source`, 64 hexadecimal digits."),
    Key("resources.env", "env", "Environment variables; everything else is absent."),
    Key("resources.env[].name", "text", "Name, or a prefix such as `GITHUB_*`."),
    Key("resources.env[].source", "text", "Where the value comes from, such as `vault://secret/app/db#password`."),
    Key("resources.env[].default", "value", "Value when the source has none; without a source, the value."),
    Key("resources.env[].required", "flag", "Whether a missing value refuses the run.", "true with only a source"),
    Key("resources.env[].allow_empty", "flag", "Whether an empty value counts as one.", "false"),
    Key(
        "resources.env[].deliver",
        "choice",
        "`file` puts the content into a read-only file and sets the name to its path.",
        "`value`; for `file://` and a path variable `file`",
        ("value", "file"),
    ),
    Key("resources.env[].template", "text", "Text with `{NAME}` places, filled from the other entries."),
    Key("resources.network", "mapping", "Connections; everything else is refused."),
    Key("resources.network.allow_outbound", "list", "Where to."),
    Key("resources.network.allow_outbound[].host", "text", "A name or an IPv4 address, in lower case."),
    Key("resources.network.allow_outbound[].port", "port", "The port."),
    Key(
        "resources.network.allow_outbound[].protocol",
        "choice",
        "`http` and `https` hold host and port; the protocol itself is not checked yet.",
        "tcp",
        ("tcp", "http", "https"),
    ),
    *(
        Key(f"resources.network.allow_outbound[].{name}", "text", doc, status=NOT_YET, planned="network rules")
        for name, doc in (
            ("methods", "HTTP methods."),
            ("paths", "HTTP paths."),
            ("sni", "Which TLS server names are taken."),
            ("inject", "Credentials added outside the sandbox."),
            ("auth", "A short token of the identity (`jwt`)."),
        )
    ),
    Key("resources.network.expose", "texts", "Ports opened to the host.", status=NOT_YET, planned="network rules"),
    Key("resources.commands", "commands", "Programs that may be started, by name on the caller's PATH."),
    Key("resources.commands[].name", "text", "Name of the command."),
    Key("resources.commands[].with", "texts", "Helpers that come with it: names, or absolute paths."),
    Key("resources.sockets", "texts", "Unix sockets of the host.", status=NOT_YET, planned="network rules"),
    Key("resources.devices", "texts", "Device nodes.", status=RESERVED, planned="reserved"),
    Key("limits", "mapping", "Each is a value, or `{max: …, enforced: true}`: then best effort is refused."),
    Key("limits.wall", "duration", "Time of the whole run."),
    Key("limits.cell", "duration", "Time of one cell.", status=NOT_YET, planned="sessions"),
    Key("limits.idle", "duration", "Time without a cell.", status=NOT_YET, planned="sessions"),
    Key("limits.lifetime", "duration", "Time of a session.", status=NOT_YET, planned="sessions"),
    Key("limits.grace", "duration", "Time between the request to end and the kill.", "1500ms"),
    Key("limits.cpu_time", "duration", "Processor time of the run."),
    Key("limits.cpus", "cpus", "Processors at a time."),
    Key("limits.memory", "size", "Memory of all processes."),
    Key("limits.swap", "size", "Swap of all processes; 0 is none."),
    Key("limits.processes", "count", "Processes and threads at a time.", "1024"),
    Key("limits.open_files", "count", "Open descriptors of one process."),
    Key("limits.scratch", "size", "Private file system for /tmp and HOME; `{max, inodes}` also counts files.", "1GiB"),
    Key("limits.output", "size", "Bytes on standard output and error."),
    Key("limits.io", "mapping", "Disk rates; held by nothing yet, and the receipt says so."),
    Key("limits.io.read", "rate", "Bytes read per second."),
    Key("limits.io.write", "rate", "Bytes written per second."),
    Key("limits.bandwidth", "mapping", "Network rates.", status=NOT_YET, planned="network rules"),
    Key("limits.connections", "count", "Connections at a time.", status=NOT_YET, planned="network rules"),
    Key("sandbox", "mapping", "How strong the sandbox has to be."),
    Key("sandbox.minimum", "choice", "Weakest tier that may be used.", "reduced", TIERS),
    Key("sandbox.backend", "text", "What carries the plan out.", status=NOT_YET, planned="backends"),
    Key("sandbox.runtime", "text", "OCI runtime.", status=NOT_YET, planned="backends"),
    Key("sandbox.image", "text", "Image of a container.", status=NOT_YET, planned="backends"),
    Key("options", "mapping", "How the run behaves."),
    Key("options.static", "choice", "What the analysis does.", status=NOT_YET, planned="analysis"),
    Key("options.strict", "flag", "Stricter guards.", status=NOT_YET, planned="analysis"),
    Key("options.preload", "texts", "Modules of a zygote.", status=NOT_YET, planned="sessions"),
    Key("options.context_isolation", "flag", "Whether PYTHONPATH is ignored.", "true"),
    Key("options.disable_pycache", "flag", "Whether no bytecode is written; safety does not need it.", "false"),
    Key(
        "options.multiprocessing_start_method",
        "choice",
        "Start method that is set before the script.",
        "the interpreter's own",
        ("fork", "spawn", "forkserver"),
    ),
    Key(
        "options.on_denial",
        "choice",
        "What follows the first denial.",
        "continue",
        ("continue", "fail", "kill"),
    ),
    Key("project", "mapping", "The directory of the contract."),
    Key(
        "project.read",
        "choice",
        "What the run may read in it; `code` is Python source and package data.",
        "all",
        PROJECT_READ,
    ),
    Key("python", "path", "Interpreter that runs the script: a path, or a name on PATH."),
    Key("packages", "mapping", "Packages to install.", status=NOT_YET, planned="packages"),
    Key("pip_dependencies", "texts", "Alias of `packages`.", status=NOT_YET, planned="packages"),
)

PROFILE_SECTIONS = tuple(key.path for key in HOLDER if "." not in key.path)
FREE_PREFIXES = ("x-", "base_")
MERGED_LISTS = (
    "resources.files",
    "resources.env",
    "resources.network.allow_outbound",
    "resources.commands",
)


def children(keys: tuple[Key, ...], at: str) -> dict[str, Key]:
    """Return the keys directly below a path, by their own name.

    Args:
        keys: `DOCUMENT` or `HOLDER`.
        at: path of the mapping, empty for the holder itself.
    """
    if keys is HOLDER:
        return _BELOW.get(at, {})
    return {key.name: key for key in keys if key.path.rpartition(".")[0] == at}


def key_at(path: str) -> Key:
    """Return the key of `HOLDER` with that path."""
    return next(key for key in HOLDER if key.path == path)


def _by_parent() -> dict[str, dict[str, Key]]:
    index: dict[str, dict[str, Key]] = {}
    for key in HOLDER:
        index.setdefault(key.path.rpartition(".")[0], {})[key.name] = key
    return index


# One table as well, but in the order in which the checker asks: once for each entry of a contract.
_BELOW = _by_parent()

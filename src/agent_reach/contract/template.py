"""The commented contract that `reach init` writes."""

from __future__ import annotations

from agent_reach.contract.version import LINE

_BODY = """\
# What {what} may reach. Everything that is not written here is refused.
# Reference: docs/contract.md; see what a run gets with: reach explain{script}
{version}

identity:
  name: {name}

resources:
  # The directory of this file can be read already (not written, and without .env*, .git, *.pem, *.key).
  files: []
  #  - {{path: ./data/in.csv, mode: r, required: true}}
  #  - {{path: ./out/, mode: rw}}            # a trailing / is a directory; modes: r w a rw

  # The variables that exist inside, beside PATH, HOME, LANG and a few more.
  env: []
  #  - {{name: LOG_LEVEL, default: INFO}}
  #  - {{name: DB_HOST, required: true}}     # passed through from the caller
  #  - {{name: DB_PASS, source: "vault://secret/app/db#password"}}

  network:
    allow_outbound: []
    #  - {{host: db.internal, port: 5432}}

  # Programs that may be started, by name.
  commands: []
  #  - git

# limits: {{wall: 10m, memory: 1GiB, processes: 64}}

# Variants, chosen with --env:
# profiles:
#   prod:
#     resources:
#       env: [{{name: DB_HOST, source: "vault://secret/app/db#host"}}]
"""


def starting_contract(script: str | None = None) -> str:
    """Return the text of a contract that grants nothing yet and says how to grant.

    Args:
        script: the script that it is for, or None for a project.
    """
    base = script.rpartition("/")[2].removesuffix(".py") if script else ""
    clean = "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in base)
    named = f"{clean}.py" if script and script.endswith(".py") else clean
    return _BODY.format(
        what=named or "the scripts of this project",
        script=f" {named}" if named else "",
        version=LINE,
        name=_quoted(clean) if clean else "my-project",
    )


def _quoted(name: str) -> str:
    """Quote a name, because one such as 2024 would be read as a number."""
    return f'"{name}"'

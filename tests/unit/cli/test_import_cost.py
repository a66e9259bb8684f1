"""What `reach run` may import: each of these modules costs more than a part of the sandbox."""

from __future__ import annotations

import subprocess
import sys

EXPENSIVE = (
    "argparse collections.abc dataclasses enum hashlib json logging pathlib "
    "re signal socket subprocess tempfile typing yaml"
)

PROGRAM = """
import sys
before = set(sys.modules)
from agent_reach.cli import main, options, commands, request, run, report, result, terminal
options.parse(commands.find("run"), ["--env", "x", "job.py", "a"])
found = set(sys.modules) - before
print(*sorted(found & set(sys.argv[1].split())))
print("agent_reach.cli.catalogue" in found)
"""


def test_the_run_path_imports_nothing_expensive() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n" + PROGRAM, EXPENSIVE],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "\nFalse\n", done.stdout

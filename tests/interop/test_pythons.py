"""Every CPython of this machine runs a script under a contract, and the same is granted and refused to each."""

from __future__ import annotations

import pytest

CONTRACT = """
version: "1"
resources:
  env: [{name: GREETING, default: hello}]
  files: [{path: out/, mode: rw}]
"""
SCRIPT = """
import os, socket, sqlite3, subprocess, sys, threading
print("%d.%d" % sys.version_info[:2], os.environ["GREETING"])
with open("out/result", "w") as file:
    file.write("written")
worker = threading.Thread(target=print, args=("thread",)); worker.start(); worker.join()
print(subprocess.run([sys.executable, "-c", "print('child', flush=True)"], capture_output=True).stdout)
for attempt in (lambda: open("/etc/shadow"), lambda: socket.create_connection(("10.0.0.1", 9), 5)):
    try:
        attempt()
    except PermissionError as error:
        print("refused", error.errno)
"""


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13"])
def test_a_script_runs_under_each_python(version, interpreters, run_reach, tmp_path) -> None:
    if version not in interpreters:
        pytest.skip(f"interpreter not readable here: {version}")
    (tmp_path / "reach.yaml").write_text(CONTRACT)
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "out").mkdir()
    done = run_reach(["run", "--python", interpreters[version], "job.py"], cwd=tmp_path)
    assert done.stdout == f"{version} hello\nthread\nb'child\\n'\nrefused 13\nrefused 13\n", done.stderr
    assert done.returncode == 0
    assert (tmp_path / "out" / "result").read_text() == "written"

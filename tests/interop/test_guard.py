"""What only the Python-level guard holds: append grants, and protected names that do not exist yet."""

import textwrap

SCRIPT = """
import os

def attempt(what, act):
    try:
        act()
        print(what, "done")
    except PermissionError as error:
        print(what, "refused", error.errno)

attempt("append", lambda: open("log.txt", "a").write("more\\n"))
attempt("overwrite", lambda: open("log.txt", "w"))
attempt("update", lambda: open("log.txt", "r+"))
attempt("ordinary", lambda: open("out/result", "w"))
attempt("envrc", lambda: open("out/.envrc", "w"))
attempt("git", lambda: os.mkdir("out/.git"))
attempt("named", lambda: open("named/.envrc", "w"))
attempt("scratch", lambda: os.mkdir("/tmp/.git"))
"""
CONTRACT = """
version: "1"
resources:
  files:
    - {path: log.txt, mode: a}
    - {path: out/, mode: rw}
    - {path: named/.envrc, mode: w}
"""


def test_append_and_protected_names(tmp_path, run_reach):
    (tmp_path / "reach.yaml").write_text(CONTRACT)
    (tmp_path / "job.py").write_text(textwrap.dedent(SCRIPT))
    (tmp_path / "log.txt").write_text("first\n")
    for name in ("out", "named"):
        (tmp_path / name).mkdir()
    done = run_reach(["run", "job.py"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "append done",
        "overwrite refused 13",
        "update refused 13",
        "ordinary done",
        "envrc refused 13",
        "git refused 13",
        "named done",
        "scratch done",
    ]
    assert (tmp_path / "log.txt").read_text() == "first\nmore\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["result"]
    assert "granted for appending only" in done.stderr
    assert "a protected name in a writable grant" in done.stderr

"""DESIGN section 3, rules 4 to 6: under which uid a run works on the host, how it sees files, and set-id bits."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess

import pytest

import callers

LOWEST_SLOT = 65_280


@pytest.fixture
def root(known_callers):
    return callers.fresh(known_callers, "root")


def test_rule_04_root_runs_programs_under_an_unprivileged_uid_of_a_slot(root):
    with root.running() as (_, supervisor, init, worker):
        uids = [set(callers.status_of(pid)["Uid"].split()) for pid in (init, worker)]
        assert len(uids[0] | uids[1]) == 1
        run_uid = int(uids[0].pop())
        broker = callers.status_of(supervisor)["Uid"].split()
        assert run_uid >= LOWEST_SLOT
        assert run_uid != 65_534
        assert int(broker[0]) == int(broker[1]) == run_uid + 1
        assert "0" not in broker
        for pid in (supervisor, init, worker):
            fields = callers.status_of(pid)
            held = [int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")]
            assert not any(held), (pid, fields)
            assert fields["Groups"].strip() in {"", str(run_uid)}


def test_rule_04_two_runs_at_once_have_two_uids(root):
    with root.running() as (*_, one), root.running() as (*_, two):
        assert callers.status_of(one)["Uid"] != callers.status_of(two)["Uid"]


def test_rule_04_a_user_stays_that_user(known_callers):
    user = callers.fresh(known_callers, "user")
    with user.running() as (*_, worker):
        assert set(callers.status_of(worker)["Uid"].split()) == {str(user.uid)}


def test_rule_04_files_of_anybody_keep_their_owner_behind_an_id_map(root):
    """Case (b): a private file of another user is read and written, and what is made there belongs to that user."""
    out = root.own(root.place / "out", directory=True)
    os.chown(out, 12_345, 12_346)
    (out / "private").write_text("theirs")
    os.chmod(out / "private", 0o600)
    os.chown(out / "private", 12_345, 12_346)
    code = """
import os, sys
os.chdir(sys.argv[1]); print(open("private").read(), os.stat("private").st_uid == os.getuid())
open("private", "a").write("!"); open("made", "w").write("x"); os.mkdir("folder")
"""
    contract = f'version: "1"\nresources:\n  files: [{{path: "{out}/", mode: rw}}]\n'
    ended = root.run(code, contract=contract, args=[out])
    assert ended.out == "theirs True\n", ended
    assert (out / "private").read_text() == "theirs!"
    assert {(path.stat().st_uid, path.stat().st_gid) for path in out.iterdir()} == {(12_345, 12_346)}


def test_rule_04_the_interpreter_is_a_grant_like_any_other(root):
    """A root's own Python, in a directory that nobody else may enter."""
    root = root.copy()
    home = root.own(root.place / "closed", directory=True)
    subprocess.run([callers.SYSTEM_PYTHON, "-m", "venv", "--without-pip", "--copies", home / "venv"], check=True)
    os.chmod(home, 0o700)
    root.python = str(home / "venv" / "bin" / "python")
    ended = root.run("import sys; print(sys.prefix)")
    assert ended.out == f"{home}/venv\n", ended


OVERLAY = """
set -e
mkdir {base}/lower {base}/upper {base}/inner {base}/merged
mount -t overlay overlay -o lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/inner {base}/merged
mkdir -m 700 {base}/merged/folder; echo private >{base}/merged/file; chmod 600 {base}/merged/file
echo open >{base}/merged/open; chmod 644 {base}/merged/open
cd {work}
"""


@pytest.fixture
def on_overlay(root):
    """Run code where a file system without id-mapped mounts is mounted: a function of (code, options, args)."""

    def run(code, options, args=()):
        words = [*map(str, root.words(code, options=options, args=args))]
        script = OVERLAY.format(base=root.place, work=root.work) + "exec " + shlex.join(words)
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
            capture_output=True,
            text=True,
            env=root.environment,
            timeout=60,
            check=False,
        )
        if done.stderr.startswith("mount:"):
            pytest.skip(f"kernel without overlayfs: {done.stderr}")
        return done

    return run


READ = "import sys\nprint(open(sys.argv[1]).read().strip())"


def test_rule_04_a_small_read_only_file_is_copied_where_nothing_else_works(root, on_overlay):
    """Case (c)."""
    path = root.place / "merged" / "file"
    done = on_overlay(READ, ["--read", path], [path])
    assert (done.returncode, done.stdout) == (0, "private\n"), done.stderr


def test_rule_04_what_everybody_may_read_is_bound_plainly(root, on_overlay):
    """Case (a)."""
    path = root.place / "merged" / "open"
    assert on_overlay(READ, ["--read", path], [path]).stdout == "open\n"


def test_rule_04_what_cannot_be_shown_is_refused_with_file_system_owner_and_fix(root, on_overlay):
    """Case (d)."""
    path = root.place / "merged" / "folder"
    done = on_overlay("print('ran')", ["--read", f"{path}/"])
    assert (done.returncode, done.stdout) == (125, ""), done.stderr
    for word in (str(path), "overlay", "owner 0:0", "fix:"):
        assert word in done.stderr


CAPABILITIES = """
import os
print(os.getuid(), *(line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")))
"""


def test_rule_05_a_root_whose_namespace_maps_no_other_uid_stays_uid_0_without_capabilities(caller):
    code = CAPABILITIES
    words = ["unshare", "--user", "--map-root-user", *map(str, caller.words(code))]
    done = caller.bare(words)
    assert done.stdout == f"0 {' '.join(['0' * 16] * 5)}\n", done.stderr
    assert "tier reduced" in done.stderr


def test_rule_05_a_root_without_sys_admin_says_so_and_has_no_limit_of_processes_by_uid(known_callers):
    root = callers.fresh(known_callers, "root").confined("no CAP_SYS_ADMIN")
    ended = root.run(CAPABILITIES)
    assert ended.out == f"0 {' '.join(['0' * 16] * 5)}\n", ended
    assert "uid 0, no capabilities" in ended.result["receipt"]["notes"]
    assert "rlimit" not in ended.level("limits.processes")[1] or ended.level("limits.processes")[0] == "best effort"


def test_rule_05_without_landlock_a_root_without_sys_admin_runs_nothing(known_callers):
    root = callers.fresh(known_callers, "root").confined("no CAP_SYS_ADMIN")
    root.command = [root.python, str(callers.HERE / "landlock_abi.py"), "0"]
    ended = root.run("print('ran')")
    assert (ended.status, ended.out) == (125, ""), ended
    assert "Landlock" in ended.err


MODES = """
import errno, os, sys
os.chdir(sys.argv[1]); os.umask(0); results = {}
def attempt(name, call, *args, **more):
    try: value = call(*args, **more); results[name] = "ok"; return value
    except OSError as e: results[name] = errno.errorcode[e.errno]
open("f", "w").close(); fd = os.open("f", os.O_RDWR); here = os.open(".", os.O_RDONLY); bits = int(sys.argv[2], 8)
create = os.O_CREAT | os.O_WRONLY
attempt("chmod", os.chmod, "f", bits); attempt("fchmod", os.fchmod, fd, bits)
attempt("fchmodat", os.chmod, "f", bits, dir_fd=here)
attempt("open", os.open, "a", create, bits); attempt("openat", os.open, "b", create, bits, dir_fd=here)
attempt("mkdir", os.mkdir, "c", bits); attempt("mkdirat", os.mkdir, "d", bits, dir_fd=here)
attempt("mknod", os.mknod, "e", 0o100000 | bits)
print(results)
"""


@pytest.mark.parametrize("bits", ["4755", "2755", "6777"])
def test_rule_06_set_id_bits_are_refused_in_every_mode_argument(caller, bits):
    out = caller.own(caller.place / "out", directory=True)
    contract = f'version: "1"\nresources:\n  files: [{{path: "{out}/", mode: rw}}]\n'
    ended = caller.run(MODES, contract=contract, args=[out, bits])
    results = re.findall(r": '(\w+)'", ended.out)
    assert len(results) == 8
    assert set(results) == {"EPERM"}, ended
    assert not [path for path in out.rglob("*") if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)]


@pytest.mark.parametrize("bits", ["755", "1777", "600"])
def test_rule_06_every_other_mode_is_set(caller, bits):
    out = caller.own(caller.place / "out", directory=True)
    contract = f'version: "1"\nresources:\n  files: [{{path: "{out}/", mode: rw}}]\n'
    ended = caller.run(MODES, contract=contract, args=[out, bits])
    assert set(re.findall(r": '(\w+)'", ended.out)) == {"ok"}, ended
    assert stat.S_IMODE((out / "c").lstat().st_mode) == int(bits, 8)
    assert {path.lstat().st_uid for path in out.iterdir()} == {caller.uid}

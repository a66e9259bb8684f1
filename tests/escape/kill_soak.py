"""Kill launchers and supervisors at random moments, and see whether anything of a run outlives it.

    python tests/escape/kill_soak.py ROUNDS [--seed N] [--tier reduced] [--report FILE]

Works in a process namespace of its own, so that the list of processes is exact: after every round only this
program is left. Mounts, control groups and files are compared at the end, after one more run that was left
alone: it collects what two killed processes could not.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime as dt
import fcntl
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
VICTIMS = {
    "full": ("launcher", "supervisor", "both", "both", "nobody"),
    # Without a pid namespace the supervisor is all that ends the program's orphans: best effort if it is killed.
    "reduced": ("launcher", "launcher", "launcher", "nobody"),
}
MOMENT_SECONDS = 0.45  # from before the supervisor is there until about when the program ends
PATIENCE_SECONDS = 30
FIRST_SLOT_UID = 65_280

PROGRAM = """
import os, socket, subprocess, sys, tempfile, threading, time
for name in tempfile.mkdtemp(), os.environ["HOME"], sys.argv[1]:
    with open(os.path.join(name, "file"), "w") as file: file.write("x" * 10000)
server = socket.socket(socket.AF_UNIX); server.bind(os.path.join(tempfile.gettempdir(), "socket")); server.listen()
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(100)"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(100)
    os._exit(0)
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
time.sleep(0.2); print("done", flush=True); os._exit(0)
"""


def arguments():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tier", choices=("full", "reduced"), default="full")
    parser.add_argument("--report", help="write the result as a page")
    parser.add_argument("--commit", help="what the report calls this version, where git cannot tell")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def enter_namespace():
    """Start this program again as the first process of a namespace of its own."""
    own_user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    words = ["unshare", *own_user, "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc"]
    return subprocess.run([*words, sys.executable, *sys.argv, "--inside"], check=False).returncode


# -- what there is on the host ---------------------------------------------------------------------------


def processes():
    """Return pid and command of everything in our namespace but ourselves and what has ended."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if int(pid) != os.getpid() and state != "Z":
                found[int(pid)] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[-120:]
        except OSError:
            continue
    return found


def held(path):
    """Tell whether a run that is going on holds a directory: other people's runs are not our concern."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def mounts():
    """Return the lines of our mount table."""
    return set(Path("/proc/self/mountinfo").read_text().splitlines())


def groups():
    """Return the control groups of runs that nobody holds."""
    found = set()
    for directory, names, _files in os.walk("/sys/fs/cgroup"):
        found.update(path for name in names if name.startswith("reach-") and not held(path := f"{directory}/{name}"))
    return found


def files(places):
    """Return the files of runs in the directories that everybody shares, and everything in ours."""
    found = set()
    for shared in ("/tmp", "/var/tmp", "/dev/shm", f"/run/user/{os.getuid()}", "/run"):
        for entry in os.scandir(shared) if os.path.isdir(shared) else ():
            if (entry.name.startswith("reach-run-") or _owner(entry) >= FIRST_SLOT_UID) and not held(entry.path):
                found.add(entry.path)
    for place in places:
        found.update(str(path) for path in Path(place).rglob("*"))
    return found


def _owner(entry):
    """Return the uid of an entry, 0 when it has gone."""
    try:
        uid = entry.stat(follow_symlinks=False).st_uid
    except OSError:
        return 0
    return 0 if uid == os.getuid() or uid == 65_534 else uid


# -- one round -------------------------------------------------------------------------------------------


class Soak:
    """Runs to be killed, and what was found after them.

    Args:
        seed: of the moments and victims.
        tier: ``full``, or ``reduced`` in a process without user namespaces.
    """

    def __init__(self, seed, tier):
        self.random, self.victims = random.Random(seed), VICTIMS[tier]
        self.base = Path(tempfile.mkdtemp(prefix="soak-"))
        self.out, self.work = self.base / "out", self.base / "work"
        for directory in (self.out, self.work, self.base / "state", self.base / "cache"):
            directory.mkdir(mode=0o700)
        (self.work / "program.py").write_text(PROGRAM)
        limits = ["--limit", "memory=300MiB"]  # a control group, where one can be had
        reach = [sys.executable, "-m", "agent_reach", "run", "-q", "--python", sys.executable, *limits]
        confine = [sys.executable, str(HERE.parent / "nouserns.py")] if tier == "reduced" else []
        self.words = [*confine, *reach, "--write", f"{self.out}/", str(self.work / "program.py"), str(self.out)]
        places = {"XDG_STATE_HOME": str(self.base / "state"), "XDG_CACHE_HOME": str(self.base / "cache")}
        self.env = dict(os.environ) | places | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        self.ends = collections.Counter()
        self.faults = []

    def host(self):
        """Return everything that must be as it was."""
        return {"mounts": mounts(), "control groups": groups(), "files": files((self.out, self.work))}

    def start(self):
        """Start a run."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(self.words, env=self.env, cwd=self.work, **pipes)

    def whole(self):
        """Let a run go to its end; return what it printed."""
        with self.start() as run:
            out, err = run.communicate(timeout=PATIENCE_SECONDS)
        self.settle("a run that was left alone")
        return out if run.returncode == 0 else out + err

    def round(self, number):
        """Start a run, kill somebody, and see that nothing is left."""
        victim = self.random.choice(self.victims)
        moment = self.random.uniform(0, MOMENT_SECONDS)
        run = self.start()
        time.sleep(moment)
        self.kill(run, victim)
        label = f"round {number}, {victim} killed after {moment:.3f} s"
        try:
            run.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.faults.append(f"{label}: the launcher hangs")
            run.kill()
            run.communicate()
        self.ends[victim, run.returncode] += 1
        self.settle(label)

    def kill(self, run, victim):
        """Send SIGKILL to the launcher, to its child, or to both in any order."""
        pids = []
        if victim in {"supervisor", "both"}:
            with contextlib.suppress(OSError):  # it has ended
                pids += map(int, Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[:1])
        if victim in {"launcher", "both"} and run.poll() is None:
            pids.append(run.pid)
        self.random.shuffle(pids)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def settle(self, label):
        """Wait until nothing of the run is left, and say what is."""
        end = time.monotonic() + PATIENCE_SECONDS / 3
        while (left := processes()) and time.monotonic() < end:
            self.reap()
            time.sleep(0.01)
        self.reap()
        if left:
            self.faults.append(f"{label}: left: {left}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    def reap():
        """Reap orphans: we are the first process here. A launcher is waited for where it was started."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return

    def close(self):
        """Remove what is ours."""
        shutil.rmtree(self.base)


def soak(options):
    """Do the rounds; return the report and whether all is as it was."""
    run = Soak(options.seed, options.tier)
    first = run.whole()
    if first != b"done\n":
        return f"a run that was left alone failed: {first.decode(errors='replace')}", False
    before = run.host()
    begun = time.monotonic()
    for number in range(1, options.rounds + 1):
        run.round(number)
    last = run.whole()
    if last != b"done\n":
        run.faults.append(f"the run after them failed: {last.decode(errors='replace')}")
    after = run.host()
    lines = [f"- processes: {'as before' if not run.faults else 'see below'} (looked at after every round)"]
    for what, was in before.items():
        same = after[what] == was
        lines.append(f"- {what}: {'as before' if same else 'not as before'}")
        if not same:
            run.faults.append(f"{what}: appeared {sorted(after[what] - was)}, gone {sorted(was - after[what])}")
    run.close()
    return report(options, run, lines, time.monotonic() - begun), not run.faults


def report(options, run, lines, seconds):
    """Write the result as a page."""
    commit = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    rows = [f"| {victim} | {status} | {count} |" for (victim, status), count in sorted(run.ends.items())]
    faults = [f"- {fault}" for fault in run.faults] or ["none"]
    host = f"Linux {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    page = [
        f"## {options.rounds} runs by {who}, tier {options.tier}",
        "",
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, {host}, commit {options.commit or commit.stdout.strip() or 'unknown'},",
        f"seed {options.seed}, {seconds:.0f} s",
        "",
        *lines,
        "",
        "| killed | launcher's status (negative: the signal) | runs |",
        "|---|---|---|",
        *rows,
        "",
        "Faults:",
        *faults,
    ]
    return "\n".join(page) + "\n"


def main():
    """Enter the namespace, soak, tell."""
    options = arguments()
    if not options.inside:
        return enter_namespace()
    text, good = soak(options)
    print(text)
    if options.report:
        with open(options.report, "a", encoding="utf-8") as file:
            file.write("\n" + text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

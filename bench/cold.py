"""Cold start: `reach run hello.py` beside bubblewrap, sandlock and the bare interpreter, in one run.

Every round runs every program once, in an order shuffled anew; ratios are taken within a round, so that
what else the machine does hits both sides. Exit status and output of every timed run are checked: a
program that failed fast would otherwise win. The raw times are kept, see bench/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HELLO = b"hello\n"
WARM_UP = 3
CONTRACT = """version: "1"
identity: {name: bench}
resources:
  env:
    - {name: LOG_LEVEL, default: INFO}
  network:
    allow_outbound:
      - {host: localhost, port: 5432, protocol: tcp}
"""

# A long-lived process that starts one sandbox per line read: sandlock without the 75 ms of importing it.
SANDLOCK_SERVER = """
import sys
from sandlock import Sandbox
command, readable = sys.argv[1:3], sys.argv[3:]
print("ready", flush=True)
for line in sys.stdin:
    result = Sandbox(fs_readable=readable, clean_env=True).run(command, timeout=30)
    print(int(result.success and result.stdout == b"hello\\n"), flush=True)
"""
SANDLOCK_ONCE = """
import sys
from sandlock import Sandbox
result = Sandbox(fs_readable=sys.argv[3:], clean_env=True).run(sys.argv[1:3], timeout=30)
sys.stdout.buffer.write(result.stdout)
sys.exit(not result.success)
"""


class WrongAnswerError(Exception):
    """A program did not do what is being timed."""


class Command:
    """One program, started anew each time.

    Args:
        name: row of the table.
        args: command line.
        env: whole environment.
        cwd: working directory.
        output: what it must print.
    """

    def __init__(self, name, args, *, env, cwd, output=HELLO):
        self.name, self.args, self.env, self.cwd, self.output = name, [str(arg) for arg in args], env, cwd, output

    def run(self):
        """Run once; returns milliseconds.

        Raises:
            WrongAnswerError: status, output or standard error differ from what is expected.
        """
        start = time.perf_counter()
        done = subprocess.run(
            self.args, cwd=self.cwd, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        elapsed = (time.perf_counter() - start) * 1e3
        if done.returncode or done.stderr or (self.output is not None and done.stdout != self.output):
            raise WrongAnswerError(f"status {done.returncode}, printed {done.stdout!r}, {done.stderr.decode()[-500:]}")
        return elapsed

    def close(self):
        """Nothing is left to end."""


class Server(Command):
    """One long-lived process that does the work once per line."""

    process = None

    def run(self):
        """Ask once; returns milliseconds."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.args, cwd=self.cwd, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            if self.process.stdout.readline() != "ready\n":
                raise WrongAnswerError("did not start")
        start = time.perf_counter()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        elapsed = (time.perf_counter() - start) * 1e3
        if answer != "1\n":
            raise WrongAnswerError(f"answered {answer!r}")
        return elapsed

    def close(self):
        """End the process."""
        if self.process is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.communicate()
            self.process = None


def real_python(path):
    """Return the interpreter behind a name and the directories it needs: (path, prefixes)."""
    code = "import sys, os; print(os.path.realpath(sys._base_executable)); print(sys.base_prefix)"
    lines = subprocess.run([path, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return lines[0], lines[1]


def bwrap_command(python, prefix, script):
    """Return a bubblewrap command line that is as tight as its flags make it for one script."""
    flags = ["--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"]
    flags += ["--setenv", "PATH", "/usr/bin:/bin", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64", "sbin"):
        if os.path.islink(f"/{name}"):
            flags += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            flags += ["--ro-bind", f"/{name}", f"/{name}"]
    if not prefix.startswith("/usr"):
        flags += ["--ro-bind", prefix, prefix]
    flags += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", script.parent, script.parent]
    return ["bwrap", *flags, "--chdir", script.parent, "--", python, script]


def peers_python():
    """Return the interpreter of an environment with PyPI's sandlock, or (None, why there is none)."""
    venv = Path(sys.prefix) / "peers"
    python = venv / "bin" / "python"
    if not python.exists():
        made = subprocess.run([sys._base_executable, "-m", "venv", venv], capture_output=True, text=True, check=False)
        if made.returncode:
            return None, f"venv: {made.stderr or made.stdout}"
    if subprocess.run([python, "-c", "import sandlock"], capture_output=True, check=False).returncode:
        install = [python, "-m", "pip", "install", "--quiet", "sandlock"]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            return None, f"pip install sandlock: {done.stderr.strip()[-300:]}"
    return python, ""


def programs(python, prefix, work, script):
    """Return what is run in every round, and why some peers are missing: (programs, remarks)."""
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(work), "LANG": "C.UTF-8"}
    env |= {"XDG_STATE_HOME": str(work / "state"), "XDG_CACHE_HOME": str(work / "cache")}
    here = {"env": env, "cwd": script.parent}
    contracted = work / "contracted"
    contracted.mkdir()
    shutil.copy(script, contracted)
    (contracted / "reach.yaml").write_text(CONTRACT)
    reach = Path(sys.executable).with_name("reach")
    rows = [
        Command("/bin/true", ["/bin/true"], **here, output=b""),
        Command("python", [python, script], **here),
        Command("reach run", [reach, "run", "--python", python, script], **here),
        Command("reach run, contract", [reach, "run", "--python", python, "hello.py"], env=env, cwd=contracted),
        Command("part: launcher's python", [sys.executable, "-c", "pass"], **here, output=b""),
        Command("part: reach version", [reach, "version"], **here, output=None),
    ]
    remarks = {}
    if shutil.which("bwrap"):
        rows.append(Command("bwrap", bwrap_command(python, prefix, script), **here))
    else:
        remarks["bwrap"] = "not installed: apt-get install bubblewrap"
    peers, why = peers_python()
    if peers:
        readable = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/dev", prefix, str(script.parent)]
        readable = [path for path in dict.fromkeys(readable) if os.path.exists(path)]
        rows.append(Server("sandlock, SDK", [peers, "-c", SANDLOCK_SERVER, python, script, *readable], **here))
        rows.append(Command("sandlock, process", [peers, "-c", SANDLOCK_ONCE, python, script, *readable], **here))
    else:
        remarks["sandlock"] = why
    return rows, remarks


def warm_up(rows, remarks):
    """Run everything a few times; a peer that does not work is left out with its reason, reach must work."""
    good = []
    for row in rows:
        try:
            for _ in range(WARM_UP):
                row.run()
        except WrongAnswerError as error:
            row.close()
            if "reach" in row.name:
                raise WrongAnswerError(f"{row.name}: {error}") from None
            remarks[row.name] = str(error)
        else:
            good.append(row)
    return good


def measure(rows, rounds):
    """Return the times of each row in milliseconds, one per round."""
    times = {row.name: [] for row in rows}
    order = list(rows)
    shuffle = random.Random(1).shuffle
    for number in range(rounds):
        shuffle(order)
        for row in order:
            try:
                times[row.name].append(row.run())
            except WrongAnswerError as error:
                raise WrongAnswerError(f"round {number}, {row.name}: {error}") from None
    return times


def ratios(times, row, base):
    """Return median, first and third quartile of the round-by-round ratios of two rows."""
    each = [one / other for one, other in zip(times[row], times[base], strict=True)]
    first, middle, third = statistics.quantiles(each, n=4)
    return {"median": middle, "quartiles": [first, third]}


def versions():
    """Return what was measured, on what."""

    def ask(*args):
        try:
            return subprocess.run(args, capture_output=True, text=True, cwd=ROOT, check=False).stdout.strip()
        except OSError:
            return ""

    model = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
    os_release = platform.freedesktop_os_release() if os.path.exists("/etc/os-release") else {}
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "commit": ask("git", "rev-parse", "HEAD"),
        "changed": bool(ask("git", "status", "--porcelain", "--untracked-files=no")),
        "kernel": platform.release(),
        "system": os_release.get("PRETTY_NAME", platform.system()),
        "machine": platform.machine(),
        "cpu": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "uid": os.geteuid(),
        "launcher": platform.python_version(),
        "bwrap": ask("bwrap", "--version"),
    }


def table(times):
    """Return the lines to print: median, range and ratios of each row."""
    head = f"{'':<26}{'median ms':>10}{'min-max':>16}{'/ python':>10}{'/ bwrap':>22}"
    lines = [head]
    for name, values in sorted(times.items(), key=lambda item: statistics.median(item[1])):
        line = f"{name:<26}{statistics.median(values):>10.1f}{f'{min(values):.1f}-{max(values):.1f}':>16}"
        line += f"{ratios(times, name, 'python')['median']:>10.2f}"
        if "bwrap" in times:
            against = ratios(times, name, "bwrap")
            low, high = against["quartiles"]
            line += f"{against['median']:>9.2f} ({low:.2f}-{high:.2f})"
        lines.append(line)
    return lines


def main():
    """Measure, print, keep the raw data; returns the exit status."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="7 rounds instead of 40")
    parser.add_argument("--rounds", type=int, help="number of rounds, at least 2")
    parser.add_argument("--python", default="/usr/bin/python3", help="interpreter that runs hello.py")
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results", help="directory for the raw data")
    options = parser.parse_args()
    rounds = max(2, options.rounds or (7 if options.quick else 40))
    python, prefix = real_python(options.python if os.path.exists(options.python) else sys.executable)
    with tempfile.TemporaryDirectory(prefix="reach-bench-") as name:
        work = Path(name)
        script = work / "plain" / "hello.py"
        script.parent.mkdir()
        script.write_text("print('hello')\n")
        work.chmod(0o755)
        rows, remarks = programs(python, prefix, work, script)
        try:
            rows = warm_up(rows, remarks)
            times = measure(rows, rounds)
        except WrongAnswerError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        finally:
            for row in rows:
                row.close()
    print(f"{rounds} rounds, hello.py under {python}, ratios are medians of round-by-round ratios (quartiles)")
    print("\n".join(table(times)))
    for name, why in remarks.items():
        print(f"left out: {name}: {why}")
    facts = versions() | {"python": python, "rounds": rounds, "left out": remarks}
    pairs = [(row, base) for base in ("python", "bwrap") if base in times for row in times if row != base]
    summary = {f"{row} / {base}": ratios(times, row, base) for row, base in pairs}
    options.results.mkdir(parents=True, exist_ok=True)
    target = options.results / f"cold-{facts['date'].replace(':', '')[:17]}-{facts['commit'][:8] or 'nocommit'}.json"
    raw = {row: [round(value, 3) for value in values] for row, values in times.items()}
    target.write_text(json.dumps({"facts": facts, "ratios": summary, "milliseconds": raw}, indent=1) + "\n")
    print(f"raw data: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""CPython's own tests, bare and inside the sandbox: the compatibility gate.

    python tests/compat/cpython_suite.py --python /usr/bin/python3.11 [--jobs 2] [MODULE ...]

Needs the interpreter's `test` package (Debian: libpython3.11-testsuite). Prints one line a module and the modules
that pass bare and fail inside; exit status 1 if there are more than the four that docs/compatibility.md lists.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MODULES = [
    "test_os",
    "test_posixpath",
    "test_pathlib",
    "test_shutil",
    "test_tempfile",
    "test_glob",
    "test_fileinput",
    "test_io",
    "test_fileio",
    "test_mmap",
    "test_select",
    "test_selectors",
    "test_signal",
    "test_threading",
    "test_thread",
    "test_queue",
    "test_subprocess",
    "test_concurrent_futures",
    "test_multiprocessing_spawn",
    "test_ssl",
    "test_httpservers",
    "test_urllib",
    "test_urllib2_localnet",
    "test_ftplib",
    "test_smtplib",
    "test_json",
    "test_pickle",
    "test_zipfile",
    "test_gzip",
    "test_hashlib",
    "test_zoneinfo",
    "test_locale",
    "test_time",
    "test_datetime",
    "test_pty",
    "test_resource",
    "test_pwd",
    "test_uuid",
    "test_random",
    "test_runpy",
]
# What the suite starts besides Python; a command is there only when it is granted.
COMMANDS = [
    "sh",
    "bash",
    "cat",
    "echo",
    "true",
    "false",
    "sleep",
    "ls",
    "id",
    "ps",
    "env",
    "grep",
    "sed",
    "tar",
    "gzip",
    "dd",
    "sort",
    "head",
    "tail",
    "uname",
]
ALLOWED_LOSSES = 4
SECONDS = 600


def passes(command, module, log):
    """Run one module of the suite and tell whether it passed."""
    with tempfile.TemporaryDirectory(prefix="suite") as cwd, log.open("w") as output:
        try:
            done = subprocess.run(
                [*command, "-m", "test", "--timeout", "300", module],
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0


def compare(python, modules, jobs, logs):
    """Run every module both ways; return module to (bare, inside)."""
    reach = [sys.executable, "-m", "agent_reach", "run", "-q", "--python", python]
    for command in COMMANDS:
        reach += ["--command", command]

    def both(module):
        found = (
            passes([python], module, logs / f"{module}.bare"),
            passes(reach, module, logs / f"{module}.inside"),
        )
        words = ["ok" if passed else "FAILED" for passed in found]
        print(f"{module:32} bare {words[0]:8} inside {words[1]}", flush=True)
        return module, found

    with ThreadPoolExecutor(jobs) as pool:
        return dict(pool.map(both, modules))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("modules", nargs="*", default=MODULES)
    options = parser.parse_args()
    # A shell starts background jobs with SIGINT ignored, children inherit that, and test_signal then fails bare.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logs = Path(tempfile.mkdtemp(prefix="cpython-suite-"))
    results = compare(options.python, options.modules or MODULES, options.jobs, logs)
    lost = [module for module, (bare, inside) in results.items() if bare and not inside]
    print(f"{len(results)} modules: {sum(bare for bare, _ in results.values())} pass bare,")
    print(f"{sum(inside for _, inside in results.values())} inside; lost: {' '.join(lost) or 'none'}; logs in {logs}")
    return 1 if len(lost) > ALLOWED_LOSSES else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run reach as if the kernel had an older Landlock: python landlock_abi.py ABI ARGUMENTS-OF-REACH."""

from __future__ import annotations

import sys

from agent_reach.cli import main
from agent_reach.linux import landlock

if __name__ == "__main__":
    version = int(sys.argv.pop(1))
    landlock.abi = lambda: version
    sys.exit(main(sys.argv[1:]))

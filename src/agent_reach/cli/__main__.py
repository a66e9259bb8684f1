"""`python -m agent_reach.cli`."""

import sys

from agent_reach.cli import main

sys.exit(main())

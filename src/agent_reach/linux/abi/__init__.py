"""Numbers of the kernel's interface: data only, one module per header."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def table(machine: str) -> Mapping[str, int]:
    """Return the whole system call table of a machine, name to number; imported on demand.

    Args:
        machine: ``x86_64`` or ``aarch64``.

    Raises:
        KeyError: any other machine.
    """
    if machine == "x86_64":
        from agent_reach.linux.abi.syscalls_x86_64 import NUMBERS
    elif machine == "aarch64":
        from agent_reach.linux.abi.syscalls_aarch64 import NUMBERS
    else:
        raise KeyError(machine)
    return NUMBERS

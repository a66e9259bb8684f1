"""``cmd://PROGRAM ARGUMENTS``: the output of a program, only where the user's own configuration allows it.

A contract comes with a project; a program that it names runs outside the sandbox with every right of the
caller. So the contract alone is never enough.
"""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.providers.content import MAX_ANSWER
from agent_reach.providers.faults import SourceError
from agent_reach.providers.session import no_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.providers.session import Session
    from agent_reach.providers.uri import Ref

SECONDS = 10.0


class CmdReader:
    """Runs programs without a shell, with the caller's environment, in the caller's home directory."""

    slow = True
    batched = False

    def __init__(self, session: Session) -> None:
        self._session = session

    def locate(self, ref: Ref, base: str) -> Ref:  # noqa: ARG002 - same shape as every reader
        """Refuse unless the user allows commands."""
        from agent_reach.providers.config import config_path

        no_options(ref)
        if not self._session.config.allow_cmd:
            path = visible(config_path(self._session.home))
            raise SourceError(
                f"cmd:// runs programs outside the sandbox; to allow it set providers.allow_cmd in {path}"
            )
        return ref

    def read(self, ref: Ref) -> bytes:
        """Return what the program prints, without trailing line ends, as ``$(…)`` does.

        Raises:
            SourceError: it cannot be started, takes too long or ends with another status than 0.
        """
        import shlex

        from agent_reach.providers import process

        try:
            argv = shlex.split(ref.path)
        except ValueError as error:
            raise SourceError(f"the command line cannot be split: {error}") from None
        if not argv:
            raise SourceError("there is no command behind cmd://")
        status, output = process.run(
            argv,
            env=self._session.caller_env,
            cwd=self._session.home or "/",
            stdin=b"",
            seconds=SECONDS,
            limit=MAX_ANSWER,
        )
        if status:
            ended = f"ended with status {status}" if status > 0 else f"was killed by signal {-status}"
            raise SourceError(f"{visible(argv[0])} {ended}")
        return output.rstrip(b"\r\n")

    def describe(self, ref: Ref) -> str:
        """Name the program, not its arguments."""
        return visible(ref.path.split()[0])

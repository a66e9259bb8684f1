"""`reach run`."""

from __future__ import annotations

from agent_reach import engine, prepare
from agent_reach.cli import failures, request
from agent_reach.cli.options import UsageError
from agent_reach.cli.report import Report
from agent_reach.cli.result import ResultFile
from agent_reach.cli.terminal import say
from agent_reach.errors import EXIT_REACH_FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_reach.cli.options import Parsed
    from agent_reach.prepare import Prepared, Request
    from agent_reach.staging.progress import Progress

_SIGINT = 2


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:
    """Run a program under its contract.

    Args:
        parsed: the command line.
        environ: the caller's environment.

    Returns:
        The status for the shell.

    Raises:
        UsageError: the command line cannot be understood.
    """
    if not parsed.ender:
        raise UsageError("nothing to run", "reach run SCRIPT, reach run -m MODULE, or reach run - for standard input")
    return carry_out(parsed, environ, _ready)


def carry_out(
    parsed: Parsed, environ: Mapping[str, str], ready: Callable[[Request, Mapping[str, str]], Prepared]
) -> int:
    """Prepare and run, tell people and machines what came of it, and turn it into a status.

    Args:
        parsed: the command line.
        environ: the caller's environment.
        ready: makes the plan of a request; raises when there is no such program.

    Raises:
        UsageError: the command line cannot be understood.
        OSError: the place of the result cannot be opened.
    """
    report = Report(
        environ,
        quiet=parsed.has("--quiet"),
        verbose=parsed.has("--verbose"),
        code_name="<code>" if parsed.ender == "--code-fd" else "",
    )
    out = ResultFile(parsed.one("--result"))
    try:
        asked = request.make(parsed)
        prepared = ready(asked, environ)
        if parsed.has("--save"):
            from agent_reach.cli.save import save

            save(asked, prepared.contract, prepared.caller)
        report.about(prepared.contract, prepared.caller.cwd)
        report.tier(prepared.abilities)
        result = engine.carry_out(prepared, environ, report.deny, _progress(parsed, prepared))
    except UsageError as error:
        out.fail(error, EXIT_REACH_FAILED)
        raise
    except KeyboardInterrupt as error:
        out.fail(error, 128 + _SIGINT)
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets words, JSON and status 125
        status = failures.status_of(error)
        say(failures.words(error))
        out.fail(error, status)
        if environ.get("REACH_DEBUG"):
            import traceback

            traceback.print_exception(error)
        return status
    report.end(result, recorded=asked.use_record)
    out.write(result)
    return result.exit_code


def _progress(parsed: Parsed, prepared: Prepared) -> Progress | None:
    """Return what shows the fetching of files on a terminal, when there are some to fetch."""
    if parsed.has("--quiet") or not any(grant.source for grant in prepared.contract.files):
        return None
    from agent_reach.staging.progress import Progress

    return Progress()


def _ready(asked: Request, environ: Mapping[str, str]) -> Prepared:
    """Check the script and make the plan."""
    if asked.kind == "script":
        request.check_script(asked.target)
    return prepare.prepare(asked, environ)

"""`reach doctor`: what this host can enforce, found out by trying, and the one fix for what is missing."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.cli import mechanisms, remedies
from agent_reach.cli.help_ import wrap
from agent_reach.cli.terminal import paint_for
from agent_reach.host.caller import look_at_caller
from agent_reach.linux import probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.cli.mechanisms import Check
    from agent_reach.cli.options import Parsed
    from agent_reach.cli.terminal import Paint
    from agent_reach.linux.probe import Abilities

_STYLE = {mechanisms.OK: "green", mechanisms.MISSING: "strong red", mechanisms.WEAK: "yellow"}
_MEANING = {
    "full": "namespaces, Landlock, seccomp and the broker enforce a contract",
    "reduced": "Landlock, seccomp and the broker enforce a contract; no user namespaces",
    "none": "nothing can be run under a contract here",
}
_STATE_WIDE = 11
_NAME_WIDE = 18
_WIDTH = 80
_NOT_FULL = 1


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:
    """Try each mechanism and print what came of it.

    Returns:
        0 when the tier is full, 1 otherwise.
    """
    if parsed.has("--apparmor"):
        print(remedies.apparmor_profile(), end="")
        return 0
    abilities = probe.examine()
    checks = [*mechanisms.all_checks(environ, look_at_caller(environ)), *mechanisms.root_rights(abilities.obstacle)]
    if parsed.has("--json"):
        _print_json(checks, abilities)
    else:
        print("\n".join(lines(checks, abilities, paint_for(1, environ))))
    return 0 if abilities.tier == "full" else _NOT_FULL


def lines(checks: list[Check], abilities: Abilities, paint: Paint) -> list[str]:
    """Return the page: one line a mechanism, fixes below, the tier at the end.

    Args:
        checks: what was tried.
        abilities: what the probe of a run says.
        paint: for a terminal with or without colour.
    """
    page: list[str] = []
    indent = " " * (_STATE_WIDE + _NAME_WIDE)
    for check in checks:
        style = _STYLE.get(check.state, "dim")
        state = paint(style, check.state) + " " * (_STATE_WIDE - len(check.state))
        words = list(wrap(visible(check.found), _WIDTH - len(indent)))
        page += [f"{state}{check.name.ljust(_NAME_WIDE)}{words[0]}", *[f"{indent}{part}" for part in words[1:]]]
        page += _fix(check.fix, indent, paint) if check.fix else []
    tier = paint(_STYLE[mechanisms.OK] if abilities.tier == "full" else "yellow", f"tier {abilities.tier}")
    page += ["", f"{tier}: {_MEANING[abilities.tier]}"]
    if abilities.obstacle is not None:
        page.append("to get more:")
        page += _fix(remedies.for_obstacle(abilities.obstacle), "  ", paint, label="")
    return page


def _fix(text: str, indent: str, paint: Paint, *, label: str = "fix: ") -> list[str]:
    """Return a fix, not folded: it is to be copied."""
    return [f"{indent}{label}{paint('bold', visible(text))}"]


def _print_json(checks: list[Check], abilities: Abilities) -> None:
    """Print everything as one JSON value."""
    import json

    obstacle = abilities.obstacle
    value = {
        "tier": abilities.tier,
        "landlock": abilities.landlock,
        "obstacle": obstacle and {"feature": obstacle.feature, "found": obstacle.found},
        "fix": remedies.for_obstacle(obstacle) if obstacle else "",
        "checks": [dict(check.__dict__) for check in checks],
    }
    print(json.dumps(value))

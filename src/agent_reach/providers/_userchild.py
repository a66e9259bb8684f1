"""Program of the process that runs the user's ``providers.py``; runs under any CPython 3.9 or newer.

Reads one JSON document from standard input, calls the functions it names and writes one list of
``[kind, payload]`` to standard output. What the user's code prints goes to standard error.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Answer one request and end."""
    # the first entry is the directory of this file, whose modules would shadow packages such as `keyring`
    sys.path[0] = os.getcwd()
    import json

    request = json.loads(sys.stdin.buffer.read())
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    namespace = {"__name__": "reach_providers", "__file__": request["file"], "os": os}
    failure = _load(request, namespace)
    results = [failure or _call(namespace, name, path) for name, path in request["calls"]]
    answers.write(json.dumps(results).encode())
    answers.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread or exit handler of the user's code must not hold up the answer


def _load(request: dict[str, str], namespace: dict[str, object]) -> list[object] | None:
    """Run the file; return an error answer or None."""
    try:
        source = request["source"].encode("utf-8", "surrogateescape")
        exec(compile(source, request["file"], "exec"), namespace)  # noqa: S102 - the purpose of this process
    except BaseException as error:  # noqa: BLE001 - SystemExit in the user's file is an answer, too
        return ["error", _describe(error)]
    return None


def _call(namespace: dict[str, object], name: str, path: str) -> list[object]:
    """Call one function and shape what it returns."""
    function = namespace.get(name)
    if not callable(function):
        return ["error", "the file defines no function of that name"]
    try:
        value = function(path)
        if isinstance(value, bytes):
            value = value.decode()
        if value is None:
            return ["none", ""]
        if isinstance(value, str):
            return ["value", value]
        return ["value", _plain(value)] if hasattr(value, "keys") else ["other", ""]
    except BaseException as error:  # noqa: BLE001 - see _load
        return ["error", _describe(error)]


def _plain(mapping: dict[object, object]) -> dict[str, object]:
    """Copy a mapping with text keys; a value that is neither text, number nor null becomes an empty list."""
    simple = (str, int, float, bool, type(None))
    return {str(key): value if isinstance(value, simple) else [] for key, value in dict(mapping).items()}


def _describe(error: BaseException) -> str:
    """Return type and first line of an exception, and the line of the user's file."""
    text = ([*str(error).splitlines(), ""])[0][:300]
    where = ""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == "reach_providers":
            where = f" (line {trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}{': ' if text else ''}{text}{where}"


if __name__ == "__main__":
    main()

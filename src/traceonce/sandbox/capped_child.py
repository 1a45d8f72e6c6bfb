"""The child of `run_capped`: runs Python source as ``__main__`` and reports how it raised. Standard library alone."""

import importlib
import json
import os
import sys
import threading
import types
from pathlib import Path

_DEEPEST = 20
_TEXT_CAP = 2000


def main() -> None:
    """Run the program in `sys.argv`, under the limits that stand beside it."""
    document = json.loads(sys.argv[1])
    report, alive = json.loads(os.environ.pop("TRACEONCE_CAPPED"))
    os.set_inheritable(report, False)
    os.set_inheritable(alive, False)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [document["name"]]
    for name in document["imports"]:
        importlib.import_module(name)
    if document["address_space_mb"] is not None:
        _limit_address_space(document["address_space_mb"])
    try:
        exec(compile(document["source"], document["name"], "exec"), vars(module))
    except SystemExit:
        raise
    except BaseException as raised:
        # The report is made of what is there already: there may be no memory left to make much more.
        os.write(report, json.dumps(chain(raised)).encode())
        raise


def _end_with_parent(alive: int) -> None:
    """Wait for the end of the pipe that the parent holds open, and end with it."""
    os.read(alive, 1)
    os._exit(1)


def _limit_address_space(more_mb: float) -> None:
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + int(more_mb * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def chain(raised: BaseException) -> list[dict[str, str]]:
    """An exception, its causes and the members of groups, outermost first: class name and text of each."""
    found: list[dict[str, str]] = []
    waiting: list[BaseException | None] = [raised]
    seen: set[int] = set()
    while waiting and len(found) < _DEEPEST:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        found.append({"type_name": type(current).__name__, "message": _text_of(current)})
        waiting += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
    return found


def _text_of(raised: BaseException) -> str:
    try:
        return str(raised)[:_TEXT_CAP]
    except Exception as error:  # noqa: BLE001 - the program's own __str__ runs here
        return f"(its text could not be read: {type(error).__name__})"


if __name__ == "__main__":
    main()

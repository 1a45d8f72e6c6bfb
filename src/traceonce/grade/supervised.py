"""A supervisor, from outside: the process, and the lines of JSON that go to it and come from it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

RUN_SUPERVISOR = (sys.executable, "-P", "-s", "-m", "traceonce.grade.supervisor")


class Supervised:
    """A running supervisor. As a context it is ended by an exception at once, and else when it has answered all.

    **Arguments**

    - `setup`: `workers`, `seed` (in hexadecimal), `compiled` and `tier`; see `supervisor.Supervisor`.
    """

    def __init__(self, setup: Mapping[str, Any]) -> None:
        # A session of its own: an interrupt at the terminal is for the one who can decide what to keep.
        self.process = subprocess.Popen(
            RUN_SUPERVISOR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._labs: set[str] = set()
        self._say({"setup": dict(setup)})

    def ask(self, lab: Mapping[str, Any], job: Mapping[str, Any]) -> None:
        """Give it a submission, and the lab of it where it is the first of that lab. That it has ended is heard from `answer`."""
        if lab["digest"] not in self._labs:
            self._labs.add(lab["digest"])
            self._say({"lab": lab})
        self._say({"job": {**job, "lab": lab["digest"]}})

    def answer(self) -> dict[str, Any]:
        """Its next line, waited for: ``ready``, ``result`` or ``fatal``; empty where it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return dict(json.loads(line)) if line else {}

    def _say(self, request: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()

    def kill(self) -> None:
        """End it, and with it all that is below it."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._say({"finish": True})
        else:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):  # what was not sent to one that has ended
                stream.close()
        self.process.wait()

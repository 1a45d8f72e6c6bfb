"""In the program's process: start the recorder when the program imports JAX, and report at its end.

Imports nothing but small parts of the standard library, because this runs before the program. It waits for `import jax`
and never imports JAX itself: a program without JAX stays one, and environment variables that a program sets before the
import keep their effect.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.machinery
import json
import os
import resource
import select
import sys
import threading
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

_WAIT_FOR_WITNESS = 10.0


class Channel:
    """The way to the witness: one JSON object a line. When the witness is gone the program goes on without it."""

    def __init__(self, out: int, done: int) -> None:
        self._out: int | None = out
        self._done = done
        self._identity = _identity(out)
        self._lock = threading.RLock()
        self.began = time.perf_counter()
        os.set_inheritable(out, False)
        os.set_inheritable(done, False)
        os.register_at_fork(after_in_child=self.leave)

    def send(self, **message: Any) -> None:
        """Send one message."""
        data = (json.dumps(message) + "\n").encode()
        with self._lock:
            # A program may close descriptors that it did not open; the number may by now be a file of its own.
            if self._out is None or _identity(self._out) != self._identity:
                self._out = None
                return
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:
                self._out = None

    def leave(self) -> None:
        """Have nothing more to do with it: in a forked child, which is another program's process."""
        if self._out is not None and _identity(self._out) == self._identity:
            os.close(self._out)
            os.close(self._done)
        self._out = None

    def wait(self) -> None:
        """Wait until the witness has printed its report, so that it stands before whatever follows the program."""
        if self._out is not None:
            select.select([self._done], [], [], _WAIT_FOR_WITNESS)


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        about = os.fstat(descriptor)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def begin(settings: str) -> None:
    """Open the channel, and wait for the program to import JAX."""
    descriptors = json.loads(settings)
    channel = Channel(descriptors["out"], descriptors["done"])
    recording = _Recording(channel)
    atexit.register(recording.end)  # registered first, so it runs after all of the program's own handlers
    sys.meta_path.insert(0, AfterImport("jax", recording.start))


class AfterImport:
    """A finder that finds nothing itself: it calls `then` when the module has been imported, and is gone."""

    def __init__(self, name: str, then: Callable[[types.ModuleType], None]) -> None:
        self.name = name
        self.then = then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the module as the other finders do, with a loader that tells when it has run."""
        if name != self.name:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    self._listen(spec.loader)
                return spec
        return None

    def _listen(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            # The loader stays in module.__spec__, where a program may use it again: leave it as it was.
            del loader.exec_module
            execute(module)
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)  # type: ignore[arg-type]
            self.then(module)

        loader.exec_module = exec_module


class _Recording:
    """What is done at the import of JAX and at the end. An observer's fault is reported and never the program's."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._recorder: Any = None
        # Before it became the program this process waited for a short-lived child of its own.
        self._not_its_children = _most_of(resource.RUSAGE_CHILDREN)

    def start(self, jax: types.ModuleType) -> None:
        """Open the record. Called when `import jax` has just finished."""
        version = str(getattr(jax, "__version__", "?"))
        self._channel.send(kind="jax", version=version)
        try:
            from traceonce.run.recorder import Recorder

            self._recorder = Recorder(self._channel.send, self._channel.began)
            self._recorder.__enter__()
        except Exception as error:  # noqa: BLE001 - the program must run whatever is wrong with its observer
            self._recorder = None
            text = (
                f"JAX {version} cannot be observed ({type(error).__name__}: {error}); `traceonce doctor` says which can"
            )
            self._channel.send(kind="trouble", text=text)
            return
        # JAX has registered its own handler by now, which lets go of the devices; this one runs before it.
        atexit.register(self._devices)

    def _devices(self) -> None:
        try:
            self._recorder.tell_devices()
        except Exception as error:  # noqa: BLE001 - a broken device must not add a traceback to the program's end
            self._channel.send(kind="trouble", text=f"the devices did not tell their memory: {error}")

    def end(self) -> None:
        """Report the end, and wait for the table."""
        if self._recorder is not None:
            try:
                self._recorder.tell_calls()
                self._recorder.__exit__(None, None, None)
            except Exception as error:  # noqa: BLE001 - as above
                self._channel.send(kind="trouble", text=f"the record could not be closed: {error}")
        children = _most_of(resource.RUSAGE_CHILDREN)
        children = children if children > self._not_its_children else 0
        for stream in (sys.stdout, sys.stderr):
            # What the program printed comes before the table. Python flushes again at once, and reports what fails.
            with contextlib.suppress(Exception):
                stream.flush()
        own, seconds = _most_of(resource.RUSAGE_SELF), time.perf_counter() - self._channel.began
        self._channel.send(kind="end", peak=own, children_peak=children, at=seconds)
        self._channel.wait()


def _most_of(who: int) -> int:
    """The most memory that a process has held, in bytes."""
    return resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

"""The sandboxed child: runs the cells of one submission, then answers the judge's requests until it is killed.

It holds nothing secret. What it says about itself can be forged by the code that it runs; what that is worth is said in
``docs/grading.md``. The judge believes nothing but the form of a message.
"""

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive, primitives

from traceonce.grade.execution import Notebook, Source
from traceonce.grade.observing import Counters, Observer
from traceonce.grade.wire import Wire, WireError, WireTooLarge
from traceonce.sandbox.limits import Limits
from traceonce.sandbox.root import SCRATCH

_getpid, _exit = os.getpid, os._exit


def run(wire_descriptor: int, job_descriptor: int, end_strays: Callable[[], None]) -> None:
    """Be the child: load the cells in the job, report on each, then serve. Returns when the judge is gone.

    `end_strays` is called after each cell and each call: processes that student code left running are not to take the time
    of what comes next.
    """
    with os.fdopen(job_descriptor, "rb") as file:
        file.seek(0)
        job = json.load(file)
    limits = Limits.from_json(job["limits"])
    if job.get("fill"):
        _keep_what_is_compiled()
    counters = Counters()
    counters.listen()
    wire = Wire(socket.socket(fileno=wire_descriptor), limits.message_mb * 2**20)
    notebook = Notebook(tuple(Source(**cell) for cell in job["cells"]))
    server = _Server(wire, notebook, Observer(notebook, counters), limits, end_strays)
    try:
        server.load()
        server.serve()
    except WireError:
        return  # the judge is gone, and with it every reason to be here


_OF_JAX = tuple(f"jax._src.{part}" for part in ("random", "prng", "nn", "numpy", "lax", "scipy", "ops"))
_FILLED = Path(SCRATCH) / "compiled"


def _keep_what_is_compiled() -> None:
    """Have JAX write every program that it compiles to a folder. For the reference, before anything is compiled."""
    jax.config.update("jax_compilation_cache_dir", str(_FILLED))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _harvest() -> tuple[dict[str, Any], list[bytes]]:
    """The entries in the folder, and the names of JAX's own operations; see `grade.compiled`."""
    files = sorted(_FILLED.glob("*-cache"))
    values = (getattr(primitives, name) for name in dir(primitives))
    operations = {value.name for value in values if isinstance(value, Primitive)}
    known = operations.union(dir(jnp), dir(jax.lax), dir(jax.nn), dir(jax.random))
    # What these are made of has names of its own: `_threefry_split` behind `jax.random.split`.
    for name, module in list(sys.modules.items()):
        if name.startswith(_OF_JAX):
            known |= {name for name, value in vars(module).items() if callable(value)}
    return {"ok": {"names": [path.name for path in files], "known": sorted(known)}}, [p.read_bytes() for p in files]


class _Server:
    def __init__(
        self, wire: Wire, notebook: Notebook, observer: Observer, limits: Limits, end_strays: Callable[[], None]
    ) -> None:
        self.wire, self.notebook, self.observer, self.limits = wire, notebook, observer, limits
        self.end_strays = end_strays
        self.own_pid = _getpid()

    def load(self) -> None:
        for index, source in enumerate(self.notebook.sources):
            self.send({"event": "cell", "index": index}, [])
            error, printed = self.notebook.run_cell(source, self.limits.call_seconds)
            form = None if error is None else vars(error) | {"bases": list(error.bases)}
            self.send({"event": "ran", "index": index, "error": form, "printed": printed}, [])
        self.send({"event": "ready"}, [])

    def serve(self) -> None:
        while True:
            request, blobs = self.wire.receive()
            if request["op"] == "harvest":
                reply, reply_blobs = _harvest()
            elif request["op"] == "carry_out":
                reply, reply_blobs = self.observer.carry_out(request, blobs)
            else:
                reply, reply_blobs = self.observer.answer(request, blobs)
            nonce = {"nonce": request["nonce"]}
            try:
                self.send(reply | nonce, reply_blobs)
            except (WireTooLarge, ValueError, RecursionError) as error:
                about = f"the result cannot be handed over: {error}"[:300]
                self.send({"error": {"kind": "value", "message": about}} | nonce, [])

    def send(self, document: dict[str, Any], blobs: list[bytes]) -> None:
        if _getpid() != self.own_pid:
            _exit(0)  # a copy that student code forked: it must not speak for the submission
        if "event" not in document or document["event"] == "ran":
            self.end_strays()
        self.wire.send(document, blobs)

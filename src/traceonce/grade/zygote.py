"""The process that student code is forked from: everything imported, nothing secret, one thread, no backend.

    python -m traceonce.grade.zygote DESCRIPTOR TIER [COMPILED]

`DESCRIPTOR` is a sequenced-packet socket to the supervisor, `TIER` the isolation, `COMPILED` a folder of compiled programs (`grade.compiled`). In the namespaces tier the zygote moves into the sandbox's namespaces and root first
and imports there, so that what is imported is what a child can reach later. It then answers ``ready`` or ``failed REASON``,
and forks one sandboxed child for each packet, which brings the child's descriptors: wire, job, notice. It never reads a job,
because what it reads stays in the memory that later children inherit.
"""

import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from traceonce.grade.compiled import FOLDER_IN_SANDBOX
from traceonce.grade.forking import serve
from traceonce.sandbox import bubblewrap, landlock_tier, linux, namespaces
from traceonce.sandbox.guard import end_others
from traceonce.sandbox.handle import BUBBLEWRAP, LANDLOCK, NAMESPACES
from traceonce.sandbox.limits import Limits

_TIERS = {NAMESPACES: namespaces, BUBBLEWRAP: bubblewrap, LANDLOCK: landlock_tier}
_Fork = Callable[[int, int, socket.socket, Limits], int]
_IMPORTED = ("jax", "jax.numpy", "equinox", "optax", "traceonce.grade.child")
# Imported by JAX at the first lowering; in the zygote they are paid for once.
_IMPORTED_LATER = (
    "jaxlib.mlir.dialects.mhlo",
    "jaxlib.mlir.dialects.builtin",
    "jaxlib.mlir._mlir_libs._mlirHlo",
    "scipy.linalg",  # where jaxlib finds LAPACK: asked for by each exported program, whatever is in it; 0.15 s
)


def main() -> None:
    """Set up, import, and fork on request until the supervisor is gone."""
    parent = os.getppid()
    linux.die_with_parent()
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    tier = sys.argv[2]
    extra = {Path(FOLDER_IN_SANDBOX): Path(folder) for folder in sys.argv[3:]}
    try:
        _TIERS[tier].enter(extra)
    except OSError as error:
        control.send(f"failed {error.strerror or error}".encode()[:500])
        return
    fork = _start_alone if tier == BUBBLEWRAP else _prepared(tier, use_shared=bool(extra))
    control.send(b"ready")
    _fork_on_request(control, fork)


def _start_alone(wire: int, job: int, notice: socket.socket, limits: Limits) -> int:
    """For a tier that can fork nothing of this process: a program of its own for each submission."""
    return bubblewrap.start("traceonce.grade.alone", keep=(wire, job), notice=notice, limits=limits)


def _prepared(tier: str, *, use_shared: bool) -> _Fork:
    """Do beforehand what all children would, once."""
    import_all()
    if use_shared:
        use_compiled(FOLDER_IN_SANDBOX)
    importlib.import_module("traceonce.grade.warm").warm_up()
    gc.collect()
    gc.freeze()  # the collector would otherwise touch, and so copy, every inherited page in every child
    from traceonce.grade import child

    return lambda wire, job, notice, limits: _TIERS[tier].fork_sandboxed(  # type: ignore[no-any-return]
        lambda: child.run(wire, job, end_others), keep=(wire, job), notice=notice, limits=limits
    )


def import_all() -> None:
    """Import what a child uses."""
    for name in _IMPORTED:
        importlib.import_module(name)
    for name in _IMPORTED_LATER:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)


def use_compiled(folder: str) -> None:
    """Have JAX read compiled programs from a folder, and write none: nothing takes a day to compile."""
    import jax

    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 86_400)


def _fork_on_request(control: socket.socket, fork: _Fork) -> None:
    def ask(packet: bytes, descriptors: list[int]) -> int:
        wire, job, notice_descriptor = descriptors
        notice = socket.socket(fileno=notice_descriptor)
        try:
            return fork(wire, job, notice, Limits.from_json(json.loads(packet)))
        finally:
            notice.detach()  # the caller closes what it brought

    serve(control, ask)  # at the end the supervisor has killed what the wardens guard


if __name__ == "__main__":
    main()

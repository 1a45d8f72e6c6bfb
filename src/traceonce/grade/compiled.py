"""Compiled programs that are shared between submissions: a JAX compile cache, filled by the lab's reference alone.

Most of what a small lab costs is compiling the same hundred one-operation programs (``add``, ``dot``, ``dynamic_slice``) for
every student. The reference is run once, and what XLA made of such operations is shown read-only to every later child.
Student code never writes to it.

What the reference's own functions compile to is left out: it would be a solution that can be run. What is left in are single
operations of JAX's and the functions of given cells, by name.

One folder belongs to one environment: versions, processor, and what the zygote sets. A manifest has the digest of each
file, and names the labs that have been run. A folder that does not match its manifest is emptied and filled again.
"""

import ast
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER_IN_SANDBOX = "/compiled"
"""Where a child finds the folder."""

_ENTRY = re.compile(r"jit_(?P<name>\w+)-[0-9a-f]{64}-cache")
_MANIFEST = "manifest.json"
# To be raised where other programs come to be shared.
_VERSION = 2
_LARGEST_ENTRY = 2**20
# Operations whose program holds a function of the caller's.
_HIGHER_ORDER = frozenset(
    [
        "associative_scan",
        "cond",
        "custom_jvp_call",
        "custom_linear_solve",
        "custom_lin",
        "custom_root",
        "custom_vjp_call",
        "eval_jaxpr",
        "fori_loop",
        "jit",
        "map",
        "piecewise",
        "reduce",
        "reduce_window",
        "remat2",
        "scan",
        "switch",
        "vectorize",
        "while",
        "while_loop",
    ]
)


def environment_key(settings: Mapping[str, str]) -> str:
    """A digest of what a compiled program depends on; `settings` is the zygote's environment."""
    parts = [
        _VERSION,
        version("jax"),
        version("jaxlib"),
        sys.version,
        platform.machine(),
        _processor(),
        sorted(settings.items()),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _processor() -> str:
    """The first processor's model and features: a program compiled for one may crash on another."""
    text = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(line for line in text.splitlines() if line.startswith(wanted))


def functions_of(sources: Iterable[str]) -> frozenset[str]:
    """The names of all functions that the sources define, at any depth."""
    trees = (ast.parse(source) for source in sources)
    return frozenset(
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def is_shareable(entry: str, own: frozenset[str], public: frozenset[str]) -> bool:
    """Whether a cache entry is of a `public` function, and of none that a solution defines (`own`)."""
    found = _ENTRY.fullmatch(entry)
    if found is None or found["name"] in own:
        return False
    return found["name"].lstrip("_") in {name.lstrip("_") for name in public} - _HIGHER_ORDER


@dataclass(frozen=True)
class Compiled:
    """The folder of one environment."""

    folder: Path

    @classmethod
    def open(cls, base: Path, settings: Mapping[str, str]) -> "Compiled":
        """The folder for this environment below `base`, made where it is missing, emptied where it was altered.

        **Raises**: `OSError` where it cannot be written to.
        """
        compiled = cls(base / environment_key(settings))
        compiled.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with compiled._held():
            if not compiled._is_whole():
                for path in compiled.folder.iterdir():
                    if path.name != ".lock":
                        path.unlink()
                compiled._write_manifest({"files": {}, "labs": []})
        return compiled

    def has(self, lab: str) -> bool:
        """Whether a lab of this digest has been run."""
        return lab in self._manifest()["labs"]

    def add(self, lab: str, entries: Mapping[str, bytes]) -> None:
        """Keep a lab's entries; names that are no entry's and contents over 1 MB are left out."""
        with self._held():
            manifest = self._manifest()
            for name, content in entries.items():
                if _ENTRY.fullmatch(name) and len(content) <= _LARGEST_ENTRY:
                    self._write(name, content)
                    manifest["files"][name] = hashlib.sha256(content).hexdigest()
            manifest["labs"] = sorted({*manifest["labs"], lab})
            self._write_manifest(manifest)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _is_whole(self) -> bool:
        try:
            files = self._manifest()["files"]
            present = {path.name for path in self.folder.iterdir()} - {".lock", _MANIFEST}
            digests = {name: hashlib.sha256((self.folder / name).read_bytes()).hexdigest() for name in present}
        except (OSError, ValueError, KeyError):
            return False
        return bool(digests == files)

    def _manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / _MANIFEST).read_text())
        return found

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        self._write(_MANIFEST, json.dumps(manifest).encode())

    def _write(self, name: str, content: bytes) -> None:
        part = self.folder / f"{name}.part"
        part.write_bytes(content)
        part.chmod(0o644)
        os.replace(part, self.folder / name)

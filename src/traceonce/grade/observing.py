"""What the sandboxed child can be asked: call a function, or call it and watch what it does."""

import functools
import hashlib
import types
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from traceonce.grade.execution import CellError, Notebook
from traceonce.grade.exporting import carry_out, export
from traceonce.grade.values import Decoder, Deleted, Encoder, Host, Key, Node, Ref, Tracer
from traceonce.observe.keys import KeyUses, key_uses
from traceonce.observe.syncing import syncs

_TRACE = "/jax/core/compile/jaxpr_trace_duration"
_COMPILE = "/jax/core/compile/backend_compile_duration"


@dataclass
class Counters:
    """Traces and compiles by function name, from JAX's public events."""

    traces: Counter[str] = field(default_factory=Counter)
    compiles: Counter[str] = field(default_factory=Counter)

    def listen(self) -> None:
        """Register for JAX's events. To be called before student code runs."""
        jax.monitoring.register_event_duration_secs_listener(self._on_duration)

    def _on_duration(self, event: str, _seconds: float, **about: Any) -> None:
        name = str(about.get("fun_name", ""))
        if event == _TRACE:
            self.traces[name] += 1
        elif event == _COMPILE:
            self.compiles[name.removeprefix("jit(").removesuffix(")")] += 1

    def clear(self) -> None:
        """Start again from zero."""
        self.traces.clear()
        self.compiles.clear()


def to_wire(value: Any) -> Any:
    """A leaf of the student's in a form that `Encoder` knows. Waits for the device; an array's error is raised here."""
    if isinstance(value, jax.core.Tracer):
        return Tracer(type(value).__name__)
    if isinstance(value, jax.Array):
        if value.is_deleted():
            return Deleted(tuple(value.shape))
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return Key(_implementation(value), np.asarray(jax.random.key_data(value)))
        return np.asarray(value)
    return value


def _implementation(key: Any) -> str:
    name = str(jax.random.key_impl(key))
    return "threefry2x32" if name == "fry" else name  # a watched key says its tag


@dataclass
class Observer:
    """Answers the judge's requests against a notebook's namespace."""

    notebook: Notebook
    counters: Counters

    def answer(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """The reply to one request: ``{"ok": ...}`` or ``{"error": ...}``, with its blobs.

        **Raises**: `KeyError`, `TypeError`, `NotAValue` for a request that is none; the judge is trusted, so it is a defect.
        """
        name = request["name"]
        if name not in self.notebook.namespace:
            return _refusal(CellError("unknown", "NameError", ("NameError",), f"name {name!r} is not defined"))
        decoder = Decoder(blobs, array=_to_device, special=self._special)
        if request["op"] == "call":
            return self._call(request, decoder)
        if request["op"] == "export":
            return self._export(request, decoder)
        return self._observe(request, decoder)

    def _special(self, value: Any) -> Any:
        if isinstance(value, Key):
            return jax.random.wrap_key_data(jnp.asarray(value.data), impl=value.impl)
        if isinstance(value, Ref):
            return self.notebook.namespace[value.name]
        if isinstance(value, Node):
            # The class of that name in the notebook, where there is one; otherwise its fields are attributes all the same.
            kind = self.notebook.namespace.get(value.name)
            return kind(**value.fields) if isinstance(kind, type) else value
        return value.value if isinstance(value, Host) else value

    def _special_watched(self, value: Any) -> Any:
        """As `_special`, with keys that write down their uses."""
        special = self._special(value)
        return KeyUses.watch(special) if isinstance(value, Key) and value.impl == "threefry2x32" else special

    def _arguments(self, request: dict[str, Any], decoder: Decoder) -> tuple[list[Any], dict[str, Any]]:
        return list(decoder.decode(request["args"])), dict(decoder.decode(request["kwargs"]))

    def _call(self, request: dict[str, Any], decoder: Decoder) -> tuple[dict[str, Any], list[bytes]]:
        args, kwargs = self._arguments(request, decoder)
        encoder = Encoder(to_wire)

        def action() -> Any:
            return encoder.encode(self.notebook.namespace[request["name"]](*args, **kwargs))

        form, error, _ = self.notebook.guarded(action, request["seconds"])
        return _refusal(error) if error else ({"ok": {"value": form}}, encoder.blobs)

    def _export(self, request: dict[str, Any], decoder: Decoder) -> tuple[dict[str, Any], list[bytes]]:
        args, kwargs = self._arguments(request, decoder)
        encoder = Encoder(to_wire)

        def action() -> dict[str, Any]:
            program, tree = export(self.notebook.namespace[request["name"]], args, kwargs)
            form = encoder.encode(tree)
            encoder.blobs.append(program)
            return {"tree": form, "program": len(encoder.blobs) - 1}

        form, error, _ = self.notebook.guarded(action, request["seconds"])
        return _refusal(error) if error else ({"ok": form}, encoder.blobs)

    def carry_out(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """The reply to a request to compile and run an exported program. Asked of a child without a notebook's cells."""
        args, kwargs = self._arguments(request, Decoder(blobs, array=_to_device, special=self._special))
        encoder = Encoder(to_wire)

        def action() -> Any:
            return encoder.encode(carry_out(blobs[request["program"]], args, kwargs, request["run"]))

        form, error, _ = self.notebook.guarded(action, request["seconds"])
        return _refusal(error) if error else ({"ok": {"value": form}}, encoder.blobs)

    def _observe(self, request: dict[str, Any], decoder: Decoder) -> tuple[dict[str, Any], list[bytes]]:
        namespace = self.notebook.namespace
        name = request["name"]
        if request["keys"]:
            decoder = replace(decoder, special=self._special_watched)
        rounds = [self._arguments(request, decoder) for _ in range(request["repeat"])]
        changes = dict(decoder.decode(request["globals"]))
        absent = object()
        originals = {key: namespace.get(key, absent) for key in changes}
        namespace.update(changes)
        function = namespace[name]
        probe = _Probe(function) if request["jit"] else None
        called = function if probe is None else probe.jitted if request["run"] else probe.trace
        before = _Globals.of(namespace)
        encoder = Encoder(to_wire)
        waits = Counter({"read": 0, "wait": 0})
        uses = key_uses()
        self.counters.clear()

        def one(args: list[Any], kwargs: dict[str, Any]) -> Any:
            with syncs() as seen:
                value = called(*args, **kwargs)
            waits.update({"read": seen.reads, "wait": seen.waits})
            # Each value is taken off the device before the next call: a donated buffer must not take it along.
            return encoder.encode(value)

        def action() -> list[Any]:
            with uses if request["keys"] else nullcontext():
                forms = [one(args, kwargs) for args, kwargs in rounds]
                jax.effects_barrier()
            return forms

        forms, error, printed = self.notebook.guarded(action, request["seconds"])
        changed = before.changed_in(_Globals.of(namespace))
        for key, original in originals.items():
            if original is absent:
                namespace.pop(key, None)
            else:
                namespace[key] = original
        if error:
            return _refusal(error)
        own = {name, str(getattr(function, "__name__", name))}
        report = {
            "values": forms,
            "arguments": encoder.encode(tuple(rounds[-1][0])),
            "keywords": encoder.encode(rounds[-1][1]),
            "traces": probe.traces if probe else sum(self.counters.traces[known] for known in own),
            "compiles": sum(self.counters.compiles[known] for known in own),
            "events": {
                "traces": {key: n for key, n in self.counters.traces.items() if key not in own},
                "compiles": {key: n for key, n in self.counters.compiles.items() if key not in own},
            },
            "syncs": dict(waits),
            "keys": [[use.kind, list(use.key), use.data, times] for use, times in uses.uses.items()],
            "reused_keys": sorted(list(key) for key in uses.reused),
            "printed": printed,
            "changed_globals": changed,
        }
        return {"ok": report}, encoder.blobs


class _Probe:
    """`jax.jit` around the student's function that counts its own traces.

    The events cannot count them: a function that is jitted already is traced a second time inside, under the same name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.traces = 0

        def probe(*args: Any, **kwargs: Any) -> Any:
            self.traces += 1
            return function(*args, **kwargs)

        # Under the student's name and place, which is what JAX's messages then show.
        self.jitted = jax.jit(functools.wraps(function)(probe))

    def trace(self, *args: Any, **kwargs: Any) -> None:
        """Trace as a call of `jitted` does, and leave it at that."""
        self.jitted.trace(*args, **kwargs)


def _to_device(array: Any) -> Any:
    """A NumPy array as a JAX array, without a compile. Text stays NumPy."""
    return array if array.dtype.kind in "SU" else jax.device_put(array)


def _refusal(error: CellError) -> tuple[dict[str, Any], list[bytes]]:
    return {"error": vars(error) | {"bases": list(error.bases)}}, []


# What a call changed in the notebook ----------------------------------------------------------------------------------


@dataclass
class _Globals:
    """What a namespace held at one moment: a digest of each global by its name.

    A digest is of identity and content; for a function also of its attributes, defaults and closure. A JAX array never changes, so that
    its identity will do; `held` keeps all of it alive, as something else could otherwise get its place in memory.
    """

    digests: dict[str, str] = field(default_factory=dict)
    held: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, namespace: dict[str, Any]) -> "_Globals":
        """Those of a namespace, but for names like ``__name__``."""
        found = cls()
        for name, value in list(namespace.items()):
            if not (name[:2] == "__" and name[-2:] == "__"):
                found.digests[name] = found._digest(value)
        return found

    def _digest(self, value: Any) -> str:
        parts: list[Any] = [value]
        self.held.append(value)
        if isinstance(value, type) and value.__module__ == "__main__":
            parts = [{name: part for name, part in vars(value).items() if name[:2] != "__"}]
        elif isinstance(value, types.ModuleType | type):
            return str(id(value))
        function = _unwrapped(value)
        if isinstance(function, types.FunctionType):
            cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
            parts = [function.__defaults__, function.__kwdefaults__, _own_attributes(function), cells]
        encoder = Encoder(self._mark)
        try:
            text = repr([encoder.encode(part) for part in parts])
        except Exception as error:  # noqa: BLE001 - what the student's own objects raise when they are looked at
            text = f"{type(error).__name__} {type(value).__name__}"
        return hashlib.blake2b(b"".join((str(id(value)).encode(), text.encode(), *encoder.blobs))).hexdigest()

    def _mark(self, value: Any) -> Any:
        """Leaves by content where they have one that may change, otherwise by identity."""
        self.held.append(value)
        if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            return f"{'deleted' if value.is_deleted() else 'array'} {id(value)}"
        sent = to_wire(value)
        if sent is None or isinstance(sent, bool | int | float | str | bytes | complex | np.ndarray | np.generic):
            return sent
        if isinstance(sent, dict | list | tuple):
            return sent
        return self._inside(value) if sent is value else f"{type(sent).__name__} {id(value)}"

    def _inside(self, value: Any) -> Any:
        """What can change of a value that has no form on the wire; otherwise what tells it from others."""
        if isinstance(value, set | frozenset):
            return ["set", *sorted(repr(part) for part in value)]
        if isinstance(value, np.random.Generator):
            return repr(value.bit_generator.state)
        if type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
            return [id(value), dict(vars(value))]
        return f"{type(value).__name__} {id(value)}"

    def changed_in(self, later: "_Globals") -> list[str]:
        """The names whose value is another one in `later`, or that only one of them has."""
        names = self.digests.keys() | later.digests.keys()
        return sorted(name for name in names if self.digests.get(name) != later.digests.get(name))


def _unwrapped(value: Any) -> Any:
    try:
        return getattr(value, "__wrapped__", value)
    except Exception:  # noqa: BLE001 - a student's own __getattr__ runs here
        return value


def _own_attributes(function: types.FunctionType) -> dict[str, Any]:
    return {name: value for name, value in vars(function).items() if name != "__wrapped__"}


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # the variable was deleted, or is not bound yet
        return False

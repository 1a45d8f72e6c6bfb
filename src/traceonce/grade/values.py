"""Values as JSON and the bytes of arrays, for the wire between the judge and the child.

Both sides use the same code; neither ever unpickles. What has no place in JSON is a tagged object, ``{"t": "array", ...}``:

| tag | stands for |
|---|---|
| `array` | an array, or a NumPy scalar (`scalar`): `dtype`, `shape`, and the number `b` of the blob that holds its elements in C order |
| `key` | a typed PRNG key: its implementation and its data |
| `tuple`, `list`, `dict` | containers, to any depth up to a cap |
| `node` | a named tuple, a dataclass or an Equinox module: its name and its fields |
| `float`, `int`, `complex`, `bytes` | numbers that JSON cannot hold, and bytes |
| `deleted`, `tracer`, `opaque` | an array whose buffer was donated; a leaked tracer; anything else, by the name of its type |
| `ref`, `host` | towards the child only: a name in the notebook; an array that stays NumPy |
"""

import base64
import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Hashable
from typing import Any

import ml_dtypes
import numpy as np

_DEPTH_CAP = 64
_NODES_CAP = 100_000
_TEXT_CAP = 100_000
_PLAIN_KINDS = "biufcSU"
_PLAIN_DTYPE = re.compile(f"[<>|][{_PLAIN_KINDS}][1-9][0-9]{{0,5}}")
_JSON_INTEGER = 2**63
_LAST_CHARACTER = 0x10FFFF
_EXTENSION_TYPES = frozenset(
    name
    for name in dir(ml_dtypes)
    if isinstance(getattr(ml_dtypes, name), type) and issubclass(getattr(ml_dtypes, name), np.generic)
)


class NotAValue(Exception):
    """A message that describes no value: the sender is broken, or lies."""


@dataclasses.dataclass(frozen=True)
class Node:
    """A named tuple, dataclass or Equinox module, by the name of its class. Fields are attributes: ``node.weight``.

    Names with two underscores at both ends are none: NumPy takes an object with ``__array_interface__`` for memory at an address that it names.
    """

    name: str
    fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if not _is_special(name):
            with contextlib.suppress(KeyError):
                return self.__dict__["fields"][name]
        raise AttributeError(f"{self.__dict__.get('name')} has no field {name!r}")


@dataclasses.dataclass(frozen=True)
class Opaque:
    """Something that has no form on the wire: a function, a generator, a set. Only the name of its type is known."""

    type_name: str


@dataclasses.dataclass(frozen=True)
class Tracer:
    """A tracer that outlived its trace."""

    type_name: str


@dataclasses.dataclass(frozen=True)
class Deleted:
    """An array whose buffer is gone, as after donation."""

    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Key:
    """A typed PRNG key (or an array of them): the implementation's name and the key data."""

    impl: str
    data: np.ndarray[Any, Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.impl == other.impl and bool(np.array_equal(self.data, other.data))

    def __hash__(self) -> int:
        return hash((self.impl, self.data.tobytes()))


@dataclasses.dataclass(frozen=True)
class Ref:
    """Stands for a name in the notebook, when a function of the student's is an argument: ``Ref("loss")``."""

    name: str


@dataclasses.dataclass(frozen=True)
class Host:
    """An array that the child must leave as NumPy. Other arrays arrive as JAX arrays."""

    value: Any


# Encoding -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Encoder:
    """Encodes values into one message.

    **Arguments**

    - `leaf`: knows more kinds of leaf: gets the value, returns what to encode in its place, or the value itself.
    """

    leaf: Callable[[Any], Any] = lambda value: value
    blobs: list[bytes] = dataclasses.field(default_factory=list)
    _nodes: int = 0

    def encode(self, value: Any, depth: int = 0) -> Any:
        """The JSON form of `value`; its arrays are added to `blobs`.

        **Raises**: `ValueError` where the value is nested too deeply or has too many parts.
        """
        self._nodes += 1
        if depth > _DEPTH_CAP or self._nodes > _NODES_CAP:
            raise ValueError("the value is nested too deeply or has too many parts")
        value = self.leaf(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value)
        for kind, form in _SCALARS:
            if isinstance(value, kind):
                return form(value)
        return self._container(value, depth + 1)

    def _array(self, value: Any) -> Any:
        array = np.asarray(value)
        if array.dtype.name in _EXTENSION_TYPES:
            dtype = array.dtype.name
        elif array.dtype.kind in _PLAIN_KINDS and array.dtype.itemsize:
            dtype = array.dtype.str
        else:
            return {"t": "opaque", "type": f"ndarray of {array.dtype}"}
        self.blobs.append(array.tobytes())
        about = {"dtype": dtype, "shape": list(array.shape), "scalar": isinstance(value, np.generic)}
        return {"t": "array", "b": len(self.blobs) - 1} | about

    def _container(self, value: Any, depth: int) -> Any:
        def sub(part: Any) -> Any:
            return self.encode(part, depth)

        if isinstance(value, dict):
            return {"t": "dict", "items": [[sub(key), sub(part)] for key, part in value.items()]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {
                "t": "node",
                "name": _name(type(value)),
                "fields": [[str(n), sub(v)] for n, v in zip(value._fields, value, strict=True)],
            }
        if isinstance(value, tuple | list):
            return {"t": "tuple" if isinstance(value, tuple) else "list", "items": [sub(part) for part in value]}
        if isinstance(value, Node):
            fields = [[name, sub(part)] for name, part in value.fields.items()]
            return {"t": "node", "name": value.name, "fields": fields}
        if isinstance(value, Key):
            return {"t": "key", "impl": value.impl, "data": self._array(value.data)}
        if isinstance(value, Ref):
            return {"t": "ref", "name": value.name}
        if isinstance(value, Host):
            return {"t": "host", "value": sub(value.value)}
        if isinstance(value, Deleted):
            return {"t": "deleted", "shape": list(value.shape)}
        if isinstance(value, Tracer | Opaque):
            return {"t": type(value).__name__.lower(), "type": value.type_name}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value) if not _is_special(field.name)]
            fields = [[name, sub(getattr(value, name))] for name in names if hasattr(value, name)]
            return {"t": "node", "name": _name(type(value)), "fields": fields}
        return {"t": "opaque", "type": _name(type(value))}


def _encode_int(value: int) -> Any:
    return int(value) if -_JSON_INTEGER <= value < _JSON_INTEGER else {"t": "int", "v": hex(value)[:_TEXT_CAP]}


def _encode_float(value: float) -> Any:
    return float(value) if math.isfinite(value) else {"t": "float", "v": repr(float(value))}


_SCALARS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, _encode_int),
    (float, _encode_float),
    (str, lambda value: str(value)[:_TEXT_CAP].encode("utf-8", "replace").decode()),
    (complex, lambda value: {"t": "complex", "v": [_encode_float(value.real), _encode_float(value.imag)]}),
    (bytes, lambda value: {"t": "bytes", "v": base64.b64encode(value[:_TEXT_CAP]).decode()}),
)


def _name(kind: type) -> str:
    return str(kind.__name__)[:200]


# Decoding -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Decoder:
    """Decodes the values of one message.

    **Arguments**

    - `blobs`: the message's blobs.
    - `array`: what becomes of an array or a NumPy scalar.
    - `special`: what becomes of a `Key`, a `Ref`, a `Node`, and of a `Host` (whose inside is not passed to `array`).
    - `taken`: the blobs that were used. Where it is given, each can be used once: a short message cannot become many long arrays.
    """

    blobs: list[bytes]
    array: Callable[[Any], Any] = lambda value: value
    special: Callable[[Any], Any] = lambda value: value
    taken: set[int] | None = None

    def decode(self, document: Any, depth: int = 0) -> Any:
        """The value that a JSON form stands for.

        **Raises**: `NotAValue` for a form that stands for nothing.
        """
        if depth > _DEPTH_CAP + 2:
            raise NotAValue("nested too deeply")
        if document is None or isinstance(document, bool | int | float | str):
            return document
        if not isinstance(document, dict):
            raise NotAValue("a list without a tag")
        try:
            return self._tagged(document["t"], document, depth + 1)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
            raise NotAValue(f"a form that stands for nothing ({type(error).__name__})") from error

    def _tagged(self, tag: str, form: dict[str, Any], depth: int) -> Any:
        def sub(part: Any) -> Any:
            return self.decode(part, depth)

        if tag == "array":
            return self.array(self._array(form))
        if tag in ("tuple", "list"):
            parts = [sub(part) for part in form["items"]]
            return tuple(parts) if tag == "tuple" else parts
        if tag == "dict":
            return {self._hashable(sub(key)): sub(part) for key, part in form["items"]}
        if tag == "node":
            fields = {str(name): sub(part) for name, part in form["fields"]}
            if any(map(_is_special, fields)):
                raise NotAValue("a field with the name of a method of Python's")
            return self.special(Node(str(form["name"]), fields))
        if tag == "key":
            return self.special(Key(str(form["impl"]), np.asarray(self._array(form["data"]))))
        if tag == "ref":
            return self.special(Ref(str(form["name"])))
        if tag == "host":
            return self.special(Host(Decoder(self.blobs).decode(form["value"], depth)))
        if tag in _LEAVES:
            return _LEAVES[tag](form)
        raise NotAValue("an unknown tag")

    def _array(self, form: dict[str, Any]) -> Any:
        number = form["b"]
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.blobs):
            raise NotAValue("an array without a blob")
        if self.taken is not None:
            if number in self.taken:
                raise NotAValue("two arrays of one blob")
            self.taken.add(number)
        dtype, shape, blob = _dtype(form["dtype"]), _shape(form["shape"]), self.blobs[number]
        if math.prod(shape) * dtype.itemsize != len(blob):
            raise NotAValue("an array whose shape and bytes differ")
        array = np.frombuffer(_sound(blob, dtype), dtype).reshape(shape).copy() if blob else np.zeros(shape, dtype)
        return array[()] if form.get("scalar") and array.ndim == 0 else array

    @staticmethod
    def _hashable(key: Any) -> Hashable:
        hash(key)  # a TypeError here is a form that stands for nothing
        return key  # type: ignore[no-any-return]


@functools.lru_cache(128)
def _dtype(name: str) -> np.dtype[Any]:
    """A type by NumPy's short name (``<f4``) or that of an extension. None has elements of no bytes: they would be as many as one likes."""
    if name in _EXTENSION_TYPES:
        extension: type[np.generic] = getattr(ml_dtypes, name)
        return np.dtype(extension)
    if not _PLAIN_DTYPE.fullmatch(name):
        raise NotAValue("an unknown dtype")
    return np.dtype(name)


def _shape(lengths: Any) -> tuple[int, ...]:
    if not isinstance(lengths, list):
        raise NotAValue("no shape")
    if any(isinstance(length, bool) or not isinstance(length, int) or length < 0 for length in lengths):
        raise NotAValue("a shape that none has")
    return tuple(lengths)


def _sound(blob: bytes, dtype: np.dtype[Any]) -> bytes:
    """The elements, where each has a value: of a bool there are two, and of a character not as many as of 32 bits."""
    if dtype.kind == "b" and not set(blob) <= {0, 1}:
        raise NotAValue("a bool that is neither")
    if dtype.kind == "U" and np.frombuffer(blob, np.dtype("u4").newbyteorder(dtype.byteorder)).max() > _LAST_CHARACTER:
        raise NotAValue("a character that is none")
    return blob


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


_LEAVES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "float": lambda form: float(form["v"]) if form["v"] in ("nan", "inf", "-inf") else _no_value(),
    "int": lambda form: int(form["v"], 16),
    "complex": lambda form: complex(*(part if isinstance(part, float) else float(part["v"]) for part in form["v"])),
    "bytes": lambda form: base64.b64decode(form["v"]),
    "deleted": lambda form: Deleted(_shape(form["shape"])),
    "tracer": lambda form: Tracer(str(form["type"])),
    "opaque": lambda form: Opaque(str(form["type"])),
}


def _no_value() -> Any:
    raise NotAValue("not a number")

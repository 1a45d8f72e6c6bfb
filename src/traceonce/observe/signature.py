"""What a call looked like to JAX: the signature, and nothing that would keep an array alive.

A signature is read when something is traced or compiled, never on a steady call. It holds, for each argument by the name
of its parameter, the structure of the tree and a short record for each leaf; what stands beside the arguments in JAX's
cache key (the function object and the configuration); and static values by description, not by reference, unless they
are plain values.
"""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import types
import weakref
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from traceonce.observe import evidence
from traceonce.observe.records import FunctionKey

SHOWN = 80
"""Characters of a static value's `repr` that are kept."""

Path = tuple[Any, ...]


class ArrayLeaf(NamedTuple):
    """An argument that JAX traces: an array, a number, or a tracer of an outer transformation."""

    shape: tuple[Any, ...]
    dtype: Any
    weak: bool
    committed: bool | None
    sharding: Any
    tracer: str | None


class StaticLeaf(NamedTuple):
    """A value that is part of the cache key: compared as JAX does, by `==` and hash, or by identity.

    `token` is equal for two values exactly when they are the same key, as far as that can be told without keeping them.
    """

    token: Any
    shown: str
    kind: Literal["value", "function", "identity"]


class NoneLeaf(NamedTuple):
    """`None` where another call may have an array. To JAX it is structure, to a reader it is a missing value."""


Leaf = ArrayLeaf | StaticLeaf | NoneLeaf


class Argument(NamedTuple):
    """One argument: how it was passed, its tree, and its leaves in the tree's order."""

    how: Literal["positional", "keyword"]
    structure: Any
    paths: tuple[Path, ...]
    leaves: tuple[Leaf, ...]


class FunctionIdentity(NamedTuple):
    """Which function object was jitted.

    - `serial`: equal for the same object, different for two objects that are alive or were.
    - `kind`: what it is: `function`, `lambda`, `bound method`, `partial`, or the name of its class.
    - `file`, `line`: where its code is.
    """

    serial: int
    kind: str
    file: str | None = None
    line: int | None = None

    @property
    def place(self) -> str | None:
        """Where its code is, in short."""
        return None if self.file is None or self.line is None else evidence.place(self.file, self.line)


class Signature(NamedTuple):
    """All that decides whether a call can reuse what was compiled before, as far as it can be seen from outside.

    - `tracers`: the kinds of tracers of outer transformations among the arguments; empty for a plain call.
    - `ahead`: whether it was made ahead of time, with `.lower` or `.trace`.
    - `context`: JAX's own tuple of the settings that belong to its cache key; `None` where this version has none.
    - `settings`: the configuration by name.
    """

    function: FunctionIdentity
    tracers: tuple[str, ...]
    arguments: dict[str, Argument]
    context: Any
    settings: dict[str, Any]
    ahead: bool = False


# -- identity of objects without keeping them alive

_serials: dict[int, tuple[weakref.ref[Any], int]] = {}
_next_serial = itertools.count(1)


def serial_of(thing: object) -> int:
    """Return a number that is the same for the same object and is never given to another one."""
    known = _serials.get(id(thing))
    if known is not None and known[0]() is thing:
        return known[1]
    serial, address = next(_next_serial), id(thing)
    try:
        # The entry goes when the object does, before its address can be given to another one.
        reference = weakref.ref(thing, lambda _: _serials.pop(address, None))
    except TypeError:
        return -address  # cannot be referred to weakly; an address may be given to another object later
    _serials[address] = (reference, serial)
    return serial


def identity_of(function: Any) -> FunctionIdentity:
    """Describe a callable as JAX's cache sees it: an object."""
    code = evidence.code_of(function)
    return FunctionIdentity(
        serial=serial_of(function),
        kind=_kind_of(function),
        file=None if code is None else code.co_filename,
        line=None if code is None else code.co_firstlineno,
    )


def _kind_of(function: Any) -> str:
    if type(function) is types.FunctionType:
        return "lambda" if function.__name__ == "<lambda>" else "function"
    if isinstance(function, functools.partial):
        return "partial"
    if inspect.ismethod(function):
        return "bound method"
    return type(function).__name__


# -- leaves

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.dtype, type, enum.Enum)
_Tracer = jax.core.Tracer
_NUMBERS = (bool, int, float, complex)


def static_leaf(value: Any, depth: int = 0) -> StaticLeaf:
    """Describe a static value."""
    if callable(value) and not isinstance(value, type):
        identity = identity_of(value)
        name = getattr(value, "__qualname__", None) or type(value).__name__
        place = "" if identity.place is None else f" at {identity.place}"
        return StaticLeaf(("object", identity.serial), f"{identity.kind} {name}{place}", "function")
    if isinstance(value, _PLAIN):
        return StaticLeaf((type(value), value), _shown(value), "value")
    if isinstance(value, (tuple, frozenset)) and depth < 8:
        inner = [static_leaf(item, depth + 1) for item in value]
        collect = tuple if isinstance(value, tuple) else frozenset
        kinds = {item.kind for item in inner}
        kind: Any = "value" if kinds <= {"value"} else "identity" if "identity" in kinds else "function"
        return StaticLeaf((type(value), collect(item.token for item in inner)), _shown(value), kind)
    if getattr(type(value), "__eq__", None) is object.__eq__:
        return StaticLeaf(("object", serial_of(value)), _shown(value), "identity")
    return StaticLeaf((type(value), _hash(value), _shown(value)), _shown(value), "value")


def _hash(value: Any) -> int | None:
    try:
        return hash(value)
    except TypeError:
        return None  # JAX itself will say that the value cannot be hashed


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


_ARRAY = evidence.array_type()
_flatten = evidence.flattener()
_new = tuple.__new__  # a NamedTuple's own constructor is Python, and a leaf is made for each leaf of each program


def array_leaf(value: Any) -> ArrayLeaf | None:
    """Describe a value that JAX traces, or return `None` for one that it does not."""
    cls: Any = type(value)
    if cls is _ARRAY:
        kind = value.aval
        return _new(ArrayLeaf, (kind.shape, kind.dtype, kind.weak_type, value.committed, value.sharding, None))
    try:
        if cls is np.ndarray:
            return _new(ArrayLeaf, (value.shape, _host_dtype(value.dtype, _x64()), False, False, None, None))
        if cls in _NUMBERS:
            return _number_leaf(cls, _x64())
        if isinstance(value, (np.ndarray, np.generic)):
            kind = jax.typeof(value)
            return ArrayLeaf(kind.shape, kind.dtype, bool(getattr(kind, "weak_type", False)), False, None, None)
    except TypeError:
        return None  # an array of strings or objects, for example
    if isinstance(value, _Tracer):
        kind = jax.typeof(value)
        weak = bool(getattr(kind, "weak_type", False))
        return ArrayLeaf(getattr(kind, "shape", ()), _dtype(kind), weak, None, None, cls.__name__)
    if isinstance(value, jax.Array):
        kind = value.aval
        return ArrayLeaf(
            kind.shape, kind.dtype, getattr(kind, "weak_type", False), value.committed, value.sharding, None
        )
    if isinstance(value, jax.ShapeDtypeStruct):
        return ArrayLeaf(value.shape, value.dtype, bool(value.weak_type), None, value.sharding, None)
    return None


def _x64() -> bool:
    """Whether 64-bit types are on: what JAX makes of NumPy's arrays and of numbers depends on it."""
    return bool(jax.config.jax_enable_x64)


@functools.lru_cache(maxsize=256)
def _host_dtype(dtype: Any, _x64: bool) -> Any:
    return jax.typeof(np.zeros((), dtype)).dtype


@functools.lru_cache(maxsize=16)
def _number_leaf(kind: Any, _x64: bool) -> ArrayLeaf:
    shaped: Any = jax.typeof(kind())
    return ArrayLeaf(shaped.shape, shaped.dtype, bool(getattr(shaped, "weak_type", False)), False, None, None)


def _dtype(kind: Any) -> Any:
    return getattr(kind, "dtype", str(kind))


_NONE = NoneLeaf()


def _traced_leaf(value: Any) -> Leaf:
    return _NONE if value is None else array_leaf(value) or static_leaf(value)


def _filtered_leaf(value: Any) -> Leaf:
    """As `eqx.filter_jit` sees it: arrays are traced and all else is static, numbers too."""
    if value is None:
        return _NONE
    return static_leaf(value) if type(value) in _NUMBERS else array_leaf(value) or static_leaf(value)


# -- the whole


@functools.lru_cache(maxsize=1024)
def _names_in(code: types.CodeType) -> tuple[tuple[str, ...], str | None]:
    """Return the names of positional parameters, and that of `*args` if there is one."""
    names = code.co_varnames[: code.co_argcount]
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else None
    return names, rest


def _positional_names(function: Any, count: int) -> list[str]:
    skipped, inner = 0, function
    for _ in range(64):
        if isinstance(inner, functools.partial):
            skipped, inner = skipped + len(inner.args), inner.func
        elif inspect.ismethod(inner):
            skipped, inner = skipped + 1, inner.__func__
        elif (wrapped := getattr(inner, "__wrapped__", None)) is not None and not isinstance(inner, type):
            inner = wrapped
        else:
            break
    code = getattr(inner, "__code__", None)
    if code is None:
        code, skipped = evidence.code_of(inner), skipped + 1
    names, rest = ((), None) if code is None else _names_in(code)
    names = names[skipped:]
    extra = rest or "args"
    return [names[i] if i < len(names) else f"{extra}[{i - len(names)}]" for i in range(count)]


def signature_of(entry: evidence.Entry, key: FunctionKey | None = None) -> Signature:
    """Read the signature of a call, of the function known by `key`.

    Holds no reference to an array. Costs about two microseconds a leaf.
    """
    function, filtered = entry.function, entry.transform == "filter_jit"
    args, kwargs = evidence.bound(entry) if filtered else (entry.args, entry.kwargs)
    names = _positional_names(function, len(args))
    numbers, words = ((), ()) if filtered else evidence.static_parameters(entry)
    describe = _filtered_leaf if filtered else _traced_leaf
    arguments: dict[str, Argument] = {}
    for index, (name, value) in enumerate(zip(names, args, strict=True)):
        static = index in numbers or index - len(names) in numbers
        arguments[name] = _argument("positional", value, static, describe)
    for name, value in kwargs.items():
        arguments[name] = _argument("keyword", value, name in words, describe)
    if filtered and not inspect.isfunction(function):
        arguments["the function itself"] = _argument("positional", function, False, describe)
        identity = FunctionIdentity(0, _kind_of(function))
    else:
        key = evidence.key_of(function) if key is None else key
        identity = FunctionIdentity(serial_of(function), _kind_of(function), key.file, key.line)
    context, settings = _context()
    tracers = {
        leaf.tracer
        for argument in arguments.values()
        for leaf in argument.leaves
        if type(leaf) is ArrayLeaf and leaf.tracer is not None
    }
    return Signature(
        function=identity,
        tracers=tuple(sorted(tracers)) if tracers else (),
        arguments=arguments,
        context=context,
        settings=settings,
        ahead=entry.ahead,
    )


_settings_of: dict[Any, dict[str, Any]] = {}
_latest: tuple[Any, dict[str, Any]] = (None, {})


def _context() -> tuple[Any, dict[str, Any]]:
    """Return JAX's context and the configuration by name, which is copied only when the context is a new one."""
    global _latest
    context = evidence.cache_context()
    if context is None:
        return None, dict(jax.config.values)
    latest = _latest
    if latest[0] == context:  # comparing is cheaper than hashing, which runs Python for some of the parts
        return latest
    settings = _settings_of.get(context)
    if settings is None:
        if len(_settings_of) >= 64:
            _settings_of.clear()
        settings = _settings_of[context] = dict(jax.config.values)
    _latest = context, settings
    return _latest


_LEAF = jax.tree.structure(0)
_ROOT: tuple[Path, ...] = ((),)


def _argument(how: Any, value: Any, static: bool, describe: Callable[[Any], Leaf]) -> Argument:
    if static:
        return Argument(how, None, _ROOT, (static_leaf(value),))
    cls = type(value)
    if cls is _ARRAY or cls is np.ndarray or cls in _NUMBERS:
        return Argument(how, _LEAF, _ROOT, (describe(value),))
    paired, structure = _flatten(value)
    return Argument(how, structure, tuple([path for path, _ in paired]), tuple([describe(leaf) for _, leaf in paired]))

"""Whose compile is it?

JAX's monitoring events carry a function's bare name. Names repeat (`<lambda>`, `step`, a function of your own called
`add` beside `jnp.add`), so the listener also looks at the stack that it is called from: the frame through which the
jitted function was entered holds the function itself. Everything in this package that reads JAX beyond its public
interface is in this module. Each read may fail on another version; the answer is then `None` or the bare name, and
never a guess.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from traceonce.observe.records import FunctionKey

JAX_HOME = os.path.dirname(os.path.abspath(jax.__file__)) + os.sep
_JIT_FILE = os.path.join(JAX_HOME, "_src", "pjit.py")
_EQUINOX_FILE = os.path.join("equinox", "_jit.py")


class Entry(NamedTuple):
    """How a jitted function was entered: the function, its arguments, what jitted it, the jitted function,
    and whether it was entered by `.lower` or `.trace`, ahead of time.

    Holds references to live arrays: use it at once and let it go.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    transform: Literal["jit", "filter_jit", "unknown"]
    jitted: Any = None
    ahead: bool = False


def unwrapped(function: Any) -> Any:
    """Return the plain callable under `jax.jit`, `functools.partial`, bound methods and `functools.wraps`."""
    for _ in range(64):  # a chain of wrappers has an end; a cycle of `__wrapped__` has none
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif (inner := getattr(function, "__wrapped__", None)) is not None and not isinstance(function, type):
            function = inner
        else:
            return function
    return function


def code_of(function: Any) -> CodeType | None:
    """Return the code that runs when `function` is called, or `None` (a builtin, for example)."""
    inner = unwrapped(function)
    code = getattr(inner, "__code__", None)
    if code is None and callable(inner):
        code = getattr(unwrapped(type(inner).__call__), "__code__", None)
    return code if isinstance(code, CodeType) else None


def jax_name(function: Any) -> str:
    """Return the name under which JAX reports `function`."""
    name = getattr(function, "__name__", None)
    if isinstance(name, str):
        return name
    if isinstance(function, functools.partial):
        return jax_name(function.func)
    return "<unnamed function>"


def key_of(function: Any) -> FunctionKey:
    """Return the key of a callable: its name and the place where its code was defined."""
    if type(function) is FunctionType and not function.__dict__:  # the usual case: it wraps nothing
        code: CodeType | None = function.__code__
        name = function.__name__
    else:
        name, code = jax_name(function), code_of(function)
        if name == "<unnamed function>":
            name = type(unwrapped(function)).__name__
    return FunctionKey(name) if code is None else FunctionKey(name, code.co_filename, code.co_firstlineno)


def place(file: str, line: int) -> str:
    """Write where code stands, short and the same on every machine: `train.py:12`, or `line 3 of a cell`."""
    folder, name = os.path.split(file)
    if os.path.basename(folder).startswith("ipykernel_") or name.startswith("<ipython-input"):
        return f"line {line} of a cell"
    return f"{name}:{line}"


@functools.lru_cache(maxsize=4096)
def bare_name(reported: str) -> str:
    """Return `step` for `step` and for `jit(step)`."""
    head, parenthesis, rest = reported.partition("(")
    return rest[:-1] if parenthesis and rest.endswith(")") and head.isidentifier() else reported


def entry_of(frame: FrameType | None, name: str) -> Entry | None:
    """Find, from `frame` outwards, the call of the jitted function that JAX reports as `name`.

    Returns `None` where the stack does not show one: a compile on another thread than the call, the backward pass of
    a function differentiated outside `jit`, or a JAX version with other internals.
    """
    inner: Entry | None = None
    while frame is not None:
        code = frame.f_code
        if code.co_name in _ENTRANCES and code.co_filename == _JIT_FILE:
            if inner is None:
                seen = frame.f_locals
                function = seen["fun"] if "fun" in seen else getattr(seen.get("jit_func"), "_fun", None)
                if function is None or jax_name(function) != name:
                    return None
                ahead = code.co_name != "cache_miss"
                about = seen.get("jit_info", seen.get("jit_func"))
                inner = Entry(function, seen.get("args", ()), seen.get("kwargs", {}), "jit", about, ahead)
                if not _is_equinox(function):
                    return inner
        elif inner is not None and code.co_name == "_call" and code.co_filename.endswith(_EQUINOX_FILE):
            seen = frame.f_locals
            wrapper = seen.get("jit_wrapper")
            function = getattr(wrapper, "__wrapped__", None)
            return (
                inner
                if function is None
                else Entry(function, seen["args"], seen["kwargs"], "filter_jit", wrapper, inner.ahead)
            )
        frame = frame.f_back
    return inner


def entered_ahead(frame: FrameType | None) -> bool | None:
    """Tell whether the innermost jitted function on the stack was entered by `.lower` or `.trace`; `None` without one."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _ENTRANCES and code.co_filename == _JIT_FILE:
            return code.co_name != "cache_miss"
        frame = frame.f_back
    return None


_ENTRANCES = ("cache_miss", "jit_lower", "jit_trace")


def _is_equinox(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return isinstance(code, CodeType) and code.co_filename.endswith(_EQUINOX_FILE)


def entry_of_call(watched: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Entry:
    """Describe a call of a watched callable in the same terms."""
    if (function := getattr(watched, "_fun", None)) is not None:
        return Entry(function, args, kwargs, "jit", watched)
    if type(watched).__module__.startswith("equinox."):
        if (inner := getattr(watched, "__wrapped__", None)) is not None:
            return Entry(inner, args, kwargs, "filter_jit", watched)
        if (bound := getattr(watched, "func", None)) is not None:  # filter_jit on a method: a Partial of equinox
            return entry_of_call(bound, (*watched.args, *args), {**watched.keywords, **kwargs})
    return Entry(getattr(watched, "__wrapped__", watched), args, kwargs, "unknown", watched)


def bound(entry: Entry) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments as `eqx.filter_jit` sorts them: one given by name counts as given by position where it can be."""
    described = getattr(entry.jitted, "_signature", None)
    if not isinstance(described, inspect.Signature):
        return entry.args, entry.kwargs
    try:
        sorted_out = described.bind(*entry.args, **entry.kwargs)
    except TypeError:
        return entry.args, entry.kwargs  # the call does not fit the function: its own error says so
    return sorted_out.args, sorted_out.kwargs


def static_parameters(entry: Entry) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the positions and the names that were declared static for `jax.jit`."""
    about = getattr(entry.jitted, "_jit_info", entry.jitted)
    return tuple(getattr(about, "static_argnums", ())), tuple(getattr(about, "static_argnames", ()))


def array_type() -> type | None:
    """Return the class that JAX's concrete arrays have: comparing classes is cheaper than asking `jax.Array`."""
    return getattr(getattr(jax._src, "array", None), "ArrayImpl", None)


def flattener() -> Callable[[Any], tuple[Sequence[tuple[Any, Any]], Any]]:
    """Return the function that takes a tree apart into (path, leaf) pairs and structure, with `None` as a leaf.

    JAX has a registry for this, in which no Python runs for each node; the public way is several times slower.
    """
    registry = getattr(getattr(jax._src, "tree_util", None), "none_leaf_registry", None)
    quick = getattr(registry, "flatten_with_path", None)
    return _flattened if quick is None else quick


def _flattened(tree: Any) -> tuple[Sequence[tuple[Any, Any]], Any]:
    paired, structure = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is None)
    return paired, structure


def cache_context() -> Any:
    """Return JAX's tuple of the settings that belong to its cache key, or `None` where this version has no such tuple."""
    read = getattr(jax._src.config, "trace_context", None)
    return None if read is None else read()


def context_names() -> tuple[str, ...]:
    """Return the names of the settings in `cache_context`, in its order; empty where this version does not tell."""
    read = getattr(jax._src.config, "trace_context_names", None)
    return () if read is None else tuple(read())


MISS_LOG = "jax._src.interpreters.partial_eval"
"""The logger to which JAX writes why a trace was not in its cache, where `jax_explain_cache_misses` is on."""


class Miss(NamedTuple):
    """What JAX wrote of one trace: of which function, where that was defined, and what it says of the cause."""

    name: str
    place: str
    says: str


_MISSED = re.compile(
    r"TRACING CACHE MISS at [^\n]*\n  (?:never seen function:\n    (?P<new>.+?) id=\d+|for (?P<old>.+?))"
    r"(?: defined at (?P<place>[^\n]*))?(?:\n(?P<rest>.*))?\Z",
    re.DOTALL,
)


def miss_of(text: str) -> Miss | None:
    """Read a message of that logger; `None` for one that is no such message, or is written in another way."""
    found = _MISSED.match(text)
    if found is None:
        return None
    if found["new"]:
        # What may follow is JAX's guess ("maybe the function is being re-defined"), made from the line of the call.
        return Miss(found["new"], found["place"] or "", "never seen function")
    rest = (line.strip() for line in (found["rest"] or "").splitlines())
    return Miss(found["old"], found["place"] or "", "\n".join(line for line in rest if line))


def is_of(miss: Miss, key: FunctionKey) -> bool:
    """Tell whether a message is about a function. Equinox's wrapper stands in for what it wraps."""
    if miss.name != key.name:
        return False
    return key.file is None or miss.place == key.location or _EQUINOX_FILE in miss.place


def in_equinox(key: FunctionKey) -> bool:
    """Tell whether this is the wrapper of `eqx.filter_jit`, and not the function that it wraps."""
    return key.file is not None and key.file.endswith(_EQUINOX_FILE)


def traced_source(frame: FrameType | None, name: str) -> FunctionKey | None:
    """Find where the program being lowered or compiled was defined, from the debug information that it carries."""
    for _ in range(16):
        if frame is None:
            return None
        names = frame.f_code.co_varnames
        if ("closed_jaxpr" in names or "jaxpr" in names) and frame.f_code.co_filename.startswith(JAX_HOME):
            seen = frame.f_locals  # builds a dictionary, so only where it has what is looked for
            program = seen.get("closed_jaxpr") or seen.get("jaxpr")
            described = getattr(getattr(program, "debug_info", None), "func_src_info", None)
            if isinstance(described, str):
                found, at, place = described.partition(" at ")
                file, colon, line = place.rpartition(":")
                if found == name and at and colon and line.isdecimal():
                    return FunctionKey(name, file, int(line))
        frame = frame.f_back
    return None


def is_jax(key: FunctionKey) -> bool:
    """Tell whether a function is one of JAX's own, such as what `jnp.ones` compiles."""
    if key.file is not None:
        return key.file.startswith(JAX_HOME)
    return key.name in _names_that_jax_compiles(len(sys.modules))


@functools.lru_cache(maxsize=1)
def _names_that_jax_compiles(_modules: int) -> frozenset[str]:
    """Names of JAX's own jitted functions and primitives: the fallback where no place of definition is known."""
    jitted = type(jax.jit(lambda: None))
    names = set()
    for module_name, module in list(sys.modules.items()):
        if module_name == "jax" or module_name.startswith("jax."):
            for value in list(vars(module).values()):
                if isinstance(value, jitted):
                    names.add(jax_name(value))
                elif type(value).__name__ == "Primitive":
                    names.add(str(value))
    return frozenset(names)


# Reads ----------------------------------------------------------------------------------------------------------------


class Reads(NamedTuple):
    """Through what JAX's arrays come to the host: the array's type, the getter of its value, its buffer; and the places, as
    (owner, name), of what waits for several arrays at once and of the scope around a `device_get`."""

    array: Any
    value: Callable[[Any], Any]
    buffer: Callable[[Any, int], memoryview]
    waiting: tuple[tuple[Any, str], ...]
    fetching: tuple[tuple[Any, str], ...]


def reading_methods() -> Reads | None:
    """Return how this JAX reads its arrays; `None` where it is not in the way known."""
    kind = array_type()
    value, buffer = getattr(kind, "_value", None), getattr(kind, "__buffer__", None)
    if kind is None or buffer is None or not isinstance(value, property) or value.fget is None:
        return None
    waiting = ((getattr(_at("api"), "xc", object), "batched_block_until_ready"),)
    fetching = ((_at("config"), "explicit_device_get_scope"),)
    if not {"_value", "__buffer__", "block_until_ready"} <= vars(kind).keys():
        return None
    if not all(name in vars(owner) for owner, name in (*waiting, *fetching)):
        return None
    return Reads(kind, value.fget, buffer, waiting, fetching)


def _at(name: str) -> Any:
    return sys.modules.get(f"jax._src.{name}", object)


_READERS = {
    "__float__": "float()",
    "__int__": "int()",
    "__complex__": "complex()",
    "__bool__": "bool() or if",
    "__index__": "as an index",
    "__contains__": "in",
    "__repr__": "print",
    "__str__": "print",
    "__format__": "print",
    "__array__": "NumPy",
    "__reduce__": "pickle",
    "_item": ".item()",
    "item": ".item()",
    "tolist": ".tolist()",
    "_device_get": "device_get",
}
"""By the name of JAX's function that asks for an array's value: what the user wrote."""


def reading(frame: FrameType | None) -> str | None:
    """Tell what asks for an array's value: `float()`, `print` …; `None` where JAX wants it for its own ends."""
    for _ in range(4):
        if frame is None or not frame.f_code.co_filename.startswith(JAX_HOME):
            return None
        if (how := _READERS.get(frame.f_code.co_name)) is not None:
            return how
        frame = frame.f_back
    return None


_NUMPY_HOME = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_OWN_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_CALLBACK_FILES = tuple(os.path.join(JAX_HOME, "_src", name) for name in ("callback.py", "debugging.py"))


def asked_from(frame: FrameType | None) -> tuple[str, int] | None:
    """Return file and line of the innermost code outside of JAX, NumPy and this package; `None` where a callback of JAX's asks."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file in _CALLBACK_FILES:
            return None
        if not file.startswith((JAX_HOME, _NUMPY_HOME, _OWN_HOME, "<__array_function__")):
            return file, frame.f_lineno
        frame = frame.f_back
    return None

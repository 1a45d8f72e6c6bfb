"""What differs between two signatures, by path."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import jax
from jax.sharding import AxisType, NamedSharding

from traceonce.observe import evidence
from traceonce.observe.signature import (
    SHOWN,
    Argument,
    ArrayLeaf,
    Leaf,
    NoneLeaf,
    Path,
    Signature,
    StaticLeaf,
    static_leaf,
)

Cause = Literal[
    "shape",
    "dtype",
    "weak",
    "committed",
    "sharding",
    "static",
    "structure",
    "leaf",
    "keyword",
    "function",
    "config",
    "transform",
]

RETRACES = frozenset(
    ("shape", "dtype", "weak", "static", "structure", "leaf", "keyword", "function", "config", "transform")
)
"""Causes that always make JAX run the Python function again. The others do where the array's type changed with them."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two calls.

    - `cause`: the kind of difference, in one word.
    - `path`: which argument, and where in it: `batch['x']`; `""` for what stands beside the arguments.
    - `old`, `new`: the two sides, as a reader would write them.
    - `in_type`: whether a layout changed that is part of the array's type: another mesh, or another place along explicit axes.
    """

    cause: Cause
    path: str
    old: str
    new: str
    in_type: bool = False

    @property
    def retraces(self) -> bool:
        """Whether this change makes JAX run the Python function again, not only compile."""
        return self.in_type or self.cause in RETRACES

    def __str__(self) -> str:
        where = f" {self.path}:" if self.path else ":"
        return f"{self.cause}{where} {self.old} -> {self.new}"


def shown(leaf: Leaf | None) -> str:
    """Write a leaf in JAX's own short form: `float32[3,2]`, with `weak` where it is weakly typed."""
    if leaf is None:
        return "absent"
    if isinstance(leaf, NoneLeaf):
        return "None"
    if isinstance(leaf, StaticLeaf):
        return leaf.shown
    name = getattr(leaf.dtype, "name", str(leaf.dtype))
    return f"{'weak ' if leaf.weak else ''}{name}[{','.join(map(str, leaf.shape))}]"


def distance(old: Signature, new: Signature) -> int:
    """Count roughly how far two signatures are apart: for choosing the nearest, cheaply."""
    apart: int = (old.function != new.function) + (old.context != new.context) + (old.tracers != new.tracers)
    for name in old.arguments.keys() | new.arguments.keys():
        before, after = old.arguments.get(name), new.arguments.get(name)
        if before is None or after is None:
            apart += 2
        elif _alike(before, after):
            continue
        elif before.structure != after.structure:
            apart += 2 + abs(len(before.leaves) - len(after.leaves))
        else:
            apart += (before.how != after.how) + sum(
                _apart(a, b) for a, b in zip(before.leaves, after.leaves, strict=True) if a != b
            )
    return apart


def _alike(old: Argument, new: Argument) -> bool:
    """Whether two arguments are equal. The paths of equal structures are equal, and dear to compare."""
    return old.how == new.how and old.structure == new.structure and old.leaves == new.leaves


def _apart(old: Leaf, new: Leaf) -> int:
    weakened = isinstance(old, ArrayLeaf) and isinstance(new, ArrayLeaf) and old.weak != new.weak
    return max(1, len(list(_leaf_changes("", old, new)))) + weakened


def changes(old: Signature, new: Signature) -> tuple[Change, ...]:
    """Return every difference between two signatures that can make JAX trace or compile again.

    The order is that of the arguments, then the function, the transformation and the configuration.
    """
    found: list[Change] = []
    for name in dict.fromkeys((*old.arguments, *new.arguments)):
        before, after = old.arguments.get(name), new.arguments.get(name)
        if before is None or after is None:
            found.append(Change("leaf", name, _whole(before), _whole(after)))
        elif not _alike(before, after):
            found.extend(_argument_changes(name, before, after))
    if old.function != new.function:
        found.append(_function_change(old, new))
    if old.tracers != new.tracers:
        found.append(Change("transform", "", _transformed(old), _transformed(new)))
    found.extend(_config_changes(old, new))
    return tuple(found)


_TRACERS = {
    "JVPTracer": "under jax.jvp or jax.grad",
    "LinearizeTracer": "under jax.grad",
    "BatchTracer": "under jax.vmap",
    "DynamicJaxprTracer": "inside another traced function",
}


def _transformed(signature: Signature) -> str:
    ways = [_TRACERS.get(name, f"with a {name}") for name in signature.tracers]
    return ", ".join(ways) or "called directly"


def _function_change(old: Signature, new: Signature) -> Change:
    before, after = old.function, new.function
    if (before.file, before.line) == (after.file, after.line):
        where = "" if after.place is None else f" at {after.place}"
        return Change("function", "", f"{before.kind}{where}", f"another {after.kind} object from the same place")
    return Change(
        "function", "", f"{before.kind} at {before.place or 'an unknown place'}", f"{after.kind} at {after.place}"
    )


def _config_changes(old: Signature, new: Signature) -> Iterator[Change]:
    if old.context is not None and old.context == new.context:
        return
    named = [
        Change("config", name, repr(old.settings.get(name)), repr(value))
        for name, value in new.settings.items()
        if old.settings.get(name) != value
    ]
    yield from named
    if named or old.context is None or new.context is None:
        return
    names = evidence.context_names()
    if len(names) == len(old.context) == len(new.context):
        for name, before, after in zip(names, old.context, new.context, strict=True):
            if before != after:
                yield Change("config", name, _short(before), _short(after))
    else:
        yield Change("config", "", "one context", "another, in a part that JAX has no name for (a mesh, for example)")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def _argument_changes(name: str, old: Argument, new: Argument) -> Iterator[Change]:
    if old.how != new.how:
        yield Change("keyword", name, f"passed as {old.how}", f"passed as {new.how}")
    if (old.structure is None) != (new.structure is None):
        roles = ["static" if side.structure is None else "traced" for side in (old, new)]
        yield Change("static", name, roles[0], roles[1])
    elif old.structure == new.structure:
        for path, before, after in zip(new.paths, old.leaves, new.leaves, strict=True):
            if before != after:
                yield from _leaf_changes(_written(name, path), before, after)
    else:
        yield from _tree_changes(name, (), old.structure, new.structure, _Leaves(old), _Leaves(new))


def _leaf_changes(path: str, old: Leaf, new: Leaf) -> Iterator[Change]:
    if isinstance(old, ArrayLeaf) and isinstance(new, ArrayLeaf):
        if old.shape != new.shape:
            yield Change("shape", path, shown(old), shown(new))
        if old.dtype != new.dtype:
            yield Change("dtype", path, shown(old), shown(new))
        elif old.weak != new.weak:
            yield Change("weak", path, _strength(old), _strength(new))
        if old.committed is not None and new.committed is not None:
            in_type = _layout_in_type(old) != _layout_in_type(new)
            if old.committed != new.committed:
                yield Change("committed", path, _placed(old), _placed(new), in_type)
            elif old.sharding != new.sharding and None not in (old.sharding, new.sharding):
                before, after = _where(old.sharding), _where(new.sharding)
                if before == after:
                    before, after = str(old.sharding), str(new.sharding)
                yield Change("sharding", path, before, after, in_type)
    elif isinstance(old, StaticLeaf) and isinstance(new, StaticLeaf):
        if old.token != new.token:
            yield _static_change(path, old, new)
    elif isinstance(old, NoneLeaf) or isinstance(new, NoneLeaf):
        yield Change("leaf", path, shown(old), shown(new))
    else:
        yield Change("static", path, f"{_role(old)} {shown(old)}", f"{_role(new)} {shown(new)}")


def _role(leaf: Leaf) -> str:
    return "traced" if isinstance(leaf, ArrayLeaf) else "static"


def _strength(leaf: ArrayLeaf) -> str:
    return f"{shown(leaf)}" if leaf.weak else f"strong {shown(leaf)}"


def _placed(leaf: ArrayLeaf) -> str:
    return f"committed to {_where(leaf.sharding)}" if leaf.committed else "uncommitted"


def _where(sharding: Any) -> str:
    """A device's name, or `P('data') on (data=8)`."""
    if isinstance(sharding, NamedSharding):
        sizes = ", ".join(f"{axis}={size}" for axis, size in sharding.mesh.shape.items())
        return f"P({', '.join(map(repr, sharding.spec))}) on ({sizes})"
    devices = sorted(map(str, getattr(sharding, "device_set", ())))
    return devices[0] if len(devices) == 1 else str(sharding)


def _layout_in_type(leaf: ArrayLeaf) -> Any:
    """What `jax.typeof` knows of an array's layout: its mesh, and where it lies along explicit axes."""
    if not isinstance(leaf.sharding, NamedSharding):
        return None
    mesh = leaf.sharding.mesh
    explicit = {name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind == AxisType.Explicit}
    parts = [(part,) if isinstance(part, str) else tuple(part or ()) for part in leaf.sharding.spec]
    places = [tuple(name for name in part if name in explicit) for part in parts]
    while places and not places[-1]:
        places.pop()
    return getattr(mesh, "abstract_mesh", mesh), tuple(places)


def _static_change(path: str, old: StaticLeaf, new: StaticLeaf) -> Change:
    cause: Cause = "function" if "function" in (old.kind, new.kind) else "static"
    if old.shown != new.shown:
        return Change(cause, path, old.shown, new.shown)
    what = "another object, compared by identity" if new.kind != "value" else "another value that prints alike"
    return Change(cause, path, old.shown, f"{new.shown} ({what})")


def _whole(argument: Argument | None) -> str:
    if argument is None:
        return "absent"
    if len(argument.leaves) == 1:
        return shown(argument.leaves[0])
    return f"a tree of {len(argument.leaves)} leaves"


# -- trees of different structure


class _Leaves:
    """Walks the leaves of an argument in step with its structure."""

    def __init__(self, argument: Argument) -> None:
        self.paths, self.leaves, self.at = argument.paths, argument.leaves, 0

    def take(self, count: int) -> list[tuple[Path, Leaf]]:
        start, self.at = self.at, self.at + count
        return list(zip(self.paths[start : self.at], self.leaves[start : self.at], strict=True))


def _tree_changes(name: str, at: Path, old: Any, new: Any, left: _Leaves, right: _Leaves) -> Iterator[Change]:
    """Walk two structures down to where they part. `at` is the path of this node."""
    if old == new:
        for (_, before), (path, after) in zip(left.take(old.num_leaves), right.take(new.num_leaves), strict=True):
            if before != after:
                yield from _leaf_changes(_written(name, path), before, after)
        return
    before, after = old.node_data(), new.node_data()
    if before is None or after is None or before[0] is not after[0]:
        yield Change("structure", _written(name, at), _node(old, left), _node(new, right))
        return
    old_keys, new_keys = _keys(old, left, at), _keys(new, right, at)
    other_keys = hasattr(before[0], "keys") and set(old_keys) != set(new_keys)
    if before[0] is not dict and not other_keys and not _same(before[1], after[1]):
        yield from _metadata_changes(_written(name, at), before, after)
    olds = dict(zip(old_keys, old.children(), strict=True))
    news = dict(zip(new_keys, new.children(), strict=True))
    # Both walks go in the order of their own structure, so take each child's leaves first and compare afterwards.
    old_parts = {key: _part(left, child) for key, child in olds.items()}
    new_parts = {key: _part(right, child) for key, child in news.items()}
    for key in dict.fromkeys((*olds, *news)):
        path = (*at, key)
        if key not in news:
            yield Change("leaf", _written(name, path), _whole(old_parts[key]), "absent")
        elif key not in olds:
            yield Change("leaf", _written(name, path), "absent", _whole(new_parts[key]))
        else:
            yield from _tree_changes(name, path, olds[key], news[key], _Leaves(old_parts[key]), _Leaves(new_parts[key]))


def _part(leaves: _Leaves, structure: Any) -> Argument:
    taken = leaves.take(structure.num_leaves)
    return Argument("positional", structure, tuple(p for p, _ in taken), tuple(leaf for _, leaf in taken))


def _keys(structure: Any, leaves: _Leaves, at: Path) -> list[Any]:
    """Return the key of each child: from the paths of its leaves, or by position for a child without leaves."""
    kind, data = structure.node_data()
    if kind is dict:
        return [jax.tree_util.DictKey(key) for key in data]
    fields = _field_names(kind, static=False)
    keys: list[Any] = []
    offset = leaves.at
    for index, child in enumerate(structure.children()):
        if child.num_leaves:
            keys.append(leaves.paths[offset][len(at)])
        elif index < len(fields):
            keys.append(jax.tree_util.GetAttrKey(fields[index]))
        else:
            keys.append(jax.tree_util.SequenceKey(index))
        offset += child.num_leaves
    return keys


def _node(structure: Any, leaves: _Leaves) -> str:
    data = structure.node_data()
    if data is None:
        return shown(leaves.leaves[leaves.at])
    if data[0] is type(None):
        return "None"
    count = structure.num_leaves
    return f"{data[0].__name__} of {count} {'leaf' if count == 1 else 'leaves'}"


def _same(old: Any, new: Any) -> bool:
    return bool(static_leaf(old).token == static_leaf(new).token)


def _field_names(kind: type, *, static: bool) -> list[str]:
    """Return the fields of a dataclass that are static, or those that are not."""
    if not dataclasses.is_dataclass(kind):
        return []
    return [field.name for field in dataclasses.fields(kind) if bool(field.metadata.get("static")) is static]


def _metadata_changes(path: str, old: Any, new: Any) -> Iterator[Change]:
    """Name the static field that differs, where the node is a dataclass; else show both."""
    kind, names = old[0], _field_names(old[0], static=True)
    before, after = ((data if isinstance(data, tuple) else (data,)) for data in (old[1], new[1]))
    if names and len(before) == len(after) >= len(names):
        pairs = list(zip(names, before[-len(names) :], after[-len(names) :], strict=True))
        differing = [(field, a, b) for field, a, b in pairs if not _same(a, b)]
        for field, a, b in differing:
            yield _static_change(f"{path}.{field}", static_leaf(a), static_leaf(b))
        if differing:
            return
    cause: Cause = "structure" if hasattr(kind, "keys") else "static"
    yield Change(cause, path, f"{kind.__name__} with {old[1]!r}"[:120], f"{kind.__name__} with {new[1]!r}"[:120])


def _written(name: str, path: Path) -> str:
    return f"{name}{jax.tree_util.keystr(path)}"

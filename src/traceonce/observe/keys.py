"""Which random keys a computation uses, and how often each: seen where they are used, not guessed from equal draws.

A watched key has an implementation of its own, which computes what Threefry computes and writes down each use. Everything
derived from a watched key is watched, inside `jit`, `vmap`, `grad`, `scan` and across functions that know nothing of it.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import random as extended

from traceonce.errors import TraceOnceError

Words = tuple[int, ...]
"""The data of one key: two words of 32 bits."""


@dataclass(frozen=True, slots=True)
class KeyUse:
    """One use of one key.

    - `kind`: `"draw"` for random bits, `"split"`, or `"fold_in"`.
    - `key`: the key's data, as `jax.random.key_data` gives it.
    - `data`: what was folded in; `None` for the other kinds.
    """

    kind: Literal["draw", "split", "fold_in"]
    key: Words
    data: int | None = None


class KeyUses:
    """What was done with watched keys in a block. Made by `key_uses()`.

    **Example**

    ```python
    with key_uses() as seen:
        step(params, seen.watch(jax.random.key(7)))
    print(seen)
    seen.reused
    ```
    """

    def __init__(self) -> None:
        self._uses: Counter[KeyUse] = Counter()
        self._lock = threading.Lock()
        self._state = "new"

    def __enter__(self) -> KeyUses:
        if self._state != "new":
            raise TraceOnceError(
                "This record was already used for a block: open a new one with key_uses().", exit_code=2
            )
        self._state = "open"
        _open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._settle()
        self._state = "closed"
        _open.remove(self)

    @staticmethod
    def watch(key: jax.Array) -> jax.Array:
        """Return a key (or an array of keys) that draws what `key` draws and writes down its uses.

        `key` is typed (`jax.random.key`) or raw (`jax.random.PRNGKey`), of the implementation `threefry2x32`.

        **Raises**: `TraceOnceError` for a key of another implementation, and for what is no key.
        """
        typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        if typed and str(jax.random.key_impl(key)) != "threefry2x32":
            raise TraceOnceError(
                f"Only keys of the implementation threefry2x32 can be watched, and this one is {jax.random.key_impl(key)}.",
                exit_code=2,
            )
        data = jax.random.key_data(key) if typed else key
        if not isinstance(data, jax.Array) or data.dtype != jnp.uint32 or data.shape[-1:] != (2,):
            raise TraceOnceError(f"watch takes a random key, and this is a {type(key).__name__}.", exit_code=2)
        return jax.random.wrap_key_data(data, impl=_watched)

    @property
    def uses(self) -> dict[KeyUse, int]:
        """How often each use happened, in the order of its first time. Waits for what is running."""
        self._settle()
        with self._lock:
            return dict(self._uses)

    @property
    def draws(self) -> dict[Words, int]:
        """How often random bits were drawn from each key."""
        return {use.key: times for use, times in self.uses.items() if use.kind == "draw"}

    @property
    def reused(self) -> dict[Words, int]:
        """The keys that were used up more than once, and how often.

        Drawing and splitting use a key up. `fold_in` does not, and counts where the same number is folded into the same key
        again, because that gives the same child. `jax.checkpoint` replays its draws, which shows here too.
        """
        spent: Counter[Words] = Counter()
        again: Counter[Words] = Counter()
        for use, times in self.uses.items():
            if use.kind == "fold_in":
                again[use.key] = max(again[use.key], times)
            else:
                spent[use.key] += times
        both = {key: max(spent[key], again[key]) for key in (*spent, *again)}
        return {key: times for key, times in both.items() if times > 1}

    def add(self, use: KeyUse) -> None:
        """Count a use. Runs on whichever thread XLA calls back on."""
        with self._lock:
            self._uses[use] += 1

    def _settle(self) -> None:
        if self._state == "open":
            jax.effects_barrier()

    def __str__(self) -> str:
        uses = self.uses
        if not uses:
            return "no watched key was used"
        lines = ["key                       use              times"]
        for use, times in uses.items():
            what = use.kind if use.data is None else f"{use.kind} {use.data}"
            lines.append(f"{_hex(use.key):<24}  {what:<15}  {times:>5}")
        return "\n".join(lines)

    __repr__ = __str__


def key_uses() -> KeyUses:
    """Count what is done with the keys that are given to its `watch`, in a ``with`` block."""
    return KeyUses()


def _hex(key: Words) -> str:
    return " ".join(f"{word:08x}" for word in key)


# The implementation ---------------------------------------------------------------------------------------------------

_open: list[KeyUses] = []
_threefry = extended.threefry_prng_impl


def _note(kind: Literal["draw", "split", "fold_in"], key: Any, *data: Any) -> None:
    """Have a use written down whenever the computation runs, under every transformation."""

    def write(words: Any, *folded: Any) -> None:
        use = KeyUse(kind, tuple(int(word) for word in np.asarray(words)), *(int(number) for number in folded))
        for record in tuple(_open):
            record.add(use)

    jax.debug.callback(write, key, *data)


def _split(key: Any, shape: Any) -> Any:
    _note("split", key)
    return _threefry.split(key, shape)


def _random_bits(key: Any, bit_width: int, shape: Any) -> Any:
    _note("draw", key)
    return _threefry.random_bits(key, bit_width, shape)


def _fold_in(key: Any, data: Any) -> Any:
    _note("fold_in", key, data)
    return _threefry.fold_in(key, data)


_watched = extended.define_prng_impl(
    key_shape=_threefry.key_shape,
    seed=_threefry.seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="threefry2x32, watched",
    tag=_threefry.tag,
)

"""A student's function as a program, in two halves: the child exports it, a child without student code carries it out.

What leaves the first half is StableHLO in the form of `jax.export`, with nothing of Python in it. What the second half says
of it (values, shapes, planned bytes, operations) is therefore out of reach of the code that made it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from traceonce.observe.planning import compiler_options


def split(args: Any, kwargs: Any) -> tuple[list[Any], list[bool], Any]:
    """The leaves of a call's arguments, which of them are data (the rest is fixed in the program), and their tree."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    return leaves, [_is_data(leaf) for leaf in leaves], tree


def _is_data(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float | complex)


def _as_sent(leaf: Any) -> Any:
    """A typed key as the numbers that it consists of; anything else as it is."""
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def export(function: Any, args: Any, kwargs: Any) -> tuple[bytes, Any]:
    """The program of a call: serialized StableHLO from the data leaves to the leaves of the result, and the result's tree.

    In the tree, each leaf is its number; a leaf that is no array, and so not in the program, stands as it is.

    **Raises**: whatever tracing the function raises; `ValueError` for a program that cannot be exported.
    """
    leaves, is_data, tree = split(args, kwargs)
    keys = [jax.random.key_impl(leaf) if _as_sent(leaf) is not leaf else None for leaf in leaves]
    shape: list[Any] = []

    def program(*data: Any) -> list[Any]:
        given = iter(data)
        whole = [
            leaf if not fits else next(given) if impl is None else jax.random.wrap_key_data(next(given), impl=impl)
            for leaf, fits, impl in zip(leaves, is_data, keys, strict=True)
        ]
        again, words = jax.tree.unflatten(tree, whole)
        result = function(*again, **words)
        parts, result_tree = jax.tree.flatten(result)
        arrays = [part for part in parts if _is_data(part)]
        numbers = iter(range(len(arrays)))
        shape[:] = [jax.tree.unflatten(result_tree, [next(numbers) if _is_data(part) else part for part in parts])]
        return [_as_sent(part) for part in arrays]

    data = [_as_sent(leaf) for leaf, fits in zip(leaves, is_data, strict=True) if fits]
    exported = jax.export.export(jax.jit(program), platforms=("cpu",))(*data)
    return bytes(exported.serialize()), shape[0]


def carry_out(program: bytes, args: Any, kwargs: Any, run: bool) -> dict[str, Any]:
    """Compile a serialized program for this call's data, and run it where `run` says so.

    Gives `leaves` (empty where it is not run), `shapes`, `operations` (those of StableHLO in its text) and `memory`, the bytes of
    `arguments`, `outputs` and `temporaries` that XLA plans, with `complete` as `observe.plan` has it.

    **Raises**: `ValueError` for bytes that are no program.
    """
    leaves, is_data, _ = split(args, kwargs)
    data = [_as_sent(leaf) for leaf, fits in zip(leaves, is_data, strict=True) if fits]
    exported = jax.export.deserialize(bytearray(program))
    options, complete = compiler_options("cpu")
    compiled = jax.jit(exported.call).lower(*data).compile(compiler_options=options)
    planned = compiled.memory_analysis()
    return {
        "leaves": [np.asarray(leaf) for leaf in compiled(*data)] if run else [],
        "shapes": [tuple(aval.shape) for aval in exported.out_avals],
        "operations": exported.mlir_module().count("stablehlo."),
        "memory": {
            "arguments": int(planned.argument_size_in_bytes),
            "outputs": int(planned.output_size_in_bytes),
            "temporaries": int(planned.temp_size_in_bytes),
            "complete": complete,
        },
    }

"""What a process can do before it is forked so that each child has less to do. It starts no thread and no backend.

None of it changes a result. What reaches into JAX's own modules is looked for first: in a JAX that has moved it, a child pays
for it again, and grades the same.
"""

import gc
import importlib
import importlib.util
from importlib.metadata import entry_points
from typing import Any

import jax
import jax.numpy as jnp

# A child lives for seconds and makes few cycles: the default looks at them a hundred times while a notebook is traced.
_COLLECT_AFTER = (100_000, 50, 100)
_MANY = 10**9


def warm_up() -> None:
    """Trace what labs trace, find plugins, make the compiler's context; then leave the collector little to do."""
    _trace_what_labs_trace()
    _find_plugins()
    _make_context()
    gc.set_threshold(*_COLLECT_AFTER)


def _trace_what_labs_trace() -> None:
    """Have the modules that JAX imports late imported, its caches of traces filled, and its bytecode specialised."""

    def loss(params: Any, rows: Any, targets: Any) -> Any:
        predictions = jax.vmap(lambda p, row: jnp.dot(p["w"], row) + p["b"], in_axes=(None, 0))(params, rows)
        errors = rows @ params["w"] + params["b"] - targets
        return jnp.mean((predictions - targets) ** 2) + jnp.mean(jnp.where(errors > 0, errors, jnp.sqrt(1 + errors**2)))

    def step(params: Any, rows: Any, targets: Any, lr: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(params, rows, targets)
        key = jax.random.fold_in(jax.random.key(0), 1)
        noise = jax.random.bernoulli(jax.random.split(key)[0], 0.5, targets.shape)
        total, _ = jax.lax.scan(lambda carry, row: (carry + row.sum(), None), 0.0, rows)
        moved = jax.tree.map(lambda leaf, slope: leaf - lr * slope, params, gradient)
        return moved, value + total, jnp.arange(3).at[1].set(2), noise

    array = jax.ShapeDtypeStruct
    params = {"w": array((2,), jnp.float32), "b": array((), jnp.float32)}
    jax.jit(step).trace(params, array((4, 2), jnp.float32), array((4,), jnp.float32), 0.1)


def _find_plugins() -> None:
    """Have JAX read the metadata of all installed packages, which takes a child 50 ms. Not where it would load a plugin."""
    bridge = importlib.import_module("jax._src.xla_bridge")
    find = getattr(bridge, "_discover_and_register_pjrt_plugins", None)
    if find is not None and not entry_points(group="jax_plugins") and importlib.util.find_spec("jax_plugins") is None:
        find()


def _make_context() -> None:
    """Make the compiler's context, and have it used for more than ten programs: a new one takes 7 ms."""
    lowering = importlib.import_module("jax._src.interpreters.mlir")
    make = getattr(lowering, "make_ir_context", None)
    keep = getattr(getattr(lowering, "_thread_local_context", None), "set_local", None)
    if make is not None and keep is not None:
        keep((make(), -_MANY))

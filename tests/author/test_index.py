"""The index's table of errors quotes what JAX says. Links, titles and minutes are checked by the gates."""

import re

import jax
import jax.numpy as jnp
import pytest

from traceonce.author.course import find_course

KEPT = []


def leak():
    jax.jit(lambda x: KEPT.append(x))(1.0)
    return KEPT[-1] + 1


def use_donated():
    array = jnp.zeros(3)
    jax.jit(lambda x: x + 1, donate_argnums=0)(array)
    return array + 1


def assign():
    jnp.zeros(2)[0] = 1


def reuse():
    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        return jax.random.normal(key), jax.random.normal(key)


class Unregistered:
    pass


RAISED = {
    "UnexpectedTracerError": leak,
    "TracerBoolConversionError": lambda: jax.jit(lambda x: 1 if x > 0 else 0)(1.0),
    "ConcretizationTypeError": lambda: jax.jit(lambda x: float(x))(1.0),
    "NonConcreteBooleanIndexError": lambda: jax.jit(lambda m: jnp.arange(2)[m])(jnp.array([True, False])),
    "Shapes must be 1D sequences of concrete values": lambda: jax.jit(lambda n: jnp.zeros(n))(3),
    "Non-hashable static arguments are not supported": lambda: jax.jit(lambda v: v, static_argnums=0)(jnp.ones(2)),
    "JAX arrays are immutable": assign,
    "Array has been deleted": use_donated,
    "Gradient only defined for scalar-output functions": lambda: jax.grad(lambda x: x**2)(jnp.ones(1)),
    "vmap got inconsistent sizes": lambda: jax.vmap(lambda a, b: a)(jnp.ones(2), jnp.ones(3)),
    "pytree structure error": lambda: jax.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}),
    "as an abstract array": lambda: jax.jit(lambda c: 1)(Unregistered()),
    "Reverse-mode differentiation does not work for lax.while_loop": lambda: jax.grad(
        lambda x: jax.lax.while_loop(lambda c: c < 3, lambda c: c * 2, x)
    )(1.0),
    "carry input and carry output must have equal types": lambda: jax.lax.scan(
        lambda c, _: (jnp.append(c, 1.0), None), jnp.zeros(1), length=3
    ),
    "KeyReuseError": reuse,
}


def quoted_errors() -> list[str]:
    """The first piece of code in each row of the table *Errors that JAX raises*."""
    (index,) = (pair for pair in find_course().pairs if pair.kind == "index")
    (table,) = (cell.source for cell in index.cells if cell.source.startswith("### Errors that JAX raises"))
    return re.findall(r"^\| `([^`]+)`", table, flags=re.MULTILINE)


def test_every_quoted_error_is_raised_here():
    assert set(quoted_errors()) == set(RAISED)


@pytest.mark.parametrize("said", RAISED)
def test_jax_says_what_the_index_quotes(said):
    with pytest.raises(Exception) as caught:  # noqa: PT011  its kind is part of what is compared
        RAISED[said]()
    assert said in f"{type(caught.value).__name__}: {caught.value}"

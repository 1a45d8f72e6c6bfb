"""A pytest plugin: `trace_budget`, as a marker and as a fixture, so that a retrace fails the test that should notice it.

```python
@pytest.mark.trace_budget(traces=1, compiles=1)      # each function of the test: at most one trace and one compile
def test_a_short_last_batch_adds_no_compile(): ...

@pytest.mark.trace_budget("step", planned_bytes=10_000_000)     # the function named `step` alone
def test_the_step_fits(): ...

def test_later_steps_reuse_the_first(trace_budget):
    step(state, batch)
    with trace_budget("step", traces=0):             # this part of the test
        step(state, batch)
```

The budget is for each function, not for their sum: "trace once" is about a function. Functions of JAX itself, such as
what `jnp.ones` compiles, never count; those of other libraries do, unless functions are named. What a fixture of the test
compiles before it does not count. Without the marker or the fixture nothing is done and JAX is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from traceonce.budget import Budget, Spending

_MARKER = (
    "trace_budget(*functions, traces=None, compiles=None, planned_bytes=None): fail the test where a function is traced "
    "or compiled more often, or an executable needs more memory (all functions but JAX's own, or those named)"
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Watch from before the fixtures of a budgeted test on: what they compile does not count, but explains what follows."""
    if item.get_closest_marker("trace_budget") is None and "trace_budget" not in getattr(item, "fixturenames", ()):
        return (yield)
    try:
        from traceonce.observe import watch
    except (ImportError, AttributeError):
        return (yield)  # the budget itself says so, in the test's own failure
    with watch():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run a marked test within its budget."""
    if item.get_closest_marker("trace_budget") is None:
        return (yield)
    budgets = _budgets(item)
    with _watched(budgets, item) as seen:
        try:
            result = yield
        except BaseException:
            text = _over(seen, budgets)
            if text:  # the test's own failure is the news; the budget may be why
                item.add_report_section("call", "trace_budget", text)
            raise
    _judge(seen, budgets)
    return result


def _budgets(item: pytest.Item) -> list[Budget]:
    """The budgets of a test. A marker nearer to the test takes the place of one for the same functions further out."""
    budget_of, _ = _tools()
    nearest: dict[tuple[str, ...], Budget] = {}
    for marker in item.iter_markers("trace_budget"):
        budget = budget_of(*marker.args, **marker.kwargs)
        nearest.setdefault(budget.functions, budget)
    return list(nearest.values())


def _tools() -> tuple[Callable[..., Budget], Callable[..., Spending]]:
    """What needs JAX, imported at the first budget. A mistake in the marker or in the environment fails the test."""
    try:
        from traceonce.budget import Budget, Spending
    except (ImportError, AttributeError) as error:
        pytest.fail(f"trace_budget cannot watch this JAX ({error}): `traceonce doctor` says what to do.", pytrace=False)
    from traceonce.errors import UsageError

    def budget_of(*functions: Any, **limits: Any) -> Budget:
        try:
            return Budget.of(*functions, **limits)
        except UsageError as error:
            pytest.fail(str(error), pytrace=False)

    return budget_of, Spending


@contextmanager
def _watched(budgets: Iterable[Budget], node: pytest.Item) -> Iterator[Spending]:
    measure = any(budget.planned_bytes is not None for budget in budgets)
    if measure:
        from traceonce.budget import hidden_buffers

        sentence = hidden_buffers()
        if sentence:
            node.warn(pytest.PytestWarning(f"trace_budget: {sentence}"))
    _, spending = _tools()
    with spending(measure=measure) as seen:
        yield seen


def _over(seen: Spending, budgets: Iterable[Budget]) -> str:
    from traceonce.budget import excesses

    return "\n".join(line for budget in budgets for line in excesses(seen, budget))


def _judge(seen: Spending, budgets: Iterable[Budget]) -> None:
    text = _over(seen, budgets)
    if text:
        pytest.fail(f"over the trace budget\n{text}", pytrace=False)


@pytest.fixture
def trace_budget(request: pytest.FixtureRequest) -> Callable[..., AbstractContextManager[Spending]]:
    """Open a block with a budget: `with trace_budget("step", traces=1): ...`. Gives the block's record.

    Takes what the marker takes. Leaving the block fails the test where a function is over the budget.
    """

    @contextmanager
    def block(*functions: str, **limits: int) -> Iterator[Spending]:
        budget_of, _ = _tools()
        budgets = [budget_of(*functions, **limits)]
        with _watched(budgets, request.node) as seen:
            yield seen
        _judge(seen, budgets)

    return block

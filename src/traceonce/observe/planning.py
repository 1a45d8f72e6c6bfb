"""`plan`: the memory that a compiled program will need, before it runs.

The figures come from the compiler's own buffer assignment, so the same code gives them on CPU and GPU, and they do not
vary from run to run. On CPU, XLA can hide the buffers of some fusions from that assignment; `plan` switches this off
for its own compile through a compiler option, where the installed XLA has it, and says so where it has not.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax

from traceonce.errors import TraceOnceError
from traceonce.observe import evidence
from traceonce.observe.memory import written
from traceonce.observe.monitor import unseen

HIDING_OPTION = "xla_cpu_experimental_ynn_fusion_type"
"""An experimental XLA option: with the empty value, CPU fusions keep their buffers where the assignment counts them."""

_COLUMNS = ("arguments", "outputs", "temporaries", "aliases", "total")


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """Bytes that a compiled program needs.

    - `arguments`, `outputs`: what goes in and comes out.
    - `temporaries`: what it needs in between.
    - `aliases`: outputs that take over the memory of a donated argument; they are counted in both of the above.
    - `code`: the program itself.
    - `complete`: `False` where this XLA may hide temporaries on CPU, so that the figure can be too low.
    """

    function: str
    platform: str
    arguments: int
    outputs: int
    temporaries: int
    aliases: int
    code: int
    complete: bool = True

    @property
    def total(self) -> int:
        """Arguments, outputs and temporaries, with donated memory counted once."""
        return self.arguments + self.outputs + self.temporaries - self.aliases

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        width = max(map(len, _COLUMNS))
        lines = [f"{self.function} on {self.platform}"]
        lines += [
            f"  {name:<{width}}  {getattr(self, name):>14,} B  {written(getattr(self, name)):>9}" for name in _COLUMNS
        ]
        if not self.complete:
            lines.append(f"  temporaries may be missing: this XLA has no option {HIDING_OPTION}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False)
class PlanComparison:
    """Plans side by side, in the order given. `plans[name]` is one of them."""

    plans: dict[str, Plan]

    def __getitem__(self, name: str) -> Plan:
        return self.plans[name]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        first = next(iter(self.plans.values()))
        name_width = max(len("arm"), *(len(name) for name in self.plans))
        head = f"{'arm':<{name_width}}" + "".join(f"  {column:>14}" for column in _COLUMNS) + "   of the first"
        lines = [head]
        for name, one in self.plans.items():
            figures = "".join(f"  {getattr(one, column):>14,}" for column in _COLUMNS)
            lines.append(f"{name:<{name_width}}{figures}   {one.total / first.total:12.2f}" if first.total else name)
        if not all(one.complete for one in self.plans.values()):
            lines.append(f"temporaries may be missing: this XLA has no option {HIDING_OPTION}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{column}</th>' for column in ("arm", *_COLUMNS))
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{name}</th>'
            + "".join(f'<td style="text-align:right">{getattr(one, column):,}</td>' for column in _COLUMNS)
            + "</tr>"
            for name, one in self.plans.items()
        )
        return f"<table><caption>bytes</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


class Planner:
    """`plan(fn, *args)` gives one plan, `plan.compare(...)` several side by side."""

    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Plan:
        """Compile `function` for these arguments and return the memory that the program needs. Nothing is run.

        **Arguments**

        - `function`: `jax.jit(f)`, `eqx.filter_jit(f)`, a watched function, or plain Python, which is jitted for this.
        - `args`, `kwargs`: what it would be called with; `jax.ShapeDtypeStruct` will do for an array.

        **Raises** `TraceOnceError` where the backend gives no figures; whatever `function` raises while it is traced
        passes through. The compile is not counted by `watch`; JAX keeps the trace, so that a later call needs none.
        """
        lower = getattr(function, "lower", None)
        with unseen():
            lowered = (lower if callable(lower) else jax.jit(function).lower)(*args, **kwargs)
            lowered = getattr(lowered, "lowered", lowered)  # Equinox wraps what JAX returns
            platform = _platform(args, kwargs)
            options, complete = compiler_options(platform)
            analysis = lowered.compile(compiler_options=options).memory_analysis()
        if analysis is None:
            raise TraceOnceError(f"The {platform} backend of this JAX does not say what memory a program needs.")
        return Plan(
            function=evidence.key_of(function).name,
            platform=platform,
            arguments=int(analysis.argument_size_in_bytes),
            outputs=int(analysis.output_size_in_bytes),
            temporaries=int(analysis.temp_size_in_bytes),
            aliases=int(analysis.alias_size_in_bytes),
            code=int(analysis.generated_code_size_in_bytes),
            complete=complete,
        )

    def compare(self, /, **arms: Any) -> PlanComparison:
        """Plan several ways to do the same and put them side by side.

        **Arguments**

        - `arms`: `name=(function, *args)`, or `name=plan(...)`.

        **Raises** `TraceOnceError` for an arm that is neither.

        **Example**

        ```python
        print(plan.compare(wide=(jax.vmap(f), xs), chunked=(lambda v: jax.lax.map(f, v, batch_size=8), xs)))
        ```
        """
        if not arms:
            raise TraceOnceError("plan.compare() needs at least one arm: name=(function, *args).", exit_code=2)
        plans = {}
        for name, arm in arms.items():
            if isinstance(arm, Plan):
                plans[name] = arm
            elif isinstance(arm, tuple) and arm and callable(arm[0]):
                plans[name] = self(*arm)
            else:
                raise TraceOnceError(f"The arm {name!r} is not (function, *args) or a plan: {arm!r}.", exit_code=2)
        return PlanComparison(plans)


def _platform(args: Any, kwargs: Any) -> str:
    """Return the platform that the arguments are committed to, or else JAX's default."""
    for leaf in jax.tree.leaves((args, kwargs)):
        if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.committed:
            return str(next(iter(leaf.devices())).platform)
    return str(jax.default_backend())


def compiler_options(platform: str) -> tuple[dict[str, Any] | None, bool]:
    """The compiler's options for a plan, and whether the plan is then complete (`Plan.complete`)."""
    if platform != "cpu":
        return None, True
    return ({HIDING_OPTION: ""}, True) if _option_exists() else (None, False)


@functools.cache
def _option_exists() -> bool:
    """Ask this XLA whether it knows the option, with the smallest program there is."""
    device = jax.devices("cpu")[0]
    lowered = jax.jit(lambda x: x).lower(
        jax.ShapeDtypeStruct((), "float32", sharding=jax.sharding.SingleDeviceSharding(device))
    )
    try:
        lowered.compile(compiler_options={HIDING_OPTION: ""})
    except Exception as error:
        if HIDING_OPTION in str(error):
            return False
        raise
    return True


plan = Planner()

"""`%%watch`: the block form of `watch` for one notebook cell. Load it with `%load_ext traceonce`."""

from __future__ import annotations

import ast
from typing import Any

from traceonce.observe.explaining import explain
from traceonce.observe.watching import Watch


def watch_cell(shell: Any, line: str, cell: str) -> Any:
    """Run a cell in a `watch()` block, then print its table and the explanations.

    `%%watch NAME` keeps the record under that name. `%%watch --everything` also shows JAX's own helpers. An error in
    the cell is the cell's own; what was seen until then is printed first.
    """
    words = line.split()
    everything = "--everything" in words
    names = [word for word in words if word != "--everything"]
    if len(names) > 1 or not all(name.isidentifier() for name in names):
        from IPython.core.error import UsageError  # shown by IPython in one line, without a traceback

        raise UsageError("Write %%watch, %%watch NAME or %%watch --everything NAME, with one name for the record.")
    body, last = _compiled(shell, cell)
    seen = Watch(everything=everything)
    if names:
        shell.user_ns[names[0]] = seen
    result = None
    try:
        with seen:
            exec(body, shell.user_ns)
            if last is not None:
                result = eval(last, shell.user_ns)
    finally:
        print(seen)
        again = explain(seen)
        if again:
            print(again)
    return result


def _compiled(shell: Any, cell: str) -> tuple[Any, Any]:
    """Compile a cell as IPython does, with the value of a last expression kept apart."""
    source = shell.transform_cell(cell)
    filename = shell.compile.cache(source, shell.execution_count, raw_code=cell)
    tree = shell.compile.ast_parse(source, filename)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not cell.rstrip().endswith(";"):
        last = shell.compile(ast.Expression(tree.body.pop().value), filename, "eval")
    return shell.compile(tree, filename, "exec"), last


def load_ipython_extension(shell: Any) -> None:
    """Register `%%watch`. IPython calls this for `%load_ext traceonce`."""

    def watch(line: str, cell: str) -> Any:
        return watch_cell(shell, line, cell)

    watch.__doc__ = watch_cell.__doc__
    shell.register_magic_function(watch, magic_kind="cell", magic_name="watch")


def unload_ipython_extension(shell: Any) -> None:
    """Take `%%watch` away again."""
    shell.magics_manager.magics["cell"].pop("watch", None)

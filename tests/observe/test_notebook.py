"""In a notebook: `%%watch`, what holds an array, and letting go."""

import contextlib
import gc
import io

import jax
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from traceonce import holders, let_go
from traceonce.errors import TraceOnceError
from traceonce.observe import largest


class Notebook:
    """An IPython shell whose cells are run without a front end."""

    def __init__(self):
        self.shell = InteractiveShell.instance()

    def run(self, source):
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
            result = self.shell.run_cell(source, store_history=True)
        return result, printed.getvalue()

    def __getitem__(self, name):
        return self.shell.user_ns[name]


@pytest.fixture
def notebook():
    book = Notebook()
    book.run("import jax, jax.numpy as jnp, numpy as np\n%load_ext traceonce")
    yield book
    book.run("%reset -f")
    let_go()
    InteractiveShell.clear_instance()


def live(size):
    gc.collect()
    return len({one.unsafe_buffer_pointer() for one in jax.live_arrays() if one.shape == (size,)})


def test_the_magic_prints_the_table_and_the_reason_and_keeps_the_record(notebook):
    result, printed = notebook.run(
        "%%watch seen\nf = jax.jit(lambda x: x * 2)\nf(np.ones(3, np.float32))\nf(np.ones(4, np.float32))[0]"
    )
    assert float(result.result) == 2.0
    assert notebook["seen"]["<lambda>"].compiles == 2
    assert "compiles" in printed
    assert "float32[3] -> float32[4]" in printed


def test_an_error_in_the_cell_is_the_cells_own_and_the_block_is_closed(notebook):
    result, printed = notebook.run("%%watch seen\nvalue = 1\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert notebook["value"] == 1
    assert notebook["seen"].closed
    assert "nothing was compiled" in printed


def test_a_cell_that_ends_in_a_semicolon_shows_nothing(notebook):
    result, _ = notebook.run("%%watch\n1 + 1;")
    assert result.result is None


def test_two_names_are_refused(notebook):
    result, _ = notebook.run("%%watch a b\n1")
    assert "one name" in str(result.error_in_exec or result.error_before_exec)


def test_a_displayed_array_is_held_by_the_outputs_until_they_are_let_go(notebook):
    notebook.run("x = jnp.ones(32100); x")
    found = {str(one) for one in holders(notebook["x"]).holders}
    assert "variable: x" in found
    assert any(one.startswith("output: Out[") for one in found)
    notebook.run("del x")
    assert live(32100) == 1
    freed = let_go()
    assert live(32100) == 0
    assert freed.freed >= 32100 * 4


def test_what_reset_out_leaves_behind_is_let_go_too(notebook):
    notebook.run("x = jnp.ones(32400); x")
    notebook.run("del x")
    notebook.run("%reset -f out")
    assert live(32400) == 1
    let_go()
    assert live(32400) == 0


def test_an_array_shown_with_a_semicolon_is_not_held(notebook):
    notebook.run("y = jnp.ones(32200); y;")
    notebook.run("del y")
    assert live(32200) == 0


def test_the_last_traceback_holds_the_locals_of_its_frames(notebook):
    notebook.run("def f():\n    big = jnp.ones(33300)\n    raise ValueError('boom')")
    notebook.run("f()")
    held = next(one for one in largest(50) if "33300" in one.array)
    assert [str(one) for one in held.holders] == ["traceback: the last error: big in f"]
    let_go()
    assert live(33300) == 0


def test_outputs_work_as_before_after_letting_go(notebook):
    notebook.run("41")
    let_go()
    notebook.run("6 * 7")
    result, _ = notebook.run("_ + 1")
    assert result.result == 43


def test_an_array_in_a_history_and_one_in_a_closure_are_found_by_their_path(notebook):
    notebook.run(
        "a = jnp.ones(32300)\nhistory = [{}, {'grad': a}]\ndef make():\n    kept = a\n    return lambda x: x + kept\nf = make()"
    )
    found = {str(one) for one in holders(notebook["a"]).holders}
    assert {"variable: a", "variable: history[1]['grad']", "closure: kept in f"} <= found


def test_an_array_in_a_running_call_is_found():
    def outer():
        mine = jax.device_put(np.zeros(777, np.float32))
        return [str(one) for one in holders(mine, {}).holders]

    assert outer() == ["running call: mine in outer"]


def test_holders_refuses_what_is_no_array_and_what_is_deleted():
    with pytest.raises(TraceOnceError, match="one leaf"):
        holders({"a": 1})
    array = jax.device_put(np.zeros(3, np.float32))
    array.delete()
    with pytest.raises(TraceOnceError, match="deleted"):
        holders(array)

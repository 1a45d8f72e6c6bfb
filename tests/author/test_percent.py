"""The percent reader agrees with Jupytext on what it understands, and refuses the rest."""

import jupytext
import pytest

from traceonce.errors import TraceOnceError
from traceonce.grade.percent import read_header, read_percent

EXAMPLE = """\
# ---
# jupyter:
#   traceonce:
#     lab: lab01_tiny
# ---

# %% [markdown] tags=["a", "b"]
# # Title
#
# Text with `code`,
#   indented, and #hash.
#
# ```python
# # %% not a cell
# ```

# %% claims=["P1"] nbgrader={"grade_id": "x y", "points": 1.5, "grade": true}
def f(a):

    # a comment
    return a


g = f

# %%
# %timeit f(1)
# !pip list
# %%html is no marker

# %%

# %% [raw]
# raw text
"""


def by_jupytext(text: str) -> list[tuple[str, str, dict]]:
    notebook = jupytext.reads(text, fmt="py:percent")
    unimportant = ("lines_to_next_cell", "cell_marker")
    return [
        (cell.cell_type, cell.source, {key: value for key, value in cell.metadata.items() if key not in unimportant})
        for cell in notebook.cells
    ]


def by_us(text: str) -> list[tuple[str, str, dict]]:
    return [(cell.cell_type, cell.source, cell.metadata) for cell in read_percent(text, "example.py")]


def test_reads_what_jupytext_reads():
    ours = by_us(EXAMPLE)
    assert len(ours) == 5
    assert ours == by_jupytext(EXAMPLE)


def test_lines_of_the_markers_are_kept():
    assert [cell.line for cell in read_percent("# %%\na = 1\n\n# %% [markdown]\n# b\n", "x.py")] == [1, 4]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("import jax\n\n# %%\n", 1, "before the first cell"),
        ("# %%\n1\n  # %%\n2\n", 3, "at the start of the line"),
        ("# %% A title\n1\n", 1, "key=value"),
        ("# %% claims=[P1]\n1\n", 1, "not JSON"),
        ("# %% [markdown]\n# a\nb\n", 3, "begin every line"),
    ],
)
def test_what_it_does_not_understand_is_refused_with_its_line(text, line, says):
    with pytest.raises(TraceOnceError, match=says) as error:
        read_percent(text, "x.py")
    assert f"line {line}" in str(error.value)


def test_header_is_read_and_skipped():
    text = "# ---\n# kind: wrong\n# hint: Build a new one: {**params}\n# ---\n# %%\na = 1\n"
    assert read_header(text) == {"kind": "wrong", "hint": "Build a new one: {**params}"}
    assert by_us(text) == [("code", "a = 1", {})]
    assert read_header("# %%\na = 1\n") == {}

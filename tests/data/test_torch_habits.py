"""What PyTorch printed belongs to the code that stands in the page now, and each row of the page shows it."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

from traceonce.data import torch_habits


def recorder() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "record_torch_habits", Path(__file__).with_name("record_torch_habits.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_recorded_came_from_the_code_in_the_page() -> None:
    assert recorder().snippets() == torch_habits().code


def test_every_row_is_shown_beside_jax_in_the_cell_that_follows_it() -> None:
    text = recorder().PAGE.read_text("utf-8")
    rows = re.split(r"^# ### ", text, flags=re.MULTILINE)[1:]
    assert len(rows) >= 30
    for row in rows:
        name = row.split()[0]
        assert set(re.findall(r'beside\("(\w+)"', row)) == {name}


def test_every_row_stands_in_a_table_with_a_lesson() -> None:
    text = recorder().PAGE.read_text("utf-8")
    listed = re.findall(
        r"^# \| \[.*\]\(#(\w+)\) \| .+ \| \d\db? \[.+\]\(\.\./.+\.ipynb#.+\) \|$", text, flags=re.MULTILINE
    )
    assert listed == list(torch_habits().printed)


def test_numbers_of_pytorch_are_there() -> None:
    habits = torch_habits()
    assert (habits.version, habits.printed["std"], habits.printed["outside"]) == ("2.13.0+cpu", "1.291", "IndexError")

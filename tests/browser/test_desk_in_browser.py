"""A learner's way through a desk, in a real browser."""

from collections.abc import Callable

import pytest
from lab_browser import LabPage, RunningDesk, code_cell, markdown_cell, notebook

pytestmark = pytest.mark.browser

LESSON = "01_first/01_first.ipynb"
INDEX = notebook(markdown_cell("# Trace Once\n\n[The first lesson](01_first/01_first.ipynb)"))
LESSON_CELLS = notebook(
    markdown_cell("# The first lesson"),
    code_cell("import time\nfor part in range(6):\n    time.sleep(0.5)\nprint('slept')"),
    code_cell("import ipywidgets\nipywidgets.IntSlider(value=41, description='lives')"),
    code_cell("sum(range(10))"),
)


def test_lesson_runs_from_the_index_to_its_end(
    desk_of: Callable[..., RunningDesk], lab: Callable[..., LabPage]
) -> None:
    desk = desk_of({"index.ipynb": INDEX, LESSON: LESSON_CELLS})
    page = lab(desk, "index.ipynb")
    page.screenshot("index")
    page.panel.get_by_role("link", name="The first lesson").click()
    page.page.locator(".lm-TabBar-tabLabel", has_text="01_first.ipynb").wait_for()
    page.wait_for_prompt(0, "[ ]:")
    page.screenshot("lesson")
    page.run_all()
    page.wait_for_prompt(0, "[*]:")
    page.screenshot("lesson-running")
    page.wait_until_done()
    page.screenshot("lesson-done")
    assert page.prompts() == ["[1]:", "[2]:", "[3]:"]
    assert page.errors() == []
    assert "45" in page.outputs()

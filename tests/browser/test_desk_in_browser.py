"""A learner's way through a desk, in a real browser."""

from collections.abc import Callable
from pathlib import Path

import pytest
from lab_browser import LabPage, RunningDesk, code_cell, markdown_cell, notebook, write_checkout

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
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
    assert page.complaints == []
    page.screenshot("index")
    page.panel.get_by_role("link", name="The first lesson").click()
    page.page.locator(".lm-TabBar-tabLabel", has_text="01_first.ipynb").wait_for()
    page.wait_for_prompt(0, "[ ]:")
    page.wait_for_kernel()
    page.screenshot("lesson")
    page.run_all()
    page.wait_for_prompt(0, "[*]:")
    page.screenshot("lesson-running")
    page.wait_until_done()
    page.screenshot("lesson-done")
    assert page.prompts() == ["[1]:", "[2]:", "[3]:"]
    assert page.errors() == []
    assert "45" in page.outputs()


def test_link_into_a_lesson_ends_at_its_section(
    desk_of: Callable[..., RunningDesk], lab: Callable[..., LabPage]
) -> None:
    # A real lesson: the heights of its cells are far from what JupyterLab guesses of cells that it has not drawn.
    name = "06_padding_masks/06_padding_masks.ipynb"
    index = notebook(markdown_cell(f"# Trace Once\n\n[The section]({name}#Evaluation:-sums-and-counts)"))
    desk = desk_of({"index.ipynb": index, name: (ROOT / "course" / name).read_text(encoding="utf-8")})
    page = lab(desk, "index.ipynb")
    page.panel.get_by_role("link", name="The section").click()
    page.page.locator(".lm-TabBar-tabLabel", has_text="06_padding_masks.ipynb").wait_for()
    page.wait_for_kernel()
    page.page.wait_for_timeout(3000)  # what is drawn later must not push it away again
    heading = page.panel.get_by_role("heading", name="Evaluation: sums and counts")
    heading.wait_for()
    height = page.page.viewport_size["height"]
    page.page.wait_for_function(
        "([node, height]) => node.getBoundingClientRect().top < height", arg=[heading.element_handle(), height]
    )
    assert heading.bounding_box()["y"] > 0
    page.screenshot("lesson-at-its-section")


def pictures_while_running(page: LabPage, text: str) -> set[str]:
    """The different states that the chart of the cell with this text shows while the cell runs; takes a screenshot."""
    cell = page.panel.locator(".jp-CodeCell", has_text=text)
    chart = cell.locator(".jp-OutputArea-output svg").first
    chart.wait_for(timeout=120_000)
    chart.evaluate("node => node.scrollIntoView({block: 'center'})")
    states: set[str] = set()
    while cell.locator(".jp-InputPrompt").text_content().strip() == "[*]:":
        states.add(chart.inner_html())
        if len(states) == 2:
            page.screenshot("course-chart-moving")
        page.page.wait_for_timeout(50)
    return states


def test_first_lesson_of_the_course_runs_to_its_end(lab: Callable[..., LabPage], tmp_path: Path) -> None:
    progress = {"TRACEONCE_PROGRESS": str(tmp_path / "progress.json")}
    desk = RunningDesk(ROOT, "--desk", str(tmp_path / "desk"), environment=progress)
    try:
        page = lab(desk, "index.ipynb")
        page.screenshot("course-index")
        page.panel.locator('a[href*="01_pure_functions.ipynb"]').first.click()
        page.page.locator(".lm-TabBar-tabLabel", has_text="01_pure_functions.ipynb").wait_for()
        page.wait_for_prompt(0, "[ ]:")
        page.wait_for_kernel()
        page.screenshot("course-lesson")
        page.run_all()
        assert len(pictures_while_running(page, "slow enough to watch")) > 1
        page.wait_until_done(seconds=300)
        page.screenshot("course-lesson-done")
        assert page.errors() == []
        count = len(page.prompts())
        assert page.prompts() == [f"[{number}]:" for number in range(1, count + 1)]
    finally:
        desk.stop()
        desk.kill()


def test_newcomer_sees_the_desk_and_nothing_that_asks(
    desk_of: Callable[..., RunningDesk], lab: Callable[..., LabPage]
) -> None:
    page = lab(desk_of({"index.ipynb": INDEX, LESSON: LESSON_CELLS}), "index.ipynb")
    listed = page.page.locator(".jp-DirListing-itemText").all_text_contents()
    assert listed == ["01_first", "index.ipynb"]
    assert page.page.locator(".jp-DirListing").is_visible()
    # News, updates, a choice of kernels, a build: each of these would come as a dialogue or as a notice in the corner.
    page.page.wait_for_timeout(3000)
    assert page.page.locator(".jp-Dialog").count() == 0
    assert page.page.locator(".Toastify__toast").count() == 0
    assert page.page.locator(".lm-TabBar-tabLabel", has_text="Launcher").count() == 0


def test_typed_text_outputs_and_widgets_survive_a_restart(
    desk_of: Callable[..., RunningDesk], lab: Callable[..., LabPage]
) -> None:
    desk = desk_of({"index.ipynb": INDEX, LESSON: LESSON_CELLS})
    page = lab(desk, LESSON)
    page.type_into(1, "\n# my own words")
    page.run_all()
    page.wait_until_done()
    page.save()
    page.page.close()
    assert desk.stop() == 0

    again = RunningDesk(desk.checkout)
    try:
        page = lab(again, LESSON)
        # Charts and widgets are restored from the notebook: the kernel is a new one and has run nothing.
        page.panel.locator(".widget-slider").wait_for()
        page.screenshot("after-restart")
        assert "# my own words" in page.panel.locator(".jp-CodeCell .cm-content").first.inner_text()
        assert "45" in page.outputs()
        assert page.panel.locator(".widget-readout").inner_text() == "41"
    finally:
        assert again.stop() == 0
        again.kill()


def test_lesson_that_was_only_opened_follows_the_course(
    desk_of: Callable[..., RunningDesk], lab: Callable[..., LabPage]
) -> None:
    desk = desk_of({"index.ipynb": INDEX, LESSON: LESSON_CELLS})
    page = lab(desk, LESSON)
    page.save()
    page.page.close()
    desk.stop()
    changed = notebook(markdown_cell("# The first lesson, second edition"))
    write_checkout(desk.checkout, {"index.ipynb": INDEX, LESSON: changed})
    again = RunningDesk(desk.checkout)
    again.stop()
    assert again.output[0] == f"The course has changed: renewed what you had not touched ({LESSON})."
    assert "second edition" in (desk.checkout / "work" / LESSON).read_text()

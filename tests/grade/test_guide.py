import re

import pytest

from traceonce.grade.guide import Section, TaskGuide, read_guide
from traceonce.grade.lab import Cell, Lab, find_root, lab_names, load_lab

LOOK_BACK = "Look back at [Two\nwords](../course/90_x/90_x.ipynb#Two-words)."


def _lab(*cells):
    made = [
        Cell(text if kind == "solution" else "", kind, text, index=index) for index, (kind, text) in enumerate(cells)
    ]
    return Lab("lab90_x", tuple(made))


def test_a_lab_says_its_minutes_and_each_task_its_own_and_its_sections():
    lab = _lab(
        ("markdown", "# Lab\n\n## Situation\n\nIt broke. About 30\nminutes."),
        ("markdown", f"## Task 1 · first\n\n*5 minutes, easy.* Write it. {LOOK_BACK}"),
        ("solution", "first"),
        ("solution", "helper"),
        ("markdown", "Some more words."),
        (
            "markdown",
            "## Task 2 · second\n\nNo minutes and no link: [elsewhere](https://example.org/course/a.ipynb#b).",
        ),
        ("solution", "second"),
    )
    first = TaskGuide("Task 1 · first", 5, (Section("Two words", "course/90_x/90_x.ipynb", "Two-words"),))
    guide = read_guide(lab)
    assert guide.minutes == 30
    assert guide.tasks == {"first": first, "helper": first, "second": TaskGuide("Task 2 · second")}


@pytest.mark.parametrize(
    ("words", "minutes"), [("About 45 minutes.", 45), ("About an hour.", 60), ("Take your time.", 0)]
)
def test_minutes_of_a_lab(words, minutes):
    assert (
        read_guide(_lab(("markdown", f"# Lab\n\n{words}"), ("markdown", "## Task 1"), ("solution", "first"))).minutes
        == minutes
    )


def test_a_task_without_a_section_has_those_of_the_opening():
    lab = _lab(("markdown", f"# Lab\n\n{LOOK_BACK}"), ("markdown", "## Task 1"), ("solution", "first"))
    assert [section.anchor for section in read_guide(lab).tasks["first"].sections] == ["Two-words"]


def _headings(notebook):
    """The anchors that JupyterLab gives to the headings of a lesson, read from its source."""
    lines = notebook.with_suffix(".py").read_text().splitlines()
    return {re.sub(r"\s", "-", line.lstrip("# ").strip()) for line in lines if re.match(r"# #+ ", line)}


@pytest.mark.parametrize("name", lab_names())
def test_every_section_that_a_lab_names_is_in_a_lesson(name):
    guide = read_guide(load_lab(name))
    assert guide.minutes > 0
    names_some = any(about.sections for about in guide.tasks.values())
    for task, about in guide.tasks.items():
        assert about.minutes > 0, task
        assert about.sections or not names_some, task
        for section in about.sections:
            assert (find_root() / section.notebook).is_file(), (task, section)
            assert not section.anchor or section.anchor in _headings(find_root() / section.notebook), (task, section)


def test_the_labs_of_the_first_lessons_name_sections():
    named = [name for name in lab_names() if all(about.sections for about in read_guide(load_lab(name)).tasks.values())]
    assert [name[:5] for name in named[:7]] == [f"lab{number:02}" for number in range(1, 8)]

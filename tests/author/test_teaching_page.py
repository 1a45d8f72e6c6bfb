"""`docs/teaching.md` names minutes, headings, wrong answers, files and commands: each of them must be there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "teaching.md"
TEXT = PAGE.read_text(encoding="utf-8")
PATHS = re.findall(r"^### (.+?) \((\d+) minutes\)\n(.+?)(?=^##)", TEXT, flags=re.M | re.S)


def headings(notebook: Path) -> set[str]:
    return set(re.findall(r"^# ## (.+)$", notebook.with_suffix(".py").read_text(encoding="utf-8"), flags=re.M))


def rows(table: str) -> list[tuple[int, str, str]]:
    return [(int(a), b, c) for a, b, c in re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \|$", table, flags=re.M)]


def test_four_ways_are_read():
    assert [name for name, _, _ in PATHS] == ["Two hours", "Half a day", "One day", "Two days"]


@pytest.mark.parametrize(("name", "minutes", "table"), PATHS, ids=[name for name, _, _ in PATHS])
def test_minutes_add_up_and_headings_exist(name, minutes, table):
    assert sum(number for number, _, _ in rows(table)) == int(minutes)
    for _, what, where in rows(table):
        notebooks = [PAGE.parent / link for link in re.findall(r"\]\((\.\./course/[^)]+)\)", where)]
        known = set().union(*(headings(notebook) for notebook in notebooks if notebook.stem != "index"))
        for heading in re.findall(r"\*(.+?)\*", what):
            assert heading in known, f"{name}: no heading {heading!r} in {where}"


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)#]+)", TEXT) if "://" not in link]
    assert links
    for link in links:
        assert (PAGE.parent / link).exists(), link


def test_wrong_answers_that_are_named_exist():
    # A name of one word is a command or an option; a wrong answer has an underscore at least.
    names = set(re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+)+)`", TEXT))
    assert len(names) > 25
    present = {file.stem for file in (ROOT / "tests" / "submissions").glob("*/*")}
    assert names <= present, names - present


def test_each_lesson_has_its_notes():
    notes = TEXT.partition("## Lesson by lesson")[2].partition("\n## ")[0]
    numbers = set(re.findall(r"(\d\db?)", " ".join(re.findall(r"^\*\*(.+?)\.\*\*", notes, flags=re.M))))
    lessons = {file.stem.partition("_")[0] for file in ROOT.glob("course/[0-9]*/*.py")}
    assert numbers == lessons


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    named = set(re.findall(r"`make ([a-z-]+)", TEXT))
    assert named
    assert named <= targets, named - targets

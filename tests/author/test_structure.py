"""What a screen reader needs of a notebook: one title, headings without gaps, words for each picture. Read from the sources."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from traceonce.grade.percent import read_percent

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = [*sorted((ROOT / "course").glob("**/*.py")), *sorted((ROOT / "solutions").glob("*.py"))]
FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1[^\S\n]*$", re.MULTILINE | re.DOTALL)
IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\(|<img\b(?P<attributes>[^>]*)>")


def text_of(path: Path) -> str:
    """The text cells of a notebook's source, without blocks of code."""
    cells = read_percent(path.read_text("utf-8"), path.name)
    return "\n\n".join(FENCED.sub("", cell.source) for cell in cells if cell.cell_type == "markdown")


def faults(text: str) -> list[str]:
    """What is wrong with headings and pictures."""
    levels = [(len(marks), title) for marks, title in re.findall(r"^(#{1,6}) +(.+)$", text, re.MULTILINE)]
    found = []
    titles = [title for level, title in levels if level == 1]
    if len(titles) != 1 or levels[0][0] != 1:
        found.append(f"one title at the top is wanted, there are: {titles}")
    for (before, _), (level, title) in pairwise(levels):
        if level > before + 1:
            found.append(f"{title!r} has level {level} after level {before}")
    for picture in IMAGE.finditer(text):
        alt = picture["alt"] or re.search(r'\balt="[^"]+"', picture["attributes"] or "")
        if not alt:
            found.append(f"a picture without words: {picture[0]}")
    return found


def test_there_are_notebooks_to_look_at() -> None:
    assert len(NOTEBOOKS) >= 26


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_headings_and_pictures_can_be_followed_by_ear(path: Path) -> None:
    assert faults(text_of(path)) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_pictures_say_what_they_show(path: Path) -> None:
    cells = json.loads(path.with_suffix(".ipynb").read_text("utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    pictures = ["".join(data["image/svg+xml"]) for data in outputs if "image/svg+xml" in data]
    assert [picture for picture in pictures if not is_described(picture)] == []
    # A picture of points has no place for words.
    assert [kind for data in outputs for kind in data if kind in {"image/png", "image/jpeg"}] == []


def is_described(picture: str) -> bool:
    return (
        'role="img"' in picture[: picture.index(">")] and re.search(r"<title>\s*\S[^<]*</title>", picture) is not None
    )


@pytest.mark.parametrize("picture", ['<svg role="img"><title> </title></svg>', "<svg><title>Counts</title></svg>"])
def test_picture_without_words_is_found(picture: str) -> None:
    assert not is_described(picture)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("## A\n\ntext", "one title"),
        ("# A\n\n# B", "one title"),
        ("# A\n\n### C", "'C' has level 3"),
        ("# A\n\n![](a.png)", "without words"),
        ('# A\n\n<img src="a.png">', "without words"),
    ],
)
def test_fault_is_found(text: str, fault: str) -> None:
    assert fault in faults(text)[0]


def test_sound_text_has_no_fault() -> None:
    assert faults('# A\n\n## B\n\n### C\n\n## D ![a chart](a.png) <img alt="b" src="b.png">') == []

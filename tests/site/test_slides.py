"""The decks of slides: each in one file, every slide within its frame, and no answer on the slide of its question."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import make_site
import make_slides
import pytest
from site_browser import watched
from site_code import as_secrets

from traceonce.bundle.leaks import find_leaks, secrets_in
from traceonce.bundle.output import Part

ROOT = Path(__file__).resolve().parents[2]
# Where the contents of each slide end, to the right and below, in pixels of a slide of 1280 × 720.
ENDS = """() => [...document.querySelectorAll(".slides > section > section")].map((slide) => {
    slide.removeAttribute("hidden");
    slide.parentElement.removeAttribute("hidden");
    slide.style.display = slide.parentElement.style.display = "block";
    const frame = slide.getBoundingClientRect(), scale = frame.width / 1280;
    const parts = [...slide.querySelectorAll("*")].map((node) => node.getBoundingClientRect());
    const end = (side) => Math.max(...parts.map((part) => part[side])) - frame[side === "right" ? "left" : "top"];
    const seen = [Math.round(end("right") / scale), Math.round(end("bottom") / scale), slide.innerText];
    slide.style.display = slide.parentElement.style.display = "none";
    return seen;
})"""


@pytest.fixture(scope="session")
def decks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("slides")
    assert make_slides.main(["--out", str(place)]) == 0
    return place


@pytest.fixture(scope="session")
def slides(decks: Path, chromium: Any) -> dict[str, list[tuple[int, int, str]]]:
    """For each deck, the slides as a browser draws them; a deck that asks for a file or says an error fails here."""
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    # Whatever is not the deck's own file is refused and recorded.
    window = watched(context, decks.as_uri())
    drawn = {}
    for deck in sorted(decks.glob("*.html")):
        window.page.goto(deck.as_uri())
        drawn[deck.stem] = [(right, below, text) for right, below, text in window.page.evaluate(ENDS)]
    assert window.seen.nothing(), window.seen
    context.close()
    return drawn


def test_each_lesson_has_a_deck(decks: Path, slides: dict[str, list[tuple[int, int, str]]]) -> None:
    made = json.loads((decks / "slides.json").read_text())
    assert list(made) == [path.stem for path in make_site.find_sources(ROOT).lessons]
    assert {name: len(drawn) for name, drawn in slides.items()} == made
    assert min(made.values()) > 15


def test_no_slide_is_taller_or_wider_than_its_frame(slides: dict[str, list[tuple[int, int, str]]]) -> None:
    over = [
        (name, number, right, below, text[:80])
        for name, drawn in slides.items()
        for number, (right, below, text) in enumerate(drawn, 1)
        if right > 1280 or below > 712 or not text.strip()
    ]
    assert over == []


def questions(name: str) -> Iterator[str]:
    path = next(path for path in make_site.find_sources(ROOT).lessons if path.stem == name)
    for cell in make_slides.shown(ROOT / path):
        yield from (question.id for question in cell.questions)


def test_each_question_stands_before_its_answer_and_not_with_it(decks: Path) -> None:
    asked = 0
    for deck in sorted(decks.glob("*.html")):
        text = deck.read_text("utf-8")
        parts = text.split("<section")
        box = [number for number, part in enumerate(parts) if 'class="prediction"' in part]
        answers = {
            name: number for number, part in enumerate(parts) for name in re.findall(r"([\w-]+) measured: ", part)
        }
        assert not set(box) & {number for name, number in answers.items() if name not in earlier(parts, number)}, deck
        assert set(questions(deck.stem)) <= set(answers), deck
        asked += len(box)
    assert asked > 100


def earlier(parts: list[str], number: int) -> set[str]:
    """The predictions that were asked on a slide before this one."""
    return {name for part in parts[:number] for name in re.findall(r'data-prediction="([\w-]+)"', part)}


def searched(decks: Path) -> dict[str, Part]:
    """The text of each deck, under the name of its lesson's notebook."""
    parts = {}
    for path in make_site.find_sources(ROOT).lessons:
        text = re.sub(r"<[^>]*>", "", (decks / f"{path.stem}.html").read_text("utf-8"))
        parts[str(path.with_suffix(".ipynb"))] = Part(json.dumps([html.unescape(text)]).encode())
    return parts


def test_nothing_of_solutions_is_in_a_deck(decks: Path) -> None:
    assert list(find_leaks(searched(decks), secrets_in(ROOT))) == []


def test_the_search_finds_all_code_that_is_in_a_deck(decks: Path) -> None:
    parts = searched(decks)
    for path in make_site.find_sources(ROOT).lessons:
        cells = make_slides.notebook_of(list(make_slides.deck(make_slides.shown(ROOT / path)))).cells
        own = as_secrets(cell.source for cell in cells if cell.cell_type == "code")
        assert len(own) >= 5
        found = {where for name, where in find_leaks(parts, own) if path.stem in name}
        assert found == {secret.where for secret in own}, path


def test_no_box_of_code_is_empty(decks: Path) -> None:
    codes = [
        code
        for deck in decks.glob("*.html")
        for code in re.findall(r"<pre><span></span>(.*?)</pre>", deck.read_text("utf-8"), re.DOTALL)
    ]
    assert len(codes) > 200
    assert [code for code in codes if not code.strip()] == []


def test_code_that_only_asks_is_left_out() -> None:
    code = 'ways = ["a", "b"]\nkept = [1]\nquestion = f"which of {kept}?"\nguess = predict("00-A1", question, ways)\nprint(kept)'
    assert make_slides.without_questions(code) == "kept = [1]\nprint(kept)"


def test_text_that_is_too_tall_goes_on_over_several_slides() -> None:
    made = list(make_slides.text_slides("Recap", "\n\n".join(f"{number} " + "word " * 60 for number in range(12))))
    assert len(made) > 1
    assert max(slide.height for slide in made) <= make_slides.ROOM
    assert sum(len(slide.cells) for slide in made) == 12


def test_code_of_a_question_is_shown_without_the_question() -> None:
    code = 'v = 1\nquestion = "What?"\nguess = predict(\n    "01-P1", question, ["1"]\n)'
    assert make_slides.without_questions(code) == "v = 1"

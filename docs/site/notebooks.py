"""A stored notebook as the site and the slides show it: nothing is run, and no sentence is written that is not in the notebook.

- The question of a prediction becomes a box with its choices. What was printed for it comes from the stored output.
- What was printed after a question, up to the cell that answers it, is marked as evidence, and the text that follows the answer
  as its explanation: the site folds both until they are asked for.
- A chart is shown as its stored picture, inline, with its title and description, and in the colours of the page.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

# The site's own environment has no package of the project in it.
sys.path.append(str(Path(__file__).resolve().parents[2] / "src"))

from traceonce.headings import Heading, headings

_QUESTION = re.compile(r"Prediction (?P<id>[\w-]+): (?P<text>.*)\Z", re.DOTALL)
_ANSWER = re.compile(r"^([\w-]+) measured: ", re.MULTILINE)
_CHOICE = "  ( ) "
_COLOUR = re.compile(r'(?<=")#(?P<hex>[0-9a-f]{6}|fff)(?=")')
# A question that a whole lesson answers would fold the lesson; beyond so many cells it folds its answer alone.
_NEAR = 7
DRAWN_WHILE_IT_RUNS = "Chart: "
# What the colours of a still picture stand for: ink, secondary ink, lines, shaded surfaces, paper.
_ROLES = {
    "1f2328": "ink",
    "57606a": "faint",
    "59636e": "faint",
    "afb8c1": "line",
    "d0d7de": "line",
    "d1d9e0": "line",
    "eef1f4": "shade",
    "ffffff": "paper",
    "fff": "paper",
}


@dataclass(frozen=True)
class Question:
    """A prediction as it was printed."""

    id: str
    text: str
    choices: tuple[str, ...]


@dataclass
class Shown:
    """A cell as it is shown.

    - `text`: Markdown, or code.
    - `outputs`: what is left of the stored outputs; a picture stands in them as `text/html`.
    - `questions`: the predictions that the cell asks.
    - `evidence`: its outputs answer a question that was asked before.
    - `answers`: the IDs of the predictions that the cell answers.
    - `explains`: text that follows an answer, and tells it.
    """

    kind: str
    text: str
    id: str
    metadata: dict[str, Any] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    questions: tuple[Question, ...] = ()
    answers: tuple[str, ...] = ()
    evidence: bool = False
    explains: bool = False


def load(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


def joined(value: str | list[str]) -> str:
    """Text that a notebook may store in lines."""
    return value if isinstance(value, str) else "".join(value)


def sections(path: Path) -> list[Heading]:
    """All headings of a notebook, in order."""
    found: list[Heading] = []
    for cell in load(path)["cells"]:
        if cell["cell_type"] == "markdown":
            found += headings(joined(cell["source"]))
    return found


def shown(path: Path) -> list[Shown]:
    """The cells of a notebook as they are shown."""
    cells = [_shown(number, raw) for number, raw in enumerate(load(path)["cells"])]
    asked: dict[str, int] = {}
    for number, cell in enumerate(cells):
        for name in cell.answers:
            between = [cell for cell in cells[asked.get(name, number) + 1 : number] if cell.kind == "code"]
            for evidence in [*(between if len(between) < _NEAR else []), cell]:
                evidence.evidence = True
        asked |= {question.id: number for question in cell.questions}
    for answer, text in pairwise(cells):
        text.explains = (
            bool(answer.answers) and not answer.questions and text.kind == "markdown" and not headings(text.text)
        )
    return cells


def _shown(number: int, raw: dict[str, Any]) -> Shown:
    cell = Shown(raw["cell_type"], joined(raw["source"]), raw.get("id", f"cell-{number}"), raw.get("metadata", {}))
    if cell.kind == "code":
        outputs = list(_outputs(raw["outputs"]))
        cell.questions = tuple(question for output in outputs if (question := _question(output)))
        cell.outputs = _merged([output for output in outputs if not _question(output)])
        cell.answers = tuple(name for output in outputs for name in _ANSWER.findall(output.get("text", "")))
    return cell


def _merged(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs with neighbouring lines of one stream in one piece."""
    merged: list[dict[str, Any]] = []
    for output in outputs:
        last = merged[-1] if merged else {}
        if output["output_type"] == "stream" == last.get("output_type") and output["name"] == last["name"]:
            merged[-1] = {**last, "text": last["text"] + output["text"]}
        else:
            merged.append(output)
    return merged


def _outputs(stored: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The outputs that say something, texts in one piece and pictures as HTML."""
    has_picture = any("image/svg+xml" in output.get("data", {}) for output in stored)
    for output in stored:
        if output["output_type"] == "stream":
            yield {**output, "text": joined(output["text"])}
            continue
        if output["output_type"] == "error":
            yield output
            continue
        data = {kind: joined(value) for kind, value in output["data"].items()}
        if picture := data.get("image/svg+xml"):
            yield {**output, "data": {"text/html": figure(picture), "text/plain": data.get("text/plain", "")}}
        elif any(data.values()) and not (has_picture and data["text/plain"].startswith(DRAWN_WHILE_IT_RUNS)):
            yield {**output, "data": data}


def _question(output: dict[str, Any]) -> Question | None:
    match = _QUESTION.match(output.get("data", {}).get("text/plain", ""))
    if match is None:
        return None
    text, *choices = match["text"].split(f"\n{_CHOICE}")
    return Question(match["id"], text, tuple(choices))


def figure(picture: str) -> str:
    """A stored picture, drawn in the page's own colours."""

    def colour(match: re.Match[str]) -> str:
        return f"var(--chart-{_ROLES[match['hex']]}, #{match['hex']})"

    drawing = _COLOUR.sub(colour, picture[picture.index("<svg") :])
    # A blank line would end the block of HTML that the picture stands in.
    return f'<figure class="chart">{re.sub(r"\n\s*\n", "\n", drawing)}</figure>'


def question_box(question: Question, *, choosable: bool) -> str:
    """A prediction as a group of choices. On a page they can be ticked, which records nothing; on a slide they are a list."""
    name = f"prediction-{question.id}"
    if choosable:
        rows = "".join(
            f'<label><input type="radio" name="{name}"> <span>{_in_html(choice)}</span></label>'
            for choice in question.choices
        )
        legend = f"<legend>Before you look: prediction {question.id}</legend>"
        return f'<fieldset class="prediction">{legend}<p>{_in_html(question.text)}</p>{rows}</fieldset>'
    rows = "".join(f"<li>{_in_html(choice)}</li>" for choice in question.choices)
    return (
        f'<div class="prediction" data-prediction="{question.id}"><p>{_in_html(question.text)}</p><ul>{rows}</ul></div>'
    )


def _in_html(text: str) -> str:
    """Text as HTML in one line, so that Markdown leaves it alone."""
    return re.sub(r"\s*\n\s*", "<br>", escape(text))

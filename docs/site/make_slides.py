"""Make a deck of slides from each lesson: ``python docs/site/make_slides.py [--out build/slides]``. Nothing is run, no text is written twice.

A deck shows the lesson's title, its question, each prediction with what leads to it, the evidence on a slide of its own, what it means, the
sections *Break it* and *Repair it*, and the recap. A slide holds one cell, or a part of one where the whole would be too tall: heights
are estimated here, and `tests/site/test_slides.py` measures every slide in a browser.
"""

import argparse
import ast
import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import nbformat
from latex2mathml.converter import convert
from make_site import ROOT, find_sources
from nbconvert.exporters import SlidesExporter
from notebooks import DRAWN_WHILE_IT_RUNS, Shown, question_box, shown
from pygments.formatters import HtmlFormatter

from traceonce.headings import headings, plain

HERE = Path(__file__).resolve().parent
WHOLE = ("Question", "Break it", "Repair it")
LAST = "Recap"
# What a slide of 1280 × 720 holds below its heading, and how much of it things take, in pixels.
ROOM = 560
TEXT_LINE, TEXT_WIDTH = 35, 92
CODE_LINE, CODE_WIDTH = 26, 98
DENSE_LINE, DENSE_WIDTH = 18.6, 128
GAP = 16
_FORMULA = re.compile(r"\$(?=\S)([^$`\n]+)\$")
_FENCED = re.compile(r"^```.*?^```[^\S\n]*$", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"\]\([^)]*\)|[*`\[\]]")


@dataclass
class Slide:
    """What one slide shows, under the heading of its section: Markdown, code and outputs as cells of a notebook."""

    heading: str
    cells: list[dict[str, Any]] = field(default_factory=list)
    height: float = 0.0


def blocks(text: str) -> Iterator[str]:
    """The paragraphs, lists, tables and blocks of code of a piece of Markdown."""
    place = 0
    for fenced in [*_FENCED.finditer(text), None]:
        before = text[place : fenced.start() if fenced else len(text)]
        yield from (part.strip("\n") for part in re.split(r"\n\s*\n", before) if part.strip())
        if fenced:
            yield fenced[0]
            place = fenced.end()


def lines_of(text: str, width: int) -> int:
    """Lines that a text takes where it is wrapped at a width."""
    return sum(max(1, math.ceil(len(line) / width)) for line in text.splitlines())


def block_height(block: str) -> float:
    """How tall a block of Markdown will be, at most."""
    if block.startswith("```"):
        return CODE_LINE * lines_of("\n".join(block.splitlines()[1:-1]), CODE_WIDTH) + 24 + GAP
    if block.startswith("|"):
        rows = [_MARKS.sub("", row) for row in block.splitlines() if not row.startswith("|--")]
        columns = rows[0].count("|") - 1
        widest = max(max(map(len, row.strip("|").split("|"))) for row in rows)
        # A column that is wider than its share makes the others give way; lines are counted as if none did.
        lines = [max(1, math.ceil(len(row) / 100), math.ceil(widest / 75) if columns > 1 else 1) for row in rows]
        return sum(30 * count + 11 for count in lines) + GAP
    items = re.split(r"\n(?=[-*] |\d+\. )", block)
    return sum(TEXT_LINE * math.ceil(len(_MARKS.sub("", item)) / TEXT_WIDTH) + 7 for item in items) + GAP


def output_height(output: dict[str, Any]) -> float:
    """How tall an output will be."""
    if picture := re.search(r'width="(\d+)" height="(\d+)"', output.get("data", {}).get("text/html", "")):
        width, height = map(float, picture.groups())
        return max(150, min(460, 1184 * height / width)) + GAP  # it is drawn as wide as the slide
    return CODE_LINE * lines_of(output_text(output), CODE_WIDTH) + 16 + GAP


def output_text(output: dict[str, Any]) -> str:
    """What an output says in text."""
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    return str(output.get("text") or output.get("data", {}).get("text/plain", "")).rstrip("\n")


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def text_slides(heading: str, text: str) -> Iterator[Slide]:
    """A piece of Markdown on one slide, or on as many as it needs."""
    yield from packed(heading, [(block_height(block), _markdown(block)) for block in blocks(text)])


def code_slides(heading: str, lead: str, code: str, outputs: list[dict[str, Any]], boxes: list[str]) -> Iterator[Slide]:
    """Code with the text that leads to it, what it printed and the questions that follow, on one slide if there is room."""
    parts = [(block_height(block), _markdown(block)) for block in blocks(lead)]
    if code:
        parts.append((CODE_LINE * lines_of(code, CODE_WIDTH) + 24 + GAP, _code(code, [])))
    parts += [(output_height(output), _code("", [output])) for output in outputs if not drawn_live(output)]
    parts += [(question_height(box), _markdown(box)) for box in boxes]
    if sum(height for height, _ in parts) > ROOM and lead:
        yield from text_slides(heading, lead)
        parts = [part for part in parts if part[1] not in map(_markdown, blocks(lead))]
    yield from packed(heading, parts)


def packed(heading: str, parts: list[tuple[float, dict[str, Any]]]) -> Iterator[Slide]:
    """Things on one slide, or on as many as their heights need; what is too tall for a slide alone is set smaller."""
    slide = Slide(heading)
    for height, cell in parts:
        if slide.cells and slide.height + height > ROOM:
            yield slide
            slide = Slide(heading)
        slide.cells.append(_dense(cell) if height > ROOM else cell)
        slide.height += height
    if slide.cells:
        yield slide


def drawn_live(output: dict[str, Any]) -> bool:
    """Whether an output only says that a chart is drawn while the cell runs."""
    return output_text(output).startswith(DRAWN_WHILE_IT_RUNS)


def question_height(box: str) -> float:
    text, *choices = re.split(r"<li>", box)
    lines = [math.ceil(len(re.sub(r"<[^>]*>", "", text)) / 76), *(math.ceil(len(choice) / 80) for choice in choices)]
    return 39 * sum(lines) + 6 * len(choices) + 60


def _code(code: str, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "source": code,
        "outputs": outputs,
    }
    # An output that stands alone has no empty box of code above it.
    return cell if code else cell | {"metadata": {"transient": {"remove_source": True}}}


def _dense(cell: dict[str, Any]) -> dict[str, Any]:
    return cell | {"metadata": cell["metadata"] | {"tags": ["dense"]}}


def without_questions(code: str) -> str:
    """A cell's code without the statements that only ask a prediction, whose question stands in a box."""
    if "predict(" not in code:
        return code
    lines, asked, lists = code.splitlines(), {"question", "choices"}, set()
    for statement in reversed(ast.parse(code).body):
        if not isinstance(statement, ast.Assign):
            continue
        value = statement.value
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "predict":
            lists |= {argument.id for argument in value.args if isinstance(argument, ast.Name)}
        else:
            only_asks = asked | lists if isinstance(value, ast.List) else asked
            if not all(isinstance(name, ast.Name) and name.id in only_asks for name in statement.targets):
                continue
        del lines[statement.lineno - 1 : statement.end_lineno]
    return "\n".join(lines).strip("\n")


def formulas(markdown: str) -> str:
    """Markdown whose formulas are MathML, except in code."""
    pieces = re.split(r"(```.*?```|`[^`]*`)", markdown, flags=re.DOTALL)
    return "".join(
        piece if number % 2 else _FORMULA.sub(lambda match: convert(match[1]), piece)
        for number, piece in enumerate(pieces)
    )


def deck(cells: list[Shown]) -> Iterator[Slide]:
    """The slides of a lesson."""
    section = ""
    lead = ""  # the text before a cell
    for number, cell in enumerate(cells):
        if cell.kind == "markdown":
            if number == 0:
                yield from text_slides("", cell.text)
                continue
            found = [heading for heading in headings(cell.text) if heading.level == 2]
            section = plain(found[0].text) if found else section
            text = re.sub(r"\A## .*\n+", "", cell.text)
            lead = ""
            if section in (*WHOLE, LAST) or cell.explains:
                yield from text_slides(section, text)
            else:
                lead = text
        elif cell.kind == "code":
            boxes = [question_box(question, choosable=False) for question in cell.questions]
            if cell.evidence or boxes or section in WHOLE[1:]:
                yield from code_slides(section, lead, without_questions(cell.text), cell.outputs, boxes)
            lead = ""


def notebook_of(slides: list[Slide]) -> nbformat.NotebookNode:
    """A notebook that nbconvert makes the deck of."""
    cells: list[dict[str, Any]] = []
    for slide in slides:
        own = [_markdown(f"## {slide.heading}"), *slide.cells] if slide.heading else list(slide.cells)
        for position, cell in enumerate(own):
            kind = "-" if position else "slide"
            metadata = cell["metadata"] | {"slideshow": {"slide_type": kind}}
            if cell["cell_type"] == "markdown":
                cell = {**cell, "source": formulas(cell["source"])}
            cells.append({**cell, "metadata": metadata, "id": f"cell-{len(cells)}"})
    return nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _look() -> dict[str, str]:
    """The styles and the script of a deck: reveal.js as its package holds it, Pygments' colours, ours."""
    reveal = files("sphinx_revealjs") / "_static" / "revealjs" / "dist"
    colours = HtmlFormatter(style="a11y-high-contrast-light").get_style_defs(".highlight")
    styles = [(reveal / "reset.css").read_text("utf-8"), (reveal / "reveal.css").read_text("utf-8"), colours]
    styles.append((HERE / "deck" / "deck.css").read_text("utf-8"))
    script = (reveal / "reveal.js").read_text("utf-8")
    return {"css": "\n".join(styles), "script": re.sub(r"^//# sourceMappingURL=.*$", "", script, flags=re.MULTILINE)}


def write(lesson: Path, place: Path, exporter: SlidesExporter, look: dict[str, str]) -> int:
    """Write the deck of a lesson; returns how many slides it has."""
    cells = shown(lesson)
    slides = list(deck(cells))
    title = headings(cells[0].text)[0].text
    html, _ = exporter.from_notebook_node(notebook_of(slides), {"deck": look | {"title": title}})
    # Links of a lesson lead to other notebooks, which do not lie beside a deck.
    html = re.sub(r'<a href="(?!https?:|#)[^"]*"[^>]*>(.*?)</a>', r"\1", html)
    place.write_text(html, "utf-8")
    return len(slides)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "slides", help="where the decks go")
    parser.add_argument("--lesson", default="", help="only lessons whose name begins so")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    exporter = SlidesExporter(  # type: ignore[no-untyped-call]
        extra_template_basedirs=[str(HERE)],
        template_name="deck",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    look, made = _look(), {}
    for lesson in find_sources(ROOT).lessons:
        if lesson.name.startswith(chosen.lesson):
            made[lesson.stem] = write(ROOT / lesson, chosen.out / f"{lesson.stem}.html", exporter, look)
    (chosen.out / "slides.json").write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    print(f"{sum(made.values())} slides of {len(made)} lessons are in {chosen.out}: open one of its .html files.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

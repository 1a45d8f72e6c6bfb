"""Links between notebooks, and the anchors of headings that they lead to.

JupyterLab (and nbconvert, and pages that render notebooks) name a heading by its text with a hyphen for each blank:
`## A key is a value` is `#A-key-is-a-value`. A link to a heading that was renamed opens the notebook at its top and says
nothing, so every anchor is compared with the headings that stand in the source.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from traceonce.author.course import Course, Finding, Pair
from traceonce.errors import TraceOnceError
from traceonce.grade.percent import SourceCell

_FENCE = re.compile(r"^(```|~~~).*?^\1.*?$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+).+?\1", re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^()\s]+)(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_MARKUP = re.compile(r"\[(?P<words>[^\]]*)\]\([^)]*\)|[`*]")


def anchors(pair: Pair) -> frozenset[str]:
    """The anchors of all headings in a pair's text cells."""
    texts = (_FENCE.sub("", cell.source) for cell in pair.cells if cell.cell_type == "markdown")
    return frozenset(anchor(heading) for text in texts for heading in _HEADING.findall(text))


def anchor(heading: str) -> str:
    """The anchor of a heading: its text without markup, a hyphen for each blank."""
    return _MARKUP.sub(lambda match: match["words"] or "", heading).replace(" ", "-")


def broken_links(course: Course, pair: Pair) -> Iterator[Finding]:
    """One finding for each relative link of a pair that leads to no file, or to no heading of a notebook."""
    # A lab's links must lead somewhere from its starter, whose folder is another one.
    folder = pair.starter.parent if pair.kind == "lab" else pair.source.parent
    for cell, target in _relative_links(pair):
        place, _, fragment = target.partition("#")
        name = Path(os.path.normpath(folder / unquote(place))) if place else pair.notebook
        if not (course.root / name).exists():
            yield Finding(pair.at(cell), f"the link to {target!r} leads to no file ({name}).")
            continue
        aimed = next((other for other in course.pairs if name in (other.notebook, other.starter)), None)
        if not fragment or aimed is None:
            continue
        try:
            known = anchors(aimed)
        except TraceOnceError:
            continue  # reported by the gate for readable sources
        if unquote(fragment) not in known:
            yield Finding(pair.at(cell), f"the link to {target!r} leads to no heading of {aimed.source}.")


def _relative_links(pair: Pair) -> Iterator[tuple[SourceCell, str]]:
    for cell in pair.cells:
        if cell.cell_type == "markdown":
            for match in _LINK.finditer(_CODE.sub("", _FENCE.sub("", cell.source))):
                if "://" not in match["target"] and not match["target"].startswith(("/", "mailto:")):
                    yield cell, match["target"]

"""Links between notebooks, and the anchors of headings that they lead to.

A link to a heading that was renamed opens the notebook at its top and says
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
from traceonce.headings import FENCE, headings

_CODE = re.compile(r"(`+).+?\1", re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^()\s]+)(?:\s+\"[^\"]*\")?\)")


def anchors(pair: Pair) -> frozenset[str]:
    """The anchors of all headings in a pair's text cells."""
    texts = (cell.source for cell in pair.cells if cell.cell_type == "markdown")
    return frozenset(heading.anchor for text in texts for heading in headings(text))


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
            for match in _LINK.finditer(_CODE.sub("", FENCE.sub("", cell.source))):
                if "://" not in match["target"] and not match["target"].startswith(("/", "mailto:")):
                    yield cell, match["target"]

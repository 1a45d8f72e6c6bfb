"""Headings of Markdown text, and the anchors that lead to them.

JupyterLab (and nbconvert, and pages that render notebooks) name a heading by its text with a hyphen for each blank:
`## A key is a value` is `#A-key-is-a-value`.
"""

import re
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[^\S\n]*$", re.MULTILINE | re.DOTALL)
"""A fenced block of code."""

_HEADING = re.compile(r"^(#{1,6}) +(.+?) *$", re.MULTILINE)
_MARKUP = re.compile(r"\[(?P<words>[^\]]*)\]\([^)]*\)|[`*]")


@dataclass(frozen=True)
class Heading:
    """A heading, its depth, and the anchor that JupyterLab gives it."""

    level: int
    text: str

    @property
    def anchor(self) -> str:
        return jupyter_anchor(plain(self.text))


def jupyter_anchor(title: str) -> str:
    """The anchor of a heading in JupyterLab, and so in the links of the notebooks."""
    return title.replace(" ", "-")


def plain(markdown: str) -> str:
    """A heading's text without its marks."""
    return _MARKUP.sub(lambda match: match["words"] or "", markdown)


def headings(markdown: str) -> list[Heading]:
    """The headings in a piece of Markdown; a comment in a block of code is none."""
    return [Heading(len(marks), text) for marks, text in _HEADING.findall(FENCE.sub("", markdown))]

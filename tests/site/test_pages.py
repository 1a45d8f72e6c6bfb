"""The files of the built site: links, assets, and what must not be in them."""

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import make_site
import pytest
from site_code import as_secrets

from traceonce.bundle.leaks import find_leaks, secrets_in
from traceonce.bundle.output import Part
from traceonce.grade.percent import read_percent

ROOT = Path(__file__).resolve().parents[2]
# Attributes through which a page loads something by itself. A link that a reader follows may lead anywhere.
LOADS = {("link", "href"), *((tag, "src") for tag in ("script", "img", "iframe", "audio", "video", "source", "embed"))}
IN_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?(https?:|//)")


class Page(HTMLParser):
    """The anchors of a page, where it links to, what it loads, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.pieces: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.anchors.update(value for name, value in named.items() if name in {"id", "name"})
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        for name, value in named.items():
            # The page's own canonical or previous address is no asset.
            if (tag, name) in LOADS and named.get("rel") not in {"next", "prev", "index", "search"}:
                self.loads.append(value)

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


@cache
def page(path: Path) -> Page:
    return Page(path.read_text("utf-8"))


def pages(folder: Path) -> list[Path]:
    # The theme's own template of its styles lies among the assets.
    found = sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)
    assert len(found) > 30
    return found


def broken(folder: Path, path: Path, target: str) -> bool:
    """Whether a link of a page leads nowhere in the site."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return False
    goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not goal.is_file() or not goal.is_relative_to(folder):
        return True
    return bool(parts.fragment) and goal.suffix == ".html" and unquote(parts.fragment) not in page(goal).anchors


def test_every_notebook_and_page_of_the_project_is_there(site: Path) -> None:
    sources = make_site.find_sources(ROOT)
    expected = [*sources.lessons, *sources.references, *sources.labs, *sources.docs, *sources.proofs]
    assert [str(path) for path in expected if not (site / path.with_suffix(".html")).is_file()] == []
    assert len(sources.lessons) >= 13


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    # search.html and the index of terms are written by Sphinx for a script, and have the same links in their frame.
    found = [
        f"{path.relative_to(site)}: {link}"
        for path in pages(site)
        for link in dict.fromkeys([*page(path).links, *page(path).loads])
        if broken(site, path, link)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("b.html#here", False),
        ("b.html#there", True),
        ("c.html", True),
        ("#top", False),
        ("https://example.test/", False),
    ],
)
def test_broken_link_is_told_from_a_sound_one(tmp_path: Path, target: str, expected: bool) -> None:
    (tmp_path / "a.html").write_text('<p id="top"></p>')
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert broken(tmp_path, tmp_path / "a.html", target) is expected


def test_no_page_and_no_style_names_a_remote_asset(site: Path) -> None:
    loads = [(str(path), load) for path in pages(site) for load in page(path).loads if urlsplit(load).netloc]
    assert loads == []
    assert [str(path) for path in site.rglob("*.css") if IN_STYLE.search(path.read_text("utf-8"))] == []


def searched(site: Path) -> dict[str, Part]:
    """The text of each page, in the words of the search: a notebook under its own name may show a few lines that its lab asks for."""
    parts = {}
    for path in pages(site):
        name, text = path.relative_to(site), "".join(page(path).pieces)
        is_notebook = name.parts[0] in {"course", "labs"}
        content = json.dumps([text]) if is_notebook else text
        parts[str(name.with_suffix(".ipynb") if is_notebook else name)] = Part(content.encode())
    return parts


def test_nothing_of_solutions_and_hidden_asserts_is_on_the_site(site: Path) -> None:
    secrets = secrets_in(ROOT)
    assert len(secrets) > 100
    assert list(find_leaks(searched(site), secrets)) == []


def test_the_search_finds_all_code_of_a_lesson_on_its_page(site: Path) -> None:
    parts = searched(site)
    for path in make_site.find_sources(ROOT).lessons:
        cells = read_percent((ROOT / path).with_suffix(".py").read_text("utf-8"), path.name)
        own = as_secrets(cell.source for cell in cells if cell.cell_type == "code")
        assert len(own) > 10
        found = {where for name, where in find_leaks(parts, own) if name == str(path.with_suffix(".ipynb"))}
        assert found == {secret.where for secret in own}, path


def test_each_answer_of_a_lesson_is_folded(site: Path) -> None:
    text = (site / "course/05_retracing/05_retracing.html").read_text("utf-8")
    questions = text.count('<fieldset class="prediction">')
    assert questions >= 15
    shown, folds = re.subn(r"<details class=\"[^\"]*below-input\">.*?</details>", "", text, flags=re.DOTALL)
    assert folds >= questions - 1
    assert re.findall(r"05-\w+ measured: ", shown) == []
    assert " measured: " in text

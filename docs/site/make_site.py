"""Build the site from the stored outputs: ``python docs/site/make_site.py [--out build/site]``. Warnings are errors.

The sources are laid below ``build/site-sources`` in the folders that they have in the project, so that their links hold, and Sphinx
makes pages of them. Nothing is executed and nothing is fetched.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pages
from notebooks import Shown, figure, load, question_box, shown
from sphinx.cmd.build import main as sphinx

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What a reader asks first comes first; pages that are not named here follow by name.
DOCS = ("preflight", "observe", "own_code", "grading", "teaching", "where", "authoring", "design")
# The picture on the front page: the first one of this lesson.
FRONT_PICTURE = Path("course/05_retracing/05_retracing.ipynb")


def find_sources(root: Path) -> pages.Sources:
    """The notebooks and pages of the project, found by their places."""

    def below(folder: str, pattern: str) -> list[Path]:
        return sorted(path.relative_to(root) for path in (root / folder).glob(pattern) if "checkpoint" not in str(path))

    notebooks = below("course", "**/*.ipynb")
    lessons = [path for path in notebooks if re.match(r"\d\d", path.name)]
    references = [path for path in notebooks if path not in lessons and path != Path("course/index.ipynb")]
    docs = below("docs", "*.md")
    docs.sort(key=lambda path: (DOCS.index(path.stem) if path.stem in DOCS else len(DOCS), path.stem))
    contributing = [Path("CONTRIBUTING.md")] if (root / "CONTRIBUTING.md").exists() else []
    labs, proofs = below("labs", "*.ipynb"), below("docs/graders", "*.md")
    if [path.stem for path in labs] != [path.stem for path in proofs]:
        raise SystemExit("labs/ and docs/graders/ do not hold the same labs: run make proof.")
    return pages.Sources(root, lessons, references, labs, [*docs, *contributing], proofs)


def notebook_for_site(root: Path, path: Path, known: frozenset[Path]) -> dict[str, Any]:
    """A notebook with evidence folded, predictions as boxes and charts in the page's colours."""
    stored = load(root / path)
    cells = [made for cell in shown(root / path) for made in _site_cells(cell)]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            cell["source"] = _linked(cell["source"], root, path, known)
    kept = {key: stored["metadata"][key] for key in ("kernelspec", "language_info") if key in stored["metadata"]}
    return {"cells": cells, "metadata": kept, "nbformat": 4, "nbformat_minor": 5}


def _site_cells(cell: Shown) -> list[dict[str, Any]]:
    if cell.kind == "markdown":
        text = f"``````{{container}} explained\n{cell.text}\n``````" if cell.explains else cell.text
        return [_markdown(cell.id, text)]
    if cell.kind != "code":
        return []
    tags = ["hide-output"] if cell.evidence and cell.outputs else []
    code = {
        "cell_type": "code",
        "execution_count": None,
        "id": cell.id,
        "metadata": {"tags": tags},
        "source": cell.text,
        "outputs": cell.outputs,
    }
    boxes = [
        _markdown(f"{cell.id}-{number}", question_box(question, choosable=True))
        for number, question in enumerate(cell.questions)
    ]
    return [code, *boxes]


def _markdown(name: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}


def first_picture(path: Path) -> str:
    """The first chart of a notebook."""
    for cell in load(path)["cells"]:
        for output in cell.get("outputs", []):
            if picture := output.get("data", {}).get("image/svg+xml"):
                return figure("".join(picture))
    raise SystemExit(f"{path}: it holds no picture for the front page.")


def prepare(root: Path, place: Path) -> pages.Sources:
    """Lay the sources of the site below a folder, which is made anew."""
    sources = find_sources(root)
    shutil.rmtree(place, ignore_errors=True)
    notebooks = [Path("course/index.ipynb"), *sources.lessons, *sources.references, *sources.labs]
    known = frozenset([*notebooks, *sources.docs, *sources.proofs])
    for path in notebooks:
        _write(place / path, json.dumps(notebook_for_site(root, path, known)))
    for path in [*sources.docs, *sources.proofs]:
        _write(place / path, _linked((root / path).read_text("utf-8"), root, path, known))
    front = (HERE / "front.md").read_text("utf-8")
    _write(place / "index.md", pages.front(sources, front, first_picture(root / FRONT_PICTURE)))
    _write(place / "proof.md", pages.proof(sources))
    _write(place / "reports.md", pages.reports(sources))
    return sources


def _linked(text: str, root: Path, path: Path, pages_of_site: frozenset[Path]) -> str:
    """Text whose links to a lesson's folder lead to its notebook; a file of the project that is no page is named instead."""

    def link(match: re.Match[str]) -> str:
        goal = Path(os.path.normpath(path.parent / match["target"]))
        notebook = goal / f"{goal.name}.ipynb"
        if (root / notebook).exists():
            return f"[{match['text']}]({match['target']}/{notebook.name})"
        if goal in pages_of_site or not (root / goal).exists():
            return match[0]
        return match["text"] if str(goal) in match["text"] else f"{match['text']} (`{goal}`)"

    return re.sub(r"(?<!!)\[(?P<text>[^\]\n]+)\]\((?P<target>[\w./-]+)\)", link, text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="where the pages go")
    chosen = parser.parse_args(arguments)
    place = chosen.out.with_name(f"{chosen.out.name}-sources")
    prepare(ROOT, place)
    shutil.rmtree(chosen.out, ignore_errors=True)
    # Two processes read and write; every warning is counted, so that one run names them all.
    options = ["-q", "-W", "--keep-going", "-j", "2", "-b", "html", "-c", str(HERE), "-d", f"{place}/.doctrees"]
    status: int = sphinx([*options, str(place), str(chosen.out)])
    if status == 0:
        print(f"The site is in {chosen.out}: open index.html.")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

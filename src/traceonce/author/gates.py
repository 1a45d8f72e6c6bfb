"""What must hold in every notebook and in the tree. `traceonce author build --check` runs all of it.

A gate is a function from the course to its findings. Each was written for a fault that stays invisible until a learner
or CI meets it; `tests/author/test_gates.py` plants that fault for each of them.
"""

import re
import statistics
from collections.abc import Callable, Iterator

from traceonce.author.course import CELL_METADATA, Course, Finding, Pair
from traceonce.author.course_map import faults_of_map
from traceonce.author.coverage import coverage
from traceonce.author.inventory import faults_of_inventory
from traceonce.author.links import broken_links
from traceonce.author.notebooks import (
    Json,
    assemble,
    dumps,
    edited_apart,
    may_raise,
    read_stored,
    recorded,
    stored_outputs,
)
from traceonce.author.predictions import predictions_of
from traceonce.author.proof import stale_tables, starters_that_score
from traceonce.author.starters import make_starter
from traceonce.author.tree import addresses_in_tree
from traceonce.errors import TraceOnceError
from traceonce.grade.execution import Source, unused
from traceonce.grade.lab import FOR_SHOW, load_lab
from traceonce.grade.percent import SourceCell

Gate = Callable[[Course], Iterator[Finding]]

CODE_LINES = 20
MEDIAN_CODE_LINES = 6
PROSE_WORDS = {"index": 100, "lesson": 100, "page": 100, "lab": 120}
MEDIAN_PROSE_WORDS = 60
SITUATION_LINES = 10
NOTEBOOK_BYTES = 300_000
IGNORED_SHARE = 10

LESSON_SPINE = ("Question", "Before you run", "Break it", "Repair it", "In the wild", "Recap", "Lab")
LAB_SPINE = ("Situation", "What the hidden asserts look at", "Going further")
_BUILD = "run 'traceonce author build'"


def _readable(course: Course) -> Iterator[tuple[Pair, Json | None]]:
    """Every pair that can be read, with its stored notebook; `sources_are_readable` reports the others."""
    for pair in course.pairs:
        try:
            yield (pair, read_stored(pair.root / pair.notebook)) if pair.cells else (pair, None)
        except TraceOnceError:
            continue


def _cells_of_source(pair: Pair) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in pair.cells]


def _cells_of(stored: Json) -> list[tuple[str, str]]:
    return [(cell["cell_type"], cell["source"]) for cell in stored["cells"]]


# Sources and pairs ----------------------------------------------------------------------------------------------------


def sources_are_readable(course: Course) -> Iterator[Finding]:
    """Each source and each stored notebook can be read, and its metadata has only keys that reach the notebook."""
    for pair in course.pairs:
        try:
            cells = pair.cells
            read_stored(pair.root / pair.notebook)
        except TraceOnceError as error:
            yield Finding(str(pair.source), str(error))
            continue
        if not cells:
            yield Finding(str(pair.source), "it has no cells: begin one with '# %%'.")
        for cell in cells:
            for key in cell.metadata.keys() - set(CELL_METADATA):
                yield Finding(pair.at(cell), f"metadata {key!r} is not one of {', '.join(CELL_METADATA)}.")
            for key in ("tags", "claims"):
                value = cell.metadata.get(key, [])
                if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                    yield Finding(pair.at(cell), f'{key} must be a list of texts, as {key}=["P1"].')
            if not cell.source.strip():
                yield Finding(pair.at(cell), "the cell is empty: fill it or delete it.")


def jupytext_reads_the_same(course: Course) -> Iterator[Finding]:
    """JupyterLab opens a source through Jupytext: it must see the cells that the build sees."""
    import jupytext

    for pair, _ in _readable(course):
        theirs = jupytext.reads((course.root / pair.source).read_text("utf-8"), fmt="py:percent").cells
        if len(theirs) != len(pair.cells):
            yield Finding(
                str(pair.source),
                f"Jupytext sees {len(theirs)} cells here and the build {len(pair.cells)}: "
                "is there a '# %%' inside a string or a fenced block?",
            )
            continue
        for ours, cell in zip(pair.cells, theirs, strict=True):
            if (ours.cell_type, ours.source) != (cell.cell_type, cell.source):
                yield Finding(
                    pair.at(ours),
                    "Jupytext reads this cell otherwise than the build: look for a comment that looks like a shell "
                    "command or a magic (as '# ls' or '# name?'), and for blank lines with spaces.",
                )


def pairs_are_in_sync(course: Course) -> Iterator[Finding]:
    """The notebook holds the cells of its source, compared by content."""
    for pair, stored in _readable(course):
        if stored is None:
            yield Finding(str(pair.notebook), f"there is no notebook for {pair.source.name}: {_BUILD}.")
            continue
        ours, theirs = _cells_of_source(pair), _cells_of(stored)
        if ours == theirs:
            continue
        same = next(
            (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
        )
        advice = _BUILD
        if edited_apart(pair, stored):
            advice = f"the notebook was changed since it was built; take its change over into {pair.source.name}"
        yield Finding(str(pair.notebook), f"it differs from {pair.source.name} from cell {same + 1} on: {advice}.")


def outputs_are_fresh(course: Course) -> Iterator[Finding]:
    """The stored outputs come from the code that stands there now; nbval checks that the code still gives them."""
    for pair, stored in _readable(course):
        if stored is not None and stored_outputs(pair, stored) is None:
            how = "was never built" if recorded(stored, "executed") is None else "has code that changed since it ran"
            yield Finding(str(pair.notebook), f"it {how}, so its outputs are stale: {_BUILD}.")


def notebooks_are_clean(course: Course) -> Iterator[Finding]:
    """The stored notebook is byte for byte what the build writes: no timestamps, no widget state, no local metadata."""
    for pair, stored in _readable(course):
        outputs = stored_outputs(pair, stored) if stored is not None else None
        if stored is None or outputs is None or _cells_of(stored) != _cells_of_source(pair):
            continue  # missing, stale or out of sync, and reported so
        if dumps(assemble(pair, outputs)) != (course.root / pair.notebook).read_text("utf-8"):
            yield Finding(
                str(pair.notebook), f"its metadata, ids or outputs are not as the build writes them: {_BUILD}."
            )


def notebooks_have_a_source(course: Course) -> Iterator[Finding]:
    """No notebook in course/, solutions/ or labs/ stands without the source that it is made from."""
    known = {pair.notebook for pair in course.pairs} | {pair.starter for pair in course.labs}
    for folder in ("course", "solutions", "labs"):
        for path in sorted((course.root / folder).rglob("*.ipynb")):
            name = path.relative_to(course.root)
            if name not in known and ".ipynb_checkpoints" not in name.parts:
                yield Finding(str(name), "no source makes this notebook: write its .py, or delete it.")


def labs_equal_generation(course: Course) -> Iterator[Finding]:
    """labs/ holds exactly what nbgrader's preprocessors make of solutions/."""
    for pair, _ in _readable(course):
        if pair.kind != "lab":
            continue
        try:
            wanted = dumps(make_starter(pair))
        except TraceOnceError as error:
            yield Finding(str(pair.source), str(error))
            continue
        path = course.root / pair.starter
        if not path.is_file():
            yield Finding(str(pair.starter), f"the lab is not made yet: {_BUILD}.")
        elif path.read_text("utf-8") != wanted:
            yield Finding(str(pair.starter), f"it is not what {pair.source} gives; labs/ is never edited: {_BUILD}.")


def notebooks_are_small(course: Course) -> Iterator[Finding]:
    """A notebook opens at once and shows on a code-hosting page."""
    for pair in course.pairs:
        for name in (pair.notebook, pair.starter):
            path = course.root / name
            if path.is_file() and path.stat().st_size > NOTEBOOK_BYTES:
                size = path.stat().st_size // 1000
                yield Finding(
                    str(name), f"{size} kB, over {NOTEBOOK_BYTES // 1000}: print less, or show a smaller picture."
                )


# What a reader meets --------------------------------------------------------------------------------------------------


def code_cells_are_short(course: Course) -> Iterator[Finding]:
    """A code cell fits on a screen, and most are shorter by far."""
    for pair, _ in _readable(course):
        lengths = []
        for cell in (cell for cell in pair.cells if cell.cell_type == "code"):
            lengths.append(len(cell.source.splitlines()))
            if lengths[-1] > CODE_LINES:
                yield Finding(pair.at(cell), f"{lengths[-1]} lines of code, over {CODE_LINES}: split the cell by idea.")
        if pair.kind == "lesson" and lengths and statistics.median(lengths) > MEDIAN_CODE_LINES:
            yield Finding(
                str(pair.source),
                f"the median code cell has {statistics.median(lengths):g} lines, over {MEDIAN_CODE_LINES}: "
                "most cells should show one thing.",
            )


def prose_is_short(course: Course) -> Iterator[Finding]:
    """A text cell says one thing. Headings, tables, code and link targets are not counted."""
    for pair, _ in _readable(course):
        counts = []
        for cell in (cell for cell in pair.cells if cell.cell_type == "markdown"):
            words = _words(cell.source)
            if words:
                counts.append(words)
            if words > PROSE_WORDS[pair.kind]:
                yield Finding(
                    pair.at(cell),
                    f"{words} words of prose, over {PROSE_WORDS[pair.kind]}: cut it, or split it by idea.",
                )
        if pair.kind == "lesson" and counts and statistics.median(counts) > MEDIAN_PROSE_WORDS:
            yield Finding(
                str(pair.source),
                f"the median text cell has {statistics.median(counts):g} words, over {MEDIAN_PROSE_WORDS}: say less.",
            )


def _words(markdown: str) -> int:
    text = re.sub(r"^(```|~~~).*?^\1.*?$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|<!--.*?-->", " ", text, flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "|"))]
    return sum(bool(re.search(r"\w", word)) for word in " ".join(prose).split())


def _sections(pair: Pair) -> list[tuple[str, SourceCell]]:
    """The second-level headings of a source, with their cells."""
    found = []
    for cell in (cell for cell in pair.cells if cell.cell_type == "markdown"):
        text = re.sub(r"^(```|~~~).*?^\1.*?$", "", cell.source, flags=re.MULTILINE | re.DOTALL)
        found += [(heading.strip(), cell) for heading in re.findall(r"^## (.*)$", text, flags=re.MULTILINE)]
    return found


def spine_stands(course: Course) -> Iterator[Finding]:
    """A lesson and a lab have the headings that every other one has, in the same order."""
    for pair, _ in _readable(course):
        if pair.kind in ("index", "page"):
            continue
        spine = LESSON_SPINE if pair.kind == "lesson" else LAB_SPINE
        headings = [heading for heading, _ in _sections(pair)]
        if not pair.cells or not re.search(r"^# \S", pair.cells[0].source) or pair.cells[0].cell_type != "markdown":
            yield Finding(str(pair.source), "the first cell is not a text with the title ('# ...').")
        if [heading for heading in headings if heading in spine] != list(spine):
            missing = [heading for heading in spine if heading not in headings]
            what = f"without '## {missing[0]}'" if missing else "with headings out of order or twice"
            yield Finding(str(pair.source), f"a {pair.kind} {what}; the order is {', '.join(spine)}.")
            continue
        # The sections that a lesson or a lab names itself come where the spine leaves room for them.
        first, last = (spine[1], spine[2]) if pair.kind == "lesson" else (spine[0], spine[1])
        own = headings[headings.index(first) + 1 : headings.index(last)]
        if len(own) + len(spine) != len(headings):
            yield Finding(
                str(pair.source), f"only between '{first}' and '{last}' has a {pair.kind} sections of its own."
            )
        elif pair.kind == "lesson" and not 2 <= len(own) <= 5:
            yield Finding(str(pair.source), f"{len(own)} sections of its own; a lesson has two to five.")
        elif pair.kind == "lab" and not own:
            yield Finding(str(pair.source), "no task: a lab has a '## ' heading for each, after 'Situation'.")


def situations_are_short(course: Course) -> Iterator[Finding]:
    """A lab starts with a symptom, not with a story."""
    for pair, _ in _readable(course):
        if pair.kind != "lab":
            continue
        for heading, cell in _sections(pair):
            body = cell.source.partition("## Situation")[2].partition("\n## ")[0]
            lines = [line for line in body.splitlines() if line.strip()]
            if heading == "Situation" and len(lines) > SITUATION_LINES:
                yield Finding(
                    pair.at(cell), f"the situation takes {len(lines)} lines, over {SITUATION_LINES}: shorten it."
                )


def links_lead_somewhere(course: Course) -> Iterator[Finding]:
    """Each relative link in a text cell leads to a file of the course, and its anchor to a heading that stands there."""
    for pair, _ in _readable(course):
        yield from broken_links(course, pair)


def evidence_follows_its_prediction(course: Course) -> Iterator[Finding]:
    """A prediction is asked in an earlier cell than the one that answers it, and every one is answered."""
    homes: dict[tuple[str, str], Pair] = {}  # the progress file knows a prediction by its ID alone
    for pair, _ in _readable(course):
        if pair.kind != "lesson":
            continue
        asked, findings = predictions_of(pair)
        yield from findings
        if not asked:
            yield Finding(
                str(pair.source), "the lesson asks no prediction: add predict(...) before the first evidence."
            )
        asked_claims: set[str] = set()  # a second prediction on a claim may build on what the first one showed
        for prediction in asked:
            here = pair.at(prediction.cell)
            if homes.setdefault((pair.lesson, prediction.id), pair) is not pair:
                yield Finding(here, f"prediction {prediction.id!r} is asked in another notebook of the lesson too.")
            claim = re.fullmatch(rf"{pair.name[:2]}-([A-Z]\d+)[a-z]?", prediction.id)
            if claim is None:
                yield Finding(here, f"prediction {prediction.id!r} should be named like '{pair.name[:2]}-P3'.")
            if not prediction.revealed:
                yield Finding(here, f"prediction {prediction.id!r} is not revealed in a later cell.")
            first = claim is not None and claim[1] not in asked_claims
            asked_claims |= {claim[1]} if claim else set()
            for cell in pair.cells[: pair.cells.index(prediction.cell) + 1]:
                if claim and first and claim[1] in cell.metadata.get("claims", []):
                    yield Finding(pair.at(cell), f"the cell shows {claim[1]} before prediction {prediction.id!r} asks.")


# What is made from the lessons ----------------------------------------------------------------------------------------


def map_is_fresh(course: Course) -> Iterator[Finding]:
    """Progress is laid on a map of the lessons, and the index shows the same: titles, minutes and labs are the lessons' own."""
    yield from faults_of_map(course)


def inventory_is_sound(course: Course) -> Iterator[Finding]:
    """Two questions a lesson; each right answer was computed from the code that stands there now, and no other choice is right."""
    yield from faults_of_inventory(course)


# Evidence -------------------------------------------------------------------------------------------------------------


def claims_are_covered(course: Course) -> Iterator[Finding]:
    """Each claim of a written lesson is shown by an executed cell, and no cell names a claim that does not exist."""
    yield from coverage(course).findings


def ignored_outputs_have_a_reason(course: Course) -> Iterator[Finding]:
    """A cell whose output nbval does not compare says why, and such cells are rare. Nothing is skipped altogether."""
    for pair, _ in _readable(course):
        code = [cell for cell in pair.cells if cell.cell_type == "code"]
        ignored = 0
        for cell in code:
            tags = cell.metadata.get("tags", [])
            reason = cell.metadata.get("ignored")
            comments = re.findall(r"^#\s*(NBVAL_\w+|PYTEST_VALIDATE_\w+)", cell.source, flags=re.MULTILINE)
            if forbidden := {"nbval-skip", "nbval-raises-exception"}.intersection(tags) | set(comments):
                yield Finding(
                    pair.at(cell),
                    f"{sorted(forbidden)[0]} is not used here: 'nbval-ignore-output' and 'raises-exception' are tags.",
                )
            ignored += "nbval-ignore-output" in tags
            if ("nbval-ignore-output" in tags) != (isinstance(reason, str) and len(reason.split()) > 2):
                yield Finding(
                    pair.at(cell), 'the tag nbval-ignore-output and a reason belong together: ignored="why, in words".'
                )
        if ignored * IGNORED_SHARE > len(code):
            yield Finding(
                str(pair.source),
                f"{ignored} of {len(code)} code cells are not compared, over one in {IGNORED_SHARE}: "
                "print integers, rounded numbers and booleans instead.",
            )


def only_meant_errors_are_stored(course: Course) -> Iterator[Finding]:
    """A cell that ends in an exception is tagged raises-exception, and a tagged one does raise."""
    for pair, stored in _readable(course):
        if stored is None or stored_outputs(pair, stored) is None or _cells_of(stored) != _cells_of_source(pair):
            continue  # missing, stale or out of sync, and reported so
        for cell, ran in zip(pair.cells, stored["cells"], strict=True):
            raised = any(output["output_type"] == "error" for output in ran.get("outputs", []))
            if raised and not may_raise(cell):
                yield Finding(pair.at(cell), "its stored output is an exception: mend it, or tag it raises-exception.")
            elif may_raise(cell) and not raised:
                yield Finding(pair.at(cell), "it is tagged raises-exception and raises nothing: take the tag away.")


def cells_for_show_are_left_out(course: Course) -> Iterator[Finding]:
    """A cell with the tag `for-show` is a lab's given cell, and nothing that is graded rests on it."""
    for pair, _ in _readable(course):
        tagged = [index for index, cell in enumerate(pair.cells) if FOR_SHOW in cell.metadata.get("tags", [])]
        if not tagged:
            continue
        code = load_lab(course.root / pair.source).code if pair.kind == "lab" else ()
        given = {cell.index for cell in code if cell.for_show}
        idle = {source.grade_id for source in unused([Source(**cell.as_source()) for cell in code])}
        needed = {cell.index for cell in code if cell.for_show and cell.grade_id not in idle}
        for index in tagged:
            if index not in given:
                yield Finding(pair.at(pair.cells[index]), "only a lab's given cell can be for-show: take the tag away.")
            elif index in needed:
                yield Finding(
                    pair.at(pair.cells[index]),
                    "it is tagged for-show, and another cell uses one of its names, so that it is run for every submission: take the tag away.",
                )


# The graders and the tree ---------------------------------------------------------------------------------------------


def starters_score_nothing(course: Course) -> Iterator[Finding]:
    """The untouched starter gets 0 for every graded item, from the real grader."""
    yield from starters_that_score(course)


def grader_tables_are_fresh(course: Course) -> Iterator[Finding]:
    """docs/graders/ shows the proof of the asserts and submissions that stand there now."""
    yield from stale_tables(course)


def tree_names_no_machine(course: Course) -> Iterator[Finding]:
    """No tracked file holds a path of somebody's machine or a network address."""
    yield from addresses_in_tree(course)


GATES: tuple[Gate, ...] = (
    sources_are_readable,
    jupytext_reads_the_same,
    pairs_are_in_sync,
    outputs_are_fresh,
    notebooks_are_clean,
    notebooks_have_a_source,
    labs_equal_generation,
    notebooks_are_small,
    code_cells_are_short,
    prose_is_short,
    spine_stands,
    situations_are_short,
    links_lead_somewhere,
    evidence_follows_its_prediction,
    map_is_fresh,
    inventory_is_sound,
    claims_are_covered,
    ignored_outputs_have_a_reason,
    only_meant_errors_are_stored,
    cells_for_show_are_left_out,
    starters_score_nothing,
    grader_tables_are_fresh,
    tree_names_no_machine,
)

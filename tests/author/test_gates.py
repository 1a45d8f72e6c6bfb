"""Every gate is silent on a sound course, and speaks when the fault that it was written for is planted."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from traceonce.author import gates, proof
from traceonce.author.building import build, check
from traceonce.author.course import Course
from traceonce.author.course_map import build_map
from traceonce.author.inventory import build_inventory
from traceonce.author.proof import Graded, Outcome, digest_of_inputs, table_path
from traceonce.author.submissions import hidden_of
from traceonce.errors import TraceOnceError

LESSON = "course/01_tiny/01_tiny.py"
LESSON_NOTEBOOK = "course/01_tiny/01_tiny.ipynb"
LAB = "solutions/lab01_tiny.py"
STARTER = "labs/lab01_tiny.ipynb"

FAILED = Graded("failed", (Outcome("test_adds", "It adds", 0, 1, False, "Add them."),))
GIVES_A_POINT = Graded("failed", (Outcome("test_adds", "It adds", 1, 1, True),))


@pytest.fixture
def sound(built: Path, monkeypatch) -> Path:
    """A course in which no gate finds anything: built, with hidden asserts and a table of their proof."""
    pair = Course(built).labs[0]
    (built / hidden_of(pair)).parent.mkdir(parents=True)
    (built / hidden_of(pair)).write_text("# stands for the hidden asserts: the grader is replaced below\n", "utf-8")
    (built / table_path(pair)).parent.mkdir(parents=True)
    (built / table_path(pair)).write_text(f"# A table\n<!-- inputs: {digest_of_inputs(pair)} -->\n", "utf-8")
    monkeypatch.setattr(proof, "_default_grader", lambda: lambda pair, work: [FAILED for _ in work])
    track(built)
    return built


def track(root: Path) -> None:
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)


def replace(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text("utf-8")
    assert old in text
    (root / name).write_text(text.replace(old, new, 1), "utf-8")


def append(root: Path, name: str, text: str) -> None:
    (root / name).write_text((root / name).read_text("utf-8") + text, "utf-8")


def change_notebook(root: Path, name: str, change: Callable[[dict], object]) -> None:
    notebook = json.loads((root / name).read_text("utf-8"))
    change(notebook)
    (root / name).write_text(json.dumps(notebook, indent=1, sort_keys=True) + "\n", "utf-8")


def findings(gate: gates.Gate, root: Path) -> list[str]:
    return [str(finding) for finding in gate(Course(root))]


def test_a_sound_course_passes_every_gate(sound, capsys):
    assert check(Course(sound)) == 0
    assert capsys.readouterr().out == f"2 pairs and 1 labs pass {len(gates.GATES)} gates.\n"


def test_a_link_to_no_file_or_no_heading_is_found(sound):
    replace(
        sound,
        LESSON,
        "Where does the sum go?",
        "[a](nowhere.ipynb) [b](#Adding) [c](#Adding-up) [d](01_tiny.ipynb#Recap)",
    )
    replace(
        sound,
        LAB,
        "A colleague",
        "[A](../course/01_tiny/01_tiny.ipynb#Adding) [b](../course/01_tiny/01_tiny.ipynb#Sums)\n# `[c](no)`",
    )
    first, second, third = findings(gates.links_lead_somewhere, sound)
    assert "01_tiny.py:1: the link to 'nowhere.ipynb' leads to no file (course/01_tiny/nowhere.ipynb)" in first
    assert "'#Adding-up' leads to no heading of course/01_tiny/01_tiny.py" in second
    assert "lab01_tiny.py" in third
    assert "#Sums' leads to no heading" in third


def test_a_page_beside_the_lessons_is_a_pair_without_a_spine(sound):
    page = sound / "course/torch/torch.py"
    page.parent.mkdir()
    page.write_text("# %% [markdown]\n# # A page\n\n# %%\nprint(1)\n", "utf-8")
    assert [(pair.name, pair.kind) for pair in Course(sound).pairs] == [
        ("01_tiny", "lesson"),
        ("torch", "page"),
        ("lab01_tiny", "lab"),
    ]
    assert findings(gates.spine_stands, sound) == []
    assert "there is no notebook for torch.py" in findings(gates.pairs_are_in_sync, sound)[0]


MAP = "src/traceonce/show/course_map.json"


def test_the_map_of_progress_and_the_index_follow_the_lessons(sound):
    (sound / MAP).parent.mkdir(parents=True)
    assert build_map(Course(sound)) == "written"
    assert build_map(Course(sound)) == "up to date"
    (entry,) = json.loads((sound / MAP).read_text("utf-8"))
    assert (entry["title"], entry["predictions"], entry["lab"]["name"]) == ("One tiny lesson", ["01-P1"], "lab01_tiny")
    row = f"| [01 One tiny lesson](01_tiny/01_tiny.ipynb) | {entry['minutes']} | [{entry['lab']['minutes']}](../labs/lab01_tiny.ipynb) |"
    (sound / "course/index.py").write_text(f"# %% [markdown]\n# {row}\n", "utf-8")
    assert findings(gates.map_is_fresh, sound) == []
    replace(sound, LESSON, "One tiny lesson", "Another lesson")
    stale, index = findings(gates.map_is_fresh, sound)
    assert stale.startswith(f"{MAP}: it is not what the lessons and labs say now")
    assert "has not '[01 Another lesson]'" in index


INVENTORY = """
[[question]]
id = "01-a"
claim = "P1"
ask = "What?"
code = "print(1 + 1)"
choices = [{ text = "2" }, { text = "3", misconception = "sums grow" }, { text = "11", misconception = "sums join" }]
"""


def test_the_answers_of_the_inventory_are_computed_and_kept_fresh(sound):
    folder = sound / "src/traceonce/inventory"
    folder.mkdir(parents=True)
    (folder / "questions.toml").write_text(INVENTORY + INVENTORY.replace("01-a", "01-b"), "utf-8")
    assert len(findings(gates.inventory_is_sound, sound)) == 2  # nothing was computed yet
    assert build_inventory(Course(sound)) == "executed"
    assert build_inventory(Course(sound)) == "up to date"
    assert findings(gates.inventory_is_sound, sound) == []
    assert json.loads((folder / "answers.json").read_text("utf-8"))["01-a"]["answer"] == "2"

    replace(sound, "src/traceonce/inventory/answers.json", '"answer": "2"', '"answer": "3"')
    assert "prints 3, which is listed as a misconception (sums grow)" in findings(gates.inventory_is_sound, sound)[0]
    replace(sound, "src/traceonce/inventory/answers.json", '"answer": "3"', '"answer": "4"')
    assert "'4', is none of its choices" in findings(gates.inventory_is_sound, sound)[0]
    replace(sound, "src/traceonce/inventory/questions.toml", "1 + 1", "1 + 2")
    assert "the answer to 01-a is not that of its code" in findings(gates.inventory_is_sound, sound)[0]
    build_inventory(Course(sound))
    assert "01-a prints 3, which is listed as a misconception" in findings(gates.inventory_is_sound, sound)[0]
    replace(sound, "src/traceonce/inventory/questions.toml", "1 + 2", "1 + 3")
    with pytest.raises(TraceOnceError, match="01-a prints '4', which is none of its choices"):
        build_inventory(Course(sound))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "01-a"', 'id = "01-b"', "two questions have the same id"),
        ('claim = "P1"', 'claim = "Q1"', "is about Q1, which is no claim"),
        ('{ text = "2" }, ', "", "3 to 5 choices"),
        ('misconception = "sums join"', 'misconception = "sums grow"', "a misconception of its own"),
        ('ask = "What?"', "", "cannot be read (question '01-a' has no 'ask')"),
        ('id = "01-a"', 'id = "02-a"', "01_tiny has 1 questions"),
    ],
)
def test_a_faulty_question_is_found(sound, old, new, said):
    folder = sound / "src/traceonce/inventory"
    folder.mkdir(parents=True)
    (folder / "questions.toml").write_text(INVENTORY.replace(old, new, 1) + INVENTORY.replace("01-a", "01-b"), "utf-8")
    assert any(said in finding for finding in findings(gates.inventory_is_sound, sound))


def test_check_prints_one_line_a_finding_changes_nothing_and_returns_1(sound, capsys):
    replace(sound, LESSON, "total = 1 + 1", "total = 1 + 0")
    replace(sound, LAB, "off by one", "off by two")
    before = {path: path.read_bytes() for path in sound.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert check(Course(sound)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines[:-1]] == [
        "course/01_tiny/01_tiny.ipynb",  # other cells than its source
        "course/01_tiny/01_tiny.ipynb",  # stale outputs
        "labs/lab01_tiny.ipynb",
        "solutions/lab01_tiny.ipynb",
    ]
    assert lines[-1] == "4 to mend."
    assert {path: path.read_bytes() for path in before} == before
    assert set(before) == {path for path in sound.rglob("*") if path.is_file() and ".git" not in path.parts}


def test_unreadable_lab_stops_no_gate(sound):
    replace(sound, LAB, '"points": 1', '"points": one')
    assert all(isinstance(findings(gate, sound), list) for gate in gates.GATES)
    assert "not JSON" in findings(gates.sources_are_readable, sound)[0]


def test_unreadable_source_is_one_finding_and_stops_no_other_gate(sound):
    replace(sound, LESSON, 'claims=["P1"]', "claims=[P1]")
    assert findings(gates.sources_are_readable, sound) == [
        f"{LESSON}: {LESSON}, line 19: the value of claims is not JSON (Expecting value)."
    ]
    assert all(isinstance(findings(gate, sound), list) for gate in gates.GATES)


def test_text_cell_that_is_added_stops_no_gate(sound):
    append(sound, LESSON, "\n# %% [markdown]\n# More.\n")
    assert {str(finding).partition(":")[0] for gate in gates.GATES for finding in gate(Course(sound))} == {
        LESSON_NOTEBOOK
    }


def test_broken_notebook_file_is_reported(sound):
    (sound / LESSON_NOTEBOOK).write_text("{", "utf-8")
    assert "is not a notebook" in findings(gates.sources_are_readable, sound)[0]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# %%\nfrom", "# %% colour=1\nfrom", "metadata 'colour' is not one of"),
        ("# %%\nguess", "# %%\n\n# %%\nguess", "the cell is empty"),
        ('claims=["P1"]', 'claims="P1"', "claims must be a list"),
    ],
)
def test_metadata_that_does_not_reach_the_notebook(sound, old, new, says):
    replace(sound, LESSON, old, new)
    assert says in findings(gates.sources_are_readable, sound)[0]


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ("# ls is not a shell command here\ntotal = 1 + 1", "Jupytext reads this cell otherwise"),
        ('total = 1 + 1\n"""\n# %%\n"""', "Jupytext sees 12 cells here and the build 13"),
    ],
)
def test_source_that_jupytext_reads_otherwise(sound, new, says):
    replace(sound, LESSON, "total = 1 + 1", new)
    assert says in findings(gates.jupytext_reads_the_same, sound)[0]


def test_pair_out_of_sync_in_text_alone(sound):
    replace(sound, LESSON, "Where does", "Where did")
    assert findings(gates.pairs_are_in_sync, sound) == [
        f"{LESSON_NOTEBOOK}: it differs from 01_tiny.py from cell 1 on: run 'traceonce author build'."
    ]
    assert findings(gates.outputs_are_fresh, sound) == []


def test_pair_out_of_sync_by_an_edit_of_the_notebook(sound):
    replace(sound, LESSON_NOTEBOOK, "total = 1 + 1", "total = 1 + 0")
    assert "take its change over into 01_tiny.py" in findings(gates.pairs_are_in_sync, sound)[0]


def test_missing_notebook(sound):
    (sound / LESSON_NOTEBOOK).unlink()
    assert "there is no notebook for 01_tiny.py" in findings(gates.pairs_are_in_sync, sound)[0]


def test_outputs_of_changed_code_are_stale_even_where_the_cells_agree(sound):
    replace(sound, LESSON, "total = 1 + 1", "total = 1 + 0")
    replace(sound, LESSON_NOTEBOOK, "total = 1 + 1", "total = 1 + 0")
    assert findings(gates.pairs_are_in_sync, sound) == []
    assert "has code that changed since it ran" in findings(gates.outputs_are_fresh, sound)[0]


def test_notebook_that_was_never_built_is_stale(sound):
    change_notebook(sound, LESSON_NOTEBOOK, lambda notebook: notebook["metadata"].pop("traceonce"))
    assert "was never built" in findings(gates.outputs_are_fresh, sound)[0]


def stamp(notebook: dict) -> None:
    notebook["cells"][2]["metadata"]["execution"] = {"iopub.execute_input": "2031-01-01T00:00:00Z"}


def rename_id(notebook: dict) -> None:
    notebook["cells"][0]["id"] = "another"


def add_widgets(notebook: dict) -> None:
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}


@pytest.mark.parametrize("dirty", [stamp, rename_id, add_widgets])
def test_notebook_that_is_not_clean(sound, dirty):
    change_notebook(sound, LESSON_NOTEBOOK, dirty)
    assert findings(gates.outputs_are_fresh, sound) == []
    assert "not as the build writes them" in findings(gates.notebooks_are_clean, sound)[0]
    assert build(Course(sound)) == 0
    assert findings(gates.notebooks_are_clean, sound) == []


def test_notebook_without_a_source(sound):
    (sound / "labs/lab02_old.ipynb").write_text("{}", "utf-8")
    assert findings(gates.notebooks_have_a_source, sound) == [
        "labs/lab02_old.ipynb: no source makes this notebook: write its .py, or delete it."
    ]


def test_lab_that_was_edited(sound):
    replace(sound, STARTER, "raise NotImplementedError()", "return a + b")
    assert "labs/ is never edited" in findings(gates.labs_equal_generation, sound)[0]


def test_lab_that_is_not_made(sound):
    (sound / STARTER).unlink()
    assert "the lab is not made yet" in findings(gates.labs_equal_generation, sound)[0]


def test_lab_that_nbgrader_refuses(sound):
    replace(sound, LAB, "    ### END SOLUTION\n", "")
    assert "nbgrader cannot make a lab of it" in findings(gates.labs_equal_generation, sound)[0]


def test_notebook_over_its_size(sound):
    append(sound, LESSON_NOTEBOOK, " " * 300_000)
    assert findings(gates.notebooks_are_small, sound)[0].startswith(f"{LESSON_NOTEBOOK}: 3")


def test_code_cell_over_twenty_lines(sound):
    replace(sound, LESSON, "print(total)", "\n".join("print(total)" for _ in range(19)))
    assert findings(gates.code_cells_are_short, sound) == []
    replace(sound, LESSON, "print(total)", "print(total)\nprint(total)")
    assert findings(gates.code_cells_are_short, sound) == [
        f"{LESSON}:19: 21 lines of code, over 20: split the cell by idea."
    ]


def test_code_cells_that_are_mostly_long(sound):
    replace(sound, LESSON, "print(total)", "\n".join("print(total)" for _ in range(6)))
    replace(sound, LESSON, "guess.reveal", "\n".join("print(total)" for _ in range(6)) + "\nguess.reveal")
    assert "the median code cell has 7 lines" in findings(gates.code_cells_are_short, sound)[0]


def test_text_cell_over_its_words(sound):
    replace(sound, LESSON, "Where does", "Where " * 97 + "does")
    assert findings(gates.prose_is_short, sound) == [
        f"{LESSON}:1: 101 words of prose, over 100: cut it, or split it by idea.",
        f"{LESSON}: the median text cell has 101 words, over 60: say less.",
    ]


def test_tables_code_headings_and_links_are_no_prose(sound):
    words = "word " * 200
    text = f"| {words} |\n#\n# ```\n# {words}\n# ```\n#\n# ### {words}\n#\n# [link](a/{'long/' * 90})\n#\n# Where does"
    replace(sound, LESSON, "Where does", text)
    assert findings(gates.jupytext_reads_the_same, sound) == []
    assert findings(gates.prose_is_short, sound) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        (LESSON, "## Recap", "## Summary", "a lesson without '## Recap'"),
        (LESSON, "## Repair it", "## Break it", "a lesson without '## Repair it'"),
        (LESSON, "## Break it", "## Break it\n#\n# ## Break it", "out of order or twice"),
        (LESSON, "## Adding again", "### Adding again", "1 sections of its own"),
        (LESSON, "## Recap", "## Recap\n#\n# ## More", "only between 'Before you run' and 'Break it'"),
        (LESSON, "# # 01 One", "# 01 One", "the first cell is not a text with the title"),
        (LAB, "## Going further", "## Further", "a lab without '## Going further'"),
        (LAB, "## Going further", "## Going further\n#\n# ## More", "only between 'Situation'"),
    ],
)
def test_spine_that_is_broken(sound, name, old, new, says):
    replace(sound, name, old, new)
    assert [finding for finding in findings(gates.spine_stands, sound) if says in finding]


def test_lab_without_a_task(sound):
    replace(sound, LAB, "## Task 1: add", "text")
    replace(sound, LAB, "## Task 2: double", "text")
    assert "no task" in findings(gates.spine_stands, sound)[0]


def test_situation_that_is_a_story(sound):
    replace(sound, LAB, "A colleague's", "\n# ".join(["A line"] * 10) + "\n# A colleague's")
    assert findings(gates.situations_are_short, sound) == [
        f"{LAB}:1: the situation takes 11 lines, over 10: shorten it."
    ]


ASK = 'guess = predict("01-P1", "What is one and one?", ["1", "2"])'


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (ASK, f"{ASK}\nguess.reveal('2')", None),
        ("guess.reveal(str(total))", "str(total)", "'01-P1' is not revealed in a later cell"),
        (ASK, f"guess.reveal('2')\n{ASK}", "guess.reveal(...) has no predict(...) before it"),
        (ASK, "", "asks no prediction"),
        ("01-P1", "02-K1", "should be named like '01-P3'"),
        ("print(total)", f"print(total)\n\n# %%\n{ASK}", "'01-P1' is asked twice"),
        ("# %%\nfrom", '# %% claims=["P1"]\nfrom', "shows P1 before prediction '01-P1' asks"),
        ("# %% [markdown]\n# ## Before", '# %% claims=["P1"]\nprint(2)\n\n# %% [markdown]\n# ## Before', "shows P1 before"),
    ],
)  # fmt: skip
def test_evidence_before_its_prediction(sound, old, new, says):
    replace(sound, LESSON, old, new)
    found = findings(gates.evidence_follows_its_prediction, sound)
    assert found == [] if says is None else [finding for finding in found if says in finding]


def test_a_prediction_is_asked_in_one_notebook_of_a_lesson_alone(sound):
    text = (sound / LESSON).read_text("utf-8")
    (sound / "course/01_tiny/01b_more.py").write_text(text, "utf-8")
    found = findings(gates.evidence_follows_its_prediction, sound)
    assert [finding.partition(": ")[2] for finding in found] == [
        "prediction '01-P1' is asked in another notebook of the lesson too."
    ]


def test_second_prediction_on_a_claim_may_follow_its_evidence(sound):
    again = '\n# %%\nmore = predict("01-P1b", "And two more?", ["3", "4"])\n\n# %%\nmore.reveal(4)\n'
    append(sound, LESSON, again)
    assert findings(gates.evidence_follows_its_prediction, sound) == []


def test_reveal_in_the_cell_that_asks_is_no_reveal(sound):
    replace(sound, LESSON, ASK, f"{ASK}\nguess.reveal('2')")
    replace(sound, LESSON, "guess.reveal(str(total))", "str(total)")
    assert "is not revealed in a later cell" in findings(gates.evidence_follows_its_prediction, sound)[0]


def test_cell_magics_do_not_hide_a_prediction(sound):
    replace(
        sound,
        LESSON,
        "from traceonce import predict",
        "# %config Application.verbose_crash = False\nfrom traceonce import predict",
    )
    assert findings(gates.evidence_follows_its_prediction, sound) == []


def test_claim_that_nothing_shows(sound):
    replace(sound, "docs/claims.toml", "[02_later]", 'P2 = "Two."\n\n[02_later]')
    assert findings(gates.claims_are_covered, sound) == [
        f'{LESSON_NOTEBOOK}: P2 is not shown: no code cell has it in its metadata, as claims=["P2"].'
    ]


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        ('tags=["nbval-ignore-output"]', "belong together"),
        ('ignored="the clock is in it"', "belong together"),
        ('tags=["nbval-ignore-output"] ignored="why"', "belong together"),
        ('tags=["nbval-ignore-output"] ignored="the clock is in it"', "1 of 3 code cells are not compared"),
        ('tags=["nbval-skip"]', "nbval-skip is not used here"),
    ],
)
def test_output_that_nobody_compares(sound, tags, says):
    replace(sound, LESSON, "# %%\nguess", f"# %% {tags}\nguess")
    assert [finding for finding in findings(gates.ignored_outputs_have_a_reason, sound) if says in finding]


def test_one_ignored_cell_in_ten_passes(sound):
    replace(sound, LESSON, "# %%\nguess", '# %% tags=["nbval-ignore-output"] ignored="the clock is in it"\nguess')
    append(sound, LESSON, "".join(f"\n# %%\nprint({number})\n" for number in range(6)))
    assert len(findings(gates.ignored_outputs_have_a_reason, sound)) == 1
    append(sound, LESSON, "\n# %%\nprint(7)\n")
    assert findings(gates.ignored_outputs_have_a_reason, sound) == []


def test_comment_that_switches_nbval_off(sound):
    replace(sound, LESSON, "total = 1 + 1", "# NBVAL_IGNORE_OUTPUT\ntotal = 1 + 1")
    assert "NBVAL_IGNORE_OUTPUT is not used here" in findings(gates.ignored_outputs_have_a_reason, sound)[0]


def test_exception_that_nobody_meant(sound):
    def plant(notebook: dict) -> None:
        error = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["E: v"]}
        notebook["cells"][4]["outputs"].append(error)

    change_notebook(sound, LESSON_NOTEBOOK, plant)
    assert f"{LESSON}:19: its stored output is an exception" in findings(gates.only_meant_errors_are_stored, sound)[0]


def test_exception_that_is_meant_and_does_not_come(sound):
    replace(sound, LESSON, '# %% claims=["P1"]', '# %% claims=["P1"] tags=["raises-exception"]')
    assert build(Course(sound)) == 0
    assert "raises nothing" in findings(gates.only_meant_errors_are_stored, sound)[0]
    replace(sound, LESSON, "print(total)", "print(total)\nraise ValueError")
    assert build(Course(sound)) == 0
    assert findings(gates.only_meant_errors_are_stored, sound) == []


GIVEN = '# %% nbgrader={"grade_id": "given_total"} tags=["for-show"]\ntotal = 3\nprint(total)\n\n# %% '


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (LAB, "# %% nbgrader", f"{GIVEN}nbgrader", None),
        (LAB, "# %% nbgrader", f'# %% nbgrader={{"grade_id": "given_sum"}}\nprint(total)\n\n{GIVEN}nbgrader', "uses one of its names"),
        (LAB, '# %% nbgrader={"grade_id": "add"', '# %% tags=["for-show"] nbgrader={"grade_id": "add"', "only a lab's given cell"),
        (LESSON, "# %%\nguess", '# %% tags=["for-show"]\nguess', "only a lab's given cell"),
    ],
)  # fmt: skip
def test_cell_for_show_that_is_needed(sound, file, old, new, says):
    text = (sound / file).read_text()
    (sound / file).write_text(text.replace(old, new, 1))
    found = findings(gates.cells_for_show_are_left_out, sound)
    assert len(found) == (says is not None)
    assert says is None or says in found[0]


def test_starter_that_scores(sound, monkeypatch):
    monkeypatch.setattr(proof, "_default_grader", lambda: lambda pair, work: [GIVES_A_POINT])
    assert findings(gates.starters_score_nothing, sound) == [
        "lab01_tiny, starter, seed 0: the untouched starter gets 1 points at test_adds."
    ]


def test_starter_that_nothing_judges(sound, monkeypatch):
    monkeypatch.setattr(proof, "_default_grader", lambda: lambda pair, work: [Graded("crashed", ())])
    assert "says 'crashed' of it and judges nothing" in findings(gates.starters_score_nothing, sound)[0]


def test_lab_without_hidden_asserts(sound):
    (sound / "tests/hidden/test_lab01_tiny.py").unlink()
    assert "has no hidden asserts" in findings(gates.starters_score_nothing, sound)[0]


def test_table_of_a_proof_that_is_out_of_date(sound):
    assert findings(gates.grader_tables_are_fresh, sound) == []
    replace(sound, LAB, "off by one", "off by two")  # only text
    assert findings(gates.grader_tables_are_fresh, sound) == []
    append(sound, "tests/hidden/test_lab01_tiny.py", "# one more\n")
    assert "changed since" in findings(gates.grader_tables_are_fresh, sound)[0]
    (sound / "docs/graders/lab01_tiny.md").rename(sound / "docs/graders/lab09_gone.md")
    assert [finding.split(":")[0] for finding in findings(gates.grader_tables_are_fresh, sound)] == [
        "docs/graders/lab01_tiny.md",
        "docs/graders/lab09_gone.md",
    ]


# Written in pieces, so that this file does not hold what it looks for.
PLANTED = [
    "/ho" + "me/anna/course",
    "/Us" + "ers/anna",
    "/ro" + "ot/.cache",
    "C:\\" + "Users\\anna",
    "/opt/env/lib/python3.12/site-" + "packages/jax",
    "/tmp/ipyker" + "nel_123/4.py",
    "<f at 0x7" + "f12345678ab>",
    "10.1" + ".2.3",
    "http://8.9" + ".10.11/",
    "8.9" + ".10.11:80",
    "172.16" + ".0.9.",
    "8.8" + ".8.8",
    "192.168" + ".0.12:8888",
    "http://build" + "host:8080/simple",
    "https://pypi" + ".org/simple",
    "--index" + "-url https://packages.example/simple",
]


@pytest.mark.parametrize("text", PLANTED)
def test_place_or_address_of_a_machine_in_the_tree(sound, text):
    (sound / "notes.md").write_text(f"first\nsee {text} for more\n", "utf-8")
    assert findings(gates.tree_names_no_machine, sound) == []  # not tracked: not in the tree
    track(sound)
    found = findings(gates.tree_names_no_machine, sound)
    assert len(found) == 1
    assert found[0].startswith("notes.md:2: ")


@pytest.mark.parametrize(
    "text",
    [
        "https://docs.jax.dev/en/latest/",
        "http://127.0.0.1:8888/lab",
        "http://localhost:8888",
        "http://{host}:{port}",
        "192.0.2.1",
        "nvidia-cublas==13.1.0.3",
        "version 1.2.3",
        'cuDNN "9.12.0.46", then 9.1.0.70.',
        "/home/learner/work",
        "/home/linuxbrew/.linuxbrew/bin",
        "0.0.0.0:8888",
        "work/course and ~/work",
        "/tmp/x",
        "see 10.1" + ".2.3 # address-ok: the attack that is tested",
    ],
)
def test_what_is_no_address_of_a_machine(sound, text):
    (sound / "notes.md").write_text(f"{text}\n", "utf-8")
    track(sound)
    assert findings(gates.tree_names_no_machine, sound) == []


def test_requirements_name_no_address_at_all(sound):
    (sound / "requirements").mkdir()
    (sound / "requirements/learn.txt").write_text("# from https://example.test/\n", "utf-8")
    track(sound)
    assert "network address" in findings(gates.tree_names_no_machine, sound)[0]


def test_place_of_this_checkout_in_the_tree(sound):
    (sound / "notes.md").write_text(f"see {sound}/course\n", "utf-8")
    track(sound)
    assert len(findings(gates.tree_names_no_machine, sound)) == 1


def test_name_of_this_machine_in_a_notebook(sound, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "lab-pc-17")
    replace(sound, LESSON_NOTEBOOK, '"2\\n"', '"on lab-pc-17\\n"')
    assert len(findings(gates.tree_names_no_machine, sound)) == 1


def test_every_gate_has_its_fault_planted_here():
    text = Path(__file__).read_text("utf-8")
    assert len(gates.GATES) == len(set(gates.GATES)) >= 19
    assert [gate.__name__ for gate in gates.GATES if f"gates.{gate.__name__}, sound" not in text] == []

"""A desk follows the course and never takes anything away from a learner."""

import json
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_browser import code_cell, markdown_cell, notebook, write_checkout

from traceonce.desk import copies
from traceonce.errors import TraceOnceError

LESSON = PurePosixPath("01_first/01_first.ipynb")
OFFERED = PurePosixPath("01_first/01_first.new.ipynb")


def lesson(version: str) -> dict[str, Any]:
    return notebook(markdown_cell("# First"), code_cell(f"print({version!r})"))


def with_output(stored: dict[str, Any], text: str = "out\n") -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(stored))
    changed["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]
    changed["cells"][1]["execution_count"] = 4
    return changed


@pytest.fixture
def publish(tmp_path: Path) -> Callable[..., copies.Refreshed]:
    """`publish("v1")` brings the desk up to date with a course of that version."""

    def publish(version: str, **more: Any) -> copies.Refreshed:
        checkout = write_checkout(tmp_path / "checkout", {str(LESSON): lesson(version), **more})
        return copies.refresh(tmp_path / "desk", copies.sheets(checkout))

    return publish


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    return tmp_path / "desk"


def source_at(path: Path) -> str:
    return "".join(json.loads(path.read_text())["cells"][1]["source"])


def edit(path: Path, text: str = "mine = 1") -> bytes:
    stored = json.loads(path.read_text())
    stored["cells"][1]["source"] = text
    path.write_text(json.dumps(stored))
    return path.read_bytes()


def names(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and copies.STATE not in path.parts
    }


# --- what lies on a desk ---


def test_copies_have_no_outputs_and_keep_cell_ids(tmp_path: Path) -> None:
    stored = with_output(lesson("v1"))
    stored["metadata"] |= {"widgets": {"state": {}}, "jupytext": {"formats": "ipynb,py:percent"}}
    stored["cells"][1]["metadata"] = {"claims": ["P1"], "execution": {"iopub.execute_input": "2024"}}
    checkout = write_checkout(tmp_path, {str(LESSON): stored})
    copy = json.loads(next(sheet for sheet in copies.sheets(checkout) if sheet.name == LESSON).content)
    assert copy["cells"][1]["outputs"] == []
    assert copy["cells"][1]["execution_count"] is None
    assert copy["cells"][1]["metadata"] == {"claims": ["P1"]}
    assert [cell["id"] for cell in copy["cells"]] == ["cell-0", "cell-1"]
    assert set(copy["metadata"]) == {"kernelspec"}


def test_sources_of_pairs_and_settings_of_authors_stay_out(tmp_path: Path) -> None:
    course = {
        str(LESSON): lesson("v1"),
        "01_first/01_first.py": "# %%",
        "01_first/rows.csv": "1,0",
        "jupytext.toml": "",
        ".hidden": "",
    }
    checkout = write_checkout(tmp_path, course, {"lab01_first.ipynb": lesson("lab")})
    found = {str(sheet.name) for sheet in copies.sheets(checkout)}
    assert found == {"index.ipynb", str(LESSON), "01_first/rows.csv", "labs/lab01_first.ipynb"}


def test_an_anchor_names_the_cell_so_that_a_notebook_just_opened_shows_it(tmp_path: Path) -> None:
    index = notebook(
        markdown_cell(
            "# Index\n\n## The map\n\n[section](01_first/01_first.ipynb#A-key) [here](#The-map) [no](#Nowhere)"
        ),
    )
    target = notebook(markdown_cell("# First"), markdown_cell("Text.\n\n## A key"))
    checkout = write_checkout(tmp_path, {"index.ipynb": index, str(LESSON): target})
    (sheet,) = (sheet for sheet in copies.sheets(checkout) if str(sheet.name) == "index.ipynb")
    assert "".join(json.loads(sheet.content)["cells"][0]["source"]).endswith(
        "[section](01_first/01_first.ipynb#cell-id=cell-1) [here](index.ipynb#cell-id=cell-0) [no](index.ipynb#Nowhere)"
    )


def test_links_lead_to_places_on_the_desk(tmp_path: Path) -> None:
    index = notebook(
        markdown_cell(
            "[lesson](01_first/01_first.ipynb#before-you-run), [lab](../labs/lab%2001.ipynb), [design](../docs/design.md)"
        ),
        markdown_cell('[site](https://example.org/../labs/lab%2001.ipynb) <a href="../labs/lab%2001.ipynb">lab</a>'),
    )
    lab = notebook(markdown_cell("[back](../course/01_first/01_first.ipynb)"))
    checkout = write_checkout(tmp_path, {"index.ipynb": index, str(LESSON): lesson("v1")}, {"lab 01.ipynb": lab})
    sheets = {str(sheet.name): json.loads(sheet.content) for sheet in copies.sheets(checkout)}
    first, second = ("".join(cell["source"]) for cell in sheets["index.ipynb"]["cells"])
    assert (
        first
        == "[lesson](01_first/01_first.ipynb#before-you-run), [lab](labs/lab%2001.ipynb), [design](../docs/design.md)"
    )
    assert second == '[site](https://example.org/../labs/lab%2001.ipynb) <a href="labs/lab%2001.ipynb">lab</a>'
    assert "".join(sheets["labs/lab 01.ipynb"]["cells"][0]["source"]) == "[back](../01_first/01_first.ipynb)"


def test_broken_notebook_in_the_course_is_named(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path, {str(LESSON): "{"})
    with pytest.raises(TraceOnceError, match=r"course/01_first/01_first\.ipynb is not a notebook"):
        copies.sheets(checkout)


def test_folder_without_a_course_is_refused(tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    with pytest.raises(TraceOnceError, match="There is no course in"):
        copies.sheets(tmp_path)


# --- following the course ---


def test_first_refresh_makes_everything_and_the_second_nothing(
    publish: Callable[..., copies.Refreshed], desk: Path
) -> None:
    assert set(publish("v1").made) == {LESSON, copies.INDEX}
    before = (desk / LESSON).stat().st_mtime_ns
    assert publish("v1") == copies.Refreshed()
    assert (desk / LESSON).stat().st_mtime_ns == before


def test_untouched_copy_is_renewed(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    assert publish("v2").renewed == (LESSON,)
    assert source_at(desk / LESSON) == "print('v2')"
    assert names(desk) == {"index.ipynb", str(LESSON)}


def test_copy_that_was_only_opened_is_renewed(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    stored = json.loads((desk / LESSON).read_text())
    stored["metadata"]["language_info"] = {"name": "python", "version": "3.13.0"}
    stored["metadata"]["kernelspec"]["display_name"] = "Python 3"
    (desk / LESSON).write_text(json.dumps(stored, indent=2))
    assert publish("v2").renewed == (LESSON,)


def test_edited_copy_is_kept_and_the_new_version_lies_beside_it(
    publish: Callable[..., copies.Refreshed], desk: Path
) -> None:
    publish("v1")
    mine = edit(desk / LESSON)
    assert publish("v2").offered == ((LESSON, OFFERED),)
    assert (desk / LESSON).read_bytes() == mine
    assert source_at(desk / OFFERED) == "print('v2')"


def test_outputs_are_the_learners_too(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    (desk / LESSON).write_text(json.dumps(with_output(json.loads((desk / LESSON).read_text()))))
    assert publish("v2").offered == ((LESSON, OFFERED),)


def test_index_that_was_only_run_is_renewed(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1", **{"index.ipynb": lesson("progress")})
    (desk / copies.INDEX).write_text(json.dumps(with_output(json.loads((desk / copies.INDEX).read_text()))))
    assert publish("v1", **{"index.ipynb": lesson("progress, and more")}).renewed == (copies.INDEX,)


def test_edited_index_is_kept(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1", **{"index.ipynb": lesson("progress")})
    mine = edit(desk / copies.INDEX)
    publish("v1", **{"index.ipynb": lesson("progress, and more")})
    assert (desk / copies.INDEX).read_bytes() == mine


def test_same_version_is_offered_once(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    edit(desk / LESSON)
    publish("v2")
    (desk / OFFERED).unlink()
    assert publish("v2") == copies.Refreshed()
    assert names(desk) == {"index.ipynb", str(LESSON)}


def test_untouched_offer_is_replaced_by_a_newer_one(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    edit(desk / LESSON)
    publish("v2")
    assert publish("v3").offered == ((LESSON, OFFERED),)
    assert source_at(desk / OFFERED) == "print('v3')"


def test_edited_offer_is_kept(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    edit(desk / LESSON)
    publish("v2")
    mine = edit(desk / OFFERED, "also_mine = 2")
    third = PurePosixPath("01_first/01_first.new2.ipynb")
    assert publish("v3").offered == ((LESSON, third),)
    assert (desk / OFFERED).read_bytes() == mine


def test_offer_put_in_place_counts_as_untouched(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    edit(desk / LESSON)
    publish("v2")
    os.replace(desk / OFFERED, desk / LESSON)
    assert publish("v3").renewed == (LESSON,)


def test_deleted_copy_comes_back(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    edit(desk / LESSON)
    (desk / LESSON).unlink()
    assert publish("v1").made == (LESSON,)
    assert source_at(desk / LESSON) == "print('v1')"


def test_lesson_that_left_the_course_stays_on_the_desk(
    publish: Callable[..., copies.Refreshed], desk: Path, tmp_path: Path
) -> None:
    publish("v1")
    (tmp_path / "checkout" / "course" / LESSON).unlink()
    copies.refresh(desk, copies.sheets(tmp_path / "checkout"))
    assert source_at(desk / LESSON) == "print('v1')"


def test_learners_own_file_at_a_new_lessons_place_is_kept(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    (desk / LESSON).parent.mkdir(parents=True)
    (desk / LESSON).write_text("my notes")
    assert publish("v1").offered == ((LESSON, OFFERED),)
    assert (desk / LESSON).read_text() == "my notes"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1, "sheets": []}', '{"format": 99, "sheets": {}}'])
def test_lost_record_costs_no_work(publish: Callable[..., copies.Refreshed], desk: Path, damage: str) -> None:
    publish("v1")
    mine = edit(desk / LESSON)
    (desk / copies.STATE / "copies.json").write_text(damage)
    publish("v2")
    assert (desk / LESSON).read_bytes() == mine


def test_lost_record_is_made_again_for_current_copies(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    (desk / copies.STATE / "copies.json").unlink()
    assert publish("v1") == copies.Refreshed()
    assert publish("v2").renewed == (LESSON,)


def test_half_made_desk_is_completed(publish: Callable[..., copies.Refreshed], desk: Path) -> None:
    publish("v1")
    (desk / LESSON).write_bytes(b"")  # as a full disk leaves it
    (desk / copies.INDEX).unlink()
    (desk / copies.STATE / "abc.part").write_text("half")
    assert set(publish("v1").made) == {LESSON, copies.INDEX}
    assert not list((desk / copies.STATE).glob("*.part"))


def test_start_that_was_killed_leaves_nothing_that_looks_like_work(
    publish: Callable[..., copies.Refreshed], desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("v1")
    replace, calls = os.replace, []

    def replace_until_killed(source: Any, target: Any) -> None:
        calls.append(target)
        if Path(target).suffix == ".ipynb":
            replace(source, target)
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_until_killed)
    with pytest.raises(KeyboardInterrupt):
        publish("v2")
    monkeypatch.undo()
    assert source_at(desk / LESSON) == "print('v2')"
    assert publish("v3").renewed == (LESSON,)


def test_edit_made_during_a_refresh_is_kept(
    publish: Callable[..., copies.Refreshed], desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("v1")
    write_part, mine = copies._write_part, b""

    def write_part_while_learner_types(state: Path, content: bytes) -> Path:
        nonlocal mine
        if b"v2" in content:
            mine = edit(desk / LESSON)
        return write_part(state, content)

    monkeypatch.setattr(copies, "_write_part", write_part_while_learner_types)
    assert publish("v2").renewed == ()
    assert (desk / LESSON).read_bytes() == mine != b""


def test_symbolic_link_is_replaced_and_its_target_left_alone(
    publish: Callable[..., copies.Refreshed], desk: Path, tmp_path: Path
) -> None:
    publish("v1")
    elsewhere = tmp_path / "elsewhere.ipynb"
    os.replace(desk / LESSON, elsewhere)
    (desk / LESSON).symlink_to(elsewhere)
    publish("v2")
    assert source_at(elsewhere) == "print('v1')"
    assert source_at(desk / LESSON) == "print('v2')"


# --- any history at all ---

ACTIONS = st.lists(
    st.sampled_from(["edit", "run", "delete", "publish", "publish", "lose record", "adopt offer"]),
    min_size=1,
    max_size=12,
)


@settings(max_examples=80, deadline=None)
@given(actions=ACTIONS)
def test_no_history_loses_what_was_typed(tmp_path_factory: pytest.TempPathFactory, actions: list[str]) -> None:
    """Whatever happens in whatever order: every text that a learner typed and did not delete is still on the desk."""
    top = tmp_path_factory.mktemp("history")
    desk, version, typed = top / "desk", 0, 0
    precious: dict[Path, bytes] = {}

    def publish() -> None:
        checkout = write_checkout(top / "checkout", {str(LESSON): lesson(f"v{version}")})
        copies.refresh(desk, copies.sheets(checkout))

    publish()
    for action in actions:
        if action == "publish":
            version += 1
            publish()
        elif action == "edit":
            typed += 1
            precious[desk / LESSON] = edit(desk / LESSON, f"mine = {typed}")
        elif action == "run":
            (desk / LESSON).write_text(
                json.dumps(with_output(json.loads((desk / LESSON).read_text()), f"out {typed}\n"))
            )
            precious[desk / LESSON] = (desk / LESSON).read_bytes()
        elif action == "delete":
            (desk / LESSON).unlink()
            precious.pop(desk / LESSON, None)
            publish()
        elif action == "lose record":
            (desk / copies.STATE / "copies.json").unlink(missing_ok=True)
        elif action == "adopt offer" and (desk / OFFERED).exists():
            os.replace(desk / OFFERED, desk / LESSON)
            precious.pop(desk / LESSON, None)
        for path, content in precious.items():
            assert path.read_bytes() == content
    # And the newest version can always be had: in place, or beside what is the learner's.
    publish()
    newest = [path for path in desk.rglob("01_first*.ipynb") if f"'v{version}'" in path.read_text()]
    assert newest or desk / LESSON in precious


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(content=st.binary(max_size=60) | JSON.map(lambda value: json.dumps({"cells": value, "metadata": {}}).encode()))
def test_whatever_lies_in_a_notebooks_place_has_a_mark(content: bytes) -> None:
    assert copies.content_mark(LESSON, content) == copies.content_mark(LESSON, content)
    assert copies.content_mark(LESSON, content) != copies.content_mark(LESSON, json.dumps(lesson("v1")).encode())

import csv
import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from traceonce.grade import reports
from traceonce.grade.guide import Section
from traceonce.grade.record import AssertRecord, CellRecord, Record, StudentLine, TaskRecord
from traceonce.grade.summary import LabCount, summary_html


def record(**changes):
    wrong = AssertRecord(
        "test_a", "step", "Leaves <it> alone", "Build a new one.", 2.0, "failed", 0.0, "raised", "Your code raised E: <b>",
        StudentLine("step", 3, "return 1 < 2"), note="EXPECTED-VALUE",
    )  # fmt: skip
    right = AssertRecord("test_b", "step", "Moves", "Move it.", 1.5, "passed", 1.5)
    unchecked = AssertRecord("test_c", "other", "Stays", "Stay.", 1.0, "unchecked", 0.0, "missing", "It is not there.")
    cells = (CellRecord("step", "solution"), CellRecord("test_step", "test", "raised", "An assert in it failed."))
    fields = {
        "submission": "alice", "student": "=alice", "lab": "lab90_tiny", "file": "alice.ipynb", "status": "failed",
        "score": 1.5, "max_score": 4.5, "asserts": (wrong, right, unchecked), "cells": cells,
        "minutes": 30, "tasks": (
            TaskRecord("step", "Task 1", 6, (Section("A <new> dict", "course/90_t/90_t.ipynb", "A-<new>-dict"),)),
            TaskRecord("other", "Task 2", 4),
        ),
    }  # fmt: skip
    return Record(**fields | changes)


def test_a_record_survives_its_own_json():
    assert Record.from_json(record().to_json()) == record()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 999}', "null", record().to_json()[:-20]])
def test_a_broken_record_is_no_record(text):
    assert Record.from_json(text) is None


def test_gradescope_results_have_the_documented_form():
    document = json.loads(reports.gradescope(record()))
    assert document["score"] == 1.5
    assert document["stdout_visibility"] == "hidden"
    assert [test["status"] for test in document["tests"]] == ["failed", "passed", "failed"]
    assert sum(test["max_score"] for test in document["tests"]) == 4.5
    allowed = {
        "name",
        "name_format",
        "number",
        "score",
        "max_score",
        "status",
        "output",
        "output_format",
        "tags",
        "visibility",
    }
    assert all(set(test) == allowed for test in document["tests"])


def test_grades_csv_has_the_columns_of_nbgrader_and_no_formula():
    rows = list(csv.DictReader("".join(reports.grades_csv([record()])).splitlines()))
    assert tuple(rows[0]) == reports.CSV_COLUMNS
    assert rows[0] | {"student_id": "'=alice", "raw_score": "1.5", "score": "1.5", "max_score": "4.5"} == rows[0]


def test_nbgrader_has_the_same_columns():
    export = pytest.importorskip("nbgrader.plugins.export")
    import inspect

    source = inspect.getsource(export.CsvExportPlugin.export)
    start = source.index("keys = [")
    listed = source[start : source.index("]", start)]
    assert tuple(part.strip(' "\n') for part in listed.removeprefix("keys = [").split(",")) == reports.CSV_COLUMNS


@pytest.mark.parametrize("make", [reports.feedback_text, reports.feedback_html, reports.gradescope])
def test_a_learner_reads_titles_hints_and_own_lines_and_no_note(make):
    text = make(record())
    assert "EXPECTED-VALUE" not in text
    assert "test_a" not in text
    for words in ("Build a new one.", "It is not there.", "Line 3"):
        assert words in text


def test_feedback_says_what_the_lab_is_meant_to_take_and_where_to_look_back():
    text = reports.feedback_text(record())
    assert "meant to take about 30 minutes, of which the tasks that are not right yet are about 10." in text
    assert "step (about 6 minutes)" in text
    assert text.count("Look back at: “A <new> dict” in 90_t.ipynb") == 1  # for the assert that failed, and no other
    page = reports.feedback_html(record())
    assert "step (about 6 minutes)" in page
    assert "“A &lt;new&gt; dict” in 90_t.ipynb" in page
    assert "<a " not in page


def test_minutes_of_two_tasks_that_share_a_heading_count_once():
    shared = tuple(TaskRecord(name, "Task 1", 6) for name in ("step", "other"))
    assert "are about 6." in reports.feedback_text(record(tasks=shared))


@pytest.mark.parametrize("base", ["https://course.example/read", "https://course.example/read/"])
def test_sections_are_links_where_the_address_of_the_course_is_known(monkeypatch, base):
    monkeypatch.setenv(reports.COURSE_URL, base)
    address = "https://course.example/read/90_t/90_t.ipynb#A-%3Cnew%3E-dict"
    assert f'<a href="{address}">A &lt;new&gt; dict</a>' in reports.feedback_html(record())
    assert f"Look back at: “A <new> dict” in {address}" in reports.feedback_text(record())


def test_an_address_that_is_no_web_address_is_no_link(monkeypatch):
    monkeypatch.setenv(reports.COURSE_URL, "javascript:alert(1)")
    assert "javascript" not in reports.feedback_html(record())


def test_the_hint_of_a_passed_assert_stays_unsaid():
    assert "Move it." not in reports.feedback_text(record())


class Balance(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.found = [], set()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_feedback_html_is_balanced_and_escapes_what_students_wrote():
    page = Balance()
    page.feed(reports.feedback_html(record()))
    assert page.open == []
    assert "b" not in page.found
    assert "it" not in page.found
    assert page.found.isdisjoint({"script", "img", "link", "iframe"})


@pytest.mark.parametrize("status", sorted(reports._STATUS_SENTENCES))
def test_every_status_has_a_sentence(status):
    assert reports._STATUS_SENTENCES[status] in reports.feedback_text(record(status=status))


def test_junit_has_a_case_for_each_assert_and_an_error_for_what_was_not_run():
    unread = record(
        submission="bob", asserts=(), cells=(), status="malformed", reasons=("It is no \x00 notebook <at all>.",)
    )
    root = ET.fromstring("".join(reports.junit([record(), unread])).encode())
    first, second = root.findall("testsuite")
    assert {name: first.get(name) for name in ("tests", "failures", "skipped", "errors")} == {
        "tests": "3", "failures": "1", "skipped": "1", "errors": "0",
    }  # fmt: skip
    assert [case.get("name") for case in first] == ["Leaves <it> alone", "Moves", "Stays"]
    assert "Build a new one." in first.find("testcase/failure").text
    assert "no \ufffd notebook <at all>" in second.find("testcase/error").text


def test_text_feedback_indents_each_line_of_a_reason():
    many = AssertRecord("test_a", "step", "T", "H", 1, "failed", 0, "raised", "Your code raised E: one\ntwo")
    assert "\n    Your code raised E: one\n    two\n" in reports.feedback_text(record(asserts=(many,)))


def test_the_summary_counts_a_class_and_names_no_student():
    class_ = [record(submission=f"s{n}", student=f"student-{n}") for n in range(3)]
    others = [record(submission="ok", status="passed", score=4.5, asserts=record().asserts[1:2])]
    page = "".join(summary_html([*class_, *others]))
    count = LabCount()
    for one in class_:
        count.add(one)
    first, second, third = count.by_failures()
    assert (first.title, first.failed, first.total) == ("Leaves <it> alone", 3, 3)
    assert (second.failed, third.failed, third.unchecked) == (0, 0, 3)
    assert "4 submissions, 1 with full marks" in page
    assert "3 of 3" in page
    assert "Leaves &lt;it&gt; alone" in page
    assert "student-" not in page
    assert "EXPECTED-VALUE" not in page
    assert "Your code raised" not in page

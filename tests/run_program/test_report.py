"""What is made of the messages: grouping, limits, and times that overlap."""

import json

import pytest

from traceonce.run.page import page
from traceonce.run.report import KEPT_REASONS, Heard
from traceonce.run.text import place, text


def heard() -> Heard:
    record = Heard(("program.py",), "/home/me")
    record.take({"kind": "jax", "version": "0.11.2"})
    return record


def stage(
    record: Heard, name: str, at: float, seconds: float, kind: str = "compile", thread: int = 1, own: bool = True
):
    record.take(
        {
            "kind": "stage",
            "stage": kind,
            "name": name,
            "location": f"/home/me/{name}.py:1",
            "own": own,
            "at": at,
            "seconds": seconds,
            "failed": False,
            "cache_hit": False,
            "thread": thread,
        }
    )


def why(record: Heard, name: str, number: int, path: str = "x", cause: str = "shape"):
    change = {"cause": cause, "path": path, "old": f"f32[{number}]", "new": f"f32[{number + 1}]"}
    record.take(
        {
            "kind": "why",
            "name": name,
            "location": f"/home/me/{name}.py:1",
            "number": number,
            "step": "retrace",
            "cause": cause,
            "nearest": number - 1,
            "changes": [change],
            "repair": "",
            "doubt": "",
            "text": f"{name}, program {number}\n  {cause} {path}",
        }
    )


def test_time_inside_another_stage_or_on_another_thread_at_once_counts_once():
    record = heard()
    stage(record, "inner", 1.0, 0.5, "trace")
    stage(record, "inner", 2.0, 0.5, "trace")
    stage(record, "outer", 0.5, 3.0, "trace")
    stage(record, "outer", 3.5, 1.0)
    stage(record, "beside", 4.0, 1.0, thread=2)
    assert record.report(10.0).busy == pytest.approx(4.5)


def test_reasons_of_one_kind_are_shown_once_and_counted():
    record = heard()
    stage(record, "step", 0.0, 1.0)
    for number in range(2, 12):
        why(record, "step", number)
    why(record, "step", 12, path="y")
    why(record, "step", 13, path="z")
    why(record, "step", 14, path="w")
    shown = text(record.report(2.0))
    assert shown.count("shape x") == 1
    assert "and 9 more times the same kind" in shown
    assert "step: 2 more times for other reasons" in shown


def test_thousands_of_reasons_are_counted_and_only_some_are_kept():
    record = heard()
    stage(record, "step", 0.0, 1.0)
    for number in range(2, 1002):
        why(record, "step", number)
    report = record.report(2.0)
    assert len(report.reasons["step", "/home/me/step.py:1"]) == KEPT_REASONS
    assert "and 999 more times the same kind" in text(report)
    assert json.loads(report.as_json())["again_by_kind"][0]["count"] == 1000
    assert f"each one in order (the first {KEPT_REASONS})" in page(report)


def test_many_functions_are_cut_in_the_table_and_complete_in_json():
    record = heard()
    for index in range(50):
        stage(record, f"f{index}", float(index), 0.1 + index)
        why(record, f"f{index}", 2)
    report = record.report(60.0)
    shown = text(report)
    assert "and 20 more functions" in shown
    assert "and 38 more functions" in shown
    assert shown.index("\nf49 ") < shown.index("\nf48 ")
    assert len(json.loads(report.as_json())["functions"]) == 50


def test_places_are_short_and_clear():
    assert place("/home/me", "/home/me/a/b.py:3") == "a/b.py:3"
    assert place("/home/me", "/home/me-too/b.py:3") == "/home/me-too/b.py:3"
    assert place("/home/me", "/lib/site-packages/optax/_src/x.py:3") == "optax/_src/x.py:3"
    assert place("/", "/b.py:3") == "b.py:3"
    assert place("/home/me", None) == "?"


def test_names_from_the_program_cannot_become_markup():
    record = heard()
    stage(record, "<script>alert(1)</script>", 0.0, 1.0)
    why(record, "<script>alert(1)</script>", 2, path="<b>")
    shown = page(record.report(1.0))
    assert "<script" not in shown
    assert "<b>" not in shown


def test_a_run_without_an_end_is_said_to_be_incomplete():
    record = heard()
    stage(record, "step", 0.0, 1.0)
    record.sample(5 * 2**20)
    record.sample(3 * 2**20)
    report = record.report(2.0)
    assert not report.complete
    assert "peak memory at least 5 MiB" in text(report)


def test_jaxs_own_operations_are_summed_and_the_slowest_named():
    record = heard()
    for index in range(6):
        stage(record, f"op{index}", float(index), 0.1 * index, own=False)
        stage(record, f"op{index}", 10.0 + index, 0.1 * index, "trace", own=False)
    stage(record, "op5", 20.0, 0.5, own=False)
    report = record.report(60.0)
    assert (report.helpers.compiles, report.helpers.traces) == (7, 6)
    assert "7 compiles, 3.50 s (op5 2, op4 1, op3 1, op2 1, ...)." in text(report)
    assert json.loads(report.as_json())["jax_operations"]["by_name"]["op5"] == 2
    assert report.functions == ()


def test_children_and_devices_are_in_the_headline():
    record = heard()
    record.take({"kind": "device", "name": "cuda:0", "peak": 3 * 2**30})
    record.take({"kind": "end", "peak": 2**30, "children_peak": 2**31, "at": 4.0})
    shown = text(record.report(9.0))
    assert "4.0 s, peak memory 1.00 GiB, its largest child process 2.00 GiB, cuda:0 peak 3.00 GiB" in shown

"""Records are written and let go of: a batch takes as much memory for thousands as for ten."""

import tracemalloc

import pytest

from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.kept import FORMATS, Kept, read_seed
from traceonce.grade.record import AssertRecord, CellRecord, Record

COUNT, PRINTED = 150, 40_000


def a_record(number):
    name = f"s{number:03}"
    asserts = (AssertRecord("test_a", "step", "T", "H", 1.0, "failed", 0.0),)
    cells = (CellRecord("step", "solution", printed=f"{number:0{PRINTED}}"),)
    return Record(name, name, "lab90_tiny", "a.ipynb", "failed", 0.0, 1.0, asserts=asserts, cells=cells)


def test_memory_does_not_grow_with_the_records_and_reports_are_about_all(tmp_path):
    records = Kept(tmp_path)
    tracemalloc.start()
    try:
        for number in range(COUNT):
            record = a_record(number)
            records.names.append(record.submission)
            records.write(record, ())
            records.count(record)
        records.write_reports(FORMATS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < COUNT * PRINTED / 4
    assert (tmp_path / "grades.csv").read_text().count("lab90_tiny,") == COUNT
    assert (tmp_path / "junit.xml").read_text().count("<testsuite ") == COUNT
    assert f"{COUNT} submissions, 0 with full marks" in (tmp_path / "summary.html").read_text()
    assert records.statuses == {"failed": COUNT}


def test_a_run_gives_its_records_in_the_order_of_its_notebooks(tmp_path):
    records = Kept(tmp_path)
    for number in (2, 0, 1):
        records.write(a_record(number), ())
    records.names += ["s001", "s002"]
    assert [record.submission for record in records] == ["s001", "s002"]
    assert records[-1] == a_record(2)
    assert records[:1] == [a_record(1)]
    assert len(records) == 2


def test_a_record_that_cannot_be_read_is_told_and_no_report_is_silent_about_it(tmp_path):
    records = Kept(tmp_path)
    records.write(a_record(0), ())
    (tmp_path / "s001" / "record.json").mkdir(parents=True)
    with pytest.raises(TraceOnceError, match=r"record.json cannot be read"):
        records.write_reports(("csv",))


@pytest.mark.parametrize("error", [TraceOnceError, UsageError])
def test_a_seed_that_is_short_or_not_there_is_refused_in_the_callers_terms(tmp_path, error):
    (tmp_path / "short").write_text("abc\n")
    for name, words in (("short", "shorter than 16 characters"), ("none", "cannot be read")):
        with pytest.raises(error, match=words):
            read_seed(tmp_path / name, error)

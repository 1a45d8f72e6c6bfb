import os
import zipfile

import pytest

from traceonce.bundle import output
from traceonce.bundle.output import Part, write_folder, write_zip
from traceonce.errors import TraceOnceError, UsageError

PARTS = {"b.sh": Part.text("#!/bin/sh\n", 0o755), "a/x.txt": Part.text("one")}


def _files(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same_parts_give_the_same_archive_and_rights_are_kept(tmp_path):
    write_zip(tmp_path / "deep" / "one.zip", PARTS, force=False)
    write_zip(tmp_path / "two.zip", dict(reversed(PARTS.items())), force=False)
    assert (tmp_path / "deep" / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "two.zip") as archive:
        assert {info.filename: info.external_attr >> 16 & 0o777 for info in archive.infolist()} == {
            "a/x.txt": 0o644,
            "b.sh": 0o755,
        }
    assert os.listdir(tmp_path / "deep") == ["one.zip"]


@pytest.mark.parametrize("write", [write_zip, write_folder])
def test_nothing_is_replaced_unless_it_was_asked_for(tmp_path, write):
    out = tmp_path / "out"
    write(out, PARTS, force=False)
    before = out.stat().st_mtime_ns
    with pytest.raises(UsageError, match="is there already: choose another --out, or say --force") as caught:
        write(out, {"c": Part.text("three")}, force=False)
    assert caught.value.exit_code == 2
    assert out.stat().st_mtime_ns == before
    write(out, {"c": Part.text("three")}, force=True)
    assert out.stat().st_mtime_ns != before


def test_a_dangling_link_is_something_that_is_there(tmp_path):
    (tmp_path / "out.zip").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError):
        write_zip(tmp_path / "out.zip", PARTS, force=False)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_came_in_the_meantime_is_not_replaced(tmp_path, monkeypatch):
    out = tmp_path / "out.zip"

    def late(*_):
        out.write_text("another's")

    monkeypatch.setattr(os, "fsync", late)
    with pytest.raises(UsageError):
        write_zip(out, PARTS, force=False)
    assert out.read_text() == "another's"
    assert os.listdir(tmp_path) == ["out.zip"]


def test_an_archive_takes_no_folder_and_a_folder_no_file(tmp_path):
    (tmp_path / "file").touch()
    for write, place in ((write_zip, tmp_path), (write_folder, tmp_path / "file")):
        with pytest.raises(UsageError):
            write(place, PARTS, force=True)


@pytest.mark.parametrize("write", [write_zip, write_folder])
def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch, write):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output.os, "fsync", fail)
    with pytest.raises(TraceOnceError, match="cannot be written \\(No space left on device\\)") as caught:
        write(tmp_path / "out", PARTS, force=False)
    assert caught.value.exit_code == 3
    assert os.listdir(tmp_path) == []


def test_force_brings_a_folder_up_to_date_and_leaves_the_rest(tmp_path):
    out = tmp_path / "out"
    write_folder(out, PARTS, force=False)
    (out / "gradebook.db").write_text("grades")
    write_folder(out, {"a/x.txt": Part.text("new"), "b.sh": Part.text("new")}, force=True, keep=frozenset({"a/x.txt"}))
    assert _files(out) == {"a/x.txt": "one", "b.sh": "new", "gradebook.db": "grades"}

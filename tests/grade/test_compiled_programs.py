import json
import os

import pytest
import tinylab

from traceonce.grade import Work, grade_submissions
from traceonce.grade.compiled import Compiled, environment_key, functions_of, is_shareable
from traceonce.grade.lab import load_lab, read_submission

NAME = "jit_add-" + "0" * 64 + "-cache"
OTHER = "jit_mul-" + "1" * 64 + "-cache"


@pytest.mark.parametrize(
    ("entry", "shared"),
    [
        (NAME, True),
        ("jit__mean-" + "a" * 64 + "-cache", True),
        ("jit_given-" + "a" * 64 + "-cache", True),
        ("jit_step-" + "a" * 64 + "-cache", False),  # a solution's function
        ("jit_scan-" + "a" * 64 + "-cache", False),  # holds a function of the caller's
        ("jit__lambda_-" + "a" * 64 + "-cache", False),  # nobody knows whose
        ("jit_unheard_of-" + "a" * 64 + "-cache", False),
        ("../jit_add-" + "0" * 64 + "-cache", False),
        ("jit_add-0-cache", False),
        ("manifest.json", False),
    ],
)
def test_only_jaxs_own_operations_and_given_functions_are_shared(entry, shared):
    assert is_shareable(entry, frozenset({"step"}), frozenset({"add", "mean", "scan", "step", "given"})) is shared


def test_functions_are_found_at_any_depth():
    assert functions_of(["def a():\n    def b(): pass", "class C:\n    async def d(self): pass"]) == {"a", "b", "d"}


def test_a_folder_keeps_what_it_is_given(tmp_path):
    compiled = Compiled.open(tmp_path, {})
    assert not compiled.has("lab")
    compiled.add("lab", {NAME: b"program", "../escape": b"x", OTHER: b"x" * (2**20 + 1)})
    again = Compiled.open(tmp_path, {})
    assert again.has("lab")
    assert (again.folder / NAME).read_bytes() == b"program"
    assert {path.name for path in again.folder.iterdir()} == {NAME, "manifest.json", ".lock"}
    assert not (tmp_path / "escape").exists()


def _alter(folder):
    (folder / NAME).write_bytes(b"poison")


def _remove(folder):
    (folder / NAME).unlink()


def _slip_in(folder):
    (folder / OTHER).write_bytes(b"poison")


def _break_manifest(folder):
    (folder / "manifest.json").write_text("{")


def _forge_manifest(folder):
    (folder / "manifest.json").write_text(json.dumps({"labs": ["lab"]}))


@pytest.mark.parametrize("harm", [_alter, _remove, _slip_in, _break_manifest, _forge_manifest])
def test_a_folder_that_was_altered_is_emptied(tmp_path, harm):
    compiled = Compiled.open(tmp_path, {})
    compiled.add("lab", {NAME: b"program"})
    harm(compiled.folder)
    again = Compiled.open(tmp_path, {})
    assert not again.has("lab")
    assert {path.name for path in again.folder.iterdir()} == {"manifest.json", ".lock"}


def test_another_setting_is_another_folder():
    assert environment_key({"A": "1"}) != environment_key({"A": "2"})
    assert environment_key({"A": "1"}) == environment_key({"A": "1"})


# Prints how many programs came from the folder, for an operation that the reference also uses and for one that it does not.
COUNT_HITS = """
import collections, os
import jax, jax.numpy as jnp
hits = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: hits.update([event.rsplit("/", 1)[-1]]))

def double(x):
    return 2 * x

double(jnp.asarray([1.0, 2.0, 3.0]))  # of a shape that a hidden assert asks with
print("known", hits["cache_hits"])
hits.clear()
(jnp.ones((3, 7)) @ jnp.ones((7, 5))).block_until_ready()
print("unknown", hits["cache_hits"])
print("files", sorted(os.listdir("/compiled")))
for name in os.listdir("/compiled"):
    try:
        os.unlink(f"/compiled/{name}")
        print("REMOVED", name)
    except OSError:
        pass
try:
    open("/compiled/x", "w")
    print("WRITTEN")
except OSError:
    pass
"""


def test_a_submission_finds_what_the_reference_compiled_and_can_alter_none_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lab = load_lab(tinylab.LAB, root=tinylab.COURSE)
    read = read_submission(tinylab.write(tmp_path, "counts", {"double": COUNT_HITS}), lab)
    (record,) = grade_submissions([Work("one", "s", read, lab)], seed=b"0" * 32, root=tinylab.COURSE)
    printed = next(cell.printed for cell in record.cells if cell.grade_id == "double")
    assert record.score == 4  # the counter is a global that changes, which one assert refuses
    known, unknown = (int(line.split()[1]) for line in printed.splitlines()[:2])
    assert known > 0
    assert unknown == 0
    assert "REMOVED" not in printed
    assert "WRITTEN" not in printed
    (folder,) = (tmp_path / "cache" / "traceonce" / "compiled").iterdir()
    kept = [name for name in os.listdir(folder) if name.endswith("-cache")]
    assert kept
    assert not [name for name in kept if name.startswith(("jit_double-", "jit_step-"))]

"""The README is the front page: each command in it is run here, each link leads somewhere, and its table is the index's."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
TRACEONCE = (sys.executable, "-m", "traceonce")
# The stages and long runs of their own: that make knows them and what they would do is seen here, that they work where they run.
LONG = {
    "make test": "tests/run.py",
    "make proof": "traceonce author graders",
    "make test-latest": "tests/run.py",
    "make changed": "traceonce author changed",
    "make test-gpu": "tests/gpu_run.py",
    "make site": "docs/site/make_site.py",
    "make slides": "docs/site/make_slides.py",
}
IN_A_FOLDER = {
    "traceonce progress": (0, "No prediction has been asked yet"),
    "traceonce doctor": (0, "0 FAIL"),
    "traceonce run train.py": (0, "step"),
    "traceonce grade --trusted work/labs/lab01_pure_functions.ipynb": (0, "5 of 5 cells with visible asserts pass"),
    "traceonce grade submissions/ --out grades/": (0, "1 submission: 1 passed."),
    "traceonce bundle students --out course.zip": (0, "course.zip"),
}
SERVES = {"make learn", "make learn OPEN=0 PORT=9000", "traceonce learn"}
ENVIRONMENT = {"make env KIND=dev"}
TRAIN = """import jax, jax.numpy as jnp
@jax.jit
def step(w):
    return w - 0.1
print(step(jnp.ones(3)))
"""


def commands() -> set[str]:
    """Each command of the page, without its comment and without the path of the environment."""
    found = re.findall(r"`((?:make|traceonce) [^`]+)`", TEXT)
    for language, block in re.findall(r"^```(\w*)\n(.+?)^```$", TEXT, flags=re.M | re.S):
        found += [] if language else block.splitlines()
    return {re.sub(r"\s+#.*", "", command).removeprefix(".venv/bin/").strip() for command in found}


def test_each_command_of_the_page_is_run_here():
    known = set(LONG) | set(IN_A_FOLDER) | SERVES | ENVIRONMENT
    assert commands() == known


@pytest.mark.parametrize("command", sorted(IN_A_FOLDER))
def test_command_does_what_the_page_says(command, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(TRAIN)
    for folder in ("submissions", "work/labs"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(ROOT / "solutions" / "lab01_pure_functions.ipynb", tmp_path / folder)
    monkeypatch.setenv("TRACEONCE_PROGRESS", str(tmp_path / "progress.json"))
    words = command.split()[1:]
    at = tmp_path
    if "bundle" in words:  # of the checkout in whose folder it is given
        at, words[-1] = ROOT, str(tmp_path / words[-1])
    done = subprocess.run([*TRACEONCE, *words], cwd=at, capture_output=True, text=True, timeout=300)
    code, said = IN_A_FOLDER[command]
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("command", sorted({command.split()[0] for command in SERVES}))
def test_command_serves_the_course(command, tmp_path):
    """With a port and a desk of its own, and without a browser: the address that it prints is all there is to see here."""
    if command == "make":
        call = ["make", "learn", "OPEN=0", "PORT=0", f"DESK={tmp_path / 'desk'}"]
    else:
        call = [*TRACEONCE, "learn", "--no-open", "--port", "0", "--desk", str(tmp_path / "desk")]
    with subprocess.Popen(
        call, cwd=ROOT, text=True, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        printed = []
        for line in process.stdout:
            printed.append(line)
            if line.startswith("http://"):
                break
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert printed[-1:], "it ended without a word"
    assert printed[-1].startswith("http://"), "".join(printed)
    assert (tmp_path / "desk" / "index.ipynb").exists()


@pytest.mark.parametrize("command", sorted(ENVIRONMENT))
def test_environment_is_made_or_there(command):
    subprocess.run(command.split(), cwd=ROOT, check=True, capture_output=True, timeout=600)


@pytest.mark.parametrize("command", sorted(LONG))
def test_make_knows_the_long_runs(command):
    done = subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, check=True, capture_output=True, text=True)
    assert LONG[command] in done.stdout
    assert (ROOT / LONG[command]).exists() or LONG[command].startswith("traceonce ")


def test_snippet_counts_the_steps(capsys):
    import jax
    import jax.numpy as jnp

    def train(step):
        for rows in (8, 8, 4):
            step(jnp.ones(rows))

    (snippet,) = re.findall(r"```python\n(.+?)```", TEXT, flags=re.S)
    exec(snippet, {"step": jax.jit(lambda x: x + 1), "train": train})
    assert re.search(r"<lambda>\s+3\s+2\s+2", capsys.readouterr().out)


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)#]+)", TEXT) if "://" not in link]
    assert len(links) > 20
    missing = [link for link in links if not (ROOT / link).exists()]
    assert missing == []


def test_lessons_and_minutes_are_those_of_the_index():
    index = (ROOT / "course" / "index.py").read_text(encoding="utf-8")
    there = re.findall(r"^# \| \[(\d\db? [^\]]+)\].*\| (\d+) \| (?:\[(\d+)\][^|]*)? ?\|?$", index, flags=re.M)
    here = re.findall(r"^\| \[(\d\db? [^\]]+)\].*\| (\d+) \| (?:\[(\d+)\][^|]*)? ?\|?$", TEXT, flags=re.M)
    assert len(here) == 13
    assert here == there


def test_version_to_cite_is_the_package_s():
    import traceonce

    assert f"version: {traceonce.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")

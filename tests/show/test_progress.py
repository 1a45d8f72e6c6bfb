"""The summary of the progress file."""

import json
import subprocess
import sys
from pathlib import Path

from traceonce.show import predict, progress


def some_answers() -> None:
    for id, answer, measured in [("01-P3", "a", "a"), ("01-P4", "b", "a"), ("01-P5", None, "a"), ("02-R1", "b", None)]:
        guess = predict(id, f"What of {id}?", ["a", "b"])
        if answer:
            guess.choose(answer)
        if measured:
            guess.reveal(measured)


def test_the_table_counts_by_lesson() -> None:
    some_answers()
    assert "\n".join(str(progress()).splitlines()[:3]) == (
        "lesson  asked  predicted  revealed  as predicted\n"
        "01          3          2         3             1\n"
        "02          1          1         0             0"
    )


def test_an_answer_after_the_reveal_is_not_counted_as_predicted() -> None:
    guess = predict("01-P3", "What?", ["a", "b"])
    guess.reveal("a")
    guess.choose("a")
    (lesson,) = progress().lessons
    assert (lesson.asked, lesson.predicted, lesson.revealed, lesson.as_measured) == (1, 0, 1, 0)


def test_the_panel_has_headings_a_caption_and_header_cells() -> None:
    some_answers()
    html = progress().html()
    assert "<h3>Your progress</h3>" in html
    assert "<h4>Lesson 02</h4>" in html
    assert "<caption>" in html
    assert '<th scope="row">01</th>' in html
    assert "You predicted b; measured a: not as predicted." in html
    assert "Measured a, without a prediction." in html


def test_the_panel_escapes_what_it_shows() -> None:
    predict("01-P3", "Is <script> run?", ["<b>", "&"]).choose("<b>")
    html = progress().html()
    assert "<script>" not in html
    assert "Is &lt;script&gt; run? You predicted &lt;b&gt;" in html


def test_an_empty_file_says_where_to_begin() -> None:
    assert str(progress()).startswith("No prediction has been asked yet. Open lesson 01 and run its first cells.\n")
    assert "Open lesson 01" in progress().html()


def test_a_broken_file_is_said_and_left_as_it_is(progress_file: Path) -> None:
    progress_file.write_text("{")
    assert "cannot be read (it is not JSON)" in str(progress())
    assert progress_file.read_text() == "{"


def test_json_carries_the_verdicts() -> None:
    some_answers()
    record = json.loads(json.dumps(progress().as_json()))
    assert [p["as_measured"] for p in record["predictions"]] == [True, False, None, None]
    assert record["lessons"][0] == {"lesson": "01", "asked": 3, "predicted": 2, "revealed": 3, "as_measured": 1}


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "traceonce", "progress", *arguments], capture_output=True, text=True)


def test_the_command_prints_the_table_and_as_json_the_record() -> None:
    some_answers()
    done = run_command()
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{progress()}\n", "")
    done = run_command("--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, json.loads(json.dumps(progress().as_json())))


def test_the_command_says_what_is_wrong_with_a_broken_file_and_exits_1(progress_file: Path) -> None:
    progress_file.write_text("{")
    done = run_command()
    assert (done.returncode, "cannot be read (it is not JSON)" in done.stdout, done.stderr) == (1, True, "")
    assert json.loads(run_command("--json").stdout)["trouble"]
    assert progress_file.read_text() == "{"


def test_the_command_starts_without_jax_or_jupyter() -> None:
    source = (
        "import sys\nfrom traceonce.cli import main\nsys.argv = ['traceonce', 'progress']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print(end.code, {'jax', 'IPython', 'anywidget'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 set()"

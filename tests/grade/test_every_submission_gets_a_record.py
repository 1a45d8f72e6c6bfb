"""Each kind of submission, good or bad, ends in a record that says what it was."""

import pytest

# name: status, points, and words that the learner must read somewhere in the record
CALM = {
    "reference": ("passed", 5, ""),
    "wrong": ("failed", 4, "Multiply by two."),
    "mutates": ("failed", 3, "Build a new dict."),
    "reads_global": ("failed", 2, "Do not read the rate from a global."),
    "keeps_global_list": ("failed", 4, ""),
    "keeps_attribute": ("failed", 4, ""),
    "untouched": ("failed", 0, "NotImplementedError"),
    "raises_in_call": ("failed", 3, "return y[7].nothing"),
    "raises_in_cell": ("passed", 5, "ZeroDivisionError"),
    "syntax_error": ("error", 3, "was never closed"),
    "sys_exit": ("error", 3, "SystemExit"),
    "os_exit_in_cell": ("crashed", 3, "exit code 0"),
    "os_exit_in_call": ("crashed", 3, "exit code 0"),
    "kills_itself": ("crashed", 3, "SIGKILL"),
    "segfaults": ("crashed", 3, "SIGSEGV"),
    "untouched_memory": ("memory", 3, "MemoryError"),
    "fork_bomb": ("error", 3, "BlockingIOError"),
    "forks_a_copy": ("passed", 5, ""),
    "prints_much": ("passed", 5, ""),
    "warns": ("passed", 5, ""),
    "magics": ("passed", 5, ""),
    "cell_magic": ("passed", 5, ""),
    "shell": ("passed", 5, "remove that line"),
    "returns_function": ("failed", 3, ""),
    "returns_none": ("failed", 4, ""),
    "returns_itself": ("failed", 3, "nested too deeply"),
    "returns_huge": ("failed", 3, "cannot be handed over"),
    "leaks_tracer": ("passed", 5, ""),
    "returns_leaked_tracer": ("failed", 3, "UnexpectedTracerError"),
    "forgets_name": ("failed", 3, "define it in the cell 'double'"),
    "recompiles": ("failed", 4, "Keep the shape of what you return."),
    "not_json": ("malformed", 0, "not valid JSON"),
    "empty": ("malformed", 0, "is empty"),
    "no_cells": ("malformed", 0, "no cells"),
    "deeply_nested": ("malformed", 0, "nested too deeply"),
    "binary": ("malformed", 0, "not valid JSON"),
    "link": ("malformed", 0, "it is a link"),
    "everything": ("malformed", 0, "it is a link"),
    "zipped": ("malformed", 0, "not valid JSON"),
    "huge": ("malformed", 0, "over 20 MB"),
    "wrong_lab": ("malformed", 0, "lab91_other"),
    "missing_cell": ("missing", 2, "'step' is not in the notebook"),
    "duplicated_cell": ("malformed", 3, "2 different cells"),
    "twin_cell": ("passed", 5, ""),
    "retyped_cell": ("malformed", 3, "no longer a code cell"),
    "reordered_cells": ("passed", 5, "graded in the lab's order"),
}

ENDLESS = {
    "endless_cell": ("timeout", 3, "while True:"),
    "endless_call": ("timeout", 3, "within 4 s"),
    "endless_stubborn": ("timeout", 3, "within 4 s"),
    "endless_reply": ("timeout", 3, "within 4 s"),
    "sleeps_in_c": ("timeout", 3, "within 4 s"),
    "endless_everywhere": ("timeout", 0, "within 4 s"),
    "stubborn_fork_bomb": ("timeout", 3, "within 4 s"),
}


def told(record):
    """All that the learner reads of a record."""
    lines = [*record.reasons]
    for part in (*record.cells, *record.asserts):
        lines += [part.reason, part.where.text if part.where else ""]
    lines += [found.hint for found in record.asserts if found.outcome != "passed"]
    return "\n".join(lines)


@pytest.mark.parametrize("name", CALM)
def test_a_submission_gets_its_status_and_its_points(calm, name):
    status, points, words = CALM[name]
    record = calm[name]
    assert (record.status, record.score) == (status, points)
    assert words in told(record)
    assert not record.defect


@pytest.mark.parametrize("name", ENDLESS)
def test_a_limit_ends_what_does_not_end_itself(endless, name):
    status, points, words = ENDLESS[name]
    record = endless[name]
    assert (record.status, record.score) == (status, points)
    assert words in told(record)
    assert record.max_score == 5


@pytest.mark.parametrize("name", ["memory_bomb", "memory_bomb_in_call", "memory_kept_after_call"])
def test_taking_all_memory_costs_the_task_that_does_it(hungry, name):
    record = hungry[name]
    assert (record.status, record.score) == ("memory", 3)
    assert "512 MB" in told(record)
    # Over 512 the watchdog ends it, unless the limit on data has refused the next 128 MB before it looked.
    assert 256 < record.peak_mb < 1024


def test_running_out_of_memory_by_its_own_word_costs_no_other_task(hungry):
    record = hungry["memory_error_of_its_own"]
    assert (record.status, record.score) == ("memory", 3)


def test_no_submission_is_without_a_record(calm, endless, class_folder):
    assert set(calm) == {path.stem for path in class_folder.glob("*.ipynb")}
    assert set(calm) - {"thread_bomb"} == set(CALM)
    assert set(endless) == set(ENDLESS)


def test_threads_that_use_up_the_process_limit_end_in_a_crash_and_not_in_the_grader(calm):
    record = calm["thread_bomb"]
    assert record.status == "crashed"
    assert "can't start new thread" in told(record)


def test_everything_that_ran_says_in_which_isolation(calm):
    ran = [record for record in calm.values() if record.cells]
    assert len(ran) > 30
    assert {record.tier for record in ran} == {"namespaces"}


def test_an_unreadable_file_still_says_what_its_lab_is_worth(calm):
    assert calm["missing_cell"].max_score == 5
    assert calm["empty"].max_score == 0  # nothing in it or in its name tells the lab


def test_a_wrong_answer_in_one_task_leaves_the_other_task_alone(calm):
    outcomes = {found.name: found.outcome for found in calm["os_exit_in_call"].asserts}
    assert outcomes == {
        "test_doubles_an_array": "failed",
        "test_compiles_once": "failed",
        "test_leaves_arguments_alone": "passed",
        "test_uses_the_rate_it_is_given": "passed",
    }


def test_a_missing_cell_makes_its_asserts_unchecked_and_not_failed(calm):
    outcomes = [found.outcome for found in calm["missing_cell"].asserts if found.task == "step"]
    assert outcomes == ["unchecked", "unchecked"]


def test_printed_text_is_kept_up_to_a_cap(calm):
    printed = max(len(cell.printed) for cell in calm["prints_much"].cells)
    assert 0 < printed <= 4000


def test_visible_asserts_are_not_run(calm):
    assert not [cell.grade_id for cell in calm["warns"].cells if cell.kind == "test"]

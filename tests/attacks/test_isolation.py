"""What student code tries, and what it gets: never more points than the same wrong code without the attack."""

import ast
import json
import re
import subprocess

import attack_cells as attacks
import pytest
import tinylab

from traceonce.grade.supervisor import ZYGOTE_ENVIRONMENT

HONEST_SCORE = 4


def test_the_same_wrong_code_without_an_attack_gets_its_honest_score(attacked):
    records, _ = attacked
    assert records["honest"].score == HONEST_SCORE


@pytest.mark.parametrize("name", [*(name for name in attacks.ATTACKS), "network", "read_all_files"])
def test_no_attack_scores_more_than_honest_code_and_each_has_a_record(attacked, name):
    records, _ = attacked
    assert records[name].score <= HONEST_SCORE
    assert records[name].status != "passed"
    assert not records[name].defect


def test_no_readable_file_holds_hidden_asserts_seed_or_reference(printed):
    text = printed("read_all_files")
    assert int(re.search(r"read (\d+)", text)[1]) > 20
    assert "FOUND" not in text
    assert "EXISTS" not in text
    assert text.count("absent") == 9


def test_the_canary_would_be_found_where_it_is():
    """The search of `READ_ALL_FILES`, run outside the sandbox, finds what the sandbox hides."""
    text = attacks.READ_ALL_FILES.split("import traceonce")[0]
    folder = tinylab.COURSE
    text = text.replace('os.walk("/")', f"os.walk({str(folder)!r})").replace('("proc"', '(".git"')
    found = subprocess.run(["python3", "-c", text], capture_output=True, text=True, check=True).stdout
    assert "FOUND" in found
    assert "test_lab90_tiny.py" in found


def test_no_inherited_memory_holds_hidden_asserts_titles_or_the_seed(printed):
    text = printed("read_all_memory")
    assert int(re.search(r"read (\d+)", text)[1]) > 100
    assert "FOUND" not in text


def test_student_code_sees_two_processes_three_empty_descriptors_and_the_wire(printed):
    text = printed("look_around")
    assert "pids [1, 2]" in text
    assert "fds [0, 1, 2, 3, 4]" in text  # 4 is the listing itself
    assert "OPENED" not in text
    assert text.count("refused") == 4


def test_student_code_has_no_privilege_and_no_way_to_one(printed):
    text = printed("look_around")
    assert "ids 1000 1000 1000 []" in text
    assert "caps " + " ".join(["0" * 16] * 4) in text
    assert "privs 1 2" in text


def test_nothing_of_the_graders_environment_reaches_student_code(printed):
    names = re.search(r"env (\[.*\])", printed("look_around"))[1]
    known = {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER", "LD_LIBRARY_PATH", "TPU_SKIP_MDS_QUERY"}
    assert set(ast.literal_eval(names)) <= known | set(ZYGOTE_ENVIRONMENT)


def test_only_scratch_and_shared_memory_can_be_written_to(printed):
    text = printed("write_everywhere")
    assert set(ast.literal_eval(re.search(r"written (\[.*\])", text)[1])) == {"/scratch", "/dev/shm"}
    devices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
    assert set(ast.literal_eval(re.search(r"writable (\[.*\])", text)[1])) - devices == {"/scratch", "/dev/shm"}
    assert "OPENED" not in text
    assert text.count("refused") == 4


def test_temporary_files_go_to_scratch_wherever_the_environment_lies(printed):
    """Where it lies below /tmp, /tmp is shown read-only: what Python found out before the root was entered must not count."""
    assert "temporary /scratch\n" in printed("look_around")


def test_scratch_space_is_capped_in_bytes_and_in_files(printed):
    text = printed("fill_disks")
    assert re.search(r"/scratch 6[0-4] MB 28", text)
    assert re.search(r"/dev/shm 1[0-6] MB 28", text)
    assert re.search(r"/scratch 40\d\d inodes 28", text)
    assert "WRITTEN" not in text


def test_no_socket_reaches_anything(printed, listener):
    text = printed("network")
    assert "families [1]" in text
    assert "CONNECTED" not in text
    with pytest.raises(TimeoutError):
        listener.accept()


def test_namespaces_mounts_tracing_programs_and_limits_are_refused(printed):
    text = printed("break_out")
    assert "alive" in text
    assert "DONE" not in text
    assert "RAISED" not in text
    assert text.count("exec EPERM") == 3
    assert text.count("EPERM") > 20


def test_nothing_outlives_its_grading(attacked, printed):
    assert "started" in printed("outlive")
    names = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout
    assert "OUTLIVER" not in names


@pytest.mark.parametrize(
    "name", ["speak_out_of_turn", "garbage", "oversized", "endless_number", "another_cell", "one_blob_for_many"]
)
def test_forged_messages_are_tampering_and_end_the_grading(attacked, name):
    records, _ = attacked
    assert records[name].status == "tampering"


def test_a_forged_message_on_an_output_stream_is_only_printed_text(attacked, printed):
    records, _ = attacked
    assert (records["forged_output"].status, records["forged_output"].score) == ("failed", HONEST_SCORE)
    assert '"status": "passed"' in printed("forged_output")


@pytest.mark.parametrize("name", ["points_into_memory", "crashes_who_looks"])
def test_no_field_makes_numpy_read_the_judges_memory(attacked, name):
    """A judge that looked would end, or find its own expected values there."""
    records, _ = attacked
    assert (records[name].status, records[name].defect) == ("failed", "")


def test_a_closed_wire_costs_the_call_that_closed_it(attacked):
    records, _ = attacked
    assert records["close_the_wire"].status == "crashed"
    assert [found.outcome for found in records["close_the_wire"].asserts] == ["failed", "failed", "passed", "passed"]


def test_no_pickle_is_ever_loaded(attacked):
    records, _ = attacked
    assert records["pickle"].score < HONEST_SCORE
    assert subprocess.run(["ls", "/tmp/pickled"], capture_output=True, check=False).returncode != 0


def test_patched_comparisons_in_the_child_do_not_reach_the_judge(attacked):
    records, _ = attacked
    outcomes = {found.name: found.outcome for found in records["patched_comparisons"].asserts}
    assert outcomes["test_doubles_an_array"] == "failed"


def test_patched_jax_observers_and_import_hooks_bring_no_value_right(attacked, printed):
    records, _ = attacked
    outcomes = {found.name: found.outcome for found in records["patched_machinery"].asserts}
    assert outcomes["test_doubles_an_array"] == "failed"
    assert "patched Observer" in printed("patched_machinery")  # the attack did reach what it was after


def test_no_frame_and_no_object_holds_anything_of_the_judges(printed):
    text = printed("walk_objects")
    depth, count = re.search(r"walked (\d+) (\d+) \[\]", text).groups()
    assert int(depth) > 3
    assert int(count) > 500  # what was there before the fork is hidden from the collector
    assert "FOUND" not in text


def test_feedback_of_attacks_holds_neither_canary_nor_source(attacked):
    records, out = attacked
    for name in records:
        for report in ("feedback.txt", "feedback.html", "results.json"):
            text = (out / name / report).read_text()
            assert "CANARY" not in text
            assert "lab.rng" not in text
            assert attacks.SEED not in text


def test_records_of_attacks_are_whole(attacked):
    records, out = attacked
    for name, record in records.items():
        assert json.loads((out / name / "record.json").read_text())["status"] == record.status
    assert not list(out.rglob("left-behind"))

"""Asserts that share one question to a submission."""

import socket

import pytest

from traceonce.grade.hidden import StudentError
from traceonce.grade.session import Session
from traceonce.sandbox.limits import Limits


@pytest.fixture
def session():
    """A session whose child is never asked."""
    ends = [*socket.socketpair(), *socket.socketpair()]
    spec = {"limits": Limits().to_json(), "missing": {}, "absent": {}, "seed": "ab" * 16, "submission": "someone"}
    yield Session(ends[0], ends[2], spec)
    for end in ends:
        end.close()


def test_two_asserts_get_the_same_answer_to_one_question(session):
    asked = []

    def question(lab):
        asked.append(lab.rng.integers(10**9))
        return asked[-1]

    first, second = (session.for_assert(name).once(question) for name in ("test_a", "test_b"))
    assert first == second
    assert len(asked) == 1


def test_another_question_has_other_random_numbers(session):
    def one(lab):
        return lab.rng.integers(10**9)

    def other(lab):
        return lab.rng.integers(10**9)

    lab = session.for_assert("test_a")
    assert lab.once(one) != lab.once(other)


def test_what_the_submission_raised_is_raised_for_each_assert(session):
    asked = []

    def question(lab):
        asked.append(lab)
        raise StudentError("raised", "ValueError", ("ValueError",), "no", "step", 3)

    for name in ("test_a", "test_b"):
        with pytest.raises(StudentError, match="no") as caught:
            session.for_assert(name).once(question)
        assert caught.value.line == 3
    assert len(asked) == 1


def test_a_defect_in_the_question_is_not_kept(session):
    def question(lab):
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            session.for_assert("test_a").once(question)
    assert not session._asked

"""The concept inventory: the build runs the code of its questions and stores what was printed."""

import json
from collections.abc import Iterator

from traceonce.author.course import Course, Finding
from traceonce.author.coverage import owed_claims
from traceonce.errors import TraceOnceError
from traceonce.inventory.questions import ANSWERS, DO_NOT_KNOW, SOURCE, Question, parse

QUESTIONS_A_LESSON = 2
CHOICES = range(3, 6)
_BUILD = "run 'traceonce author build'"


def build_inventory(course: Course) -> str:
    """Run the code of all questions where one has changed, and store the answers; says what was done.

    **Raises**: `TraceOnceError` where a question cannot be read, or its code prints none of its choices.
    """
    asked = _questions(course)
    if not asked or (_stored(course).keys() == {q.id for q in asked} and not list(_stale(course, asked))):
        return "up to date"
    from traceonce.inventory.execution import measure

    answers = measure(asked)
    for question in asked:
        if answers[question.id] not in question.texts:
            raise TraceOnceError(
                f"{SOURCE}: {question.id} prints {answers[question.id]!r}, which is none of its choices."
            )
    stored = {question.id: {"code": question.digest, "answer": answers[question.id]} for question in asked}
    (course.root / ANSWERS).write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
    return "executed"


def faults_of_inventory(course: Course) -> Iterator[Finding]:
    """What is wrong with the questions, and with the stored answers."""
    try:
        asked = _questions(course)
        owed = owed_claims(course)
    except TraceOnceError as error:
        yield Finding(SOURCE, str(error))
        return
    if not asked:
        return
    for name in dict.fromkeys(pair.lesson for pair in course.lessons):
        claims = owed.get(name, {})
        number = sum(question.lesson == name[:2] for question in asked)
        if number != QUESTIONS_A_LESSON:
            yield Finding(SOURCE, f"{name} has {number} questions; each lesson has {QUESTIONS_A_LESSON}.")
        for question in asked:
            if question.lesson == name[:2] and question.claim not in claims:
                yield Finding(SOURCE, f"{question.id} is about {question.claim}, which is no claim of {name}.")
    for question in asked:
        yield from _faults_of_choices(question)
    yield from _stale(course, asked)


def _faults_of_choices(question: Question) -> Iterator[Finding]:
    texts = [choice.text for choice in question.choices]
    beliefs = [choice.misconception for choice in question.choices if choice.misconception]
    if len(texts) not in CHOICES or len(set(texts)) < len(texts) or DO_NOT_KNOW in texts:
        yield Finding(SOURCE, f"{question.id} should have {CHOICES[0]} to {CHOICES[-1]} choices, all different.")
    if len(beliefs) != len(texts) - 1 or len(set(beliefs)) < len(beliefs):
        yield Finding(SOURCE, f"{question.id} should name a misconception of its own for each choice but one.")


def _stale(course: Course, asked: tuple[Question, ...]) -> Iterator[Finding]:
    stored = _stored(course)
    for question in asked:
        answer = stored.get(question.id, {})
        if answer.get("code") != question.digest:
            yield Finding(ANSWERS, f"the answer to {question.id} is not that of its code as it is now: {_BUILD}.")
        elif answer["answer"] not in [choice.text for choice in question.choices]:
            yield Finding(
                ANSWERS, f"the answer to {question.id}, {answer['answer']!r}, is none of its choices: {_BUILD}."
            )
        elif believed := question.misconception(answer["answer"]):
            yield Finding(
                SOURCE, f"{question.id} prints {answer['answer']}, which is listed as a misconception ({believed})."
            )
    for name in stored.keys() - {question.id for question in asked}:
        yield Finding(ANSWERS, f"there is no question {name}: {_BUILD}.")


def _questions(course: Course) -> tuple[Question, ...]:
    path = course.root / SOURCE
    if not path.is_file():
        return ()
    try:
        return parse(path.read_text("utf-8"))
    except ValueError as error:
        raise TraceOnceError(f"{SOURCE} cannot be read ({error}).") from error


def _stored(course: Course) -> dict[str, dict[str, str]]:
    path = course.root / ANSWERS
    if not path.is_file():
        return {}
    try:
        stored = json.loads(path.read_text("utf-8"))
        return {
            str(name): {"code": str(entry["code"]), "answer": str(entry["answer"])} for name, entry in stored.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}  # then every answer is stale, which says the same

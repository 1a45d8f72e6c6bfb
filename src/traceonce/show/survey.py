"""The concept inventory in a notebook: questions with radio buttons, handed in as a whole, scored after the second pass."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceonce.inventory.export import gain_text, table
from traceonce.inventory.questions import DO_NOT_KNOW, Question, answers, questions
from traceonce.inventory.record import SECTION, Record, When, decode, new_record
from traceonce.inventory.scores import gains
from traceonce.show import frontend, ledger

if TYPE_CHECKING:
    from traceonce.show.widgets import PredictionWidget

# What this session knows, for the case that the progress file does not take it.
_session: list[Record] = []


def inventory(when: When) -> "Survey":
    """Open the concept inventory, `"before"` the course or `"after"` it.

    ```python
    survey = inventory("before")
    survey.ask("01")                    # the two questions of a lesson
    survey.hand_in()
    ```
    """
    if when not in ("before", "after"):
        raise ValueError(f'Say inventory("before") or inventory("after"), not {when!r}.')
    return Survey(when)


def read_record(path: Path | None = None) -> Record | None:
    """The learner's answers, from the file or from this session, whichever knows more; None before the first."""
    known = [record for record in (_stored(path), *_session) if record is not None]
    return max(known, key=_size, default=None)


def _stored(path: Path | None = None) -> Record | None:
    section = ledger.section(path or ledger.progress_path(), SECTION)
    if section is None:
        return None
    try:
        return decode(section)
    except ValueError:
        return None  # the next answer keeps it beside the new record, and says so


def _size(record: Record) -> tuple[int, int]:
    sittings = (record.before, record.after)
    return sum(len(s.answers) for s in sittings), sum(s.handed_in is not None for s in sittings)


def _update(change: Callable[[Record], Record]) -> str | None:
    """Apply `change` to the record, here and in the file; a sentence where the file did not take it."""
    said = []

    def renew(section: Any) -> dict[str, Any]:
        stored = None
        unreadable: tuple[Any, ...] = ()
        if section is not None:
            try:
                stored = decode(section)
            except ValueError as error:
                said.append(f"In the progress file {error}; they are kept in it, and a new record was started.")
                unreadable = (section,)
        known = max((r for r in (stored, *_session) if r is not None), key=_size, default=None)
        changed = change(known or new_record())
        return replace(changed, unreadable=(*changed.unreadable, *unreadable)).as_json()

    _session[:] = [change(read_record() or new_record())]
    trouble = ledger.update_section(ledger.progress_path(), SECTION, renew)
    if stored := _stored():
        _session[:] = [max(stored, *_session, key=_size)]
    return trouble or (said[0] if said else None)


class Survey:
    """One pass through the inventory. Made by `inventory`."""

    def __init__(self, when: When) -> None:
        self.when = when
        self._asked: dict[str, _Asked] = {}

    def ask(self, lesson: str) -> None:
        """Show the questions of a lesson, `"01"` to `"12"`."""
        found = [question for question in questions() if question.lesson == lesson]
        if not found:
            raise ValueError(f"There is no question about lesson {lesson!r}: lessons are '01' to '12'.")
        for question in found:
            self._asked[question.id] = _Asked(self, question)
            self._asked[question.id].show()

    def choose(self, id: str, choice: str) -> None:
        """Answer from code, where there are no radio buttons. `ValueError` for another question or choice."""
        question = next((question for question in questions() if question.id == id), None)
        if question is None or choice not in question.texts:
            raise ValueError(f"{id}: {choice!r} is none of {list(question.texts) if question else 'the questions'}.")
        asked = self._asked.setdefault(id, _Asked(self, question))
        asked.choose(choice)

    def answer(self, id: str) -> str | None:
        """The learner's choice, or None before there is one."""
        record = read_record()
        return record.sitting(self.when).answers.get(id) if record else None

    def hand_in(self, *, unanswered: bool = False) -> "Result":
        """Close this pass when every question is answered; with `unanswered` also when some are not.

        What comes back says what is still open; after the second pass, it shows what was right and what you gained.
        """
        record = read_record()
        given = record.sitting(self.when).answered(questions()) if record else 0
        note = None
        if (
            record is not None
            and not record.is_closed(self.when)
            and (given == len(questions()) or (unanswered and given))
        ):
            at = ledger.now()
            note = _update(lambda record: record.with_hand_in(self.when, at))
            for asked in self._asked.values():
                asked.renew()
        return Result(self.when, read_record(), note)


class _Asked:
    """One question on the screen."""

    def __init__(self, survey: Survey, question: Question) -> None:
        self.survey = survey
        self.question = question
        self._note = ""
        self._widget: PredictionWidget | None = None

    def __str__(self) -> str:
        code = "".join(f"    {line}".rstrip() + "\n" for line in self.question.code.splitlines())
        options = "\n".join(f"  ( ) {text}" for text in self.question.texts)
        return f"Question {self.question.id}: {self.question.ask}\n\n{code}\n{options}"

    def show(self) -> None:
        if frontend.kernel_shell() is None:
            print(self)
            return
        frontend.publish(str(self), model_id=self.widget().model_id)

    def widget(self) -> "PredictionWidget":
        """The radio buttons, made on first use."""
        if self._widget is None:
            from traceonce.show.widgets import PredictionWidget

            self._widget = PredictionWidget(
                key=self.question.id,
                title=f"Question {self.question.id}, {self.survey.when} the course",
                question=self.question.ask,
                code=self.question.code,
                choices=list(self.question.texts),
                answer=self.survey.answer(self.question.id),
            )
            self._widget.observe(self._answered, names="answer")
            self.renew()
        return self._widget

    def choose(self, choice: str) -> None:
        when, name = self.survey.when, self.question.id
        self._note = _update(lambda record: record.with_answer(when, name, choice)) or ""
        self.renew()

    def renew(self) -> None:
        """Bring the widget up to date with the record."""
        if self._widget is not None:
            record = read_record()
            closed = record is not None and record.is_closed(self.survey.when)
            self._widget.answer = self.survey.answer(self.question.id)
            self._widget.locked = closed
            self._widget.note = self._note or ("This pass is closed." if closed else "")

    def _answered(self, change: dict[str, Any]) -> None:
        if change["new"] in self.question.texts and change["new"] != self.survey.answer(self.question.id):
            self.choose(change["new"])


@dataclass(frozen=True)
class Result:
    """What became of a pass. `str()` of it is text; in a notebook it shows a panel."""

    when: When
    record: Record | None
    note: str | None = None

    def __str__(self) -> str:
        return "\n".join(_text(self))

    def __repr__(self) -> str:
        return f"<Result of the pass {self.when} the course>"

    def html(self) -> str:
        """The panel."""
        return "".join(_html(self))

    def _ipython_display_(self) -> None:
        frontend.show_panel(
            self,
            "What became of your answers is shown here while the notebook runs; print(survey.hand_in()) gives it as text.",
        )


def state_of(record: Record | None, when: When) -> str:
    """One sentence about a pass: how many are answered, and what is open."""
    sitting = record.sitting(when) if record else None
    given = sitting.answered(questions()) if sitting else 0
    total = len(questions())
    if sitting and sitting.handed_in:
        return f"{when.capitalize()} the course: handed in, {given} of {total} answered."
    if record and record.is_closed(when):
        return f"{when.capitalize()} the course: {given} of {total} answered, and closed when the second pass began."
    return f"{when.capitalize()} the course: {given} of {total} answered, not handed in."


def _sentences(result: Result) -> Iterator[str]:
    record = result.record
    if result.note:
        yield result.note
    yield state_of(record, result.when)
    sitting = record.sitting(result.when) if record else None
    if record is None or sitting is None or not record.is_closed(result.when):
        given = sitting.answers if sitting else {}
        missing = [question.id for question in questions() if given.get(question.id) not in question.texts]
        if missing:
            yield f"Open: {', '.join(missing)}. hand_in(unanswered=True) hands in what is there."
    elif result.when == "before":
        yield "Which answers are right is shown after the second pass, which you take after the last lesson."


def _is_scored(result: Result) -> bool:
    return result.record is not None and result.when == "after" and result.record.after.handed_in is not None


_COLUMNS = ("lesson", "answered twice", "right before", "right after", "gain")


def gain_rows(record: Record) -> list[tuple[str, ...]]:
    """Cells of the table of gains. Only for a record whose second pass is handed in."""
    return [
        (gain.lesson, str(gain.pairs), str(gain.before), str(gain.after), gain_text(gain))
        for gain in gains([record], questions(), answers())
    ]


def gain_table(record: Record) -> Iterator[str]:
    """The table of gains as lines of text."""
    yield from table([_COLUMNS, *gain_rows(record)])


def gain_html(record: Record) -> Iterator[str]:
    """The table of gains as HTML."""
    yield "<table><caption>Gain by lesson: of what there was to learn, the share that you learned</caption><thead><tr>"
    yield f'<th scope="col">{_COLUMNS[0]}</th>'
    yield from (f'<th scope="col" class="to-number">{name}</th>' for name in _COLUMNS[1:])
    yield "</tr></thead><tbody>"
    for name, *numbers in gain_rows(record):
        yield f'<tr><th scope="row">{escape(name)}</th>'
        yield from (f'<td class="to-number">{number}</td>' for number in numbers)
        yield "</tr>"
    yield "</tbody></table>"


def _reviews(record: Record) -> Iterator[tuple[str, str]]:
    """Question id and a sentence about its two answers."""
    for question in questions():
        right = answers()[question.id]
        before, after = (sitting.answers.get(question.id, "nothing") for sitting in (record.before, record.after))
        said = f"{right} is right. Before you said {before}, after {after}."
        if belief := question.misconception(after):
            said += f" That would be so if this held: {belief}. It does not; see lesson {question.lesson}."
        elif after in (DO_NOT_KNOW, "nothing"):
            said += f" See lesson {question.lesson}."
        yield question.id, said


def _text(result: Result) -> Iterator[str]:
    yield from _sentences(result)
    if result.record is not None and _is_scored(result):
        yield ""
        yield from gain_table(result.record)
        yield ""
        yield from (f"{name}: {sentence}" for name, sentence in _reviews(result.record))


def _html(result: Result) -> Iterator[str]:
    yield '<section class="to-box"><h3>Your answers</h3>'
    yield from (f"<p>{escape(sentence)}</p>" for sentence in _sentences(result))
    if result.record is not None and _is_scored(result):
        yield from gain_html(result.record)
        yield "<h4>Question by question</h4><ul>"
        yield from (f"<li>{escape(name)}: {escape(sentence)}</li>" for name, sentence in _reviews(result.record))
        yield "</ul>"
    yield "</section>"

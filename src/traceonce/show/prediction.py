"""Predictions: asked before the evidence, revealed by the measured value."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from traceonce.show import frontend, ledger

if TYPE_CHECKING:
    from traceonce.show.widgets import PredictionWidget

# What this session knows, for the case that the progress file does not take it.
_session: dict[str, ledger.Asked] = {}


def predict(id: str, question: str, choices: Iterable[object]) -> "Prediction":
    """Ask what will be measured; returns at once, whoever reads or does not read.

    In a notebook the question is a set of radio buttons, in plain Python it is printed. A cell that is run again keeps
    the answer that was given; it can be changed until `Prediction.reveal` shows the measured value.

    **Arguments**

    - `id`: the prediction's name, lesson first: `"01-P3"`.
    - `question`: one sentence.
    - `choices`: two or more different answers; each is shown, and compared with the measured value, as `str(choice)`.

    Raises `ValueError`, for the lesson's author, where these do not hold.

    ```python
    guess = predict("01-P3", "Which value does the jitted step use?", ["0.01", "0.1", "it raises"])
    guess.reveal(measured)
    ```
    """
    texts = tuple(str(choice) for choice in choices)
    if not id or not question:
        raise ValueError("A prediction needs an id and a question.")
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise ValueError(f"{id}: a prediction needs at least two choices, all different; these are {list(texts)}.")
    prediction = Prediction(id, question, texts)
    prediction._show()
    return prediction


class Prediction:
    """A question that was asked. Made by `predict`."""

    def __init__(self, id: str, question: str, choices: tuple[str, ...]) -> None:
        self.id = id
        self.question = question
        self.choices = choices
        self._widget: PredictionWidget | None = None
        self._shown_in: int | None = None
        self._revealed: str | None = None  # by this object; the record may hold an earlier run's
        known = _fuller(ledger.read().predictions.get(id), _session.get(id))
        if known is not None:
            _session[id] = known
        self._note = self._record(lambda asked: asked) if known is None else None

    @property
    def answer(self) -> str | None:
        """The learner's choice, or None before there is one."""
        latest = _session[self.id].latest
        # A choice that the question no longer offers (the lesson was rewritten) is no answer to it.
        return latest.choice if latest is not None and latest.choice in self.choices else None

    @property
    def verdict(self) -> str:
        """The sentence about the prediction and the measured value; empty before the reveal."""
        asked = _session[self.id]
        return "" if asked.measured is None else _verdict(asked, asked.measured)[1]

    def choose(self, choice: object) -> None:
        """Answer from code, where there are no radio buttons. `ValueError` if it is none of the choices."""
        if str(choice) not in self.choices:
            raise ValueError(f"{self.id}: {str(choice)!r} is none of the choices {list(self.choices)}.")
        at = ledger.now()
        self._note = self._record(lambda asked: asked.with_answer(str(choice), at))
        if self._widget is not None:
            asked = _session[self.id]
            self._widget.answer = str(choice)
            self._widget.note = self._note or (_earlier(asked) if asked.reveals else "")

    def reveal(self, measured: object) -> None:
        """Show the measured value, and tell the learner in the widget whether it was predicted.

        Prints the same line whatever was predicted, so that stored outputs compare.

        **Arguments**

        - `measured`: the value from the run; `str(measured)` must be one of the choices, else `ValueError`.
        """
        value = str(measured)
        if value not in self.choices:
            raise ValueError(
                f"{self.id}: the measured value {value!r} is none of the choices {list(self.choices)}. "
                "Round or format it before reveal(), or add it to the choices of predict()."
            )
        at = ledger.now()
        self._note = self._record(lambda asked: asked.with_reveal(value, at))
        self._revealed = value
        outcome, sentence = _verdict(_session[self.id], value)
        print(f"{self.id} measured: {value}")
        if frontend.kernel_shell() is None:
            return
        from traceonce.show.widgets import VerdictWidget

        if self._widget is not None:
            self._widget.measured = value
            self._widget.verdict = sentence
            self._widget.note = ""
        card = VerdictWidget(outcome=outcome, verdict=sentence, note=self._note or "")
        # The line above is the text of this cell: where no widget lives, this output has nothing to add.
        frontend.publish("", model_id=card.model_id)

    def __str__(self) -> str:
        options = "\n".join(f"  ( ) {choice}" for choice in self.choices)
        return f"Prediction {self.id}: {self.question}\n{options}"

    def __repr__(self) -> str:
        return f"<Prediction {self.id}: {self.question!r}, {len(self.choices)} choices>"

    def _ipython_display_(self) -> None:
        # `predict(...)` as the last line of a cell has been shown already; `guess` in a later cell shows it again.
        shell = frontend.kernel_shell()
        if shell is None or shell.execution_count != self._shown_in:
            self._show()

    def _show(self) -> None:
        shell = frontend.kernel_shell()
        if shell is None:
            print(self)
            return
        self._shown_in = shell.execution_count
        frontend.publish(str(self), model_id=self.widget().model_id)

    def widget(self) -> "PredictionWidget":
        """The radio buttons, made on first use."""
        if self._widget is None:
            from traceonce.show.widgets import PredictionWidget

            self._widget = PredictionWidget(
                key=self.id,
                title=f"Prediction {self.id}",
                next="Now run the cells below.",
                question=self.question,
                choices=list(self.choices),
                answer=self.answer,
                measured=self._revealed,
                verdict="" if self._revealed is None else self.verdict,
                note=self._note or _earlier(_session[self.id]),
            )
            self._widget.observe(self._answered, names="answer")
        return self._widget

    def _answered(self, change: dict[str, Any]) -> None:
        if change["new"] in self.choices and change["new"] != self.answer:
            self.choose(change["new"])

    def _record(self, change: Callable[[ledger.Asked], ledger.Asked]) -> str | None:
        """Apply `change` to this prediction's record, here and in the file; a sentence where the file did not take it."""

        def renew(stored: ledger.Asked | None) -> ledger.Asked:
            known = _fuller(stored, _session.get(self.id))
            if known is None:
                known = ledger.Asked(self.id, self.question, self.choices, asked=ledger.now())
            return change(replace(known, question=self.question, choices=self.choices))

        _session[self.id] = renew(_session.get(self.id))
        return ledger.update(ledger.progress_path(), self.id, renew)


def _fuller(stored: ledger.Asked | None, remembered: ledger.Asked | None) -> ledger.Asked | None:
    """The record that knows more: the file's, unless this session could not write to it."""
    known = [asked for asked in (stored, remembered) if asked is not None]
    return max(known, key=lambda asked: len(asked.answers) + len(asked.reveals), default=None)


def _verdict(asked: ledger.Asked, measured: str) -> tuple[str, str]:
    counted = asked.counted
    if counted is None:
        return "none", (
            f"Measured {measured}. No prediction was recorded before this, so there is nothing to compare it with. "
            "Try to answer the next one first."
        )
    if counted.choice == measured:
        return "as", f"You predicted {counted.choice}; measured {measured}: as predicted."
    return "other", f"You predicted {counted.choice}; measured {measured}: not as predicted."


def _earlier(asked: ledger.Asked) -> str:
    if asked.reveals and asked.counted is not None:
        return f"Revealed in an earlier run: a new answer is kept, and {asked.counted.choice} stays your prediction."
    if asked.reveals:
        return "Revealed in an earlier run: an answer is kept now, and counts as no prediction."
    if asked.answers:
        return "This is your earlier answer; you can change it until the measured value is shown."
    return ""

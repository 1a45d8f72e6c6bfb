"""What `traceonce grade` shows while it works: a bar on a terminal, a line a submission elsewhere."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from traceonce.grade.record import Record
from traceonce.grade.reports import number


class Progress:
    """Shows records as they come; all of it on standard error.

    **Arguments**

    - `total`: submissions.
    """

    def __init__(self, *, total: int) -> None:
        self.total, self.done, self.kept = total, 0, 0
        self.bar: Bar | None = None
        self.task = TaskID(0)

    def __enter__(self) -> Self:
        console = Console(stderr=True)
        if console.is_terminal:
            columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Bar(*columns, console=console)
            self.task = self.bar.add_task("grading", total=self.total)
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def skip(self) -> None:
        """Count a submission that was graded before."""
        self.done += 1
        self.kept += 1
        if self.bar:
            self.bar.advance(self.task)

    def show(self, record: Record) -> None:
        """Show one more record."""
        self.done += 1
        points = f"{number(record.score)}/{number(record.max_score)}"
        line = f"[{self.done}/{self.total}] {record.submission}: {record.status}, {points}, {record.seconds:.1f} s"
        if self.bar:
            self.bar.console.print(escape(line), highlight=False)
            self.bar.advance(self.task)
        else:
            print(line, file=sys.stderr, flush=True)

    def note(self, sentence: str) -> None:
        """Show a sentence about the work itself."""
        if self.bar:
            self.bar.console.print(escape(sentence), highlight=False)
        else:
            print(sentence, file=sys.stderr, flush=True)

    def summarise(self, counts: Mapping[str, int], folder: Path) -> None:
        """The last lines: how many of which status, and where everything is."""
        parts = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        kept = f" ({self.kept} unchanged since an earlier run)" if self.kept else ""
        print(f"{self.done} submission{'' if self.done == 1 else 's'}{kept}: {parts}.", file=sys.stderr)
        print(f"Records and reports are in {folder}.", file=sys.stderr)

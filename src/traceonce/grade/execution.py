"""Running a lab's cells in the sandboxed child: one namespace, a clock, captured prints, errors as data.

This module is imported by the zygote, before any student code exists. What it uses later it binds now.
"""

import ast
import io
import linecache
import re
import signal
import symtable
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, Literal

PRINTED_CAP = 4000
"""Characters of what one cell or call prints that are kept."""

_MESSAGE_CAP = 300
_QUIET_MAGICS = frozenset({"matplotlib", "config", "load_ext", "reload_ext", "autoreload", "precision", "colors"})

ErrorKind = Literal["raised", "timeout", "memory", "value", "unknown", "skipped"]


class TimeUp(BaseException):
    """The clock of a cell or call ran out. No `Exception`, so that a student's ``except Exception`` lets it pass."""


@dataclass(frozen=True)
class CellError:
    """What went wrong in student code.

    **Arguments**

    - `kind`: `raised` an exception, `timeout`, `memory`, `value` (the result cannot be sent), `unknown` (no such name), or
      `skipped` (the cell was not run).
    - `type_name`, `bases`: the exception's class and the names of all its base classes.
    - `message`: its text, cut to 300 characters.
    - `cell`, `line`: the deepest line in a solution cell (from 1), or where there is none, in another cell; 0 for no line.
    """

    kind: ErrorKind
    type_name: str = ""
    bases: tuple[str, ...] = ()
    message: str = ""
    cell: str = ""
    line: int = 0


class CappedText(io.StringIO):
    """Text up to a cap; what goes beyond is dropped."""

    def write(self, text: str) -> int:
        room = PRINTED_CAP - self.tell()
        if room > 0:
            super().write(text[:room])
        return len(text)


@dataclass(frozen=True)
class Source:
    """A cell to run: its name, whether the learner wrote it, its text, a reason not to run it, and whether it is for show (`unused`)."""

    grade_id: str
    kind: str
    text: str
    skip: str = ""
    for_show: bool = False

    @property
    def filename(self) -> str:
        """What stands in tracebacks for this cell."""
        return f"<{self.kind} cell {self.grade_id or 'without a name'}>"


@dataclass
class Notebook:
    """The namespace that a lab's cells share."""

    sources: tuple[Source, ...]
    module: types.ModuleType = field(default_factory=lambda: types.ModuleType("__main__"))

    def __post_init__(self) -> None:
        sys.modules["__main__"] = self.module
        self.namespace = vars(self.module)
        self.namespace["__builtins__"] = __builtins__
        self.by_file = {source.filename: source for source in self.sources}
        self.unused = unused(self.sources)

    def run_cell(self, source: Source, seconds: float) -> tuple[CellError | None, str]:
        """Run one cell; its error, and what it printed."""
        if source.skip:
            return CellError("skipped", message=source.skip, cell=source.grade_id), ""
        if source in self.unused:
            return None, ""
        return self.guarded(lambda: self._execute(source), seconds)[1:]

    def _execute(self, source: Source) -> None:
        text, tree = parse_cell(source.text, source.filename)
        self.namespace.setdefault("get_ipython", Shell(self.namespace))
        linecache.cache[source.filename] = (len(text), None, text.splitlines(keepends=True), source.filename)
        exec(compile(tree, source.filename, "exec", dont_inherit=True), self.namespace)

    def guarded(self, action: Callable[[], Any], seconds: float) -> tuple[Any, CellError | None, str]:
        """Run student code under the clock; its value, its error and what it printed. Nothing it raises gets out."""
        printed = CappedText()
        value, error = None, None
        try:
            with redirect_stdout(printed), redirect_stderr(printed), _clock(seconds):
                value = action()
        except BaseException as raised:  # noqa: BLE001 - student code may raise anything, SystemExit and worse
            error = self.describe(raised)
        return value, error, printed.getvalue()

    def describe(self, raised: BaseException) -> CellError:
        """An exception of student code as data."""
        cell, line = self._place(raised)
        message = raised.msg if isinstance(raised, SyntaxError) and isinstance(raised.msg, str) else _text_of(raised)
        kind: ErrorKind = "raised"
        if isinstance(raised, TimeUp):
            kind = "timeout"
        elif isinstance(raised, MemoryError) or "RESOURCE_EXHAUSTED" in message:
            kind = "memory"
        bases = tuple(str(base.__name__)[:100] for base in type(raised).__mro__)[:20]
        return CellError(kind, bases[0], bases, message[:_MESSAGE_CAP], cell, line)

    def _place(self, raised: BaseException) -> tuple[str, int]:
        places = [(frame.f_code.co_filename, line) for frame, line in _frames(raised)]
        if isinstance(raised, SyntaxError) and raised.filename in self.by_file:
            places.append((str(raised.filename), raised.lineno or 0))
        known = [(self.by_file[name], line) for name, line in places if name in self.by_file]
        mine = [(source, line) for source, line in known if source.kind == "solution"] or known
        return (mine[-1][0].grade_id, mine[-1][1]) if mine else ("", 0)


_LINE_MAGIC = re.compile(r"(?P<indent>\s*)%(?P<name>\w+)\s*(?P<rest>.*)")
_SHELL_LINE = re.compile(r"(?P<before>\s*(?:[\w, ]+=\s*)?)!{1,2}(?P<rest>.*)")
_HELP_LINE = re.compile(r"(?P<indent>\s*)(\?{1,2}[\w.]+|[\w.]+\?{1,2})\s*")
_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)[^\n]*\n?(?P<rest>.*)", re.DOTALL)
_MOST_MAGICS = 50


def parse_cell(text: str, filename: str) -> tuple[str, ast.Module]:
    """A cell as Python that can be run, and its tree. IPython's magics become calls of `Shell`.

    Only lines that Python's own parser stumbles over are looked at, so that nothing inside a string is taken for a magic.

    **Raises**: `SyntaxError` for what is neither Python nor a magic.
    """
    if found := _CELL_MAGIC.fullmatch(text):
        text = f"get_ipython().run_cell_magic({found['name']!r}, '', {found['rest']!r})\n"
    lines = text.split("\n")
    for _ in range(_MOST_MAGICS):
        try:
            return "\n".join(lines), ast.parse("\n".join(lines), filename)
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            replaced = _as_call(lines[at]) if 0 <= at < len(lines) else None
            if replaced is None:
                raise
            lines[at] = replaced
    return "\n".join(lines), ast.parse("\n".join(lines), filename)


_READS_ANY_NAME = frozenset({"dir", "eval", "exec", "get_ipython", "globals", "locals", "vars"})


_REACHES_ANY_NAME = ("__main__", "__globals__", "f_globals", "_getframe", "builtins", "get_type_hints")
_PARSING_SECONDS = 1.0


def unused(sources: Sequence[Source]) -> frozenset[Source]:
    """The cells for show that no other cell asks anything of: none of their names is a global of another one.

    None is unused where that cannot be told: a cell is no Python, or a learner's may read any name.
    """
    if not any(source.for_show for source in sources):
        return frozenset()
    if any(word in source.text for source in sources if source.kind == "solution" for word in _REACHES_ANY_NAME):
        return frozenset()
    try:
        with _clock(_PARSING_SECONDS):
            names = {source: _names(parse_cell(source.text, source.filename)[0]) for source in sources}
    except (SyntaxError, ValueError, RecursionError, MemoryError, TimeUp):
        return frozenset()
    waiting = {source for source in names if source.for_show}
    used = set[str]().union(*(names[source].used for source in names.keys() - waiting))
    while asked := {source for source in waiting if names[source].bound & used}:
        waiting -= asked
        used = used.union(*(names[source].used for source in asked))
    theirs = set[str]().union(*(names[source].used for source in names if source.kind == "solution"))
    return frozenset() if theirs & _READS_ANY_NAME else frozenset(waiting)


@dataclass(frozen=True)
class _Names:
    """The globals that a text binds, and all that it uses, at any depth. To bind one can be to read it: ``count += 1``."""

    bound: frozenset[str]
    used: frozenset[str]


def _names(text: str) -> _Names:
    bound, used = set[str](), set[str]()
    tables = [symtable.symtable(text, "<cell>", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            # The body of a class that binds a name and reads it may read the global before: ``device = device``.
            is_both = table.get_type() == "class" and symbol.is_assigned() and symbol.is_referenced()
            if table.get_type() == "module" or symbol.is_global() or is_both:
                used.add(symbol.get_name())
                if not is_both and (symbol.is_assigned() or symbol.is_imported()):
                    bound.add(symbol.get_name())
    return _Names(frozenset(bound), frozenset(used))


def _as_call(line: str) -> str | None:
    """A line of IPython's syntax as Python; `None` for any other line."""
    if found := _LINE_MAGIC.fullmatch(line):
        return f"{found['indent']}get_ipython().run_line_magic({found['name']!r}, {found['rest']!r})"
    if found := _SHELL_LINE.fullmatch(line):
        return f"{found['before']}get_ipython().system({found['rest']!r})"
    if found := _HELP_LINE.fullmatch(line):
        return f"{found['indent']}pass"
    return None


@dataclass
class Shell:
    """What ``get_ipython()`` gives while grading: display settings are ignored, timing magics run their code."""

    namespace: dict[str, Any]

    def __call__(self) -> "Shell":
        return self

    def run_line_magic(self, name: str, line: str, **_: Any) -> None:
        """Ignore a setting, run the code of a timing magic, refuse the rest."""
        if name in ("time", "timeit"):
            self.run_cell_magic(name, "", line)
        elif name not in _QUIET_MAGICS:
            raise RuntimeError(f"%{name} does not work while grading: remove that line")

    def run_cell_magic(self, name: str, _line: str, cell: str) -> None:
        """Run the code of a timing or capturing magic, refuse the rest."""
        if name not in ("time", "timeit", "capture"):
            raise RuntimeError(f"%%{name} does not work while grading: remove that line")
        exec(compile(cell, f"<%%{name}>", "exec", dont_inherit=True), self.namespace)

    def system(self, command: str) -> None:
        """Refuse a shell command."""
        raise RuntimeError(f"!{command[:40]} does not work while grading: remove that line")


def _frames(raised: BaseException) -> Iterator[tuple[types.FrameType, int]]:
    trace = raised.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _text_of(raised: BaseException) -> str:
    try:
        text = str(raised)
    except BaseException:  # noqa: BLE001 - a student's own __str__ runs here
        text = "(its text could not be read)"
    return text.encode("utf-8", "replace").decode()


def _ring(_signal: int, _frame: types.FrameType | None) -> None:
    raise TimeUp("it took too long")


_set_timer, _set_handler, _timer, _alarm = signal.setitimer, signal.signal, signal.ITIMER_REAL, signal.SIGALRM
monotonic = time.monotonic


@contextmanager
def _clock(seconds: float) -> Iterator[None]:
    """Raise `TimeUp` in this thread after `seconds`. The supervisor has its own clock for code that swallows it."""
    _set_handler(_alarm, _ring)
    _set_timer(_timer, max(0.05, seconds))
    try:
        yield
    finally:
        _set_timer(_timer, 0)

"""The predictions that a notebook's source asks, and where each is revealed."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from traceonce.author.course import Finding, Pair
from traceonce.grade.percent import SourceCell


@dataclass
class Prediction:
    """One that a source asks: its id, the cell that asks, and whether a later cell reveals it."""

    id: str
    cell: SourceCell
    revealed: bool = False


def predictions_of(pair: Pair) -> tuple[list[Prediction], list[Finding]]:
    """What a source asks with ``name = predict(id, ...)``, and each ``name.reveal(...)`` that has nothing to reveal."""
    asked: list[Prediction] = []
    by_name: dict[str, Prediction] = {}
    findings = []
    for cell in (cell for cell in pair.cells if cell.cell_type == "code"):
        for node in in_order(cell):
            match node:
                case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=func, args=[ast.Constant(str(id_)), *_])):
                    if ast.unparse(func).split(".")[-1] == "predict":
                        if any(earlier.id == id_ for earlier in asked):
                            findings.append(Finding(pair.at(cell), f"prediction {id_!r} is asked twice."))
                        by_name[name] = Prediction(id_, cell)
                        asked.append(by_name[name])
                case ast.Call(func=ast.Attribute(value=ast.Name(name), attr="reveal")):
                    if name not in by_name:
                        findings.append(Finding(pair.at(cell), f"{name}.reveal(...) has no predict(...) before it."))
                    elif by_name[name].cell is not cell:
                        by_name[name].revealed = True
    return asked, findings


def in_order(cell: SourceCell) -> Sequence[ast.AST]:
    """The syntax of a code cell in the order of its text; nothing for a cell that is not Python."""
    lines = ["" if re.match(r"\s*[%!]", line) else line for line in cell.source.splitlines()]
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError:
        return []  # a cell magic, or a syntax error that running the notebook shows
    located: list[ast.stmt | ast.expr] = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)]
    return sorted(located, key=lambda node: (node.lineno, node.col_offset))

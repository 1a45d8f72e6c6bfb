"""Each line of the two checklists in docs/preflight.md can be run, and says what the page says."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "preflight.md"
BLOCK = re.compile(r"```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<text>.*?)\n```)?", re.S)
LINE = re.compile(r"^\*\*(\d+)\. ", re.M)


def test_each_example_prints_what_stands_below_it():
    variables = {"__name__": "docs"}
    compared = 0
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block["code"], "preflight.md", "exec"), variables)
        if block["text"] is not None:
            assert printed.getvalue().rstrip() == block["text"], block["code"]
            compared += 1
    assert compared == 15


def test_each_line_of_a_list_has_a_command():
    lists = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:3]
    for lines in lists:
        numbers = [int(number) for number in LINE.findall(lines)]
        assert numbers == list(range(1, len(numbers) + 1))
        for line in re.split(r"^\*\*\d+\. ", lines, flags=re.M)[1:]:
            assert "```python" in line or "`traceonce doctor`" in line, line

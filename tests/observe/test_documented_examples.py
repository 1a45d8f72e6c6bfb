"""The examples in docs/observe.md print what the page says."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "observe.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)\n```", re.S)


def test_each_example_prints_what_stands_below_it():
    examples = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(examples) >= 10
    variables = {"__name__": "docs"}
    for source, expected in examples:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(source, "observe.md", "exec"), variables)
        assert printed.getvalue().rstrip().replace("cuda:0", "cpu:0").replace("on gpu", "on cpu") == expected, source

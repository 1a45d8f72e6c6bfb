"""Record what PyTorch prints for the snippets in `course/torch_to_jax/torch_to_jax.py`, for `traceonce.data.torch_habits`.

The snippets are the blocks of Python in the page's text cells, each under a heading that names its row: the page is their only
source. It was run with torch 2.13.0+cpu, whose version stands in the file that it wrote. PyTorch is no part of the project's
environment: run this in one of its own that has torch and NumPy.

    python tests/data/record_torch_habits.py
"""

import contextlib
import io
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "course" / "torch_to_jax" / "torch_to_jax.py"
RECORDED = ROOT / "src" / "traceonce" / "data" / "torch_habits.json"

_ROW = re.compile(r"^# ### (?P<name>\w+)\n#\n# ```python\n(?P<code>.*?)^# ```$", re.MULTILINE | re.DOTALL)


def snippets() -> dict[str, str]:
    """Row -> the PyTorch code in the page."""
    rows = _ROW.finditer(PAGE.read_text("utf-8"))
    return {row["name"]: re.sub(r"^# ?", "", row["code"], flags=re.MULTILINE) for row in rows}


def record() -> None:
    """Run every snippet and write code and output."""
    import numpy as np
    import torch
    import torch.nn.functional as functional

    torch.set_num_threads(1)
    rows = {}
    for name, code in snippets().items():
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, f"<{name}>", "exec"), {"torch": torch, "np": np, "nn": torch.nn, "F": functional})
        rows[name] = {"code": code, "printed": said.getvalue().strip()}
        print(f"{name}: {rows[name]['printed']}")
    RECORDED.write_text(json.dumps({"version": str(torch.__version__), "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    record()

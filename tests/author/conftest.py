"""A whole course in small, made anew for each test: one lesson, one lab, its asserts and its submissions."""

import shutil
import subprocess
from pathlib import Path

import pytest

LESSON = """\
# %% [markdown]
# # 01 One tiny lesson
#
# ## Question
#
# Where does the sum go?

# %% [markdown]
# ## Before you run

# %%
from traceonce import predict

guess = predict("01-P1", "What is one and one?", ["1", "2"])

# %% [markdown]
# ## Adding

# %% claims=["P1"]
total = 1 + 1
print(total)

# %%
guess.reveal(str(total))

# %% [markdown]
# ## Adding again

# %% [markdown]
# ## Break it

# %% [markdown]
# ## Repair it

# %% [markdown]
# ## In the wild

# %% [markdown]
# ## Recap

# %% [markdown]
# ## Lab
"""

LAB = '''\
# %% [markdown]
# # Lab 01
#
# ## Situation
#
# A colleague's sum is off by one.

# %% nbgrader={"grade_id": "setup", "solution": false, "grade": false, "locked": true, "schema_version": 3}
import math

# %% [markdown]
# ## Task 1: add

# %% nbgrader={"grade_id": "add", "solution": true, "grade": false, "locked": false, "schema_version": 3}
def add(a, b):
    """The sum of two numbers."""
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION

# %% nbgrader={"grade_id": "test_add", "solution": false, "grade": true, "points": 1, "locked": true, "schema_version": 3}
assert add(1, 1) == 2

# %% [markdown]
# ## Task 2: double

# %% nbgrader={"grade_id": "double", "solution": true, "grade": false, "locked": false, "schema_version": 3}
def double(a):
    ### BEGIN SOLUTION
    return add(a, a)
    ### END SOLUTION

# %% nbgrader={"grade_id": "test_double", "solution": false, "grade": true, "points": 2, "locked": true, "schema_version": 3}
assert math.isclose(double(2), 4)

# %% [markdown]
# ## What the hidden asserts look at

# %% [markdown]
# ## Going further
'''

CLAIMS = """\
[01_tiny]
P1 = "One and one make two."

[02_later]
K1 = "A lesson that nobody has written."
"""

JUPYTEXT = """\
formats = "ipynb,py:percent"
notebook_metadata_filter = "-all"
cell_metadata_filter = "tags,claims,ignored,nbgrader,editable,deletable,slideshow,-all"
"""


def lay_out(root: Path) -> Path:
    """Write the small course into a folder and let git track it."""
    files = {
        "course/01_tiny/01_tiny.py": LESSON,
        "course/jupytext.toml": JUPYTEXT,
        "solutions/lab01_tiny.py": LAB,
        "solutions/jupytext.toml": JUPYTEXT,
        "docs/claims.toml": CLAIMS,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a small course, tracked by git, not built yet."""
    return lay_out(tmp_path / "small")


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small course after one build; copied by `built`, never changed."""
    from traceonce.author.building import build
    from traceonce.author.course import Course

    root = lay_out(tmp_path_factory.mktemp("template") / "small")
    assert build(Course(root)) == 0
    return root


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> Path:
    """The folder of a small course that is built."""
    shutil.copytree(built_once, tmp_path / "built")
    return tmp_path / "built"

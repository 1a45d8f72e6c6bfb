"""The learner's desk: their copies of the course, and JupyterLab on top of them.

- `traceonce.desk.copies`: which files a desk holds and how it follows the course; never overwrites a learner's work
- `traceonce.desk.layout`: how JupyterLab looks on a desk
- `traceonce.desk.server`: JupyterLab in this process, with settings of its own
- `traceonce.desk.session`: what `make learn` does, from an empty folder to a printed address
"""

from traceonce.desk.session import learn

__all__ = ["learn"]

"""`traceonce run`: anybody's program under the observer, unmodified.

- `start`: checks the request, starts the witness and becomes the program
- `bootstrap/sitecustomize.py`, `inside`, `recorder`: what happens in the program: the observer starts with `import jax`
- `witness`: a process beside the program that hears what happens and outlives it
- `report`, `text`, `page`: what the witness heard, as a table, as JSON and as HTML

The program stays itself: the command *becomes* the program (same process, plain `python SCRIPT ARGS`), so its exit code,
output, signals, `__main__` and exit handlers are Python's own. Nothing of it is wrapped. What is known of it comes from
JAX's public monitoring events and, at a trace or a compile, from a look at the stack that asked for it.
"""

from traceonce.run.start import run as run

__all__ = ["run"]

"""Runs in the program's process before the program: starts the recording and leaves no trace of itself.

Python imports the first `sitecustomize` on its path, and `traceonce run` puts this one first. The machine's own, if it has
one, gets its turn at the end; if it has none, the import fails as it would have failed without us.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_settings = os.environ.pop("TRACEONCE_RUN", None)
_before = os.environ.pop("TRACEONCE_RUN_PYTHONPATH", None)
if _before is None:
    os.environ.pop("PYTHONPATH", None)
else:
    os.environ["PYTHONPATH"] = _before
sys.path[:] = [entry for entry in sys.path if entry != _here]
sys.path_importer_cache.pop(_here, None)
sys.modules.pop("sitecustomize", None)

if _settings is not None:
    from traceonce.run import inside

    inside.begin(_settings)

import sitecustomize  # type: ignore[import-not-found]  # noqa: E402,F401 - the machine's own; without one this is the ImportError that Python expects

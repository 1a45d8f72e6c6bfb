"""What bubblewrap starts for one submission: the same imports as the zygote's, then the child.

    python -m traceonce.grade.alone START

`START` is what `sandbox.bubblewrap.Start` gives. Nothing is traced beforehand: that pays only where many children share it.
"""

import sys

from traceonce.grade.zygote import import_all
from traceonce.sandbox import bubblewrap
from traceonce.sandbox.guard import end_others


def main() -> None:
    """Import, fork the child, end with it."""
    told = bubblewrap.Start.from_text(sys.argv[1])
    import_all()
    from traceonce.grade import child

    wire, job = told.keep
    bubblewrap.be_init(lambda: child.run(wire, job, end_others), told)


if __name__ == "__main__":
    main()

"""``python -m traceonce``."""

from traceonce.cli import main

main()

"""`traceonce` with the tests' own course in place of the checkout's: what runs is the command and nothing around it."""

import tinylab

from traceonce import cli
from traceonce.grade import batch

if __name__ == "__main__":
    batch.find_root = lambda: tinylab.COURSE
    cli.main()
